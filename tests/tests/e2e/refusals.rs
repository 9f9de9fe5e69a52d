//! What is wrong with the streams of a trace is refused, or said, by all programs alike.

use std::fs;
use std::path::{Path, PathBuf};

use st_stream::{Trace, WriteOptions, write};
use st_tests::process::{Outcome, Run};
use st_tests::{Failure, conclude, place};

use crate::stages::stream;

/// Commands that read a trace, and whether they take it twice.
const COMMANDS: [(&str, bool); 18] = [
    ("st-view", false),
    ("st-view --check", false),
    ("st-view --calls", false),
    ("st-view --json", false),
    ("st-view --text", false),
    ("st-stat", false),
    ("st-stat calls", false),
    ("st-stat clusters", false),
    ("st-stat violations", false),
    ("st-stat diff", true),
    ("st-stat diff --time", true),
    ("st-stat hist MPI_Init", false),
    ("st-stat mape", true),
    ("st-cluster", false),
    ("st-merge", false),
    ("st-sync", false),
    ("st-replay --check", false),
    ("st-record --no-symbols --name", false),
];
/// The one that takes a single file, never a directory.
const SIZES: (&str, bool) = ("st-stat sizes", false);

/// Commands that write to the file that is named next, and read the one after that.
const WRITING: [&str; 14] = [
    "st-view -o",
    "st-view --text -o",
    "st-stat -o",
    "st-stat calls -o",
    "st-stat sizes -o",
    "st-stat report -o",
    "st-stat clusters -o /dev/null --draw",
    "st-convert --to chrome -o",
    "st-convert --to paraver -o",
    "st-cluster -o",
    "st-cluster -o /dev/null --table",
    "st-merge -o",
    "st-sync -o",
    "st-sync -o /dev/null --report",
];

/// Four ranks of a program, and of another that was started a minute later.
fn traces(here: &Path) -> Result<[Trace; 2], Failure> {
    let of = |kernel: &str, started: u64| {
        let file = here.join("whole.st");
        let args = [kernel, "--steps", "20", "--paper", "--ranks", "4", "-o"].map(AsRef::as_ref);
        Run::st("st-kernels", args.into_iter().chain([file.as_os_str()]))?.go()?.ok()?;
        let mut trace = stream(&file)?;
        trace.header.started = started * 1_000_000_000;
        Ok::<_, Failure>(trace)
    };
    Ok([of("stencil2d", 1_000)?, of("stencil1d", 1_060)?])
}

/// Writes these sections of traces: one each into the files of a directory, and of one trace all into one file.
fn put(here: &Path, name: &str, parts: &[(&Trace, usize)]) -> Result<[PathBuf; 2], Failure> {
    let told = |e: std::io::Error| e.to_string();
    let (directory, file) = (here.join(name), here.join(format!("{name}.st")));
    fs::create_dir(&directory).map_err(told)?;
    let mut all = Trace { sections: Vec::new(), ..parts[0].0.clone() };
    for (i, (trace, section)) in parts.iter().enumerate() {
        let one = Trace { sections: vec![trace.sections[*section].clone()], ..(*trace).clone() };
        all.sections.extend_from_slice(&one.sections);
        let part = fs::File::create(directory.join(format!("rank-{i:06}.st"))).map_err(told)?;
        write(&one, part, WriteOptions::PIPE).map_err(told)?;
    }
    write(&all, fs::File::create(&file).map_err(told)?, WriteOptions::FILE).map_err(told)?;
    Ok([directory, file])
}

fn go((command, twice): (&str, bool), more: &[&str], trace: &Path) -> Result<Outcome, Failure> {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let args = words.chain(more.iter().copied()).map(AsRef::as_ref).chain([trace.as_os_str()]);
    Run::st(program, args.chain(twice.then_some(trace.as_os_str())))?.go()
}

