//! What others have written, as a trace: what st itself has printed comes back as it was, and what is wrong is said.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{KERNELS, Made, kernel_of};
use clap::Parser as _;
use st_kernels::Kernel;
use st_model::calls::CallTable;
use st_model::section::{Ended, NO_SYM, Section, Sym};
use st_stream::{ReadOptions, Trace};

/// Prints a trace as JSON lines into a file.
pub(crate) fn lines_of(from: &Path, to: &Path, words: &[&str]) -> String {
    let own = ["st-view", "--json", "-o", to.to_str().unwrap(), from.to_str().unwrap()];
    let args = st_view::args::Args::parse_from(own.iter().chain(words));
    assert_eq!(st_view::run(&args).unwrap(), st_cli::Status::Ok);
    fs::read_to_string(to).unwrap()
}

fn lines(made: &Made, words: &[&str]) -> String {
    lines_of(&made.path("app.st"), &made.path("app.jsonl"), words)
}

fn convert(place: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_st-convert")).current_dir(place).args(words).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn read(path: &Path) -> Trace {
    st_stream::read(fs::File::open(path).unwrap(), ReadOptions::default()).unwrap()
}

/// Imports a file, and reads the trace.
fn imported(made: &Made, name: &str) -> (Trace, String) {
    let output = convert(made.directory.path(), &[name, "-o", "back.st"]);
    assert!(output.status.success(), "{}", said(&output));
    (read(&made.path("back.st")), said(&output))
}

/// Times of a section's threads since a zero.
fn times(section: &Section, zero: i64) -> Vec<(i64, i64)> {
    let columns = section.threads.iter().flat_map(|t| &t.columns);
    columns.flat_map(|(_, c)| c.times().map(|(a, b)| (a - zero, b - zero)).collect::<Vec<_>>()).collect()
}

fn zero(sections: &[Section]) -> i64 {
    let begins = sections.iter().flat_map(|s| st_model::rank_times::begin(s).unwrap());
    begins.min().unwrap()
}

#[test]
fn what_is_printed_comes_back_as_it_was() {
    for which in KERNELS.into_iter().chain([Kernel::Amr, Kernel::Ocean, Kernel::Sort]) {
        let made = kernel_of(which, 4);
        lines(&made, &[]);
        let (trace, told) = imported(&made, "app.jsonl");
        assert!(!told.contains("warning"), "{which:?}: {told}");
        assert_eq!(trace.sections.len(), made.sections.len());
        let begin = zero(&made.sections);
        for (first, second) in made.sections.iter().zip(&trace.sections) {
            // Functions, call sites, partners, counts, tags and the rest, by the names of objects.
            let lanes = |s: &Section| s.threads.iter().map(|t| t.lanes).collect::<Vec<_>>();
            assert_eq!(lanes(first), lanes(second), "{which:?}");
            let passed = st_model::check::check(second).unwrap().iter().all(|thread| thread.passed());
            assert!(passed, "{which:?}");
            assert_eq!(times(first, begin), times(second, 0), "{which:?}");
            let tree = |s: &Section| s.threads.iter().map(|t| t.tree.clone()).collect::<Vec<_>>();
            assert_eq!(tree(first), tree(second), "{which:?}");
            assert_eq!((&first.ranks, &first.hosts), (&second.ranks, &second.hosts));
        }
        assert_eq!((trace.header.program.as_str(), trace.header.world), ("app", 4));
        assert_eq!(trace.provenance.last().unwrap().tool, "st-convert");
    }
}

/// A function and the place of its call.
type Place = Option<(String, u128)>;

/// Where a thread stopped.
#[derive(PartialEq, Debug)]
struct End {
    at: (u32, u32, u64),
    last: Place,
    inside: Place,
    entered: i64,
}

