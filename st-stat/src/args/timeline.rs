//! The command line of the timeline in text.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use st_cli::Symbols;

use super::report::window;
use super::{Explaining, RanksBy};

const TIMELINE: &str = "\
Examples:
  st-stat timeline app.st                  what ranks do when
  st-stat timeline --rows 64 app.st        more rows of fewer ranks
  st-stat timeline --by node app.st        the ranks of each node together
  st-stat timeline --window 1.5..2 app.st  half a second
  st-stat timeline --format csv app.st > cells.csv
  st-merge run/ | st-stat timeline         loops and calls in logical time: merged, exact times are folded
  st-stat timeline --svg app.svg --rows 64 app.st   a picture for a paper

Each character stands for a row's ranks in a column's time, and shows what takes most of it: computation, MPI, or a kind of waits, if all waits are an \
eighth of it or more; in capital letters if they are half. st-stat report shows the same in a browser, down to single calls.

Of a trace without exact times a row is ranks that do the same, and the axis logical time: a loop is there once, as wide as all its turns, and its body \
fills it; a call is as wide as all of its calls, and the computation before them, take on a rank of the row in the mean, or as their number, where there are no times. As far as there are rows, ranks that take equally long in everything \
share one; else neighbours do, and those that compute most or least have their own. Of more than 4,096 loops and calls in all rows those that take longest are drawn, and what is between them as one.

Clusters are main clusters as of st-stat clusters; of ranks that nobody has put into any they are looked for, as by st-cluster.

\
Columns: those of CSV and JSON are first_rank and last_rank of a row (first_node and last_node, first_cluster and last_cluster); begin_ns and end_ns of a column, from the zero of st-stat at; computation_ns and mpi_ns, \
with all waits, of the thread that stands for each rank; late_sender_ns, late_receiver_ns, collective_ns and one_sided_ns, waits by kind. All times are those of all \
ranks of the row together. Without exact times they are, a row per loop or call, row, ranks, thread; level, how many loops it is in; what, a function or loop; runs, how often in all; \
calls, of a loop all in it; begin_ns, by logical time; computation_ns and mpi_ns, of one rank in the mean, without MPI_Init and the time in MPI_Finalize; site and place.";

/// What ranks do when.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = TIMELINE)]
pub struct TimelineArgs {
    /// What ranks are taken together by: a row is one of them
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub by: RanksBy,
    /// Show the time from one to another only (1.5..2, 200ms..1s), counted from when the first rank entered MPI_Init
    #[arg(long, value_name = "FROM..TO", value_parser = window)]
    pub window: Option<(f64, f64)>,
    /// Rows at most: of more ranks (nodes, clusters), neighbours share one
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..))]
    pub rows: u16,
    /// Columns of time [default: as many as fit the screen; 64 in CSV and JSON]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub columns: Option<u16>,
    /// Draw it to FILE, too, as SVG in the width of a paper's column (85 mm): up to 240 columns of time and as many rows as --rows says
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub svg: Option<PathBuf>,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}
