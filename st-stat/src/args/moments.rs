//! The command line of the commands about what is when.

use clap::{Args as ClapArgs, ValueEnum};
use st_cli::Symbols;
use st_cli::quantity::seconds;
use st_explain::PhasesBy;

use super::explain::Explaining;

const PHASES: &str = "\
Examples:
  st-stat phases app.st                    do iterations become slower?
  st-stat phases --format csv app.st > iterations.csv
  st-stat phases --by pcontrol app.st      by what the program says with MPI_Pcontrol

A loop is an outermost one around calls of the thread that stands for a rank that has several iterations; loops of ranks are the same that have as many, the n-th \
such of each rank. An iteration lasts from the end of the call before it to the end of its last call. Of a loop that only some ranks make the text names them. Drawn are mean time, share of MPI and share of \
wait states over the run, by parts, of the loops that take more than 1 % of the time. The trend is how much longer the last \
takes than the first by the straight line or the exponential curve, whichever is nearer, through medians of parts (single iterations do not change it: their tenths may differ \
less); of fewer than ten iterations each is listed instead. Slow is an iteration that \
 takes longer than the median by more than half, and by more than eight times the usual difference, and is told with the rank that computes longest in it, and the mean of the others. With --by pcontrol a phase lasts \
from the begin of one MPI_Pcontrol to that of the next, or of MPI_Finalize. Exact times are needed (st-record without --merge).

Columns: CSV and JSON have a row for each iteration: loop, by number, that which takes most first; level of a phase; function, site and place, the first call; \
iteration; ranks that make it; begin_ns of the first rank and end_ns of the last, from when the first rank entered MPI_Init; time_ns, mean of the ranks; longest_ns and longest_rank; \
computation_longest_ns and computation_longest_rank, of the rank that computes longest, outside of MPI; mpi_ns and wait_ns, means of the ranks; and \
paused_ns, if the program paused recording (MPI_Pcontrol): also such a mean.";

const AT: &str = "\
Examples:
  st-stat at 1.5 app.st                    where is each rank after 1.5 s?
  st-stat at --format csv 0.25 app.st

Times are seconds from when the first rank entered MPI_Init, as st-view --calls has them. Iterations are those of the loops around the call, from 0, \
outermost first. Without exact times it is estimated, and said so, from how long each call and the computation before it take in the mean.

Columns: CSV and JSON have a row for each rank and thread: rank; thread; state (call, computation, not begun, ended, or times end: later calls have no exact \
times); function that it is in, or computes for; call, its position; iteration; since_ns, how long it has been in this, and left_ns, how long it still is; exact; \
site; place.";

const BETWEEN: &str = "\
Examples:
  st-stat between 1.5 2 app.st             what do ranks do in this half second?
  st-stat between --by rank 1.5 2 app.st   which of them computes?

Times are those of st-stat at. A call counts with the part of it that is between them.

Columns: those of CSV and JSON are function; calls; time_ns of all ranks between the times; share_percent of all that; longest_ns and longest_rank; \
ranks, how many; site and place; of (computation) calls are 0. A series of polls that find nothing is one call, and its longest is that of the whole. With --by rank rank and state (MPI or computation) take the place of function and site.";

/// A time.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = AT)]
pub struct AtArgs {
    /// The time: seconds, or with a unit (1.5, 250ms)
    #[arg(value_name = "T", value_parser = seconds)]
    pub time: f64,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}

/// Two times.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = BETWEEN)]
pub struct BetweenArgs {
    /// From this time: seconds, or with a unit (1.5, 250ms)
    #[arg(value_name = "T1", value_parser = seconds)]
    pub from: f64,
    /// Up to this one
    #[arg(value_name = "T2", value_parser = seconds)]
    pub to: f64,
    /// What it is added up by
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub by: BetweenBy,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}

/// What a window is added up by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum BetweenBy {
    /// Function and call site
    #[default]
    Site,
    /// Rank
    Rank,
}

/// Iterations over the run.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = PHASES)]
pub struct PhasesArgs {
    /// What the run is cut into
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub by: PhasesBy,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}
