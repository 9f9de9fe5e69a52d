//! Errors of replays, by the definitions of the papers.

use std::path::{Path, PathBuf};

use clap::Parser as _;
use st_capture::record::{Options, RankRecorder};
use st_cli::options::{Steps, StreamIn, Talk};
use st_cli::{Screen, Status};
use st_model::calls::CallTable;
use st_model::header::Header;
use st_stat::args::Args;
use st_stat::mape::{Run, mape, pairs, report, table};
use st_stat::table::Format;
use st_stream::{Trace, WriteOptions};

const CSV: &str = "name,recorded_s,replayed_s,reference_s\nbt,10,11,12.5\ncg, 20 ,18,\n";

/// What is printed of a table of runs.
fn printed(content: &str, format: Format) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("runs");
    std::fs::write(&path, content).unwrap();
    let mut out = Vec::new();
    report(&table(&path).unwrap()).write(format, Screen { width: 120, colour: false }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn runs_of_a_table_have_errors_and_accuracies_of_both_kinds() {
    let expected = "\
run     recorded     replayed     error     MAPE  accuracy  of reference  worst rank
bt   10.000000 s  11.000000 s   10.00 %  10.00 %   90.00 %       88.00 %           -
cg   20.000000 s  18.000000 s  -10.00 %  10.00 %   90.00 %             -           -
all            -            -    0.00 %  10.00 %   90.00 %       88.00 %           -
";
    assert_eq!(printed(CSV, Format::Text), expected);
    let expected = "\
run,recorded_s,replayed_s,error_percent,mape_percent,accuracy_percent,reference_accuracy_percent,worst_rank_percent
bt,10.0,11.0,10.0,10.0,90.0,88.0,
cg,20.0,18.0,-10.0,10.0,90.0,,
";
    assert_eq!(printed(CSV, Format::Csv), expected);
}

#[test]
fn json_says_the_same_as_csv() {
    let lines = "{\"name\":\"bt\",\"recorded_s\":10,\"replayed_s\":11.0,\"reference_s\":12.5}\n\
                 {\"name\":\"cg\",\"recorded_s\":20,\"replayed_s\":\"18\"}\n";
    let list = format!("[{}]", lines.trim().replace('\n', ","));
    assert_eq!(printed(lines, Format::Text), printed(CSV, Format::Text));
    assert_eq!(printed(&list, Format::Text), printed(CSV, Format::Text));
}

#[test]
fn tables_without_times_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("runs");
    let refused = |content: &str| {
        std::fs::write(&path, content).unwrap();
        format!("{:#}", table(&path).unwrap_err())
    };
    assert!(refused("name,recorded_s\nbt,10\n").contains("run 1: no replayed_s"));
    assert!(refused("recorded_s,replayed_s\n10,0\n").contains("not a time in seconds: 0"));
    assert!(refused("").contains("no run") && refused("recorded_s,replayed_s\n").contains("no run"));
    assert!(refused("[7]").contains("a run is an object"));
}

/// A trace of ranks that compute for so many ns between `MPI_Init`, of 1 µs, and `MPI_Finalize`.
fn trace(path: &Path, computed: &[i64]) {
    trace_of("app", "MPI_Barrier", path, computed);
}

/// As [`trace`], of a program that calls this function.
fn trace_of(program: &str, function: &str, path: &Path, computed: &[i64]) {
    let rank = |(rank, ns): (u32, &i64)| {
        let mut r = RankRecorder::new(rank, Options::default());
        r.open_thread(0);
        let site = r.sites.stack(Vec::new());
        let id = |name| CallTable::builtin().by_name(name).unwrap().id;
        let [init, barrier, end] =
            ["MPI_Init", function, "MPI_Finalize"].map(|name| r.symbol(id(name), site, 0));
        r.record(0, init, &[], 0, 1000);
        r.record(0, barrier, &[0], 1000 + ns, 1000 + ns + 100);
        r.record(0, end, &[], 1000 + ns + 100, 9_000_000);
        r.finish("host")
    };
    let sections = (0..).zip(computed).map(rank).collect();
    let header = Header { world: 2, program: program.into(), ..Header::default() };
    let trace = Trace { header, sections, level: 0, ..Trace::default() };
    let mut file = std::fs::File::create(path).unwrap();
    st_stream::write(&trace, &mut file, WriteOptions { level: 0 }).unwrap();
}

/// To read no more steps than this.
fn within(max_steps: u64) -> StreamIn {
    let mut input = StreamIn::default();
    input.steps = Steps { max_steps };
    input
}

#[test]
fn pairs_of_traces_compare_the_slowest_ranks_and_each_rank() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = ["app.st", "replay.st"].map(|n| dir.path().join(n)).to_vec();
    trace(&paths[0], &[900, 1900]);
    trace(&paths[1], &[700, 2100]);
    let runs = pairs(&paths, &within(1000), &Talk::default()).unwrap();
    let expected =
        Run { name: "app".into(), recorded: 2e-6, replayed: 2.2e-6, reference: None, worst: Some(20.0) };
    assert_eq!((&runs[0].name, runs[0].reference), (&expected.name, expected.reference));
    assert!((runs[0].recorded - expected.recorded).abs() < 1e-12);
    assert!((runs[0].worst.unwrap() - 20.0).abs() < 1e-9 && (mape(&runs) - 10.0).abs() < 1e-9);
    assert!(pairs(&paths[..1], &within(1000), &Talk::default()).is_err());
    let few = pairs(&paths, &within(10), &Talk::default());
    assert!(format!("{:#}", few.unwrap_err()).contains("app.st: to go through it takes"));
}

#[test]
fn only_the_replay_of_a_trace_belongs_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = ["app.st", "other.st"].map(|n| dir.path().join(n)).to_vec();
    trace(&paths[0], &[900, 1900]);
    let said = |program: &str, function: &str, computed: &[i64]| {
        trace_of(program, function, &paths[1], computed);
        let pairs = pairs(&paths, &within(1000), &Talk::default());
        let Err(error) = pairs else { return "compared".to_owned() };
        assert!(error.is::<st_cli::InvalidStream>(), "{error:#}");
        let (_, how) =
            error.to_string().split_once("app.st: ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        how.split_once(": give ").unwrap().0.to_owned()
    };
    let two = &[900, 1900][..];
    assert_eq!(said("/opt/bin/st-replay", "MPI_Barrier", two), "compared");
    assert_eq!(said("app", "MPI_Barrier", two), "compared");
    assert_eq!(said("cfd", "MPI_Barrier", two), "it is no replay, and of cfd, not app");
    assert_eq!(said("st-replay", "MPI_Barrier", &[900]), "it lacks rank 1");
    assert_eq!(said("st-replay", "MPI_Win_fence", two), "it calls none of the functions that app calls");
}

#[test]
fn what_is_as_large_as_the_limit_is_not_above_it() {
    let dir = tempfile::tempdir().unwrap();
    let [runs, out] = ["runs", "out"].map(|name| dir.path().join(name).display().to_string());
    // In binary the mean of these errors, 10 % each, is more than 10 %.
    std::fs::write(&runs, "name,recorded_s,replayed_s\na,1,1.1\nb,2,1.8\n").unwrap();
    let status = |limit| {
        let words = ["st-stat", "mape", "-q", "-o", &out, "--limit", limit, "--runs", &runs];
        st_stat::run(&Args::try_parse_from(words).unwrap()).unwrap()
    };
    assert_eq!([status("10"), status("9.99")], [Status::Ok, Status::Difference]);
}
