//! Recordings that are broken, cut, senseless or strange: named, counted, survived.

use std::process::{Command, Output};

use crate::clc::run;
use crate::program::Program;
use crate::shared;
use proptest::prelude::*;
use st_match::graph::{Barriers, Latency, Matcher, survey};
use st_model::calls::CallTable;
use st_model::columns::{Comparison, Offset};
use st_model::header::Header;
use st_model::section::Section;
use st_stream::{ReadOptions, Trace, WriteOptions, read, write};
use st_sync::clc::Options;

fn bytes(sections: Vec<Section>) -> Vec<u8> {
    let header = Header { world: 2, ..Header::default() };
    let mut out = Vec::new();
    write(&Trace { header, sections, ..Trace::default() }, &mut out, WriteOptions::PIPE).unwrap();
    out
}

/// Runs st-sync on a stream; what it wrote, and how it ended.
fn sync(input: &[u8], args: &[&str]) -> (Output, Trace, String) {
    let directory = tempfile::tempdir().unwrap();
    let (path, report) = (directory.path().join("in.st"), directory.path().join("report.txt"));
    std::fs::write(&path, input).unwrap();
    let mut c = Command::new(env!("CARGO_BIN_EXE_st-sync"));
    let output = c.args(args).arg("--report").arg(&report).arg(&path).output().unwrap();
    let trace = read(&output.stdout[..], ReadOptions::default()).unwrap_or_default();
    (output, trace, std::fs::read_to_string(report).unwrap_or_default())
}

fn times(trace: &Trace) -> Vec<Vec<(i64, i64)>> {
    trace.sections.iter().map(|s| s.threads[0].columns[0].1.times().collect()).collect()
}

fn ring(calls: usize, at: impl Fn(usize, usize) -> i64) -> Vec<Section> {
    let mut p = Program::new(&[0, 1]);
    for i in 0..calls {
        for me in 0..2 {
            let you = i64::try_from(1 - me).unwrap();
            let t = at(me, i);
            p.call(me, "MPI_Send", &[("count", 1.into()), ("dest", you.into())], (t, t));
            p.call(me, "MPI_Recv", &[("count", 1.into()), ("source", you.into())], (t, t));
        }
    }
    p.sections()
}

