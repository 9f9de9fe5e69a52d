//! The command line of the commands that explain.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use st_cli::Symbols;
use st_cli::options::{Steps, StreamIn, Talk, TextOut};

use crate::table::Format;

const WHY: &str = "\
Examples:
  st-stat why app.st                       what makes it slow, most costly first
  st-stat why --all --format json app.st   also what costs less than 1 % of the run

Each finding is two lines: what it costs, what it is and on which ranks; then where, and how sure that is. A cost is time that ranks \
spend waiting, as a share of the time that all ranks have (see \"Time\" in st-intro(7)). Findings need exact times of all calls \
(st-record without --merge); without these only what per-rank sums tell is said.

Columns: those of CSV and JSON are kind; cost_ns, of all ranks; share_percent of the time of all ranks; ranks, that are at fault; \
victims, how many ranks wait; what; place, of the fault; where, the place of those that wait; sure.";

const WAITS: &str = "\
Examples:
  st-stat waits app.st                     kinds of wait states, and how long ranks are in them
  st-stat waits --by pair app.st           who waits for whom
  st-stat waits --by site --format csv app.st > waits.csv

The kinds are Scalasca's. A call that completes several messages waits for the last. A wait that would end after its call is cut there; \
how many are is said: clocks disagree (st-sync).

Columns: those of CSV and JSON are wait_ns in all; share_percent of the time of all ranks; waits, how many; longest_ns; and before them kind; or with \
--by site kind, function, site and place; with --by rank rank; with --by pair rank and for_rank, for whom it waits; with --by culprit kind, \
for_rank, and function, site and place of the call that comes too late.";

const EFFICIENCY: &str = "\
Examples:
  st-stat efficiency app.st                how much of the time is computation, and why it is not more

The convention is the POP centre's, multiplicative: parallel efficiency = load balance · communication efficiency, and that = serialisation · \
transfer. The ideal network, which parts the latter, has no latency and infinite bandwidth; a message of more than 32 KiB waits on it for its receive. Over \
0.8 counts as good.

Columns: those of CSV and JSON are measure, and value.";

const RANKS: &str = "\
Examples:
  st-stat ranks app.st                     computation, MPI and waiting per rank
  st-stat ranks --format csv app.st | sort -t, -k3n

Columns: those of CSV and JSON are rank; time_ns from the end of MPI_Init to the start of MPI_Finalize; computation_ns, outside of MPI; mpi_ns; wait_ns, the \
part of that in wait states (empty without exact times); computation_percent of the mean of all ranks.";

/// What all of them are asked.
#[derive(ClapArgs, Clone, Debug)]
pub struct Explaining {
    /// The trace's streams, or a directory of streams; - or nothing is standard input
    #[arg(value_name = "STREAM")]
    pub inputs: Vec<PathBuf>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// How inputs are read.
    #[command(flatten)]
    pub input: StreamIn,
    /// How much work is done.
    #[command(flatten)]
    pub steps: Steps,
    /// Where the text goes.
    #[command(flatten)]
    pub output: TextOut,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

/// Findings.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = WHY)]
pub struct WhyArgs {
    /// Say also what costs less than 1 % of the run
    #[arg(long)]
    pub all: bool,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}

/// Wait states.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = WAITS)]
pub struct WaitsArgs {
    /// What they are added up by
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub by: WaitsBy,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}

/// What waits are added up by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum WaitsBy {
    /// Kind of wait state
    #[default]
    Kind,
    /// Kind, and call site of those that wait
    Site,
    /// Rank that waits
    Rank,
    /// Rank that waits and rank that it waits for
    Pair,
    /// Kind, and rank and call site that are waited for
    Culprit,
}

/// Efficiencies.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = EFFICIENCY)]
pub struct EfficiencyArgs {
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}

/// Ranks.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = RANKS)]
pub struct RanksArgs {
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}
