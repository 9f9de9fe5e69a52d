//! What `st-merge` becomes inside an MPI job of several processes.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use st_merge::args::Args;
use st_tool::engine;

/// A rank is many small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match engine::parse::<Args>() {
        Ok(args) => st_tool_mpi::run(st_merge::NAME, |job| st_merge::run_in(&args, job)),
        Err(code) => code,
    }
}
