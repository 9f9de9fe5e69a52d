//! A program as one of several processes: MPI as a [`Transport`], from the beginning to the end of the process.

use std::process::ExitCode;

use anyhow::Result;
use st_cli::transport::{Gone, Transport};
use st_cli::{Elsewhere, Launch, Status, engine};

use crate::MPI;
use crate::world::World;

/// Joins the job, does a program's work in it, reports, and leaves.
///
/// `work` may fail on all processes ([`st_cli::transport::agree`]); if it fails on one because another cannot be
/// understood, the job is ended.
pub fn run(tool: &str, work: impl FnOnce(&mut dyn Transport) -> Result<Status>) -> ExitCode {
    let mut world = match World::join() {
        Ok(world) => world,
        Err(error) => return st_cli::report(tool, Err(error)),
    };
    world.end_with_panics();
    if let Err(error) = engine::check_world(MPI, world.processes()) {
        // All of them are alone: the one that the launcher calls the first says so.
        let first = Launch::current().is_none_or(|launch| launch.rank == 0);
        return st_cli::report(tool, Err(if first { error } else { Elsewhere(1).into() }));
    }
    let done = work(&mut world);
    let lost = done.as_ref().is_err_and(|error| error.chain().any(|cause| cause.is::<Gone>()));
    let code = st_cli::report(tool, done);
    if lost {
        world.abort();
    }
    world.leave();
    code
}
