//! The program st-view.

use std::alloc::System;
use std::process::ExitCode;

use st_cli::Memory;

#[global_allocator]
static MEMORY: Memory<System> = Memory { tool: || "st-view", from: System };

fn main() -> ExitCode {
    st_view::main()
}
