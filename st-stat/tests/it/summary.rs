//! What the summary says of times, and of command lines that are none.

use std::path::Path;
use std::process::Command;

use crate::common::{Rank, printed, run};
use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::ints::Sealed;
use st_model::ranklist::RankList;
use st_model::section::{RankSums, Section};
use st_model::sketch::bucket;
use st_stream::{Trace, WriteOptions};

/// A rank of two threads: the first initialises MPI until 100, sends from 200 to 300, and ends MPI at 1000; the other one
/// sends from 400 to 900.
fn rank() -> Section {
    let mut r = RankRecorder::new(0, Options { columns: false, ..Options::default() });
    let site = r.sites.stack(Vec::new());
    let threads = [r.open_thread(0), r.open_thread(1)];
    let calls = [
        (0, "MPI_Init", 0, 100),
        (0, "MPI_Send", 200, 300),
        (1, "MPI_Send", 400, 900),
        (0, "MPI_Finalize", 1000, 1500),
    ];
    for (thread, name, enter, exit) in calls {
        let row = CallTable::builtin().by_name(name).unwrap();
        let symbol = r.symbol(row.id, site, 0);
        r.record(threads[thread], symbol, &vec![0; row.slots.len()], enter, exit);
    }
    r.finish("host")
}

/// The first thread of two such ranks, in one section.
fn two() -> Section {
    let mut section = rank();
    let both = RankList::first(2);
    section.ranks = both.clone();
    section.hosts.iter_mut().for_each(|(_, ranks)| *ranks = both.clone());
    section.partitions.iter_mut().flat_map(|p| &mut p.classes).for_each(|class| *class = both.clone());
    section.threads.truncate(1);
    let thread = &mut section.threads[0];
    thread.ranks = both;
    let kept = |ns: u128| Sealed::from(vec![i64::from(bucket(u64::try_from(ns).unwrap())); 2]);
    for s in &mut thread.sketches {
        thread.sums.push(RankSums { sym: s.sym, compute: kept(s.compute.sum), comm: kept(s.comm.sum) });
        let (compute, comm) = (s.compute.clone(), s.comm.clone());
        s.compute.merge(&compute);
        s.comm.merge(&comm);
    }
    section
}

fn summary(path: &Path, section: Section, format: &str) -> String {
    said(path, section, &["--format", format])
}

fn said(path: &Path, section: Section, args: &[&str]) -> String {
    let trace = Trace { sections: vec![section], ..Trace::default() };
    st_stream::write(&trace, std::fs::File::create(path).unwrap(), WriteOptions::FILE).unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_st-stat")).args(args).arg(path).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn options_before_a_command_are_told_their_place() {
    let args = ["--format", "json", "calls", "x.st"];
    let out = Command::new(env!("CARGO_BIN_EXE_st-stat")).args(args).output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    let expected = "options go after the command: st-stat calls --format json x.st";
    assert!(out.status.code() == Some(2) && said.contains(expected), "{said}");
}

#[test]
fn calls_say_what_was_computed_before_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.st");
    let csv = said(&path, rank(), &["calls", "--format", "csv"]);
    let mut lines = csv.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let at = lines.next().unwrap().iter().position(|key| *key == "before_ns").unwrap();
    let mut before: Vec<_> = lines.map(|l| (l[0].to_owned(), l[at].to_owned())).collect();
    before.sort();
    // Before a thread's first call is nothing.
    let expected = [("MPI_Finalize", "700"), ("MPI_Init", "0"), ("MPI_Send", "100")];
    assert_eq!(before, expected.map(|(name, ns)| (name.to_owned(), ns.to_owned())));
}

#[test]
fn a_rank_s_time_is_that_of_its_first_thread() {
    let dir = tempfile::tempdir().unwrap();
    let row = summary(&dir.path().join("x.st"), rank(), "json");
    let row: serde_json::Value = serde_json::from_str(&row).unwrap();
    assert_eq!(
        (&row["rank_time_mean_ns"], &row["rank_time_longest_ns"]),
        (&900.into(), &900.into()),
        "{row}"
    );
    assert_eq!((&row["mpi_percent"], &row["start_up_mean_ns"]), (&11.1.into(), &600.into()), "{row}");
}

#[test]
fn a_time_that_is_kept_to_a_percent_is_said_to_be_about_right() {
    let dir = tempfile::tempdir().unwrap();
    let said = |section| summary(&dir.path().join("x.st"), section, "text");
    let (exact, about) = (said(rank()), said(two()));
    assert!(exact.contains(" 900 ns (mean), 900 ns (longest: rank 0)\n"), "{exact}");
    assert!(about.contains(" 900 ns (mean), about 900 ns (longest: rank 1)\n"), "{about}");
}

#[test]
fn functions_that_are_not_recorded_are_counted_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.st");
    let mut trace = Trace { sections: vec![rank()], ..Trace::default() };
    trace.header.world = 1;
    let text = |trace: &Trace| {
        st_stream::write(trace, std::fs::File::create(&path).unwrap(), WriteOptions { level: 1 }).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_st-stat")).arg(&path).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!text(&trace).contains("unrecorded"));
    let names = ["MPI_A", "MPI_B", "MPI_C", "MPI_D"];
    trace.header.options.insert("unrecorded".into(), names.to_vec().into());
    let said = text(&trace);
    assert!(!said.contains("inside others"));
    trace
        .header
        .options
        .insert("inside".into(), [("MPI_Comm_free", 1_200), ("MPI_Wtime", 1)].into_iter().collect());
    let said_inside = text(&trace);
    assert!(said_inside.contains("not recorded: MPI_Comm_free 1,200, MPI_Wtime 1"), "{said_inside}");
    assert!(said.contains("4 functions of this MPI, if called (MPI_A, MPI_B, MPI_C, …)"), "{said}");
}

#[test]
fn loops_around_the_same_calls_are_counted_once() {
    let rank = |rank| {
        let mut r = Rank::new(rank, 3);
        let mut both = |places: [&str; 2]| {
            (0..18).for_each(|t| r.call("MPI_Barrier", places[t % 2], &[0], (0, 0)));
        };
        both(["here", "there"]);
        // Another loop on some.
        if rank < 2 {
            both(["elsewhere", "nowhere"]);
        }
        r.finish("host")
    };
    let text = printed((0..3).map(rank).collect(), &[]);
    assert!(text.contains(" 4 call sites, 2 loops, nested 1 deep\n"), "{text}");
}

#[test]
fn a_call_that_is_made_again_and_again_is_a_loop() {
    let mut r = Rank::new(0, 1);
    r.call("MPI_Init", "main", &[], (0, 1));
    (1..30).for_each(|t| r.call("MPI_Barrier", "step", &[0], (t, t + 1)));
    r.call("MPI_Finalize", "main", &[], (30, 31));
    let text = printed(vec![r.finish("host")], &[]);
    assert!(text.contains(" 2 call sites, 1 loop, nested 1 deep\n"), "{text}");
}

#[test]
fn a_missing_file_is_no_command_that_is_spelt_wrong() {
    let said = |word: &str| format!("{:#}", run(&[word]).unwrap_err());
    for file in ["trace.st", "rec.st", "why.st", "./trace", "trace"] {
        assert!(!said(file).contains(" is one"), "{}", said(file));
    }
    assert!(said("clusers").contains("no such command: \"clusters\" is one"), "{}", said("clusers"));
}
