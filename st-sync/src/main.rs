//! The program st-sync.

use std::alloc::System;
use std::process::ExitCode;

use st_sync::args::Args;
use st_tool::engine;

#[global_allocator]
static MEMORY: st_tool::Memory<System> = st_tool::Memory { tool: st_sync::NAME, from: System };

fn main() -> ExitCode {
    match engine::parse::<Args>() {
        Ok(args) => st_tool::report(st_sync::NAME, st_sync::run(&args)),
        Err(code) => code,
    }
}
