//! The command line of distributions.

use clap::Args as ClapArgs;
use st_cli::Symbols;

use super::explain::Explaining;

const HIST: &str = "\
Examples:
  st-stat hist exchange app.st             the calls of a function of the program
  st-stat hist stencil.c:120 app.st        those of a line
  st-stat hist 5 app.st                    those of call site 5, as st-stat calls numbers it
  st-stat hist MPI_Waitall --paths app.st  apart by the call before
  st-stat hist 5 --format csv app.st > buckets.csv

Durations are those in the call, and of the computation before it, from the end of the call before. They are kept to 1 %, in sketches, or in \
fewer bins where st-record was told so; merging keeps durations at fixed ranks. Of what is merged with exact times (st-merge --keep-columns) they are \
told by these: which it is is said. A line of the drawing has several buckets, whose bounds have equal ratios.

Modes: durations that are common, with less common ones between them: half as many as around either, beyond chance, with a twentieth of all durations \
on both sides. Two modes mostly mean that a call does two things: it finds its message, or waits for it.

Columns: those of CSV and JSON are function; site and place; phase, before (computation) or in call; after_function, after_site and after_place of the call before, \
with --paths; from_ns and to_ns, both of them in the bucket; calls, a series of polls being one; share_percent; and cumulative_percent.";

/// A call site's durations.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = HIST)]
pub struct HistArgs {
    /// A call site, by its number or as its place is printed (a function, a file, a file and line, a module and offset), or an MPI function
    #[arg(value_name = "SITE")]
    pub site: String,
    /// Apart by the call before
    #[arg(long)]
    pub paths: bool,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}
