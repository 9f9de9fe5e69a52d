//! The program: where streams come from and go to, what is said, and how it ends.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::program::Program;
use st_model::columns::{Comparison, Offset};
use st_model::header::Header;
use st_model::section::Section;
use st_stream::{ReadOptions, Trace, WriteOptions, read, write};

/// Rank 1's clock is 100 behind rank 0's, as its comparison says; a message violates that.
fn sections() -> Vec<Section> {
    let mut p = Program::new(&[0, 1]);
    p.call(0, "MPI_Send", &[("count", 1.into()), ("dest", 1.into())], (1000, 1010));
    p.call(1, "MPI_Recv", &[("count", 1.into())], (880, 920));
    assert!(p.edges.is_empty());
    let mut sections = p.sections();
    let points =
        vec![Offset { local: 0, offset: 100, error: 3 }, Offset { local: 2000, offset: 100, error: 3 }];
    sections[1].threads[0].columns[0].1.clock = Comparison { points, near: 0, far: 8 };
    sections
}

pub(crate) fn save(path: &Path, sections: Vec<Section>) {
    // A run of two ranks at least.
    let ranks = sections.iter().map(|s| u32::try_from(s.ranks.len()).unwrap()).sum::<u32>();
    let header = Header { world: ranks.max(2), ..Header::default() };
    let trace = Trace { header, sections, ..Trace::default() };
    write(&trace, std::fs::File::create(path).unwrap(), WriteOptions::PIPE).unwrap();
}

pub(crate) fn load(bytes: &[u8]) -> Trace {
    read(bytes, ReadOptions::default()).unwrap()
}

fn times(t: &Trace) -> Vec<(i64, i64)> {
    t.sections.iter().flat_map(|s| s.threads[0].columns[0].1.times()).collect()
}

pub(crate) fn sync(args: &[&str], input: Option<&Path>) -> Output {
    let mut c = Command::new(env!("CARGO_BIN_EXE_st-sync"));
    c.args(args).stdin(Stdio::null());
    if let Some(path) = input {
        c.stdin(std::fs::File::open(path).unwrap());
    }
    c.output().unwrap()
}

pub(crate) fn said(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

#[test]
fn methods_from_a_file_through_a_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.st");
    save(&path, sections());
    let corrected = |args: &[&str]| {
        let o = sync(args, Some(&path));
        assert!(o.status.success(), "{}", said(&o));
        (times(&load(&o.stdout)), load(&o.stdout), said(&o))
    };
    assert_eq!(corrected(&["--method", "none"]).0, [(1000, 1010), (880, 920)]);
    assert_eq!(corrected(&["--method", "linear"]).0, [(1000, 1010), (980, 1020)]);
    let (clc, trace, note) = corrected(&["--lmin-inter", "50"]);
    // More than its comparisons may be wrong: the clock stays, and what contradicts it is moved.
    assert_eq!(clc[1], (980, 1050));
    let step = trace.provenance.last().unwrap();
    assert_eq!(step.tool, "st-sync");
    for fact in ["lmin-inter=50", "delta=1", "gamma=0.999990000", "passes=2"] {
        assert!(step.args.iter().any(|a| a == fact), "{:?}", step.args);
    }
    assert!(note.contains("1 message: 1 reversed, 1 violated; after correction 0 and 0"), "{note}");
    // Comparisons are applied once.
    assert!(trace.sections[1].threads[0].columns[0].1.clock.is_empty());
    // What the only message takes when clocks are interpolated is the default, whatever was measured: nothing is violated.
    let (as_they_are, mut trace, _) = corrected(&[]);
    assert_eq!(as_they_are[1], (980, 1020));
    let step = trace.provenance.pop().unwrap();
    assert!(step.args.iter().any(|a| a == "lmin-inter=20"), "{:?}", step.args);
    assert!(corrected(&["--no-provenance"]).1.provenance.is_empty());
}

#[test]
fn a_directory_becomes_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let (run, out) = (directory.path().join("run"), directory.path().join("out"));
    std::fs::create_dir(&run).unwrap();
    for (i, s) in sections().into_iter().enumerate() {
        save(&run.join(format!("rank{i}.st")), vec![s]);
    }
    let report = directory.path().join("report.json");
    let to = format!("{}/", out.display());
    let args = ["-j2", "-o", &to, "--report", report.to_str().unwrap(), run.to_str().unwrap()];
    let o = sync(&args, None);
    assert!(o.status.success(), "{}", said(&o));
    let second = std::fs::read(out.join("rank1.st")).unwrap();
    assert_eq!(times(&load(&second)), [(980, 1020)]);
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!(report["measured_messages_reversed"], 1);
    assert_eq!(report["corrected_messages_violated"], 0);
    assert_eq!(report["ranks"][1]["offset_ns"], 100);
    for (name, text) in [("r.csv", "fact,,,points,4"), ("r.svg", "<svg"), ("r.txt", "points")] {
        let path = directory.path().join(name);
        let args = ["-q", "-o", "/dev/null", "--report", path.to_str().unwrap(), run.to_str().unwrap()];
        assert!(sync(&args, None).status.success());
        let written = std::fs::read_to_string(path).unwrap();
        assert!(written.contains(text), "{written}");
    }
}

