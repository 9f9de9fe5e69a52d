//! Measures this version of st, alone or beside an older one in turns, and writes BENCHMARKS.md from the results.
//!
//! What is measured is in `tools/bench/groups`: each is a program that lists its cases and runs one of them with the programs
//! of a version. Results are in `benchmarks`, a file for each group; `benchmarks/BENCHMARKS.md.in` is the text around them.

mod anew;
mod apart;
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
    let result = match &args.command {
        Command::Apart { truth, kept } => apart::print(truth, kept).map(|()| Status::Ok),
        Command::Anew { tick, time, trace, output } => {
            anew::write(*tick, *time, trace, output).map(|()| Status::Ok)
        }
        Command::Figure(of) => figure::draw(of).map(|()| Status::Ok),
        Command::Run(run) => version::root().and_then(|root| turns::run(&root, run, &args.talk)),
        Command::Report { check } => {
            version::root().and_then(|root| report::write(&root, *check).map(|()| Status::Ok))
        }
    };
    st_cli::report(TOOL, result)
}
