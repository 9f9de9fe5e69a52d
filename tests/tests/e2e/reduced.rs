//! st-cluster and st-merge as several processes of an MPI job: the bytes that one process writes.

use std::fs;

use st_cli::Mpi;
use st_tests::Failure;
use st_tests::jobs::Job;
use st_tests::process::Run;
use st_tests::workplace::Workplace;

use crate::stages::{as_alone, go, rank_files, said_once, under_each};

/// Recordings on paper: one file for all ranks, and one for each.
fn inputs(here: &Workplace) -> Result<[&'static str; 2], Failure> {
    let kernel = ["multigrid", "--steps", "3", "--paper", "--ranks", "70", "-o", "packed.st"];
    here.go(Run::st("st-kernels", kernel)?)?.ok()?;
    let kernel = ["sweeps", "--steps", "3", "--paper", "--ranks", "36", "-o", "sweeps.st"];
    here.go(Run::st("st-kernels", kernel)?)?.ok()?;
    rank_files(here, "sweeps.st", "run")?;
    Ok(["packed.st", "run"])
}

/// What a command writes: its stream, and the table of clusters if it is asked for one.
fn result(here: &Workplace, line: &str, job: Option<Job>) -> Result<Vec<Vec<u8>>, Failure> {
    let words: Vec<&str> = line.split(' ').chain(["-o", "out.st"]).collect();
    go(here, words[0], &words[1..], job)?.ok()?;
    let take = |name: &str| {
        let bytes = fs::read(here.path(name)).ok()?;
        fs::remove_file(here.path(name)).ok()?;
        Some(bytes)
    };
    Ok(["out.st", "table.csv"].into_iter().filter_map(take).collect())
}

#[test]
fn several_processes_reduce_as_one_does() {
    let here = Workplace::new(Job::of(Mpi::Openmpi)).unwrap();
    let lines = [
        "st-merge",
        "st-merge --keep-columns --drop-tags",
        "st-cluster --table table.csv",
        "st-cluster --let q=6 --param MPI_Send:dest n%2?me^1:(me+q)%size --force-merge dest,source --table table.csv",
        "st-cluster --keep-all --table table.csv",
        "st-cluster --signature paper --count-tolerance 5% --table table.csv",
    ];
    // Expressions are for calls that are there.
    let send = |input| if input == "run" { "MPI_Isend:" } else { "MPI_Send:" };
    let of = |input: &'static str| {
        lines.into_iter().map(move |line| format!("{} {input}", line.replace("MPI_Send:", send(input))))
    };
    as_alone(inputs(&here).unwrap().into_iter().flat_map(of), |line, job| result(&here, line, job));
}

#[test]
fn several_processes_refuse_what_one_refuses() {
    under_each(|job| {
        let here = Workplace::new(job)?;
        inputs(&here)?;
        let copy = here.path("run").join("rank-000099.st");
        fs::copy(here.path("run").join("rank-000001.st"), copy).map_err(|e| e.to_string())?;
        for program in ["st-merge", "st-cluster"] {
            for (args, status, text) in [
                (&["-o", "x.st", "run"][..], 3, "holds rank 1, as run/rank-000001.st does"),
                (&["-o", "x.st"], 2, "name the inputs"),
                (&["-o", "x.st", "missing.st"], 1, "missing.st: cannot open"),
            ] {
                said_once(&go(&here, program, args, Some(job))?.broken_off(job.mpi, status)?, program, text)?;
            }
        }
        if here.path("x.st").exists() { Err("a result of a failure".into()) } else { Ok(()) }
    });
}
