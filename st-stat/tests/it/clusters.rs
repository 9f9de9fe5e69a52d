//! Which clusters st-stat finds in a trace.

use std::path::Path;
use std::process::Command;

use crate::common::{Rank, printed};
use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::header::Step;
use st_model::ints::Sealed;
use st_model::ranklist::RankList;
use st_model::section::{Elastic, Form, Partition, Section};
use st_stream::{Trace, WriteOptions};

/// Two ranks that differ only in the rank that they ask for.
fn ranks() -> Section {
    let mut r = RankRecorder::new(0, Options { columns: false, ..Options::default() });
    let thread = r.open_thread(0);
    let row = CallTable::builtin().by_name("MPI_Group_rank").unwrap();
    let site = r.sites.label("here");
    let sym = r.symbol(row.id, site, 0);
    r.record(thread, sym, &vec![0; row.slots.len()], 0, 0);
    let mut section = r.finish("host");
    let both = RankList::first(2);
    section.ranks = both.clone();
    section.hosts.iter_mut().for_each(|(_, ranks)| *ranks = both.clone());
    section.partitions.iter_mut().flat_map(|p| &mut p.classes).for_each(|class| *class = both.clone());
    section.partitions.push(Partition { classes: vec![RankList::single(0), RankList::single(1)] });
    let thread = &mut section.threads[0];
    thread.ranks = both;
    thread.sketches.clear();
    let partition = u32::try_from(section.partitions.len() - 1).unwrap();
    let streams = [0, 1].map(|rank| Sealed::from(vec![rank])).into_iter().collect();
    let asked = row.slots.iter().position(|s| s.name.contains("rank")).unwrap();
    thread.params[0][asked].values = Elastic { form: Form::Absolute, partition, streams };
    section
}

/// Number of clusters that the trace has by what st-stat says.
fn clusters(path: &Path, made: &[&str], options: &[&str]) -> usize {
    let args = made.iter().map(|&a| a.to_owned()).collect();
    let step = Step { tool: "st-cluster".into(), version: "1".into(), args };
    let trace = Trace { sections: vec![ranks()], provenance: vec![step], ..Trace::default() };
    st_stream::write(&trace, std::fs::File::create(path).unwrap(), WriteOptions::FILE).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_st-stat"));
    let out = command.args(["clusters", "--format", "json"]).args(options).arg(path).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().lines().count()
}

#[test]
fn a_trace_has_the_clusters_that_st_cluster_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.st");
    assert_eq!(clusters(&path, &[], &[]), 1);
    assert_eq!(clusters(&path, &[], &["--asked"]), 2);
    assert_eq!(clusters(&path, &["app.st", "--asked"], &[]), 2);
}

#[test]
fn of_calls_that_differ_the_first_one_can_be_read_where_there_is_little_room() {
    let rank = |rank: u32| {
        let mut r = Rank::new(rank, 2);
        let place = format!("a_function_with_a_long_name{rank} in_a_file_with_a_long_name.c:1234");
        r.call("MPI_Send", &place, &[100, 0, 1, 0, 0], (0, 5));
        r.finish("host")
    };
    let text = printed((0..2).map(rank).collect(), &["clusters"]);
    assert!(text.contains("call 1: MPI_Send"), "{text}");
}

#[test]
fn what_differs_is_said_without_its_place_where_there_is_little_room() {
    let place = "a_function_with_a_long_name in_a_file_with_a_long_name.c:1234";
    let rank = |rank: u32| {
        let mut r = Rank::new(rank, 2);
        r.call("MPI_Send", place, &[100 * (1 + i64::from(rank)), 0, 1, 0, 0], (0, 5));
        r.finish("host")
    };
    let text = printed((0..2).map(rank).collect(), &["clusters"]);
    assert!(text.contains("  count 200, not 100: MPI_Send\n"), "{text}");
}
