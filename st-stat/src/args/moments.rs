//! The command line of the commands about what is when.

use clap::{Args as ClapArgs, ValueEnum};
use st_cli::Symbols;

use super::explain::Explaining;

const PHASES: &str = "\
Examples:
  st-stat phases app.st                    do iterations become slower?
  st-stat phases --format csv app.st > iterations.csv
  st-stat phases --by pcontrol app.st      by what the program says with MPI_Pcontrol

A loop is an outermost one around calls of a rank's first thread that has several iterations; loops of ranks are the same that have as many, the n-th \
such of each rank. An iteration lasts from the end of the call before it to the end of its last call. Drawn are mean time, share of MPI and share of \
wait states over the run, by parts, of the loops that take more than 1 % of the time. The trend is the median of the slopes between parts; slow is an \
iteration that takes longer than the median by more than half, and by more than eight times the usual difference. With --by pcontrol a phase lasts \
from one MPI_Pcontrol to the next. Exact times are needed (st-record without --merge).

Columns: CSV and JSON have a row for each iteration: loop, by number, that which takes most first; level of a phase; function, site and place, the first call; \
iteration; ranks that make it; begin_ns of the first rank, from the start of the run; time_ns, mean of the ranks; longest_ns and longest_rank; mpi_ns \
and wait_ns, means of the ranks.";

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

/// What a run is cut into.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum PhasesBy {
    /// Iterations of the outermost loops
    #[default]
    Loop,
    /// From each MPI_Pcontrol to the next, those of one level together
    Pcontrol,
}
