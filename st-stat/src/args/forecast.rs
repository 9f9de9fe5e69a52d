//! How large traces of longer runs will be.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use st_cli::options::{StreamIn, Talk, TextOut};
use st_cli::quantity::within;

use crate::table::Format;

const FORECAST: &str = "\
Examples:
  st-stat forecast app.st                  from a short run: how large is the trace of an hour?
  st-stat forecast --for 8h app.st
  st-merge app.st | st-stat forecast       and merged?

Growth: What is foreseen is the trace of the same program, with the same options and number of ranks, whose run goes on as it has. What a rank calls once at a \
place it calls once however long it runs. Each kind of frame has a part that does not grow and one that does. Up to sixteen ranks are recorded again from the trace as far as an eighth of the run, a \
quarter, a half and nine tenths of it, merged if the trace is, and how each kind has grown until then goes on. Bounds are wide where so short a run \
does not tell; one of a few hundred rounds tells more than one of ten. Of 252 pairs of runs of kernels, the longer one four and sixteen \
times as long, packed, merged, and merged with exact times, 98 % were within the bounds. What is outside of that (a phase that the run does not have, \
output every hour) is not foreseen.

Columns: those of CSV and JSON are part; now_bytes; then_bytes, what is expected; least_bytes and most_bytes; cause.";

/// A short run.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = FORECAST)]
pub struct ForecastArgs {
    /// A trace; - or nothing is standard input
    #[arg(value_name = "TRACE", default_value = "-")]
    pub stream: PathBuf,
    /// How long the run takes: 90, 90s, 30m, 1h or 2d
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = time)]
    pub time: f64,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// How the input is read.
    #[command(flatten)]
    pub input: StreamIn,
    /// Where the text goes.
    #[command(flatten)]
    pub output: TextOut,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

/// Seconds.
fn time(text: &str) -> Result<f64, String> {
    within(text, 1e-9..=MOST)
}

/// Ten years.
const MOST: f64 = 3_650.0 * 86_400.0;
