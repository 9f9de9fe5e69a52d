//! st-cluster and st-merge as several processes of an MPI job: the bytes that one process writes.

use std::ffi::OsString;
use std::fs;

use st_tests::jobs::Job;
use st_tests::process::{Outcome, Run};
use st_tests::workplace::Workplace;
use st_tests::{Failure, conclude, place};
use st_tool::Mpi;
use st_trace::stream::{ReadOptions, Trace, WriteOptions, read, write};

/// Jobs of several sizes; MPICH, which spins while it waits, has two processes.
fn jobs() -> Vec<Job> {
    let sizes = |mpi: &Mpi| if *mpi == Mpi::Openmpi { vec![2, 3, 4] } else { vec![2] };
    let of = |mpi: Mpi| sizes(&mpi).into_iter().map(move |ranks| Job { mpi, ranks });
    place::mpis().into_iter().flat_map(of).collect()
}

/// Recordings on paper: one file for all ranks, and one for each.
fn inputs(here: &Workplace) -> Result<[&'static str; 2], Failure> {
    let io = |e: std::io::Error| e.to_string();
    let kernel = ["multigrid", "--steps", "3", "--paper", "--ranks", "70", "-o", "packed.st"];
    here.go(Run::st("st-kernels", kernel)?)?.ok()?;
    let kernel = ["sweeps", "--steps", "3", "--paper", "--ranks", "36", "-o", "sweeps.st"];
    here.go(Run::st("st-kernels", kernel)?)?.ok()?;
    let bytes = fs::read(here.path("sweeps.st")).map_err(io)?;
    let whole = read(&bytes[..], ReadOptions::default()).map_err(|e| e.to_string())?;
    fs::create_dir(here.path("run")).map_err(io)?;
    for (i, section) in whole.sections.iter().enumerate() {
        let one = Trace { sections: vec![section.clone()], ..whole.clone() };
        let file = fs::File::create(here.path("run").join(format!("rank-{i:06}.st"))).map_err(io)?;
        write(&one, file, WriteOptions::PIPE).map_err(io)?;
    }
    Ok(["packed.st", "run"])
}

/// Runs a program, as the launcher's or alone.
fn go(here: &Workplace, program: &str, args: &[&str], job: Option<Job>) -> Result<Outcome, Failure> {
    let Some(job) = job else { return here.go(Run::st(program, args)?) };
    let program = place::program(program)?.into_os_string();
    let words = job.words(std::iter::once(program).chain(args.iter().map(OsString::from)))?;
    job.go(Run::new(&words[0], &words[1..]).within(here.directory.path()))
}

/// What a program writes: its stream, and the table of clusters if it is asked for one.
fn result(here: &Workplace, line: &str, input: &str, job: Option<Job>) -> Result<Vec<Vec<u8>>, Failure> {
    let words: Vec<&str> = line.split(' ').chain(["-o", "out.st", input]).collect();
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
    let test = || {
        let here = Workplace::new(Job::of(Mpi::Openmpi))?;
        let (mut n, mut failures) = (0, Vec::new());
        for input in inputs(&here)? {
            for line in [
                "st-merge",
                "st-merge --keep-columns --drop-tags",
                "st-cluster --table table.csv",
                "st-cluster --keep-all --table table.csv",
                "st-cluster --signature paper --count-tolerance 5% --table table.csv",
            ] {
                let expected = result(&here, line, input, None)?;
                for job in jobs() {
                    n += 1;
                    match result(&here, line, input, Some(job)) {
                        Ok(found) if found == expected => {}
                        Ok(_) => failures.push(format!("{job}: {line} {input}: another result")),
                        Err(e) => failures.push(format!("{job}: {line} {input}: {e}")),
                    }
                }
            }
        }
        Ok::<_, Failure>((n, failures))
    };
    let (n, failures) = test().unwrap_or_else(|e| (1, vec![e]));
    conclude(n, &failures);
}

#[test]
fn several_processes_refuse_what_one_refuses() {
    let test = |job: Job| {
        let here = Workplace::new(job)?;
        inputs(&here)?;
        let copy = here.path("run").join("rank-000099.st");
        fs::copy(here.path("run").join("rank-000001.st"), copy).map_err(|e| e.to_string())?;
        for program in ["st-merge", "st-cluster"] {
            for (args, status, text) in [
                (&["-o", "x.st", "run"][..], 1, "rank 1 is in more than one input"),
                (&["-o", "x.st"], 2, "name the inputs"),
                (&["-o", "x.st", "missing.st"], 1, "missing.st: cannot open"),
            ] {
                let o = go(&here, program, args, Some(job))?.expect(status)?;
                let own = format!("{program}: ");
                let said: Vec<&str> = o.stderr.lines().filter(|l| l.starts_with(&own)).collect();
                match said[..] {
                    [line] if line.contains(text) => {}
                    _ => return Err(format!("not one line with {text:?}: {o}")),
                }
            }
        }
        if here.path("x.st").exists() { Err("a result of a failure".into()) } else { Ok(()) }
    };
    let all = Job::all();
    let failures: Vec<_> =
        all.iter().filter_map(|job| test(*job).map_err(|e| format!("{job}: {e}")).err()).collect();
    conclude(all.len(), &failures);
}
