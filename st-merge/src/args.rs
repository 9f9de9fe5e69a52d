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