#[test]
fn a_truncated_stream_is_refused_and_read_on_demand() {
    let whole = bytes(ring(50, |me, i| i64::try_from(1000 * i + 100 * me).unwrap()));
    // The end frame and a part of the last section are missing.
    let cut = &whole[..whole.len() - 60];
    let (refused, ..) = sync(cut, &[]);
    assert_eq!(refused.status.code(), Some(3), "{}", String::from_utf8_lossy(&refused.stderr));
    let (done, trace, report) = sync(cut, &["--partial"]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    assert!(said.contains("truncated"), "{said}");
    // Rank 0 is whole; its messages have no other end.
    assert_eq!((trace.sections.len(), times(&trace)[0].len()), (1, 100));
    assert!(report.contains("sends without receive") && report.contains("50"), "{report}");
}

#[test]
fn everything_at_one_moment() {
    let sections = ring(3, |_, _| 77);
    let (done, trace, report) = sync(&bytes(sections.clone()), &[]);
    assert!(done.status.success());
    assert_eq!(times(&trace), vec![vec![(77, 77); 6]; 2]);
    assert!(report.contains("measured messages violated                   0"), "{report}");
    // With a latency, everything happens after the other; nothing before it did.
    let (done, trace, _) = sync(&bytes(sections), &["--lmin-inter", "10"]);
    assert!(done.status.success());
    let flat: Vec<i64> = times(&trace)[0].iter().flat_map(|(a, b)| [*a, *b]).collect();
    assert!(flat.is_sorted() && flat[0] == 77 && flat[11] >= 107, "{flat:?}");
}

#[test]
fn times_as_far_apart_as_can_be() {
    for (low, high) in [(i64::MIN, i64::MAX), (-(1 << 62), 1 << 62), (0, i64::MAX)] {
        let sections = ring(2, |me, i| if (me + i) % 2 == 0 { low } else { high });
        let (done, trace, _) = sync(&bytes(sections), &["--gamma", "0.5"]);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        for t in times(&trace) {
            assert!(t.iter().all(|(a, b)| a <= b) && t.is_sorted(), "{t:?}");
        }
    }
}

#[test]
fn comparisons_that_make_no_sense_are_left_out() {
    let mut sections = ring(2, |me, i| i64::try_from(1000 * i + 10 * me).unwrap());
    let offset = |local, offset| Offset { local, offset, error: 0 };
    // Two at one time, one that would turn time around, one beyond all bounds.
    let points =
        vec![offset(0, 5), offset(0, 7), offset(500, -9_000), offset(1000, 5), offset(2000, i64::MIN)];
    sections[1].threads[0].columns[0].1.clock = Comparison { points, near: 0, far: 0 };
    let (done, trace, _) = sync(&bytes(sections), &["--method", "linear"]);
    assert!(done.status.success());
    assert_eq!(times(&trace)[1], [(15, 15), (15, 15), (1015, 1015), (1015, 1015)]);
}

#[test]
fn calls_without_times_are_counted() {
    let mut sections = ring(4, |me, i| i64::try_from(1000 * i + 10 * me).unwrap());
    // The budget was spent after three calls.
    let all: Vec<(i64, i64)> = sections[1].threads[0].columns[0].1.times().collect();
    let mut writer = st_model::columns::ColumnWriter::new(all[0].0);
    let mut chunks: Vec<_> = all[..3].iter().filter_map(|(a, b)| writer.push(*a, *b)).collect();
    chunks.extend(writer.flush());
    sections[1].threads[0].columns[0].1.chunks = chunks;
    let (done, trace, _) = sync(&bytes(sections), &[]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() && said.contains("5 operations without times"), "{said}");
    assert_eq!(times(&trace)[1].len(), 3);
}

/// Calls that the matcher gives a meaning to, and some that it does not.
fn names() -> Vec<&'static str> {
    let parts = [
        "send",
        "recv",
        "probe",
        "wait",
        "test",
        "start",
        "cancel",
        "barrier",
        "bcast",
        "gather",
        "reduce",
        "alltoall",
        "scan",
        "scatter",
        "_create",
        "_dup",
        "win_fence",
        "win_post",
        "win_complete",
        "free",
    ];
    let rows = CallTable::builtin().rows();
    let known = rows.iter().filter(|r| !r.properties.opaque).map(|r| r.name.as_str());
    known.filter(|n| parts.iter().any(|p| n.to_ascii_lowercase().contains(p))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Calls with arbitrary words at arbitrary times.
    #[test]
    fn senseless_calls(
        calls in proptest::collection::vec(
            (0usize..3, any::<proptest::sample::Index>(), proptest::collection::vec(-11i64..5, 24), 0i64..50, -9i64..9),
            1..60,
        ),
        latency in (0i64..9, 0i64..9),
        jobs in 1usize..3,
    ) {
        let names = names();
        let mut p = Program::new(&[0, 0, 1]);
        for rank in 0..3 {
            p.comm(rank, &[2, 1, 0], &[]);
            p.comm(rank, if rank == 1 { &[1] } else { &[0, 2] }, if rank == 1 { &[0, 2] } else { &[1] });
            p.window(rank, &[0, 1, 2]);
            p.group(rank, &[0, 2]);
        }
        for (rank, name, words, enter, took) in calls {
            p.senseless(rank, names[name.index(names.len())], &words, (enter, enter + took));
        }
        let sections = p.sections();
        let mut matcher = Matcher::new(Barriers { finalize: true, ..Barriers::default() });
        for s in &sections {
            matcher.add(s).unwrap();
        }
        let graph = matcher.finish();
        let times: Vec<Vec<i64>> = sections.iter().map(|s| {
            let mut last = i64::MIN;
            let points = s.threads[0].columns[0].1.times().flat_map(|(a, b)| [a, b]);
            points.map(|t| { last = last.max(t); last }).collect()
        }).collect();
        let latency = Latency { near: latency.0, far: latency.1 };
        let options = Options { latency, jobs, ..Options::default() };
        let (after, outcome) = run(&graph, &times, &options);
        prop_assert!(after.iter().all(|t| t.is_sorted()));
        prop_assert!(after.iter().flatten().zip(times.iter().flatten()).all(|(a, b)| a >= b));
        let left = survey(&graph, |s| after[s].iter().copied(), latency).all().violated;
        prop_assert!(outcome.circular > 0 || left == 0, "{left} violated");
        if survey(&graph, |s| times[s].iter().copied(), latency).all().violated == 0 {
            prop_assert_eq!(&after, &times);
        }
        prop_assert_eq!(run(&graph, &times, &Options { jobs: 1, ..options }), (after, outcome));
        shared::check(&sections, Barriers { finalize: true, ..Barriers::default() }, latency, 2 + jobs % 2, jobs);
    }
}
