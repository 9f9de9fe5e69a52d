//! The program that people start: it finds the engine that fits the job, or starts the job.

use clap::Parser;
use st_replay::args::Args;
use st_replay::{TOOL, launch};
use std::alloc::System;
use std::process::ExitCode;

#[global_allocator]
static MEMORY: st_tool::Memory<System> = st_tool::Memory { tool: "st-replay", from: System };

fn main() -> ExitCode {
    let args = Args::parse();
    match launch::run(&args) {
        Ok(launch::Ended::Here(status)) => st_tool::report(TOOL, Ok(status)),
        Ok(launch::Ended::Ranks(code)) => ExitCode::from(code),
        Err(error) => st_tool::report(TOOL, Err(error)),
    }
}
