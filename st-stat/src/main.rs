//! The program st-stat.

use std::alloc::System;
use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static MEMORY: st_tool::Memory<System> = st_tool::Memory { tool: "st-stat", from: System };

fn main() -> ExitCode {
    st_tool::report("st-stat", st_stat::run(&st_stat::args::Args::parse()))
}
