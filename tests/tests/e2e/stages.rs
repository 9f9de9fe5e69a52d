//! Stages that run as several processes of an MPI job, beside the same stage alone.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::path::Path;

use st_cli::Mpi;
use st_stream::{ReadOptions, Trace, WriteOptions, read, write};
use st_tests::jobs::Job;
use st_tests::process::{Outcome, Run};
use st_tests::workplace::Workplace;
use st_tests::{Failure, conclude, place};

/// Jobs of several sizes; MPICH, which spins while it waits, has two processes.
pub(crate) fn jobs() -> Vec<Job> {
    let sizes = |mpi: &Mpi| if *mpi == Mpi::Openmpi { vec![2, 3, 4] } else { vec![2] };
    let of = |mpi: Mpi| sizes(&mpi).into_iter().map(move |ranks| Job { mpi, ranks });
    place::mpis().into_iter().flat_map(of).collect()
}

/// Runs a program, as the launcher's or alone.
pub(crate) fn go(
    here: &Workplace,
    program: &str,
    args: &[&str],
    job: Option<Job>,
) -> Result<Outcome, Failure> {
    let Some(job) = job else { return here.go(Run::st(program, args)?) };
    let program = place::program(program)?.into_os_string();
    let words = job.words(std::iter::once(program).chain(args.iter().map(OsString::from)))?;
    job.go(Run::new(&words[0], &words[1..]).within(here.directory.path()))
}

/// A whole trace, read.
pub(crate) fn stream(path: &Path) -> Result<Trace, Failure> {
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    read(&bytes[..], ReadOptions::default()).map_err(|e| e.to_string())
}

/// Puts each section of a packed trace into a file of its own, as ranks do, in a directory.
pub(crate) fn rank_files(here: &Workplace, packed: &str, directory: &str) -> Result<(), Failure> {
    let io = |e: std::io::Error| e.to_string();
    let whole = stream(&here.path(packed))?;
    fs::create_dir(here.path(directory)).map_err(io)?;
    for (i, section) in whole.sections.iter().enumerate() {
        let one = Trace { sections: vec![section.clone()], ..whole.clone() };
        let file = fs::File::create(here.path(directory).join(format!("rank-{i:06}.st"))).map_err(io)?;
        write(&one, file, WriteOptions::PIPE).map_err(io)?;
    }
    Ok(())
}

/// Compares what each case comes to in every job with what it comes to alone.
pub(crate) fn as_alone<C: Display, T: PartialEq>(
    cases: impl IntoIterator<Item = C>,
    result: impl Fn(&C, Option<Job>) -> Result<T, Failure>,
) {
    let (mut n, mut failures) = (0, Vec::new());
    for case in cases {
        let expected = result(&case, None);
        for job in jobs() {
            n += 1;
            match (result(&case, Some(job)), &expected) {
                (Ok(found), Ok(expected)) if found == *expected => {}
                (Ok(_), Ok(_)) => failures.push(format!("{job}: {case}: another result")),
                (Err(e), _) => failures.push(format!("{job}: {case}: {e}")),
                (_, Err(e)) => failures.push(format!("alone: {case}: {e}")),
            }
        }
    }
    conclude(n, &failures);
}

/// The one line that a program has said itself, which has to hold a text.
pub(crate) fn said_once(o: &Outcome, program: &str, text: &str) -> Result<(), Failure> {
    let own = format!("{program}: ");
    let said: Vec<&str> = o.stderr.lines().filter(|l| l.starts_with(&own)).collect();
    match said[..] {
        [line] if line.contains(text) => Ok(()),
        _ => Err(format!("not one line with {text:?}: {o}")),
    }
}

/// Runs a test under every MPI.
pub(crate) fn under_each(test: impl Fn(Job) -> Result<(), Failure>) {
    let all = Job::all();
    let failures: Vec<_> =
        all.iter().filter_map(|job| test(*job).map_err(|e| format!("{job}: {e}")).err()).collect();
    conclude(all.len(), &failures);
}
