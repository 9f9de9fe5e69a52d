//! The program as users meet it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::header::{Header, Step};
use st_model::objects::{Comm, Type};
use st_model::ranks::RankSeq;
use st_model::section::Section;
use st_stream::{Trace, WriteOptions};

/// A rank's trace: ten rounds of a send and a receive.
fn section(rank: u32) -> Section {
    let mut r = RankRecorder::new(rank, Options { columns: true, ..Options::default() });
    let kind = "MPI_COMM_WORLD".into();
    r.objects.comms.predefined(Comm {
        kind,
        parent: 0,
        members: RankSeq::first(4),
        remote: RankSeq::default(),
    });
    r.objects.types.predefined(Type {
        kind: "MPI_INT".into(),
        words: vec![],
        parts: vec![],
        size: 4,
        lb: 0,
        extent: 4,
    });
    r.sites.label("exchange");
    r.open_thread(0);
    let id = |name| CallTable::builtin().by_name(name).unwrap().id;
    let (send, recv) = (r.symbol(id("MPI_Send"), 0, 0), r.symbol(id("MPI_Recv"), 0, 0));
    for i in 0..10 {
        let peer = i64::from((rank + 1) % 4);
        r.record(0, send, &[10, 0, peer, 7, 0], 100 * i, 100 * i + 40);
        r.record(0, recv, &[10, 0, -2, -1, 0, peer, 7, 40], 100 * i + 50, 100 * i + 60);
    }
    timed(r, rank)
}

/// A rank's section with its exact times.
fn timed(mut r: RankRecorder, rank: u32) -> Section {
    let chunks = r.flush_columns();
    let mut s = r.finish("node");
    let chunks = chunks.into_iter().map(|(_, c)| c).collect();
    let column = st_model::columns::Column { chunks, ..st_model::columns::Column::default() };
    s.threads[0].columns.push((rank, column));
    s
}

fn stream(sections: Vec<Section>, level: u8) -> Vec<u8> {
    let header = Header { world: 4, ..Header::default() };
    let provenance = vec![Step { tool: "st-test".into(), ..Step::default() }];
    let mut bytes = Vec::new();
    let trace = Trace { header, provenance, sections, ..Trace::default() };
    st_stream::write(&trace, &mut bytes, WriteOptions { level }).unwrap();
    bytes
}

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

fn view(args: &[&str], input: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_st-view")).args(args).arg(input).stdin(Stdio::null()).output().unwrap()
}

fn text(out: &[u8]) -> &str {
    std::str::from_utf8(out).unwrap()
}

fn stdout(out: &Output) -> String {
    assert!(out.status.success(), "{}", text(&out.stderr));
    // Not all of these hold all ranks.
    assert!(text(&out.stderr).lines().all(|line| line.contains(" of 4 ranks are missing: ")));
    text(&out.stdout).to_owned()
}

#[test]
fn text_reproduces_the_file_byte_by_byte() {
    let dir = Dir::new();
    for level in [0, 1, 19] {
        let bytes = stream((0..4).map(section).collect(), level);
        let file = dir.file("a.st", &bytes);
        let text = stdout(&view(&["--text"], &file));
        let back = dir.0.path().join("b.st");
        let text = dir.file("a.txt", text.as_bytes());
        stdout(&view(&["--from-text", "-o", back.to_str().unwrap()], &text));
        assert!(fs::read(&back).unwrap() == bytes, "level {level}");
    }
}

#[test]
fn calls_of_a_rank_read_well() {
    let dir = Dir::new();
    let file = dir.file("a.st", &stream((0..4).map(section).collect(), 1));
    let out = stdout(&view(&["--calls", "--rank", "2"], &file));
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.len(), 20);
    let sent = "rank 2 #0 MPI_Send count=10 type=MPI_INT dest=3 tag=7 comm=MPI_COMM_WORLD bytes=40  [site 0, exchange] at 0 ns for 40 ns";
    assert_eq!(lines[0], sent);
    let received = "rank 2 #19 MPI_Recv count=10 type=MPI_INT source=MPI_ANY_SOURCE tag=MPI_ANY_TAG comm=MPI_COMM_WORLD \
        rsource=3 rtag=7 bytes=40  [site 0, exchange] at 950 ns for 10 ns";
    assert_eq!(lines[19], received);
}

#[test]
fn ranks_that_are_not_there_are_an_error() {
    let dir = Dir::new();
    let file = dir.file("a.st", &stream((0..4).map(section).collect(), 1));
    for form in ["--calls", "--json"] {
        let out = view(&[form, "--ranks", "99"], &file);
        assert_eq!((out.status.code(), text(&out.stdout)), (Some(2), ""));
        assert!(text(&out.stderr).contains("the trace has no rank 99; it has 0-3"), "{}", text(&out.stderr));
        let out = view(&[form, "--ranks", "3-4"], &file);
        assert!(out.status.success() && text(&out.stderr).contains("no rank 4;"), "{}", text(&out.stderr));
    }
}

