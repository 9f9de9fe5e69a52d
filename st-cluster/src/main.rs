//! The program st-cluster.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use st_cluster::args::Args;
use st_tool::{Memory, engine};

/// A rank is many small allocations.
#[global_allocator]
static MEMORY: Memory<MiMalloc> = Memory { tool: st_cluster::NAME, from: MiMalloc };

fn main() -> ExitCode {
    match engine::parse::<Args>() {
        Ok(args) => st_tool::report(st_cluster::NAME, st_cluster::run(&args)),
        Err(code) => code,
    }
}
