//! Measures this version of st, alone or beside an older one in turns, and writes BENCHMARKS.md from the results.
//!
//! What is measured is in `tools/bench/groups`: each is a program that lists its cases and runs one of them with the programs
//! of a version. Results are in `benchmarks`, a file for each group; `benchmarks/BENCHMARKS.md.in` is the text around them.

mod group;
mod report;
mod results;
mod stats;
mod turns;
mod version;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use st_tool::Status;
use st_tool::options::Talk;

const TOOL: &str = "st-bench";

/// Measure st, and write BENCHMARKS.md from what was measured
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    talk: Talk,
}

#[derive(Subcommand)]
enum Command {
    /// Measure groups of cases; without --against the results are put into benchmarks/
    Run(Run),
    /// Write BENCHMARKS.md from benchmarks/
    Report {
        /// Only compare: fail if it is not what the results give
        #[arg(long)]
        check: bool,
    },
}

/// What is measured, and how.
#[derive(clap::Args)]
struct Run {
    /// Build this commit below target/bench, measure both in turns, and print ratios; nothing is put into benchmarks/
    #[arg(long, value_name = "REV")]
    against: Option<String>,
    /// These groups only (the files in tools/bench/groups); or quick: instructions and bytes of all that is
    /// measured in a few minutes, which do not depend on what else the machine does
    #[arg(long, value_delimiter = ',', value_name = "GROUP")]
    only: Vec<String>,
    /// Only cases whose names contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    case: String,
    /// Runs of what differs from run to run (default: what the group says)
    #[arg(long, value_name = "N")]
    runs: Option<u32>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let result = version::root().and_then(|root| match &args.command {
        Command::Run(run) => turns::run(&root, run, &args.talk),
        Command::Report { check } => report::write(&root, *check).map(|()| Status::Ok),
    });
    st_tool::report(TOOL, result)
}
