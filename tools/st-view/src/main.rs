//! The program st-view.

use std::alloc::System;
use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static MEMORY: st_tool::Memory<System> = st_tool::Memory { tool: "st-view", from: System };

fn main() -> ExitCode {
    st_tool::report("st-view", st_view::run(&st_view::args::Args::parse()))
}