#[test]
fn times_count_from_the_first_init() {
    let mut sections = Vec::new();
    for rank in 0..2 {
        let mut r = RankRecorder::new(rank, Options { columns: true, ..Options::default() });
        r.sites.label("main");
        r.open_thread(0);
        let offset = 5_000_000 + 300 * i64::from(rank);
        for (i, name) in ["MPI_Initialized", "MPI_Init", "MPI_Barrier"].into_iter().enumerate() {
            let row = CallTable::builtin().by_name(name).unwrap();
            let sym = r.symbol(row.id, 0, 0);
            let enter = offset + 1000 * i64::try_from(i).unwrap();
            r.record(0, sym, &vec![0; row.slots.len()], enter, enter + 10);
        }
        sections.push(timed(r, rank));
    }
    let dir = Dir::new();
    let file = dir.file("a.st", &stream(sections, 1));
    let out = stdout(&view(&["--calls"], &file));
    let times: Vec<_> = out.lines().map(|l| l.split(" at ").nth(1).unwrap()).collect();
    let rank = |base: &'static str, init: &'static str, then: &'static str| [base, init, then];
    let expected = [rank("-1.00 µs", "0 ns", "1.00 µs"), rank("-700 ns", "300 ns", "1.30 µs")].concat();
    let expected: Vec<_> = expected.iter().map(|t| format!("{t} for 10 ns")).collect();
    assert_eq!(times, expected);
    let json = stdout(&view(&["--json", "--ranks", "1"], &file));
    let last: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert_eq!((&last["enter"], &last["exit"]), (&1300.into(), &1310.into()));
}

#[test]
fn json_has_its_tables_first() {
    let dir = Dir::new();
    for rank in 0..4 {
        dir.file(&format!("rank{rank}.st"), &stream(vec![section(rank)], 1));
    }
    let out = stdout(&view(&["--json"], dir.0.path()));
    let lines: Vec<serde_json::Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines[0]["header"]["world"], 4);
    let (steps, lines): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line.get("step").is_some());
    assert_eq!(steps.len(), 1);
    assert_eq!((&lines[1]["site"], &lines[1]["label"]), (&0.into(), &"exchange".into()));
    assert_eq!((&lines[2]["host"], &lines[2]["ranks"]), (&"node".into(), &serde_json::json!([0, 1, 2, 3])));
    assert_eq!((&lines[3]["comm"], &lines[3]["kind"]), (&"MPI_COMM_WORLD".into(), &"MPI_COMM_WORLD".into()));
    assert_eq!(lines[3]["members"], serde_json::json!([0, 1, 2, 3]));
    assert_eq!(lines[3]["ranks"], serde_json::json!([0, 1, 2, 3]));
    assert_eq!((&lines[4]["type"], &lines[4]["size"]), (&"MPI_INT".into(), &4.into()));
    assert_eq!(lines.len(), 5 + 4 * 20);
    let last = &lines[lines.len() - 1];
    assert_eq!(
        (&last["rank"], &last["i"], &last["enter"], &last["exit"]),
        (&3.into(), &19.into(), &950.into(), &960.into())
    );
}

#[test]
fn structure_and_leaf_list() {
    let dir = Dir::new();
    let file = dir.file("a.st", &stream(vec![section(1)], 1));
    let tree = "trace: 4 ranks\n\
        rank 1: 1 call site\n \
        thread 0 of rank 1: 20 calls\n  \
        loop x10\n    \
        MPI_Send [site 0, exchange] count=10 type=MPI_INT dest=2 tag=7\n        \
        comm=MPI_COMM_WORLD\n    \
        MPI_Recv [site 0, exchange] count=10 type=MPI_INT source=MPI_ANY_SOURCE\n        \
        tag=MPI_ANY_TAG comm=MPI_COMM_WORLD rsource=2 rtag=7 bytes=40\n";
    assert_eq!(stdout(&view(&[], &file)), tree);
    let flat = stdout(&view(&["--flat"], &file));
    assert!(flat.ends_with("  <1 1 1 0> s0 MPI_Send (2,10)\n  <1 1 1 0> s1 MPI_Recv\n"), "{flat}");
}

#[test]
fn what_varies_in_a_call_at_several_places_is_told_once_and_of_all_of_them() {
    let mut r = RankRecorder::new(0, Options::default());
    r.sites.label("exchange");
    r.open_thread(0);
    let id = |name| CallTable::builtin().by_name(name).unwrap().id;
    let (send, rank) = (r.symbol(id("MPI_Send"), 0, 0), r.symbol(id("MPI_Comm_rank"), 0, 0));
    let size = r.symbol(id("MPI_Comm_size"), 0, 0);
    for (count, between) in [(5, Some(rank)), (7, Some(size)), (9, None)] {
        r.record(0, send, &[count, 0, 1, 7, 0], 0, 0);
        if let Some(other) = between {
            r.record(0, other, &[0, 3], 0, 0);
        }
    }
    let dir = Dir::new();
    let file = dir.file("a.st", &stream(vec![r.finish("node")], 1));
    let out = stdout(&view(&[], &file));
    assert_eq!(out.matches("at 3 places together: count={5,7,9}").count(), 1, "{out}");
    assert_eq!(out.matches("MPI_Send [site 0, exchange] as above\n").count(), 2, "{out}");
}

