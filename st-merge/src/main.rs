//! The program st-merge.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use st_merge::args::Args;
use st_tool::{Memory, engine};

/// A rank is many small allocations.
#[global_allocator]
static MEMORY: Memory<MiMalloc> = Memory { tool: st_merge::NAME, from: MiMalloc };

fn main() -> ExitCode {
    match engine::parse::<Args>() {
        Ok(args) => st_tool::report(st_merge::NAME, st_merge::run(&args)),
        Err(code) => code,
    }
}