/// Runs each command on a trace: it must end with a status and say these words on standard error, in lines of its own.
fn each(
    failures: &mut Vec<String>,
    trace: &Path,
    more: &[&str],
    expected: impl Fn(&str) -> (i32, &'static str),
) -> usize {
    let commands: Vec<_> = COMMANDS.into_iter().chain(trace.is_file().then_some(SIZES)).collect();
    for command in &commands {
        let (status, said) = expected(command.0);
        match go(*command, more, trace) {
            Ok(o) if o.status == status && o.stderr.contains(said) && !o.stderr.contains("panicked") => {}
            Ok(o) => failures.push(format!("{}: expected {status}, {said:?}: {o}", command.0)),
            Err(e) => failures.push(e),
        }
    }
    commands.len()
}

#[test]
fn ranks_that_are_there_twice_and_other_runs_are_refused() {
    let here = place::directory().unwrap();
    let [a, b] = traces(here.path()).unwrap();
    let (mut n, mut failures) = (0, Vec::new());
    let twice = [(&a, 0), (&a, 1), (&a, 2), (&a, 3), (&a, 2)];
    let twice = put(here.path(), "twice", &twice).unwrap();
    n += each(&mut failures, &twice[0], &[], |_| (3, "rank-000004.st: holds rank 2, as "));
    n += each(&mut failures, &twice[1], &[], |_| (3, "twice.st: holds rank 2 twice"));
    let mixed = put(here.path(), "mixed", &[(&a, 0), (&b, 1), (&a, 2), (&b, 3)]).unwrap();
    n += each(&mut failures, &mixed[0], &[], |_| (3, "rank-000001.st: of another run than "));
    // The same program, at the same time.
    let [one, other] = ["1", "2"].map(|run| {
        let mut trace = a.clone();
        trace.header.run = run.repeat(32);
        trace
    });
    let runs = put(here.path(), "runs", &[(&one, 0), (&other, 1), (&one, 2), (&one, 3)]).unwrap();
    n += each(&mut failures, &runs[0], &[], |_| (3, "rank-000001.st: of another run than "));
    let mut small = a.clone();
    small.header.world = 3;
    let beyond = put(here.path(), "beyond", &[(&small, 0), (&small, 1), (&small, 3)]).unwrap();
    for path in &beyond {
        n += each(&mut failures, path, &[], |_| (3, "holds rank 3 of a run of 3 ranks"));
    }
    conclude(n, &failures);
}

#[test]
fn ranks_that_are_missing_are_named() {
    let here = place::directory().unwrap();
    let [a, _] = traces(here.path()).unwrap();
    let (mut n, mut failures) = (0, Vec::new());
    for path in put(here.path(), "three", &[(&a, 0), (&a, 1), (&a, 3)]).unwrap() {
        let status = |command: &str| if command.starts_with("st-replay") { 3 } else { 0 };
        n += each(&mut failures, &path, &[], |c| (status(c), "1 of 4 ranks are missing: 2\n"));
    }
    conclude(n, &failures);
}

#[test]
fn a_journal_of_more_calls_than_allowed_is_refused_by_who_only_opens_it_too() {
    let killed = place::unpacked(&place::root().join("tests/data/v1/mpich-killed")).unwrap();
    let commands =
        ["st-view", "st-stat calls", "st-merge", "st-replay --check", "st-convert --to csv -o /dev/null"];
    let failures = commands.map(|command| {
        let o = go((command, false), &["--max-steps", "3"], killed.path())?.expect(1)?;
        let said = o.stderr.contains(".journal: ") && o.stderr.contains("--max-steps allows 3; ");
        if said { Ok(()) } else { Err(format!("{command}: {o}")) }
    });
    let failures: Vec<Failure> = failures.into_iter().filter_map(Result::err).collect();
    conclude(commands.len(), &failures);
}

#[test]
fn truncated_streams_are_refused_and_used_on_request() {
    let here = place::directory().unwrap();
    let [a, _] = traces(here.path()).unwrap();
    let whole = put(here.path(), "cut", &[(&a, 0), (&a, 1), (&a, 2), (&a, 3)]).unwrap();
    let bytes = fs::read(&whole[1]).unwrap();
    let (mut n, mut failures) = (0, Vec::new());
    fs::write(&whole[1], &bytes[..bytes.len() * 3 / 4]).unwrap();
    n += each(&mut failures, &whole[1], &[], |_| (3, "cut.st: "));
    let partial = |command: &str| match command {
        // The last rank is not whole.
        "st-replay --check" => (3, "ranks are missing"),
        // It writes over what it reads.
        "st-record --no-symbols --name" => (2, "unexpected argument"),
        _ => (0, "warning: an input is truncated; what is whole is used\n"),
    };
    n += each(&mut failures, &whole[1], &["--partial"], partial);
    conclude(n, &failures);
}

#[test]
fn what_is_read_is_not_replaced() {
    let here = place::directory().unwrap();
    let path = |name: &str| here.path().join(name);
    let trace = path("run.st");
    let kernel = ["stencil2d", "--steps", "5", "--paper", "--ranks", "4", "-o"];
    let args = kernel.map(AsRef::as_ref).into_iter().chain([trace.as_os_str()]);
    Run::st("st-kernels", args).unwrap().go().unwrap().ok().unwrap();
    std::os::unix::fs::symlink(&trace, path("link.st")).unwrap();
    fs::hard_link(&trace, path("hard.st")).unwrap();
    fs::hard_link(&trace, path("hard.html")).unwrap();
    let bytes = fs::read(&trace).unwrap();
    let (mut n, mut failures) = (0, Vec::new());
    for name in ["run.st", "link.st", "hard.st", "hard.html"].map(path) {
        for command in WRITING {
            let mut words = command.split(' ');
            let program = words.next().unwrap();
            let args = words.map(AsRef::as_ref).chain([name.as_os_str(), trace.as_os_str()]);
            let o = Run::st(program, args).unwrap().go().unwrap();
            // A page and a picture are not even called like a trace.
            let page = program == "st-stat"
                && (command.contains("report") || command.contains("--draw"))
                && name.extension().is_some_and(|e| e == "st");
            let why = if page { ".st is the ending of traces" } else { "this file is read" };
            if o.status != 2 || !o.stderr.contains(why) {
                failures.push(format!("{command} {}: {o}", name.display()));
            }
            if fs::read(&trace).unwrap() != bytes || fs::read(&name).unwrap() != bytes {
                failures.push(format!("{command} {}: it is another file now", name.display()));
                fs::write(&trace, &bytes).unwrap();
            }
            n += 1;
        }
    }
    // The only one that does: names are put into the trace itself.
    let args = ["--no-symbols", "--name"].map(AsRef::as_ref).into_iter().chain([trace.as_os_str()]);
    Run::st("st-record", args).unwrap().go().unwrap().ok().unwrap();
    conclude(n, &failures);
}
