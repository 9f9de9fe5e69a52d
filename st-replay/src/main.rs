//! The program st-replay.

use std::alloc::System;
use std::process::ExitCode;

use st_cli::Memory;

#[global_allocator]
static MEMORY: Memory<System> = Memory { tool: || st_replay::TOOL, from: System };

fn main() -> ExitCode {
    st_replay::main()
}
