//! Programs that come to a bad end, or into narrow straits: they behave as without us, and the trace tells up to their
//! last moments.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use st_cli::Mpi;
use st_tests::job_output::Said;
use st_tests::process::{Outcome, Run};
use st_tests::workplace::{self, Workplace};
use st_tests::{Failure, place, render};

/// Calls of a rank before the accident: MPI_Init_thread, rank, size, and 50 times two.
const BEFORE: u64 = 103;

/// Runs with and without the recorder, into `trace.st`; stdout and status must be equal.
fn both(p: &Workplace, options: &str, app: &str) -> Result<Outcome, Failure> {
    alike(p, options, app, |said| said)
}

/// As [`both`], comparing what a function leaves of what was said.
fn alike(p: &Workplace, options: &str, app: &str, of: fn(Said) -> Said) -> Result<Outcome, Failure> {
    let plain = p.plain(app)?;
    let recorded = p.outside(&format!("-q -o trace.st {options}"), app)?;
    let said = |o: &Outcome| (o.status, of(Said::of(o)));
    if said(&plain) != said(&recorded) {
        return Err(format!("not as without us: {plain}; recorded: {recorded}"));
    }
    Ok(recorded)
}

/// Runs without the recorder that may be needed until one ends as the recorded one did.
const RACES: usize = 60;

/// As [`both`], where a rank ends early. Which rank's end is the job's status is a race in MPICH's launcher, with us or
/// without: in some jobs it takes a rank that lost its peer, or one that it ended itself. So what a recorded job came to
/// must be what the program comes to in some run without us. Comparing clocks shifts the odds so far that this is not met
/// in one of nine jobs (st-limits(7)): one of three must be so.
fn both_where_a_rank_ends(p: &Workplace, options: &str, app: &str) -> Result<Outcome, Failure> {
    let once = || as_in_some_run(p, options, app);
    match p.job.mpi {
        Mpi::Openmpi => both(p, options, app),
        Mpi::Mpich => once().or_else(|_| once()).or_else(|_| once()),
    }
}

/// Runs with the recorder once, and without until that ends alike.
fn as_in_some_run(p: &Workplace, options: &str, app: &str) -> Result<Outcome, Failure> {
    let said = |o: &Outcome| (o.status, Said::of(o));
    let recorded = p.outside(&format!("-q -o trace.st {options}"), app)?;
    let (mut statuses, mut last) = (BTreeSet::new(), String::new());
    for _ in 0..RACES {
        let plain = p.plain(app)?;
        if said(&plain) == said(&recorded) {
            return Ok(recorded);
        }
        statuses.insert(plain.status);
        last = plain.to_string();
    }
    Err(format!("not as without us, which has status {statuses:?}: {last}; recorded: {recorded}"))
}

/// The rank that has the accident.
fn last(p: &Workplace) -> u32 {
    p.job.ranks - 1
}

/// Names of what is left here beside programs.
fn left(p: &Workplace) -> Vec<String> {
    let mut names = p.names(".");
    names.retain(|n| !["accident", "throws"].contains(&n.as_str()));
    names
}

/// Calls to a function in the last rank's trace.
fn calls(p: &Workplace, function: &str) -> Result<usize, Failure> {
    let ranks = render::viewed(&p.path("trace.st"))?;
    let calls = ranks.get(&last(p)).ok_or("the last rank has no trace")?;
    Ok(calls.iter().filter(|c| c["call"] == function).count())
}

fn fixture(name: &str) -> PathBuf {
    place::root().join("tests/fixtures").join(name)
}

/// The line of `accident.c` that carries a remark.
fn line_of(remark: &str) -> Result<usize, Failure> {
    let text = fs::read_to_string(fixture("accident.c")).map_err(|e| e.to_string())?;
    let found = text.lines().position(|l| l.contains(&format!("/* {remark} */")));
    found.map(|i| i + 1).ok_or_else(|| format!("no line with {remark}"))
}

/// The summary of a trace; call sites by their places only.
fn summary(trace: &Path) -> Result<String, Failure> {
    // Each fact on a line of its own.
    let text = Run::st("st-stat", [trace])?.env("COLUMNS", "1000").go()?.ok()?.text();
    Ok(text.lines().map(|line| without_number(line) + "\n").collect())
}

