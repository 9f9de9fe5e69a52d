//! How options are read, and what is told to the recorder.

use super::*;

#[test]
fn options_after_the_command_are_its_own() {
    Args::command().debug_assert();
    let a = Args::parse_from(["st-record", "-o", "x.st", "--", "mpirun", "-n", "4", "./a", "-o", "y"]);
    assert_eq!(a.command, ["mpirun", "-n", "4", "./a", "-o", "y"].map(OsString::from));
    let b = Args::parse_from(["st-record", "mpirun", "-n", "4", "./a", "-q"]);
    assert_eq!((b.command.len(), b.talk.quiet, b.time_budget), (5, false, 256 << 20));
    assert!(
        Args::try_parse_from(["st-record"]).is_err()
            && Args::try_parse_from(["st-record", "--check"]).is_err()
    );
    assert_eq!((a.passed_on(), b.passed_on()), (None, None));
    let lost = Args::parse_from(["st-record", "mpirun", "./a", "--sync-interval=3"]);
    assert_eq!(lost.passed_on().as_deref(), Some("--sync-interval=3"));
    let lost = Args::parse_from(["st-record", "mpirun", "./a", "-o", "y.st"]);
    assert_eq!(lost.passed_on().as_deref(), Some("-o"));
    assert!(Args::try_parse_from(["st-record", "--env"]).is_ok());
    assert!(Args::try_parse_from(["st-record", "--recover", "d"]).is_ok());
    assert!(Args::try_parse_from(["st-record", "--recover", "d", "x"]).is_err());
    assert!(Args::try_parse_from(["st-record", "--only", "3-1", "x"]).is_err());
    let c = Args::parse_from(["st-record", "--only", "0-3,8", "--clock", "mpi_wtime", "x"]);
    let set = |name| c.environment().into_iter().find(|(n, _)| *n == name).map(|(_, v)| v);
    assert_eq!(set("ST_ONLY"), Some("0-3,8".into()));
    assert_eq!(
        [set("ST_CLOCK"), set("ST_TIME_BUDGET")],
        [Some("mpi_wtime".into()), Some("268435456".into())]
    );
    assert_eq!([set("ST_FOLD"), set("ST_SIG")], [Some("exact".into()), Some("1".into())]);
    let d = Args::parse_from([
        "st-record",
        "--fold",
        "approx",
        "--fold-ratio",
        "80",
        "--fold-common",
        "0",
        "--sig-threshold",
        "2",
        "x",
    ]);
    let set = |name| d.environment().into_iter().find(|(n, _)| *n == name).map(|(_, v)| v);
    assert_eq!([set("ST_FOLD"), set("ST_SIG")], [Some("approx:5000:80:0".into()), Some("2".into())]);
    assert!(Args::try_parse_from(["st-record", "--sig-range", "libx.so", "x"]).is_err());
    assert!(Args::try_parse_from(["st-record", "--ouptut", "x.st", "./a"]).is_err());
    assert!(Args::try_parse_from(["st-record", "--time", "exact", "x"]).is_err());
    assert!(Args::try_parse_from(["st-record", "--sync", "--no-sync", "x"]).is_err());
    let e = Args::parse_from(["st-record", "--sync-interval", "0.25", "x"]);
    assert!(e.environment().contains(&("ST_SYNC_INTERVAL", "0.25".into())));
    assert!(!a.environment().iter().any(|(n, _)| *n == "ST_SYNC_INTERVAL"));
    // Ranks that are not recorded would not come to a comparison in between.
    let both = ["st-record", "--sync-interval", "1", "--only", "0", "x"];
    assert!(Args::try_parse_from(both).is_err());
    let f = Args::parse_from(["st-record", "--merge", "--merge-timeout", "2.5", "x"]);
    let set = |name| f.environment().into_iter().find(|(n, _)| *n == name).map(|(_, v)| v);
    assert_eq!([set("ST_MERGE"), set("ST_MERGE_TIMEOUT")], [Some("cluster".into()), Some("2.5".into())]);
    let g = Args::parse_from(["st-record", "--merge=plain", "x", "plain"]);
    assert!(g.environment().contains(&("ST_MERGE", "plain".into())) && g.command.len() == 2);
    let h = Args::parse_from(["st-record", "--reduce-every", "1.5h", "--merge-timeout=3", "x"]);
    assert!(h.environment().contains(&("ST_REDUCE_EVERY", "5400".into())) && h.merge.is_none());
    let times = ["90", "90s", "10m", "2h", "1d"].map(|t| time(t).unwrap().to_string());
    assert_eq!(times, ["90", "90", "600", "7200", "86400"]);
    for wrong in ["", "m", "10M", "0", "-1s", "nan", "400d", "1hm"] {
        assert!(time(wrong).is_err(), "{wrong}");
    }
    // Ranks that are not there cannot be merged.
    for other in ["--only=0", "--no-sync", "--merge-timeout=0"] {
        assert!(Args::try_parse_from(["st-record", "--merge", other, "x"]).is_err(), "{other}");
    }
    for wrong in ["0", "-1", "nan", "1x"] {
        let given = format!("--sync-interval={wrong}");
        assert!(Args::try_parse_from(["st-record", &given, "x"]).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_kept_of_parameters_and_times_is_told_to_the_recorder() {
    let told = |words: &str| Args::parse_from(words.split(' ')).environment();
    let parameters = told("st-record --merge --histogram=dest,count --histogram-threshold 8 x");
    assert!(parameters.contains(&("ST_HISTOGRAM", "dest,count:8".into())));
    assert!(Args::try_parse_from(["st-record", "--histogram", "dest", "x"]).is_err(), "without --merge");
    let times = told("st-record --time hist --hist-bins 10 --hist-smooth 20 x");
    assert!(times.contains(&("ST_TIME", "hist:10:20".into())));
}

#[test]
fn options_of_what_is_not_asked_for_are_named() {
    let idle = |words: &str| Args::parse_from(words.split(' ')).idle();
    assert_eq!(
        idle("st-record --time hist --hist-bins 10 --hist-smooth 9 --fold approx --fold-ratio 9 x"),
        None
    );
    assert_eq!(idle("st-record --hist-bins 5 --fold exact x"), None);
    assert_eq!(idle("st-record --hist-bins 10 x"), Some(["--hist-bins", "--time hist"]));
    assert_eq!(idle("st-record --time sketch --hist-smooth 9 x"), Some(["--hist-smooth", "--time hist"]));
    for option in ["--fold-window", "--fold-ratio", "--fold-common"] {
        assert_eq!(idle(&format!("st-record {option} 7 x")), Some([option, "--fold approx"]));
    }
}
