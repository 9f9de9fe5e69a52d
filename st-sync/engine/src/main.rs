//! What `st-sync` becomes inside an MPI job of several processes.

use std::process::ExitCode;

use st_sync::args::Args;
use st_sync::team::Team;
use st_tool::engine;

fn main() -> ExitCode {
    match engine::parse::<Args>() {
        Ok(args) => st_tool_mpi::run(st_sync::NAME, |job| st_sync::run_in(&args, &mut Team::of(job))),
        Err(code) => code,
    }
}
