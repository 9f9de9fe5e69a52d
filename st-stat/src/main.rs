//! The program st-stat.

use std::alloc::System;
use std::process::ExitCode;

use st_cli::Memory;

#[global_allocator]
static MEMORY: Memory<System> = Memory { tool: || "st-stat", from: System };

fn main() -> ExitCode {
    st_stat::main()
}
