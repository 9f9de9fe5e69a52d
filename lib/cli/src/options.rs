//! Option groups. A program flattens (`#[command(flatten)]`) the groups it honours, and no others.

use crate::Output;
use crate::progress::{self, Amount, Progress};
use clap::{Args, ValueEnum};
use st_model::steps::Budget;
use st_stream::WriteOptions;
use std::fmt;
use std::path::PathBuf;

/// How much is said on standard error. Errors are always printed.
#[derive(Args, Clone, Debug, Default)]
pub struct Talk {
    /// Say nothing but errors
    #[arg(short, long, help_heading = "Talk")]
    pub quiet: bool,
    /// Say more about what is done
    #[arg(short, long, conflicts_with = "quiet", help_heading = "Talk")]
    pub verbose: bool,
}

impl Talk {
    /// Prints `tool: message` on standard error, unless quiet.
    pub fn note(&self, tool: &str, message: impl fmt::Display) {
        if !self.quiet {
            say(tool, message);
        }
    }

    /// Prints `tool: message` on standard error if more talk was asked for.
    pub fn detail(&self, tool: &str, message: impl fmt::Display) {
        if self.verbose {
            say(tool, message);
        }
    }

    /// Work that begins: on a terminal it is shown how far it is, unless quiet, once it takes more than a second.
    #[must_use = "it is shown until it is dropped"]
    pub fn progress(&self, tool: &str, what: &str, amount: Amount) -> Progress {
        Progress::begin(!self.quiet, tool, what, amount)
    }

    /// Prints `tool: warning: message` on standard error, unless quiet.
    pub fn warn(&self, tool: &str, message: impl fmt::Display) {
        self.note(tool, format_args!("warning: {message}"));
    }
}

fn say(tool: &str, message: impl fmt::Display) {
    progress::print(format_args!("{tool}: {message}"));
}

/// Number of threads for an option `-j`, of which 0 is one per processor.
#[must_use]
pub fn threads(jobs: u16) -> usize {
    match jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n.into(),
    }
}

/// How streams are read.
#[derive(Args, Clone, Debug, Default)]
pub struct StreamIn {
    /// Use what a truncated input still holds
    #[arg(long, help_heading = "Input")]
    pub partial: bool,
    /// How much work is done.
    #[command(flatten)]
    pub steps: Steps,
    /// The program that shows how far it has read, see [`StreamIn::shown`].
    #[arg(skip)]
    pub(crate) reader: Option<&'static str>,
}

impl StreamIn {
    /// The same, showing how far a program has read, unless it is quiet.
    #[must_use]
    pub fn shown(&self, tool: &'static str, talk: &Talk) -> Self {
        Self { reader: (!talk.quiet).then_some(tool), ..self.clone() }
    }
}

/// What tells ranks apart beside what they do.
#[derive(Args, Clone, Debug, Default)]
pub struct Asked {
    /// Tell ranks apart by what they asked of their own place, too
    ///
    /// Coordinates, neighbours and ranks that MPI_Cart_get, MPI_Cart_coords, MPI_Dist_graph_neighbors, MPI_Group_rank and the
    /// like return are kept for each rank, but only say who it is: without this option they make no clusters of ranks that do
    /// the same. Where st-cluster was told so, st-stat clusters does it unasked, as far as the trace says how it was made
    /// (not with --no-provenance).
    #[arg(long)]
    pub asked: bool,
}

/// Whether what exact times tell of waits is kept where these are folded.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Keeping {
    /// Keep what exact times tell of waits, for st-stat why and its like, where they are folded
    ///
    /// Some hundred bytes to a few kB, by what the program does and not by its ranks: wait states and delays by kind and call
    /// site, with exact sums and the ranks concerned, efficiencies, and whatever else costs more than 0.1 % of the run. It
    /// needs exact times of all calls of all ranks, and memory for these.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub waits: Waits,
}

/// When what is told of waits is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Waits {
    /// If there are no more than 2 million calls
    #[default]
    Auto,
    /// Of any number of calls
    Always,
    /// Not at all
    Never,
}

impl Waits {
    /// Calls that a trace may have at most, if its waits are to be kept.
    #[must_use]
    pub fn most(self) -> u64 {
        match self {
            Self::Auto => 2_000_000,
            Self::Always => u64::MAX,
            Self::Never => 0,
        }
    }
}

/// Steps that a trace may take where nothing else is asked for.
const MAX_STEPS: u64 = 100_000_000;

/// How much work a trace may be: a few bytes can stand for any number of calls.
#[derive(Args, Clone, Copy, Debug)]
pub struct Steps {
    /// Refuse a trace that takes more than N steps, some five million of which take a second
    ///
    /// Those of all ranks count together: a call is one, so is a turn of a loop, and so are sixteen elements of lists. st-limits(7) says
    /// what else is how many.
    #[arg(long, value_name = "N", default_value_t = MAX_STEPS, help_heading = "Input")]
    pub max_steps: u64,
}

impl Default for Steps {
    fn default() -> Self {
        Self { max_steps: MAX_STEPS }
    }
}

impl Steps {
    /// Any number: what a job has left is taken, however long it ran.
    pub const ANY: Self = Self { max_steps: u64::MAX };

    /// Nothing has been gone through yet.
    #[must_use]
    pub fn budget(&self) -> Budget {
        Budget::new(self.max_steps)
    }
}

/// Where text goes.
#[derive(Args, Clone, Debug)]
pub struct TextOut {
    /// Write to FILE, replacing it when complete; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-", help_heading = "Output")]
    pub output: PathBuf,
}

/// Where a stream goes, and how it is written.
#[derive(Args, Clone, Debug)]
pub struct StreamOut {
    /// Write to FILE, replacing it when complete; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-", help_heading = "Output")]
    pub output: PathBuf,
    /// Do not append this program to the trace's provenance
    #[arg(long, help_heading = "Output")]
    pub no_provenance: bool,
    /// Compression: 0 (none) to 22; zstd; from 19 on LZMA where smaller and, for exact times, coders of their own. Level 19 takes 9 for
    /// what is longer than 4 MiB [default: 19 for a file, 1 for a pipe]
    #[arg(long, value_name = "N", help_heading = "Output",
          value_parser = clap::value_parser!(u8).range(0..=22))]
    pub level: Option<u8>,
}

impl StreamOut {
    /// How frames are written to the output that was opened.
    #[must_use]
    pub fn write_options(&self, output: &Output) -> WriteOptions {
        let usual = if output.is_stdout() { WriteOptions::PIPE } else { WriteOptions::FILE };
        self.level.map_or(usual, |level| WriteOptions { level })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    /// About all
    #[derive(Parser)]
    struct All {
        #[command(flatten)]
        talk: Talk,
        #[command(flatten)]
        input: StreamIn,
        #[command(flatten)]
        output: StreamOut,
    }

    #[test]
    fn the_groups_fit_together() {
        All::command().debug_assert();
        assert_eq!(All::command().get_about().unwrap().to_string(), "About all");
        let all = All::parse_from(["x", "-q", "-o", "a.st", "--level", "0"]);
        assert!(all.talk.quiet && !all.talk.verbose && !all.input.partial && !all.output.no_provenance);
        assert_eq!(all.output.level, Some(0));
        assert_eq!(all.output.output, PathBuf::from("a.st"));
    }

    #[test]
    fn contradictions_are_usage_errors() {
        assert!(All::try_parse_from(["x", "-q", "-v"]).is_err());
        assert!(All::try_parse_from(["x", "--level", "23"]).is_err());
    }
}