fn ends(trace: &[Section]) -> Vec<End> {
    let place = |section: &Section, sym: Sym| {
        let symbol = section.symbols.get(usize::try_from(sym).unwrap())?;
        let site = section.sites.get(symbol.site).unwrap().id;
        Some((CallTable::builtin().get(symbol.call).unwrap().name.clone(), site))
    };
    let zero = zero(trace);
    let each = trace.iter().flat_map(|section| section.ended.iter().map(move |ended| (section, ended)));
    let end = |(section, e): (&Section, &Ended)| {
        let entered = if e.inside == NO_SYM { 0 } else { e.entered - zero };
        let (last, inside) = (place(section, e.last), place(section, e.inside));
        End { at: (e.rank, e.thread, e.calls), last, inside, entered }
    };
    each.map(end).collect()
}

#[test]
fn where_ranks_stopped_comes_back() {
    let made = kernel_of(Kernel::Threads, 4);
    let is_end = |line: &&str| {
        line.contains("MPI_Finalize") && ["\"rank\":1,", "\"rank\":2,"].iter().any(|rank| line.contains(rank))
    };
    let all = lines(&made, &[]);
    let mut text: Vec<String> = all.lines().filter(|line| !is_end(line)).map(str::to_owned).collect();
    let threads = made.sections[1].threads.len();
    for (rank, thread) in [1, 2].into_iter().flat_map(|rank| (0..threads).map(move |thread| (rank, thread))) {
        // One thread was in a call.
        let inside = match (rank, thread) {
            (2, 0) => ",\"inside\":\"MPI_Barrier\",\"site\":\"a.c:7\",\"entered\":3600000000000",
            _ => "",
        };
        text.push(format!("{{\"ended\":{rank},\"thread\":{thread}{inside}}}"));
    }
    fs::write(made.path("stopped.jsonl"), text.join("\n")).unwrap();
    let (first, told) = imported(&made, "stopped.jsonl");
    let wanted = ends(&first.sections);
    assert_eq!(wanted.len(), 2 * threads);
    let inside: Vec<&End> = wanted.iter().filter(|end| end.inside.is_some()).collect();
    assert!(inside.len() == 1 && (inside[0].at.0, inside[0].entered) == (2, 3_600_000_000_000), "{inside:?}");
    assert!(!told.contains("warning"), "{told}");
    let again = Made::of(first.sections);
    lines(&again, &[]);
    assert_eq!(ends(&imported(&again, "app.jsonl").0.sections), wanted);
}