/// A line without the number of the call site that it names: `MPI_Send (site 4, main a.c:7)` reads `MPI_Send, main a.c:7`.
fn without_number(line: &str) -> String {
    let Some((before, after)) = line.split_once(" (site ") else { return line.to_owned() };
    let Some((place, rest)) = after.split_once(", ").and_then(|(_, place)| place.split_once(')')) else {
        return line.to_owned();
    };
    format!("{before}, {place}{rest}")
}

/// A trace is proved, before and after merging, and both say these things.
fn tells(trace: &Path, what: &[String]) -> Result<(), Failure> {
    let merged = trace.with_extension("merged");
    Run::st("st-merge", [trace.as_os_str(), "-o".as_ref(), merged.as_os_str()])?.go()?.ok()?;
    for file in [trace, &merged] {
        Run::st("st-view", ["--check".as_ref(), file.as_os_str()])?.go()?.ok()?;
        let text = summary(file)?;
        if let Some(missing) = what.iter().find(|w| !text.contains(w.as_str())) {
            return Err(format!("{}: expected {missing:?} in\n{text}", file.display()));
        }
    }
    fs::remove_file(merged).map_err(|e| e.to_string())
}

/// A trace holds so many calls to a function.
fn made(trace: &Path, function: &str, n: u32) -> Result<(), Failure> {
    let words = ["calls", "--functions", "--format", "csv"].map(OsString::from);
    let text = Run::st("st-stat", words.into_iter().chain([trace.into()]))?.go()?.ok()?.text();
    let expected = format!("{function},{n},");
    if text.contains(&expected) { Ok(()) } else { Err(format!("expected {expected} in\n{text}")) }
}

/// Runs a test under each MPI, in a directory with the program `accident`.
fn under_each(test: impl Fn(&Workplace) -> Result<(), Failure>) {
    workplace::under_each("accident", "accident.c", &["-g", "-O0", "-pthread", "-ldl"], test);
}

/// Where the last rank ends for an accident of a kind.
fn end_of(p: &Workplace, what: &str) -> Result<String, Failure> {
    let (rank, in_main) = (last(p), format!("main accident.c:{}", line_of("last")?));
    Ok(match what {
        "fatal" => format!(
            "rank {rank} ends at call {}, MPI_Send, accident accident.c:{}, which did not return",
            BEFORE + 1,
            line_of("fatal")?
        ),
        "mpi_abort" => format!("rank {rank} ends at call {}, MPI_Abort, accident accident.c:", BEFORE + 1),
        _ => format!("rank {rank} ends at call {BEFORE}, MPI_Allreduce, {in_main}"),
    })
}

#[test]
fn a_killed_job_leaves_its_trace_to_the_last_call() {
    under_each(|p| {
        let waiting = format!(
            "at call {}, MPI_Barrier, main accident.c:{}, which did not return",
            BEFORE + 1,
            line_of("wait")?
        );
        for what in ["segv", "abort", "term", "kill", "_exit", "exit", "mpi_abort", "fatal"] {
            let fault = |e| format!("{what}: {e}");
            both_where_a_rank_ends(p, "", &format!("./accident {what}")).map_err(fault)?;
            tells(&p.path("trace.st"), &[end_of(p, what)?, waiting.clone()]).map_err(fault)?;
            if left(p) != ["trace.st"] {
                return Err(format!("{what}: left {:?}", left(p)));
            }
        }
        Ok(())
    });
}

#[test]
fn ranks_that_abort_together_have_all_ended_early() {
    workplace::under_each("aborts", "aborts.c", &[], |p| {
        let said = format!("{n} of {n} ranks ended early", n = p.job.ranks);
        // Some are killed at each step of what they leave.
        for _ in 0..6 {
            let o = p.outside("-o trace.st", "./aborts")?;
            if !o.stderr.contains(&said) || o.stderr.contains("warning") {
                return Err(format!("expected {said:?}, and no warning: {o}"));
            }
        }
        Ok(())
    });
}

#[test]
fn a_directory_of_a_killed_job_reads_as_its_trace() {
    under_each(|p| {
        p.inside("-q -o run", "./accident kill")?;
        let run = p.path("run");
        let text = summary(&run)?;
        for what in [end_of(p, "kill")?, format!("{}", p.job.ranks), "exact times of every call".into()] {
            if !text.contains(&what) {
                return Err(format!("expected {what:?} in\n{text}"));
            }
        }
        let entries = fs::read_dir(&run).map_err(|e| e.to_string())?.flatten().map(|e| e.path());
        let journals: Vec<_> = entries.filter(|f| f.extension().is_some_and(|e| e == "journal")).collect();
        if journals.is_empty() {
            return Err("no journal is left".into());
        }
        for file in journals {
            Run::st("st-view", ["--check".as_ref(), file.as_os_str()])?.go()?.ok()?;
        }
        p.go(Run::st("st-merge", ["run", "-o", "trace.st"])?)?.ok()?;
        tells(&p.path("trace.st"), &[end_of(p, "kill")?])
    });
}

