//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use st_cli::options::Talk;
use st_model::sketch::Shape;

use crate::anew;

/// Its name in what it says.
pub(crate) const TOOL: &str = "st-bench";

/// Measure st, and write BENCHMARKS.md from what was measured
#[derive(Parser)]
#[command(version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure groups of cases; without --against the results are put into benchmarks/
    Run(Run),
    /// Compare the distributions of times of two merged traces of the same streams, a measure a line; of one that tells no paths
    /// apart (st-merge --sketch-paths one) with those of each path
    Apart {
        /// With all that ranks have recorded: st-merge --sketch-buckets
        truth: PathBuf,
        /// With what is compared
        kept: PathBuf,
    },
    /// Write what a coarse clock would have told of a recording, exact times rounded down to its ticks and distributions of these, or
    /// what a recorder would have that keeps otherwise what times there are
    Anew {
        /// How long a tick is, ns
        #[arg(long, value_name = "NS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        tick: u32,
        /// What is kept of times, as for ST_TIME: sketch, stats, hist or hist:BINS:PERCENT (default: what the recording has)
        #[arg(long, value_name = "WHAT", value_parser = anew::shape)]
        time: Option<Shape>,
        /// The recording, with exact times of all calls
        trace: PathBuf,
        /// Where the result goes
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Draw what an experiment has measured, and say whether it is what the paper found
    Figure(Figure),
    /// Write BENCHMARKS.md from benchmarks/
    Report {
        /// Only compare: fail if it is not what the results give
        #[arg(long)]
        check: bool,
    },
}

/// What becomes a figure.
#[derive(clap::Args)]
pub(crate) struct Figure {
    /// What it is about: tools/experiments/figures/NAME.json
    #[arg(long, value_name = "FILE")]
    pub(crate) about: PathBuf,
    /// Write NAME.csv, NAME.txt and NAME.svg: their common beginning
    #[arg(short, long, value_name = "NAME")]
    pub(crate) output: PathBuf,
    /// What was measured: program,series,x,run,value
    #[arg(required = true, value_name = "CSV")]
    pub(crate) rows: Vec<PathBuf>,
}

/// What is measured, and how.
#[derive(clap::Args)]
pub(crate) struct Run {
    /// Build this commit below target/bench, measure both in turns, and print ratios; nothing is put into benchmarks/
    #[arg(long, value_name = "REV")]
    pub(crate) against: Option<String>,
    /// These groups only (the files in tools/bench/groups); or quick: instructions and bytes of all that is
    /// measured in a few minutes, which do not depend on what else the machine does
    #[arg(long, value_delimiter = ',', value_name = "GROUP")]
    pub(crate) only: Vec<String>,
    /// Only cases whose names contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) case: String,
    /// Runs of what differs from run to run (default: what the group says)
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u32>,
}
