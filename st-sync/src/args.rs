//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use st_cli::options::{StreamIn, StreamOut, Talk};
use st_cli::quantity::in_nanoseconds;

use crate::clc::GAMMA_UNITS;

const EXAMPLES: &str = "\
Examples:
  st-sync -o corrected.st app.st           corrects, and reports on standard error
  st-sync run | st-cluster | st-merge -o app.st
                                           corrected times through to the merged trace
  st-stat violations corrected.st          messages that arrive before they were sent
  mpirun -n 4 st-sync -o out/ run          four processes, one stream per rank";

/// Correct the clocks of a trace
///
/// Reads streams with exact times (files, directories of streams, or standard input) and writes the same with corrected
/// times: first the offsets to rank 0 that were measured while recording are interpolated; where messages between nodes still
/// arrive before they were sent, the clocks of all but rank 0 are corrected by what messages and comparisons together leave
/// open; then receives that still come before their sends, and what depends on them, are moved (controlled logical clock),
/// of rank 0 too if nothing else is left. The report states how far each clock may be off: no farther than comparisons and
/// messages to it and back leave open, whose least latencies the quickest of them show, if rates change as these show. Where
/// there are no messages both ways, rates are taken to change by 6 µs a second at most, or, with four comparisons or more, as
/// fast as these show. Sketches and sums are made anew
/// from the corrected times of ranks that have them of every call; st-sync names the others. If the output is a directory
/// (an existing one, or a name that ends in /), each input file has its counterpart there; else all goes into one
/// stream.
///
/// Below mpirun, its processes share the ranks: `mpirun -n 4 st-sync -o out.st run` writes what st-sync alone would.
#[derive(Parser, Clone, Debug)]
#[command(name = "st-sync", version, after_long_help = EXAMPLES)]
pub struct Args {
    /// Streams, or directories of streams; - or nothing is standard input
    #[arg(value_name = "STREAM")]
    pub inputs: Vec<PathBuf>,
    /// How times are corrected
    #[arg(long, value_enum, default_value_t)]
    pub method: Method,
    /// Least time of a message within a node, in ns or with its unit (1.5us) [default: the shortest that one takes in the trace once
    /// clocks are interpolated; 0 if one still arrives before it was sent]
    #[arg(long, value_name = "NS", value_parser = in_nanoseconds)]
    pub lmin_intra: Option<i64>,
    /// Least time of a message between nodes [default: as for --lmin-intra]
    #[arg(long, value_name = "NS", value_parser = in_nanoseconds)]
    pub lmin_inter: Option<i64>,
    /// Share of each gap that remains while a rank is ahead of its measured times, 0 to 1, at most nine decimals
    /// [default: the first of 0.99999, 0.9999, 0.999, 0.8991, … that leaves the end in place]
    #[arg(long, value_name = "X", value_parser = gamma)]
    pub gamma: Option<i64>,
    /// Least time between events that were apart, as that of messages
    #[arg(long, value_name = "NS", default_value = "1", value_parser = in_nanoseconds)]
    pub delta: i64,
    /// Try at most N values of gamma
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub max_passes: u32,
    /// Calls that are taken to synchronise their communicator although the standard does not promise it
    #[arg(long, value_name = "CALLS", value_enum, value_delimiter = ',', default_values = ["init", "creation", "fence"])]
    pub barriers: Vec<Barrier>,
    /// Write a report to FILE: as .csv, .json or .svg by its name, else as text; - is standard error. Its error_mean_ns and
    /// error_max_ns are by how much violated messages are too early, by --lmin-intra and --lmin-inter
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Threads to use
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
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

/// How times are corrected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Method {
    /// Not at all
    None,
    /// The first measured offset
    Offset,
    /// Interpolation between the measured offsets
    Linear,
    /// Interpolation; if messages are still violated, correction of clocks by messages, then the controlled logical clock
    #[default]
    Clc,
}

/// Calls that may be taken to synchronise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Barrier {
    /// `MPI_Init`
    Init,
    /// `MPI_Finalize`, whose end the recorder does not see
    Finalize,
    /// Making communicators, windows and files, freeing windows, closing files
    Creation,
    /// `MPI_Win_fence`, where it ends an epoch
    Fence,
    /// No call
    None,
}

/// A decimal fraction as a number of billionths.
fn gamma(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text} is not a number from 0 to 1 with at most nine decimals");
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 9 || !decimals.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let whole: i64 = whole.parse().map_err(|_| wrong())?;
    let decimals: i64 = format!("{decimals:0<9}").parse().map_err(|_| wrong())?;
    let units = whole.checked_mul(GAMMA_UNITS).and_then(|w| w.checked_add(decimals)).ok_or_else(wrong)?;
    if (0..=GAMMA_UNITS).contains(&units) && !text.starts_with('-') { Ok(units) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_is_exact() {
        assert_eq!(gamma("0.99999"), Ok(999_990_000));
        assert_eq!(gamma("1"), Ok(GAMMA_UNITS));
        assert_eq!(gamma("0"), Ok(0));
        assert_eq!(gamma("0.000000001"), Ok(1));
        for wrong in ["", ".", "1.1", "-0.5", "-0", "x", "0.0000000001", "0.-1"] {
            assert!(gamma(wrong).is_err(), "{wrong}");
        }
    }
}