#[test]
fn polls_and_long_logs_are_kept_to_the_last() {
    under_each(|p| {
        both_where_a_rank_ends(p, "", "./accident polls")?;
        let polls = format!(
            "rank {} ends at call 5,104, MPI_Iprobe, accident accident.c:{}",
            last(p),
            line_of("poll")?
        );
        tells(&p.path("trace.st"), &[polls])?;
        for options in [
            "",
            "--time sketch",
            "--time hist --hist-bins 9 --hist-smooth 10",
            "--time stats",
            "--time-budget 20k",
        ] {
            both_where_a_rank_ends(p, options, "./accident long")?;
            let end = format!("rank {} ends at call 240,103, MPI_Comm_size, many accident.c:", last(p));
            tells(&p.path("trace.st"), &[end]).map_err(|e| format!("{options:?}: {e}"))?;
        }
        Ok(())
    });
}

#[test]
fn narrow_limits_do_not_change_the_program() {
    under_each(|p| {
        for what in ["fsize", "nofile", "as", "none", "closes", "gone"] {
            // A rank that has stopped recording does not compare its clock in MPI_Finalize; the others' messages to it remain,
            // and UCX warns of them.
            let without_warnings = |mut said: Said| {
                said.numbered.retain(|line| !line.contains("UCX  WARN"));
                said
            };
            let of = if what == "none" { without_warnings } else { |said| said };
            let o = alike(p, "", &format!("./accident {what}"), of).map_err(|e| format!("{what}: {e}"))?;
            let lines = o.stderr.lines().filter(|l| l.contains(&format!("rank {}: ", last(p)))).count();
            if lines > 2 {
                return Err(format!("{what}: complains more than once about one thing: {o}"));
            }
            if what != "gone" {
                // The other ranks have no part in it.
                tells(&p.path("trace.st"), &["MPI_Allreduce".into()])
                    .map_err(|e| format!("{what}: {e}: {o}"))?;
            }
            if ["fsize", "nofile", "as", "closes"].contains(&what) {
                // Whatever it costs, no call is lost.
                made(&p.path("trace.st"), "MPI_Comm_rank", 60_000 + p.job.ranks)
                    .map_err(|e| format!("{what}: {e}: {o}"))?;
            }
        }
        Ok(())
    });
}

/// A small file system, unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    /// `None` where mounting is not permitted.
    fn new(at: PathBuf, options: &str) -> Option<Self> {
        fs::create_dir_all(&at).ok()?;
        let args = ["-t", "tmpfs", "-o", options, "st-tests"].map(OsString::from);
        let mount = Run::new("mount", args.into_iter().chain([at.clone().into()])).go().ok()?;
        (mount.status == 0).then_some(Self(at))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Run::new("umount", [&self.0]).go());
    }
}

#[test]
fn a_full_or_read_only_disk_does_not_change_the_program() {
    under_each(|p| {
        let plain = p.plain("./accident threads")?;
        // Too small for any journal; large enough for all (the kernel writes their blocks at once), but not for what the
        // last rank adds; none at all.
        let some = format!("size={}k", 720 * p.job.ranks + 20);
        for options in ["size=64k", &some, "ro"] {
            let Some(disk) = Disk::new(p.path("disk"), options) else {
                place::say("mounting is not permitted: full and read-only disks are not tested");
                return Ok(());
            };
            let o = p.inside("-q -o disk", "./accident threads")?;
            if (plain.status, Said::of(&plain)) != (o.status, Said::of(&o)) {
                return Err(format!("{options}: not as without us: {o}"));
            }
            if !o.stderr.contains(&format!("st-record: rank {}: ", last(p))) {
                return Err(format!("{options}: nothing is said: {o}"));
            }
            if *options == *some {
                // Exact times make room for all the rest.
                let trace = disk.0.join(format!("rank-{:06}.st", last(p)));
                Run::st("st-view", ["--check".as_ref(), trace.as_os_str()])?.go()?.ok()?;
                made(&trace, "MPI_Comm_rank", 4 * 20_000 + 1).map_err(|e| format!("{options}: {e}: {o}"))?;
            }
        }
        // Room for what ranks tell st-record, but not for their streams.
        let Some(_disk) = Disk::new(p.path("small"), "size=20k") else { return Ok(()) };
        let o = p.outside("-q --must-record -o small/here.st", "./accident threads")?;
        if plain.status == 0 && o.status == 125 && o.stderr.contains("could not record") {
            Ok(())
        } else {
            Err(format!("not said that there is no trace: {o}"))
        }
    });
}

