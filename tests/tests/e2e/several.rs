//! Programs that run as several processes of an MPI job: the same result as one process, and one message if it fails.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use st_cli::Mpi;
use st_tests::jobs::Job;
use st_tests::process::Run;
use st_tests::workplace::Workplace;
use st_tests::{Failure, conclude, place};

use crate::stages::{as_alone, go, rank_files, said_once, under_each};

/// A recording on paper, whose clocks drift, in three forms: one file, a directory, merged with its times.
fn inputs(here: &Workplace) -> Result<[&'static str; 3], Failure> {
    let kernel = ["stencil2d", "--steps", "60", "--paper", "--ranks", "12", "-o", "packed.st"];
    here.go(Run::st("st-kernels", kernel)?)?.ok()?;
    here.go(Run::st("st-merge", ["--keep-columns", "-o", "merged.st", "packed.st"])?)?.ok()?;
    rank_files(here, "packed.st", "run")?;
    Ok(["packed.st", "run", "merged.st"])
}

/// Everything that a directory holds.
fn content(directory: &Path) -> Result<Vec<(OsString, Vec<u8>)>, Failure> {
    let io = |e: std::io::Error| format!("{}: {e}", directory.display());
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).map_err(io)? {
        let entry = entry.map_err(io)?;
        all.push((entry.file_name(), fs::read(entry.path()).map_err(io)?));
    }
    all.sort();
    Ok(all)
}

/// What st-sync makes of an input: all bytes that it writes.
fn result(
    here: &Workplace,
    input: &str,
    to: &str,
    job: Option<Job>,
) -> Result<Vec<(OsString, Vec<u8>)>, Failure> {
    let out = here.path("out");
    fs::create_dir(&out).map_err(|e| e.to_string())?;
    let args = ["--lmin-intra", "2000", "--report", "out/report.json", "-o", to, input];
    let o = go(here, "st-sync", &args, job)?.ok()?;
    let said = o.stderr.matches("after correction 0 and 0").count();
    if said != 1 {
        return Err(format!("said {said} times what was done: {o}"));
    }
    let found = content(&out)?;
    fs::remove_dir_all(out).map_err(|e| e.to_string())?;
    Ok(found)
}

#[test]
fn several_processes_correct_clocks_as_one_does() {
    let here = Workplace::new(Job::of(Mpi::Openmpi)).unwrap();
    let inputs = inputs(&here).unwrap();
    let cases = inputs.into_iter().flat_map(|input| ["out/one.st", "out/"].map(|to| format!("{input} {to}")));
    as_alone(cases, |case, job| {
        let (input, to) = case.split_once(' ').unwrap();
        result(&here, input, to, job)
    });
}

#[test]
fn several_processes_fail_as_one_does() {
    under_each(|job| {
        let here = Workplace::new(job)?;
        inputs(&here)?;
        let damaged = here.path("run").join("rank-000011.st");
        let whole = fs::read(&damaged).map_err(|e| e.to_string())?;
        fs::write(&damaged, &whole[..whole.len() - 9]).map_err(|e| e.to_string())?;
        let cases: [(&[&str], i32, &str); 4] = [
            (&["-o", "x.st", "run"], 3, "rank-000011.st"),
            (&["-o", "no/such/place.st", "packed.st"], 1, "cannot create"),
            (&["-o", "x.st"], 2, "name the inputs"),
            (&["-o", "x.st", "missing.st"], 1, "missing.st: cannot open"),
        ];
        for (args, status, text) in cases {
            said_once(&go(&here, "st-sync", args, Some(job))?.broken_off(job.mpi, status)?, "st-sync", text)?;
        }
        // A mistake in the command line is said once, too.
        let o = go(&here, "st-sync", &["--no-such-option"], Some(job))?.broken_off(job.mpi, 2)?;
        if o.stderr.matches("unexpected argument").count() != 1 {
            return Err(format!("not said once: {o}"));
        }
        if here.path("x.st").exists() { Err("a result of a failure".into()) } else { Ok(()) }
    });
}

#[test]
fn an_engine_that_does_not_fit_the_launcher_is_refused() {
    let mpis = place::mpis();
    let [one, other] = mpis[..] else { return place::say("one MPI only: engines of another are NOT tested") };
    let test = |mpi: Mpi, other: Mpi| {
        let job = Job { mpi, ranks: 2 };
        let here = Workplace::new(job)?;
        inputs(&here)?;
        fs::create_dir(here.path(mpi.name())).map_err(|e| e.to_string())?;
        let engine = place::engine(other, "st-engine")?;
        std::os::unix::fs::symlink(engine, here.path(mpi.name()).join("st-engine"))
            .map_err(|e| e.to_string())?;
        let program = place::program("st-sync")?.into_os_string();
        let words = job.words([program, "-o".into(), "x.st".into(), "packed.st".into()])?;
        let run = Run::new(&words[0], &words[1..]).within(here.directory.path());
        let o = job.go(run.env("ST_LIBRARY_PATH", here.directory.path()))?.broken_off(mpi, 1)?;
        let text = format!("the launcher started 2 processes, but {other} sees one");
        said_once(&o, "st-sync", &text)?;
        if here.path("x.st").exists() { Err("it ran all the same".into()) } else { Ok(()) }
    };
    let failures: Vec<Failure> =
        [test(one, other), test(other, one)].into_iter().filter_map(Result::err).collect();
    conclude(2, &failures);
}

#[test]
fn without_an_engine_it_does_not_run_once_per_process() {
    under_each(|job| {
        let here = Workplace::new(job)?;
        inputs(&here)?;
        fs::copy(place::program("st-sync")?, here.path("st-sync")).map_err(|e| e.to_string())?;
        let words = job.words(["./st-sync", "-o", "x.st", "packed.st"])?;
        let o =
            job.go(Run::new(&words[0], &words[1..]).within(here.directory.path()))?.broken_off(job.mpi, 1)?;
        said_once(&o, "st-sync", "st-engine was not built for")?;
        if here.path("x.st").exists() { Err("it ran all the same".into()) } else { Ok(()) }
    });
}
