//! The command line.

use std::path::PathBuf;

use clap::Parser;
use st_tool::options::{StreamIn, StreamOut, Talk};

/// Merge the traces of many ranks into one
///
/// Reads streams (files, directories of streams, or standard input), merges all ranks' structure, parameters, sketches
/// and proofs into one section, and writes it. Nothing is lost but exact times, which their sketches stand for:
/// --keep-columns keeps them too.
#[derive(Parser, Clone, Debug)]
#[command(name = "st-merge", version)]
pub struct Args {
    /// Streams, or directories of streams; - or nothing is standard input
    #[arg(value_name = "STREAM")]
    pub inputs: Vec<PathBuf>,
    /// Keep exact times: the file is then a merged structure and a column per rank
    #[arg(long)]
    pub keep_columns: bool,
    /// Threads, 0 for one per processor; the result is the same with any number
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    pub jobs: u16,
    /// How inputs are read.
    #[command(flatten)]
    pub input: StreamIn,
    /// Where the result goes.
    #[command(flatten)]
    pub output: StreamOut,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

impl Args {
    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        match self.jobs {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n.into(),
        }
    }
}