#[test]
fn children_and_stops_leave_the_trace_whole() {
    under_each(|p| {
        for what in ["fork", "stopped", "whole"] {
            both(p, "", &format!("./accident {what}")).map_err(|e| format!("{what}: {e}"))?;
            let trace = p.path("trace.st");
            tells(&trace, &["MPI_Allreduce".into()]).map_err(|e| format!("{what}: {e}"))?;
            if calls(p, "MPI_Finalize")? != 1 {
                return Err(format!("{what}: no MPI_Finalize"));
            }
            if summary(&trace)?.contains("ended early") {
                return Err(format!("{what}: {}", summary(&trace)?));
            }
        }
        Ok(())
    });
}

#[test]
fn pauses_leave_calls_out_and_budgets_only_times() {
    under_each(|p| {
        for what in ["pcontrol", "pause"] {
            both(p, "", &format!("./accident {what}"))?;
            let n = calls(p, "MPI_Type_size")?;
            if n != 3 {
                return Err(format!("{what}: {n} calls recorded instead of 3"));
            }
        }
        both(p, "--time-budget 20k", "./accident threads")?;
        tells(&p.path("trace.st"), &["MPI_Allreduce".into()])?;
        if calls(p, "MPI_Finalize")? != 1 {
            return Err("no MPI_Finalize".into());
        }
        made(&p.path("trace.st"), "MPI_Comm_rank", 4 * 20_000 + p.job.ranks)?;
        // What ends before the budget is looked at has all of its times.
        let o = p.outside("-o short.st --time-budget 0", "./accident pause")?.ok()?;
        if o.stderr.contains("budget") { Err(format!("times stopped: {o}")) } else { Ok(()) }
    });
}

#[test]
fn a_request_to_end_goes_to_the_job_and_the_trace_is_packed() {
    under_each(|p| {
        for signal in ["TERM", "INT"] {
            let start = ["--foreground", "--preserve-status", "-s", signal, "4"].map(OsString::from);
            let ours =
                [place::program("st-record")?.into_os_string(), "-q".into(), "-o".into(), "trace.st".into()];
            let words = p.job.words(["./accident", "sleep"])?;
            let all = start.into_iter().chain(ours).chain(["--".into()]).chain(words);
            let o = p.go(Run::new("timeout", all))?;
            // The trace says that the job did not come to its end; of the status MPICH's launcher makes, with us or without, 15
            // or 0.
            let end = format!("rank {} ends at call {BEFORE}, MPI_Allreduce", last(p));
            tells(&p.path("trace.st"), &[end]).map_err(|e| format!("{signal}: {e}: {o}"))?;
            if left(p) != ["trace.st"] {
                return Err(format!("{signal}: left {:?}", left(p)));
            }
        }
        Ok(())
    });
}

#[test]
fn a_call_that_a_jump_leaves_is_a_failed_call() {
    under_each(|p| {
        p.compile("longjmp", "longjmp.c", &[])?.ok()?;
        both(p, "", "./longjmp")?;
        let of = |name| calls(p, name);
        let all = [of("MPI_Send")?, of("MPI_Barrier")?, of("MPI_Type_size")?, of("MPI_Finalize")?];
        let failed = render::viewed(&p.path("trace.st"))?;
        let failed = failed[&last(p)].iter().filter(|c| c["call"] == "MPI_Send" && c.contains_key("error"));
        let failed = failed.count();
        if (all, failed) == ([203, 203, 3, 1], 4) { Ok(()) } else { Err(format!("{all:?}, {failed} failed")) }
    });
}

#[test]
fn an_exception_through_a_call_is_a_failed_call() {
    under_each(|p| {
        p.compile("throws", "throws.cpp", &[])?.ok()?;
        both(p, "", "./throws")?;
        tells(&p.path("trace.st"), &["failed calls".into()])?;
        let (sends, sizes) = (calls(p, "MPI_Send")?, calls(p, "MPI_Type_size")?);
        if (sends, sizes) == (3, 1) {
            Ok(())
        } else {
            Err(format!("{sends} sends, {sizes} calls after them"))
        }
    });
}
