//! Measures this version of st, alone or beside an older one in turns, and writes BENCHMARKS.md from the results.
//!
//! What is measured is in `tools/bench/groups`: each is a program that lists its cases and runs one of them with the programs
//! of a version. Results are in `benchmarks`, a file for each group; `benchmarks/BENCHMARKS.md.in` is the text around them.

mod args;
mod figure;
mod group;
mod report;
mod results;
mod stats;
mod turns;
mod version;

use std::process::ExitCode;

use clap::Parser as _;
use st_cli::Status;

use crate::args::{Args, Command, TOOL};

fn main() -> ExitCode {
    let args = Args::parse();
    if let Command::Figure(of) = &args.command {
        return st_cli::report(TOOL, figure::draw(of).map(|()| Status::Ok));
    }
    let result = version::root().and_then(|root| match &args.command {
        Command::Figure(_) => Ok(Status::Ok),
        Command::Run(run) => turns::run(&root, run, &args.talk),
        Command::Report { check } => report::write(&root, *check).map(|()| Status::Ok),
    });
    st_cli::report(TOOL, result)
}
