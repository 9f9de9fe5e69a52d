//! The command line.

use std::path::PathBuf;

use clap::{Parser, builder::PossibleValuesParser};
use st_cli::Symbols;
use st_cli::options::{Steps, StreamIn, Talk};
use st_model::ranklist::RankList;
use st_model::ranklist_notation;

use crate::formats;

/// Write a trace in the format of another tool
///
/// Reads streams (files, directories of streams, or standard input) and writes what Perfetto, Vampir, Scalasca, pandas, a
/// network simulator and others read (--list). It says first how much that will be, and then what the format has no place for.
#[derive(Parser, Clone, Debug)]
#[command(name = "st-convert", version, after_long_help = AFTER)]
pub struct Args {
    /// Streams, or directories of streams; - or nothing is standard input
    #[arg(value_name = "STREAM")]
    pub inputs: Vec<PathBuf>,
    /// The format [default: by the ending of the output's name]
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(formats::names()))]
    pub to: Option<String>,
    /// List the formats: their names, endings and readers
    #[arg(long, exclusive = true)]
    pub list: bool,
    /// Write to FILE or, where a format is several files, into the new directory FILE
    #[arg(short, long, value_name = "FILE", required_unless_present = "list", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Only these ranks, as 3 or 0-3,8 or <1 0 4 2>
    #[arg(long, visible_alias = "rank", value_name = "RANKS", value_parser = ranklist_notation::parse_any)]
    pub ranks: Option<RankList>,
    /// Only calls that end after this time, in seconds from when the first rank entered MPI_Init
    #[arg(long, value_name = "T", value_parser = seconds)]
    pub from: Option<f64>,
    /// Only calls that begin before this time
    #[arg(long, value_name = "T", value_parser = seconds)]
    pub until: Option<f64>,
    /// Write nothing if the format cannot hold all that is there: exit status 4
    #[arg(long, help_heading = "Output")]
    pub strict: bool,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// How inputs are read.
    #[command(flatten)]
    pub input: StreamIn,
    /// How much work is done.
    #[command(flatten)]
    pub steps: Steps,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|s: &f64| s.is_finite() && *s >= 0.0);
    seconds.ok_or_else(|| "a number of seconds from 0 up".into())
}

const AFTER: &str = "\
Examples:
  st-convert app.st -o app.pftrace                 for ui.perfetto.dev
  st-convert app.st --ranks 0-7 --from 1 --until 2 -o part.pftrace
  st-convert --list

Exit status: 0 done, 1 failed, 2 usage, 3 invalid or truncated stream, 4 --strict, and the format cannot hold all.";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn an_output_is_needed_but_for_the_list() {
        assert!(Args::try_parse_from(["st-convert", "a.st"]).is_err());
        assert!(Args::try_parse_from(["st-convert", "--list"]).is_ok());
        assert!(Args::try_parse_from(["st-convert", "a.st", "-o", "a.json", "--from", "-1"]).is_err());
    }
}
