//! The command line.

use std::ops::RangeInclusive;

use clap::{Args as ClapArgs, Parser};
use st_capture::fold::Fold;
use st_cli::options::StreamOut;

use crate::Kernel;

const EXAMPLES: &str = "\
Examples:
  st-record -- mpirun -n 4 st-kernels stencil2d --seconds 2
  st-kernels wavefront --paper --ranks 10000 --steps 2 | st-cluster | st-stat clusters
  st-kernels stencil3d --paper --ranks 27 -o cube.st
  st-kernels stencil2d --paper --ranks 1024 --slow 100:1.5 | st-stat why -";

/// MPI mini-programs, for real or on paper
///
/// Inside mpirun, runs the kernel and prints a checksum of all messages received. With --paper, runs the same code
/// without MPI on any number of ranks and writes the trace that a recording of it would be, in simulated time.
#[derive(Parser, Clone, Debug)]
#[command(name = "st-kernels", version, after_long_help = EXAMPLES)]
pub struct Args {
    /// The kernel
    #[arg(value_enum, value_name = "NAME")]
    pub kernel: Kernel,
    /// What the kernel does.
    #[command(flatten)]
    pub options: Options,
    /// Traces without MPI.
    #[command(flatten)]
    pub paper: PaperArgs,
}

/// What a kernel does.
#[derive(ClapArgs, Clone, Debug)]
pub struct Options {
    /// Time steps; the kernel's own number if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pub steps: Option<i32>,
    /// Size of messages, in elements (sweeps, multigrid3d: points along a side of the domain); the kernel's own if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pub size: Option<i32>,
    /// Computing time per rank, spread over the steps
    #[arg(long, value_name = "S", default_value_t = 0.05, value_parser = seconds)]
    pub seconds: f64,
    /// Seed of all that is random: message content, iteration counts, task sizes
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Open borders instead of periodic ones (stencils)
    #[arg(long)]
    pub open: bool,
    /// Computing takes more or less: this, 0 to 28, is the standard deviation of ranks, and of each time that a rank computes;
    /// others wait for who is late, and all clocks agree
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent, requires = "paper",
          help_heading = "On paper")]
    pub noise: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { steps: None, size: None, seconds: 0.05, seed: 1, open: false, noise: 0.0 }
    }
}

/// Traces without MPI.
#[derive(ClapArgs, Clone, Debug)]
#[command(next_help_heading = "On paper")]
pub struct PaperArgs {
    /// Write the trace that the run would leave, without running
    #[arg(long, requires = "ranks")]
    pub paper: bool,
    /// Number of ranks
    #[arg(long, value_name = "P", requires = "paper", value_parser = clap::value_parser!(i32).range(1..))]
    pub ranks: Option<i32>,
    /// Ranks that compute so many times as long (1:2, rank 1 twice as long as others; 8-15:1.5, those of a node); others wait for
    /// them, and all clocks agree. May be given several times: factors of one rank multiply
    #[arg(long, value_name = "RANKS:FACTOR", requires = "paper")]
    pub slow: Vec<SlowRanks>,
    /// How loops are found: none, exact, approx or approx:WINDOW:PERCENT:PERCENT, as st-record has them
    #[arg(long, value_name = "HOW", default_value_t, requires = "paper")]
    pub fold: Fold,
    /// Threads, 0 for one per processor; the trace is the same with any number
    #[arg(short, long, value_name = "N", default_value_t = 0, requires = "paper",
          value_parser = clap::value_parser!(u16).range(..=1024))]
    pub jobs: u16,
    /// Where the trace goes.
    #[command(flatten)]
    pub output: StreamOut,
}

/// A rank that computes longer than its kernel says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Slow {
    /// The rank.
    pub rank: u32,
    /// How many times as long.
    pub factor: f64,
}

/// Ranks, one after the other, that compute longer than their kernel says: one, or those of a node.
#[derive(Clone, PartialEq, Debug)]
pub struct SlowRanks {
    ranks: RangeInclusive<u32>,
    factor: f64,
}

impl SlowRanks {
    /// Each of them, up to the first that is not there.
    pub(crate) fn each(&self, ranks: u32) -> impl Iterator<Item = Slow> + '_ {
        let known = *self.ranks.start()..=ranks.max(*self.ranks.start()).min(*self.ranks.end());
        known.map(|rank| Slow { rank, factor: self.factor })
    }
}

impl std::str::FromStr for SlowRanks {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(':').and_then(|(ranks, factor)| {
            let factor = factor.parse().ok().filter(|f| (0.0..=1e6).contains(f))?;
            let (first, last) = ranks.split_once('-').unwrap_or((ranks, ranks));
            let ranks = first.parse().ok()?..=last.parse().ok()?;
            (!ranks.is_empty()).then_some(Self { ranks, factor })
        });
        parts.ok_or("not a rank or ranks, a colon, and a factor from 0 to 1000000, as in 3:1.5 or 8-15:1.5")
    }
}

impl std::fmt::Display for SlowRanks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (first, last) = (self.ranks.start(), self.ranks.end());
        match first == last {
            true => write!(f, "{first}:{}", self.factor),
            false => write!(f, "{first}-{last}:{}", self.factor),
        }
    }
}

impl PaperArgs {
    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        st_cli::options::threads(self.jobs)
    }

    /// Whether the trace was sent somewhere.
    pub(crate) fn names_output(&self) -> bool {
        self.output.output != *"-"
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.0..=1e6).contains(&s) => Ok(s),
        _ => Err("not a number of seconds from 0 to 1000000".into()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    // Beyond, a time below none would have to be cut off at none: the mean would not be the kernel's any more.
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=28.0).contains(&percent) => Ok(percent),
        _ => Err("not a number of percent from 0 to 28".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn slow_ranks_are_told_as_they_are_read() {
        for text in ["3:1.5", "8-15:2"] {
            assert_eq!(text.parse::<SlowRanks>().unwrap().to_string(), text);
        }
        let each =
            |text: &str| text.parse::<SlowRanks>().unwrap().each(9).map(|s| s.rank).collect::<Vec<_>>();
        assert_eq!(
            [each("3-4:2"), each("0-4294967295:2"), each("12-13:2")],
            [vec![3, 4], (0..=9).collect(), vec![12]]
        );
    }

    #[test]
    fn contradictions_are_usage_errors() {
        let parses = |line: &str| Args::try_parse_from(line.split_whitespace()).is_ok();
        assert!(parses("x ocean --paper --ranks 4"));
        assert!(parses("x ocean --paper --ranks 4 --slow 1:2 --slow 2-3:0.5 --noise 2.5"));
        for line in [
            "x",
            "x nothing",
            "x ocean --paper",
            "x ocean --ranks 4",
            "x ocean --steps 0",
            "x ocean --seconds -1",
            "x ocean --slow 1:2",
            "x ocean --noise 2",
            "x ocean --paper --ranks 4 --noise 29",
            "x ocean --paper --ranks 4 --noise -1",
            "x ocean --paper --ranks 4 --noise nan",
            "x ocean --paper --ranks 4 --slow 1",
            "x ocean --paper --ranks 4 --slow 3-1:2",
            "x ocean --paper --ranks 4 --slow 1-:2",
            "x ocean --paper --ranks 4 --slow 1:-2",
            "x ocean --paper --ranks 4 --slow 1:inf",
        ] {
            assert!(!parses(line), "{line}");
        }
    }
}
