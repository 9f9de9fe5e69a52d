//! The program st-sync.

use std::alloc::System;
use std::process::ExitCode;

use st_cli::Memory;

#[global_allocator]
static MEMORY: Memory<System> = Memory { tool: || st_sync::NAME, from: System };

fn main() -> ExitCode {
    st_sync::main()
}