/// However it is compressed, and by however many threads.
#[test]
fn files_and_pipes_hold_the_same_trace() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let mut p = Program::new(&[0, 0, 1, 1]);
    for i in 0..3_000 {
        let (t, to) = (10_000 * (i + 1) + i * i % 977, (i + 1) % 4);
        p.call(
            (i % 4).try_into().unwrap(),
            "MPI_Send",
            &[("count", 1.into()), ("dest", to.into())],
            (t, t + 300),
        );
        p.call(to.try_into().unwrap(), "MPI_Recv", &[("count", 1.into())], (t - 400, t - 20 + i % 307));
    }
    save(Path::new(&path("in.st")), p.sections());
    let piped = sync(&[&path("in.st")], None);
    assert!(said(&piped).contains("after correction 0 and 0"), "{}", said(&piped));
    let piped = load(&piped.stdout);
    let filed = |jobs: &str| {
        let o = sync(&["--no-provenance", "-j", jobs, "-o", &path("out.st"), &path("in.st")], None);
        assert!(o.status.success(), "{}", said(&o));
        std::fs::read(path("out.st")).unwrap()
    };
    let one = filed("1");
    assert_eq!(load(&one).sections, piped.sections);
    assert_ne!(times(&piped), times(&load(&std::fs::read(path("in.st")).unwrap())));
    assert_eq!(filed("3"), one);
}

#[test]
fn without_its_report_no_trace_has_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let run = directory.path().join("run");
    std::fs::create_dir(&run).unwrap();
    for (i, s) in sections().into_iter().enumerate() {
        save(&run.join(format!("rank{i}.st")), vec![s]);
    }
    let missing = directory.path().join("missing/report.txt");
    for (to, report) in
        [("out.st", "/dev/full"), ("out/", "/dev/full"), ("out.st", missing.to_str().unwrap())]
    {
        let out = directory.path().join(to);
        let o = sync(&["-q", "-o", out.to_str().unwrap(), "--report", report, run.to_str().unwrap()], None);
        assert_eq!(o.status.code(), Some(1));
        assert!(said(&o).contains(report), "{}", said(&o));
        let left = std::fs::read_dir(&out).map_or(0, Iterator::count);
        assert!(!out.is_file() && left == 0, "{to}: {left} files");
    }
}

/// Messages of real programs take less than what was measured: none of them may be moved.
#[test]
fn one_clock_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.st");
    let mut p = Program::new(&[0, 0, 0]);
    for i in 0..50 {
        let t = 1_000 * (i + 1);
        p.call(0, "MPI_Send", &[("count", 1.into()), ("dest", 1.into())], (t, t + 300));
        p.call(1, "MPI_Recv", &[("count", 1.into())], (t - 400, t + 120 + i % 3));
        for me in 0..3 {
            p.call(me, "MPI_Barrier", &[], (t + 500, t + 501));
        }
    }
    let mut sections = p.sections();
    for (rank, section) in sections.iter_mut().enumerate() {
        let point = |local| Offset { local, offset: 0, error: if rank == 0 { 0 } else { 3_692 } };
        let clock = Comparison { points: vec![point(-10_000), point(90_000)], near: 1_846, far: 0 };
        section.threads[0].columns[0].1.clock = clock;
    }
    save(&path, sections.clone());
    let o = sync(&[path.to_str().unwrap()], None);
    assert!(said(&o).contains("0 reversed, 0 violated"), "{}", said(&o));
    let found = load(&o.stdout);
    for (before, after) in sections.iter().zip(&found.sections) {
        let (before, after) = (&before.threads[0], &after.threads[0]);
        assert_eq!(before.columns[0].1.chunks, after.columns[0].1.chunks);
        assert_eq!(before.sketches, after.sketches);
    }
}

/// A stream of few bytes may have any number of calls: they are not read for nothing.
#[test]
fn a_billion_calls_without_times_are_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.st");
    let mut p = Program::new(&[0]);
    for i in 0..3 {
        p.call(0, "MPI_Send", &[("count", 1.into())], (i, i));
    }
    let mut sections = p.sections();
    let thread = &mut sections[0].threads[0];
    thread.columns.clear();
    thread.counts[0].streams[0] = vec![1_000_000_000].into();
    save(&path, sections);
    let begun = std::time::Instant::now();
    let o = sync(&[path.to_str().unwrap()], None);
    assert_eq!(o.status.code(), Some(1));
    assert!(said(&o).contains("record with --time columns"), "{}", said(&o));
    assert!(begun.elapsed().as_secs() < 20);
}

#[test]
fn without_exact_times_it_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.st");
    let mut sections = sections();
    sections.iter_mut().for_each(|s| s.threads[0].columns.clear());
    save(&path, sections);
    let o = sync(&[path.to_str().unwrap()], None);
    assert_eq!(o.status.code(), Some(1));
    assert!(said(&o).contains("record with --time columns"), "{}", said(&o));
}

#[test]
fn a_missing_rank_and_a_clock_that_goes_back_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.st");
    let mut p = Program::new(&[0, 1]);
    p.call(0, "MPI_Send", &[("count", 1.into()), ("dest", 1.into())], (1000, 900));
    p.call(0, "MPI_Barrier", &[], (950, 960));
    let mut sections = p.sections();
    sections.truncate(1);
    save(&path, sections);
    let o = sync(&["-v", path.to_str().unwrap()], None);
    assert!(o.status.success(), "{}", said(&o));
    for text in ["1 sends without receive", "lack a member", "clocks went back 1 times", "rank 0 to 1, tag 0"]
    {
        assert!(said(&o).contains(text), "{text}: {}", said(&o));
    }
    assert_eq!(times(&load(&o.stdout)), [(1000, 1000), (1000, 1000)]);
}
