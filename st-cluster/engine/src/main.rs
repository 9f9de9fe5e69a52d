//! What `st-cluster` becomes inside an MPI job of several processes.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use st_cluster::args::Args;
use st_tool::engine;

/// A rank is many small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match engine::parse::<Args>() {
        Ok(args) => st_tool_mpi::run(st_cluster::NAME, |job| st_cluster::run_in(&args, job)),
        Err(code) => code,
    }
}
