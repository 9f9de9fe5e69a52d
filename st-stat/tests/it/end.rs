//! Who comes last to the end, by exact times and by what is kept of them.

use std::process::Command;

use crate::common::{Rank, printed, write};
use clap::Parser;
use st_cli::Status;
use st_explain::Folding;
use st_model::calls::names;
use st_model::header::Header;
use st_model::section::Section;
use st_model::steps::Budget;
use st_model::values::NONE;
use st_reduce::kept::Kept;
use st_reduce::merge::merge;
use st_stat::args::Args;
use st_stream::{Trace, WriteOptions};

#[test]
fn who_computes_longer_before_the_end_is_told_of_merged_traces_too() {
    let ranks = || {
        let rank = |me: u32| {
            let mut rank = Rank::new(me, 3);
            rank.call(names::MPI_Init, "main", &[], (0, 1_000));
            let mut now = 1_000;
            for _ in 0..10 {
                rank.call(names::MPI_Barrier, "step app.c:7", &[0], (now + 10_000_000, now + 10_001_000));
                now += 10_001_000;
            }
            let late = if me == 1 { 50_000_000 } else { 1_000 };
            rank.call(names::MPI_Finalize, "main", &[], (now + late, now + late + 1_000));
            rank.finish("host")
        };
        (0..3).map(rank).collect::<Vec<_>>()
    };
    let mut explanation = None;
    let sections = ranks();
    let kept = Folding::new(1000).keep(&mut explanation, &sections, 36, &Budget::default(), &|_| ());
    assert_eq!(kept, None);
    let mut header = Header { world: 3, program: "app".into(), ..Header::default() };
    let mut merged = merge(sections, false).unwrap();
    Kept::default().apply(&mut merged, &mut header);
    let merged = Trace { header, sections: vec![merged], explanation, ..Trace::default() };
    let said = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let dir = tempfile::tempdir().unwrap();
    let [stream, out] = ["app.st", "out"].map(|n| dir.path().join(n));
    st_stream::write(&merged, std::fs::File::create(&stream).unwrap(), WriteOptions { level: 0 }).unwrap();
    let words = ["st-stat", "why", "-q", "-o", out.to_str().unwrap(), stream.to_str().unwrap()];
    assert_eq!(st_stat::run(&Args::try_parse_from(words).unwrap()).unwrap(), Status::Ok);
    let longer = "rank 1 computes 50.0 ms longer before it";
    let live = said(printed(ranks(), &["why"]));
    assert!(live.contains("late end: rank 1") && live.contains(longer), "{live}");
    assert!(live.contains("% of their time until the last one's end is waiting"), "{live}");
    let csv = printed(ranks(), &["why", "--format", "csv"]);
    assert!(csv.lines().next().unwrap().ends_with(",sure,share_of"), "{csv}");
    assert!(
        csv.lines().any(|l| l.starts_with("late end,") && l.ends_with(",the run until the last rank's end")),
        "{csv}"
    );
    let kept = std::fs::read_to_string(&out).unwrap();
    assert!(kept.lines().all(|line| line.chars().count() <= 80), "{kept}");
    let kept = said(kept);
    assert!(kept.contains("late end: rank 1") && kept.contains("rank 1 computes"), "{kept}");
    let ms = kept.split("rank 1 computes ").nth(1).and_then(|t| t.split(' ').next()).unwrap();
    // Totals of ranks are right to 1 %.
    assert!((ms.parse::<f64>().unwrap() - 50.0).abs() < 1.0, "{kept}");
}

#[test]
fn all_ranks_that_end_late_are_named() {
    let ranks = (0..5).map(|me| {
        let mut rank = Rank::new(me, 5);
        rank.call(names::MPI_Init, "main", &[], (0, 1_000));
        let late = if me < 3 { 50_000_000 } else { 2_000 };
        rank.call(names::MPI_Finalize, "main", &[], (late, late + 1_000));
        rank.finish("host")
    });
    let said = printed(ranks.collect(), &["why"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("late end: ranks 0-2 end last"), "{said}");
    assert!(said.contains("ranks 0-2 compute 50.0 ms longer before it"), "{said}");
}

/// What is said, in one line.
fn said(ranks: Vec<Section>, words: &[&str]) -> String {
    printed(ranks, words).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Five stages of a pipeline, of which the third takes longest.
#[test]
fn of_a_pipeline_the_slow_stage_is_named_and_all_that_wait() {
    const MS: i64 = 1_000_000;
    let mut sent = [0; 20];
    let stages = [50, 50, 120, 50, 50].into_iter().zip(0..).map(|(ms, me)| {
        let mut rank = Rank::new(me, 5);
        rank.call(names::MPI_Init, "main", &[], (0, 1_000));
        let mut now = 1_000;
        for sent in &mut sent {
            let exit = now.max(*sent) + 1_000;
            if me > 0 {
                rank.call(
                    names::MPI_Recv,
                    "take",
                    &[8, 0, i64::from(me) - 1, 0, 0, NONE, NONE, 8],
                    (now, exit),
                );
                now = exit;
            }
            now += ms * MS;
            *sent = now;
            if me < 4 {
                rank.call(names::MPI_Send, "give", &[8, 0, i64::from(me) + 1, 0, 0], (now, now + 1_000));
                now += 1_000;
            }
        }
        rank.call(names::MPI_Finalize, "main", &[], (now, now + 1_000));
        rank.finish("host")
    });
    let text = said(stages.collect(), &["why"]);
    assert!(text.contains("late sender: ranks 3, 4 wait for messages of ranks 2, 3 "), "{text}");
    assert!(text.contains(" since rank 2 computes longer before MPI_Send"), "{text}");
    // They end late since others were late, not since they compute longer in the end.
    assert!(text.contains("late end: ") && !text.contains("longer before it;"), "{text}");
}

#[test]
fn shares_of_several_threads_are_said_to_come_to_more_than_the_time() {
    let program = |threads: usize| {
        let mut rank = Rank::new(0, 1);
        rank.call(names::MPI_Init, "main", &[], (0, 1_000));
        (1..threads).for_each(|_| _ = rank.recorder.open_thread(0));
        rank.call(names::MPI_Finalize, "main", &[], (2_000, 3_000));
        vec![rank.finish("host")]
    };
    let is_said = |text: &str| text.contains("may come to more than 100 %");
    assert_eq!([1, 2].map(|threads| is_said(&said(program(threads), &["why"]))), [false, true]);
    let dir = tempfile::tempdir().unwrap();
    let noted = |threads| {
        let path = dir.path().join("app.st");
        write(&path, program(threads));
        let out = Command::new(env!("CARGO_BIN_EXE_st-stat")).arg("waits").arg(path).output().unwrap();
        is_said(&String::from_utf8(out.stderr).unwrap())
    };
    assert_eq!([1, 2].map(noted), [false, true]);
}