#[test]
fn check_passes_and_finds_a_changed_parameter() {
    let dir = Dir::new();
    let file = dir.file("a.st", &stream((0..2).map(section).collect(), 1));
    let out = stdout(&view(&["--check"], &file));
    let ok = "  calls ok, sites ok, endpoints ok, counts ok, tags ok, rest ok\n";
    assert_eq!(out, format!("2 threads of ranks 0, 1: 40 calls\n{ok}"));
    assert!(out.lines().all(|line| line.len() <= 80), "{out}");

    // Another tag in the text form, with the hashes as they were.
    let printed = stdout(&view(&["--text"], &file)).replacen(" tag P0 7 ", " tag P0 8 ", 1);
    let changed = dir.file("b.txt", printed.as_bytes());
    let target = dir.0.path().join("b.st");
    stdout(&view(&["--from-text", "-o", target.to_str().unwrap()], &changed));
    let out = view(&["--check"], &target);
    assert_eq!(out.status.code(), Some(4));
    let out = text(&out.stdout);
    assert!(out.starts_with("rank 0 thread 0: 20 calls\n"), "{out}");
    assert!(out.contains("counts ok, tags DIFFERS, rest ok") && out.ends_with(ok), "{out}");
}

#[test]
fn text_of_ranks_that_the_world_does_not_have_is_refused() {
    let dir = Dir::new();
    let file = dir.file("a.st", &stream((0..3).map(section).collect(), 1));
    let printed = stdout(&view(&["--text"], &file));
    let changed = printed.replacen("\"world\":4", "\"world\":2", 1);
    assert_ne!(printed, changed);
    let changed = dir.file("b.txt", changed.as_bytes());
    let target = dir.0.path().join("b.st");
    let out = view(&["--from-text", "-o", target.to_str().unwrap()], &changed);
    let said = text(&out.stderr);
    assert!(out.status.code() == Some(3) && said.contains("b.txt: ") && said.contains("rank 2"), "{said}");
    assert!(!target.exists());
}

#[test]
fn truncated_streams_are_refused_unless_partial() {
    let dir = Dir::new();
    let bytes = stream((0..3).map(section).collect(), 1);
    let file = dir.file("a.st", &bytes[..bytes.len() - 30]);
    let out = view(&["--check"], &file);
    assert_eq!(out.status.code(), Some(3));
    assert!(text(&out.stderr).contains("truncated"), "{}", text(&out.stderr));
    let out = view(&["--check", "--partial"], &file);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("an input is truncated"), "{}", text(&out.stderr));
    assert!(text(&out.stdout).lines().count() >= 2);
}

#[test]
fn other_files_bad_text_and_bad_usage_have_their_status() {
    let dir = Dir::new();
    let script = dir.file("run.sh", b"echo hi\n");
    let out = view(&[], &script);
    assert_eq!(out.status.code(), Some(3));
    assert!(text(&out.stderr).contains("run.sh: not an st stream"), "{}", text(&out.stderr));
    let out = view(&["--from-text"], &script);
    assert_eq!(out.status.code(), Some(3));
    assert!(text(&out.stderr).contains("line 1: expected"), "{}", text(&out.stderr));
    let out = view(&["--from-text"], &dir.file("other.txt", b"\xff\n"));
    assert_eq!(out.status.code(), Some(3));
    assert!(text(&out.stderr).contains("line 1: expected text in UTF-8"), "{}", text(&out.stderr));
    assert_eq!(view(&["--text", "--calls"], &script).status.code(), Some(2));
    assert_eq!(view(&[], &dir.0.path().join("none.st")).status.code(), Some(1));
}

#[test]
fn json_from_a_pipe_is_that_of_the_file() {
    let dir = Dir::new();
    let file = dir.file("a.st", &stream((0..4).map(section).collect(), 1));
    let piped = Command::new(env!("CARGO_BIN_EXE_st-view"))
        .args(["--json", "-"])
        .stdin(fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    assert_eq!(stdout(&piped), stdout(&view(&["--json"], &file)));
}

#[test]
fn standard_input_is_read_and_a_reader_may_leave() {
    let bytes = stream((0..4).map(section).collect(), 1);
    let mut child = Command::new(env!("CARGO_BIN_EXE_st-view"))
        .arg("--calls")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The reader of its output is gone before it writes.
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), text(&out.stderr)), (Some(0), ""));
}