#[test]
fn lines_may_be_in_any_order_of_ranks_and_in_several_files_or_a_pipe() {
    let made = kernel_of(Kernel::Threads, 4);
    let all = lines(&made, &[]);
    let is_call = |line: &&str| line.contains("\"call\":");
    let (mut calls, tables): (Vec<&str>, Vec<&str>) = all.lines().partition(is_call);
    let enter = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        (value["enter"].as_i64().unwrap(), value["rank"].as_i64().unwrap(), value["thread"].as_i64().unwrap())
    };
    // The order of time instead of that of ranks; threads of a rank begin one after the other.
    calls.sort_by_key(|line| enter(line));
    fs::write(made.path("tables.jsonl"), tables.join("\n")).unwrap();
    fs::write(made.path("calls.jsonl"), calls.join("\n")).unwrap();
    let output = convert(made.directory.path(), &["tables.jsonl", "calls.jsonl", "--to", "st", "-o", "two"]);
    assert!(output.status.success(), "{}", said(&output));
    let (two, (one, _)) = (read(&made.path("two")), imported(&made, "app.jsonl"));
    let lanes = |t: &Trace| {
        let threads = t.sections.iter().flat_map(|s| &s.threads);
        threads.map(|thread| thread.lanes).collect::<Vec<_>>()
    };
    assert_eq!(lanes(&one), lanes(&two));
    let pipe = Command::new(env!("CARGO_BIN_EXE_st-convert"))
        .args(["--to", "st", "-o", "-", "-q"])
        .stdin(Stdio::from(fs::File::open(made.path("app.jsonl")).unwrap()))
        .output()
        .unwrap();
    assert!(pipe.status.success() && pipe.stderr.is_empty(), "{}", said(&pipe));
    let piped = st_stream::read(&pipe.stdout[..], ReadOptions::default()).unwrap();
    assert_eq!(lanes(&one), lanes(&piped));
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_left() {
    let made = kernel_of(Kernel::Stencil1d, 2);
    let place = made.directory.path();
    fs::write(made.path("bad.jsonl"), "{\"rank\":0,\"call\":\"MPI_Send\"}\n").unwrap();
    fs::write(made.path("bare.jsonl"), "{\"rank\":0,\"call\":\"MPI_Barrier\"}\n").unwrap();
    fs::write(made.path("text"), "no trace\n").unwrap();
    fs::write(made.path("empty"), "").unwrap();
    fs::create_dir(made.path("directory")).unwrap();
    let cases: [(&[&str], i32, &str); 10] = [
        (&["empty", "-o", "x.st"], 3, "empty: is empty"),
        (&["none", "-o", "x.st"], 1, "none: cannot open: No such file"),
        (&["directory", "-o", "x.st"], 3, "directory: is a directory that has no file NAME.otf2"),
        (&["bad.jsonl", "-o", "x.st"], 3, "bad.jsonl: line 1: MPI_Send: dest: is missing"),
        (&["text", "-o", "x.st"], 3, "text: in none of the formats"),
        (&["text", "--read-as", "json", "-o", "x.st"], 3, "text: line 1: column 2: expected ident"),
        (&["app.st", "-o", "x.st"], 2, "app.st: is a stream of st already"),
        (&["bare.jsonl", "--ranks", "0", "-o", "x.st"], 2, "--ranks: is for traces of st"),
        (&["bare.jsonl", "--strict", "-o", "x.st"], 4, "--strict: json does not tell 1 MPI_Init"),
        (&["bare.jsonl", "--max-steps", "1", "-o", "x.st"], 1, "steps"),
    ];
    for (words, code, part) in cases {
        let output = convert(place, words);
        assert!(said(&output).contains(part), "{words:?}: {}", said(&output));
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", said(&output));
    }
    assert!(!made.path("x.st").exists());
    assert_eq!(place.read_dir().unwrap().count(), 6, "something is left");
    let output = convert(place, &["bare.jsonl", "-o", "x.st"]);
    assert!(said(&output).contains("1 calls without times"), "{}", said(&output));
    // What is read of others is written for others.
    let output = convert(place, &["x.st", "-q", "-o", "x.csv"]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn files_of_dumpi_are_ranks_by_their_names() {
    let place = tempfile::tempdir().unwrap();
    let call = |name: &str, at: u32| {
        format!(
            "{name} entering at walltime {at}.000000001, cputime 0.1 seconds in thread 0.\n\
             MPI_Comm comm=2 (MPI_COMM_WORLD)\n\
             {name} returning at walltime {at}.5, cputime 0.1 seconds in thread 0.\n"
        )
    };
    let text = [call("MPI_Init", 1), call("MPI_Barrier", 2), call("MPI_Finalize", 3)].concat();
    for name in ["d-0000.txt", "d-0001.txt", "e-1.txt", "none.txt"] {
        fs::write(place.path().join(name), &text).unwrap();
    }
    let output = convert(place.path(), &["d-0001.txt", "d-0000.txt", "-o", "d.st"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output), "st-convert: 6 calls of 2 ranks, read from dumpi\n");
    let trace = read(&place.path().join("d.st"));
    assert_eq!((trace.header.world, trace.sections.len()), (2, 2));
    let of_first = times(&trace.sections[0], 1_000_000_001);
    assert_eq!(of_first[..2], [(0, 499_999_999), (1_000_000_000, 1_499_999_999)]);
    let twice = convert(place.path(), &["d-0001.txt", "e-1.txt", "-o", "x.st"]);
    assert_eq!((twice.status.code(), said(&twice).contains("rank 1 is there twice")), (Some(2), true));
    let none = convert(place.path(), &["none.txt", "-o", "x.st"]);
    assert_eq!((none.status.code(), said(&none).contains("does not end with the rank")), (Some(2), true));
}
