//! The program st-convert.

use std::alloc::System;
use std::process::ExitCode;

use st_cli::Memory;

#[global_allocator]
static MEMORY: Memory<System> = Memory { tool: || "st-convert", from: System };

fn main() -> ExitCode {
    st_convert::main()
}
