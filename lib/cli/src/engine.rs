//! Becoming what links MPI: inside a job, a program turns into the engine built for the launcher's MPI.

use st_model::num::saturate;
use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow};
use clap::Parser;
use clap::error::ErrorKind;

use crate::help::brief;
use crate::screen;
use crate::{Elsewhere, Launch, Mpi, Status, report, stdout};

/// File name of the engine.
pub const ENGINE: &str = "st-engine";

/// Under its own name and with this option, it says which of the functions named behind have no place in its MPI.
pub const LACKING: &str = "--lacking";

/// A program, from its command line to its exit status.
pub fn start<A: Parser>(tool: &str, run: impl FnOnce(&A) -> Result<Status>) -> ExitCode {
    match parse(tool) {
        Ok(args) => report(tool, run(&args)),
        Err(code) => code,
    }
}

/// The command line; in a job only the first process says what is wrong with it, or prints its help.
///
/// # Errors
///
/// If the program is to end: with which exit status.
pub fn parse<A: Parser>(tool: &str) -> Result<A, ExitCode> {
    A::try_parse().map_err(|error| {
        // `-h` is for a look; `--help` and the command `help` tell all.
        let all = |word: &OsString| word == "--help" || word == "help";
        let error = match error.kind() {
            ErrorKind::DisplayHelp if !env::args_os().skip(1).any(|word| all(&word)) => {
                brief(A::command(), screen::columns()).try_get_matches().err().unwrap_or(error)
            }
            _ => error,
        };
        let first = Launch::current().is_none_or(|launch| launch.rank == 0);
        let print = || match error.use_stderr() {
            false if stdout::is_closed() => Err(io::Error::other("is closed")),
            _ => error.print(),
        };
        // clap's own `exit` does not say that the help could not be printed. A mistake is one though nobody reads of it.
        match if first { print() } else { Ok(()) } {
            Err(failed) if !error.use_stderr() => {
                report(tool, Err(Error::new(failed).context("standard output")))
            }
            _ => ExitCode::from(saturate::<u8>(error.exit_code())),
        }
    })
}

/// For a program that is one process or several: if a launcher started several, turns this process into the engine.
/// Returns only if it is alone.
///
/// # Errors
///
/// If the engine is missing or cannot be started; the first process says so.
pub fn join_others(tool: &str) -> Result<()> {
    let Some(launch) = Launch::current().filter(|launch| launch.size > 1) else { return Ok(()) };
    let context = || format!("the launcher started {} processes", launch.size);
    match become_engine(tool, &launch).with_context(context) {
        Ok(never) => match never {},
        Err(error) if launch.rank == 0 => Err(error),
        Err(_) => {
            // Launchers end the others with the first that fails: the one that says why comes first.
            thread::sleep(Duration::from_millis(500));
            Err(Elsewhere(1).into())
        }
    }
}

/// Turns this process, started by a launcher, into the engine, with its own arguments. The engine is one for all programs
/// and does the work of the one under whose name it is started, so that nothing that looks at the command line (help,
/// mistakes, provenance) sees another.
///
/// # Errors
///
/// If the engine is missing or cannot be started. There is no other way to return.
pub fn become_engine(tool: &str, launch: &Launch) -> Result<Infallible> {
    let file = built_for(launch, ENGINE)?;
    become_file(Command::new(&file).arg0(tool))
}

/// The same with another file than the engine, under that file's name.
///
/// # Errors
///
/// If the file is missing or cannot be started. There is no other way to return.
pub fn become_program(file: &str, launch: &Launch) -> Result<Infallible> {
    become_file(&mut Command::new(built_for(launch, file)?))
}

/// A file that was built for the launcher's MPI; where that starts programs of any MPI, whichever is found first.
fn built_for(launch: &Launch, file: &str) -> Result<PathBuf> {
    match launch.mpi {
        Some(mpi) => mpi.find(file),
        None => {
            let found = Mpi::ALL.iter().find_map(|mpi| mpi.find(file).ok());
            found.with_context(|| format!("{file} was not built for any MPI"))
        }
    }
}

fn become_file(command: &mut Command) -> Result<Infallible> {
    let error = command.args(env::args_os().skip(1)).exec();
    Err(Error::new(error).context(format!("{}: cannot start", Path::new(command.get_program()).display())))
}

/// Fails if the launcher started several processes and MPI sees one: the engine does not fit the launcher's MPI,
/// and would do everything once per process instead of once.
///
/// # Errors
///
/// If so.
pub fn check_world(mpi: Mpi, world: i32) -> Result<()> {
    check(Launch::current(), mpi, world)
}

fn check(launch: Option<Launch>, mpi: Mpi, world: i32) -> Result<()> {
    match launch {
        Some(Launch { size, .. }) if size > 1 && world == 1 => Err(anyhow!(
            "the launcher started {size} processes, but {mpi} sees one: it is not the MPI of this launcher"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_of_one_among_many_is_refused() {
        let launch = |size| Some(Launch { mpi: Some(Mpi::Mpich), rank: 0, size });
        let error = check(launch(4), Mpi::Openmpi, 1).unwrap_err().to_string();
        assert!(error.starts_with("the launcher started 4 processes, but Open MPI sees one"), "{error}");
        assert!(check(launch(4), Mpi::Mpich, 4).is_ok());
        assert!(check(launch(1), Mpi::Mpich, 1).is_ok());
        assert!(check(None, Mpi::Mpich, 1).is_ok());
    }

    #[test]
    fn a_missing_engine_is_named() {
        let launch = Launch { mpi: None, rank: 0, size: 2 };
        let error = become_program("no-such-engine", &launch).unwrap_err().to_string();
        assert_eq!(error, "no-such-engine was not built for any MPI");
    }
}
