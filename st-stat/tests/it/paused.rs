//! A program that pauses recording: what it does then is neither computation nor imbalance.

use st_model::calls::names;
use st_model::section::Section;

use crate::common::{Rank, printed, rows, untimed};

/// Rank 0 pauses recording for 600 µs of a run of 1 ms; rank 1 waits for it. `site` is where that is: one for both levels, or one each.
fn program(sites: [&str; 2]) -> Vec<Section> {
    let of = |rank: u32| {
        let mut r = Rank::new(rank, 2);
        r.call(names::MPI_Init, "main", &[], (0, 1_000));
        r.call(names::MPI_Barrier, "first", &[0], (101_000, 102_000));
        if rank == 0 {
            for (level, site) in (0..).zip(sites) {
                r.call(
                    names::MPI_Pcontrol,
                    site,
                    &[level],
                    (202_000 + 600_000 * level, 202_000 + 600_000 * level),
                );
            }
        }
        let enter = if rank == 0 { 902_000 } else { 202_000 };
        r.call(names::MPI_Barrier, "second", &[0], (enter, 902_000));
        r.call(names::MPI_Finalize, "main", &[], (1_001_000, 1_002_000));
        r.finish("host")
    };
    vec![of(0), of(1)]
}

#[test]
fn time_while_recording_is_paused_is_told_apart() {
    for made in
        [program(["pause", "resume"]), program(["both", "both"]), untimed(program(["pause", "resume"]))]
    {
        let summary = &rows(&printed(made.clone(), &["--format", "csv"]))[0];
        let [mean, most] = [summary["paused_mean_ns"].as_str(), &summary["paused_longest_ns"]];
        assert_eq!((mean, most, &*summary["paused_percent"]), ("300000", "600000", "30.0"), "{summary:?}");
        let ranks = rows(&printed(made.clone(), &["ranks", "--format", "csv"]));
        let of = |rank: usize| {
            ["computation_ns", "paused_ns", "paused_percent"].map(|column| ranks[rank][column].clone())
        };
        assert_eq!(of(0), ["399000", "600000", "60.0"]);
        assert_eq!(of(1), ["299000", "0", "0.0"]);
        assert!(
            printed(made, &[]).contains("recording paused     300 µs per rank (mean), 30.0 % of its time")
        );
    }
}

#[test]
fn waits_for_a_rank_that_has_paused_recording_are_not_for_its_computation() {
    let why = printed(program(["pause", "resume"]), &["why"]);
    assert!(
        why.contains("30.0 %    600 µs  recording paused: what rank 0 does then is not in the trace"),
        "{why}"
    );
    assert!(
        why.replace("\n        ", " ").contains("since recording of rank 0 was paused by MPI_Pcontrol (site"),
        "{why}"
    );
    let json = printed(program(["pause", "resume"]), &["why", "--format", "json"]);
    assert!(json.contains(r#""cause":"recording paused""#), "{json}");
    let efficiency = printed(program(["pause", "resume"]), &["efficiency"]);
    assert!(efficiency.contains("recording paused, mean"), "{efficiency}");
    // Rank 0 alone has paused: what the others do then counts.
    let share = |line: &&str| line.split_whitespace().last().and_then(|v| v.parse::<f64>().ok());
    let shares: Vec<f64> = efficiency.lines().filter_map(|line| share(&line)).collect();
    assert!(shares.len() == 5 && shares.iter().all(|share| *share <= 1.0), "{efficiency}");
}

#[test]
fn phases_say_for_how_long_recording_was_paused() {
    let turns =
        rows(&printed(program(["pause", "resume"]), &["phases", "--by", "pcontrol", "--format", "csv"]));
    let of = |level| turns.iter().find(|row| row["level"] == level).unwrap();
    assert_eq!((&*of("0")["time_ns"], &*of("0")["paused_ns"]), ("600000", "600000"));
    assert_eq!(&*of("1")["paused_ns"], "0");
}

#[test]
fn levels_that_do_not_pause_are_calls_as_others() {
    let of = |rank: u32| {
        let mut r = Rank::new(rank, 1);
        r.call(names::MPI_Init, "main", &[], (0, 1_000));
        r.call(names::MPI_Pcontrol, "phase", &[2], (101_000, 151_000));
        r.call(names::MPI_Pcontrol, "pause", &[0], (251_000, 251_000));
        r.call(names::MPI_Pcontrol, "resume", &[1], (351_000, 351_000));
        r.call(names::MPI_Finalize, "main", &[], (451_000, 452_000));
        r.finish("host")
    };
    let path = rows(&printed(vec![of(0)], &["path", "--format", "csv"]));
    let of = |what: &str| {
        path.iter()
            .filter(|row| row["activity"] == what)
            .map(|row| row["path_ns"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("recording paused"), ["100000"], "{path:?}");
    assert!(of("call").contains(&"50000".to_owned()), "{path:?}");
}
