//! The command line.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use st_tool::Symbols;
use st_tool::options::{StreamIn, Talk, TextOut};

use crate::table::Format;

/// Say what a trace holds
///
/// Without a command: a summary of what the program did, that a person understands at once. The commands give the
/// details, as text, CSV or JSON.
#[derive(Parser, Clone, Debug)]
#[command(name = "st-stat", version, args_conflicts_with_subcommands = true, flatten_help = true)]
pub struct Args {
    /// What to say.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The summary's input and output.
    #[command(flatten)]
    pub summary: SummaryArgs,
}

/// What to say.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Count, time and bytes per function and per call site
    Calls(CallsArgs),
    /// Where the bytes of a file go
    Sizes(SizesArgs),
    /// Count messages that arrive before they were sent, or sooner than possible
    Violations(ViolationsArgs),
    /// Which ranks behave alike, and what the others do differently
    Clusters(ClustersArgs),
    /// Compare what two traces' programs did; exit status 4 if it differs
    Diff(DiffArgs),
    /// How far the times of replays are from those of the programs: signed, MAPE, accuracy
    Mape(MapeArgs),
}

/// The summary.
#[derive(ClapArgs, Clone, Debug)]
pub struct SummaryArgs {
    /// The trace's streams, or a directory of streams; - or nothing is standard input
    #[arg(value_name = "STREAM")]
    pub inputs: Vec<PathBuf>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// How inputs are read.
    #[command(flatten)]
    pub input: StreamIn,
    /// Where the text goes.
    #[command(flatten)]
    pub output: TextOut,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

/// Per function and per call site.
#[derive(ClapArgs, Clone, Debug)]
pub struct CallsArgs {
    /// The trace's streams, or a directory of streams; - or nothing is standard input
    #[arg(value_name = "STREAM")]
    pub inputs: Vec<PathBuf>,
    /// Only the functions
    #[arg(long, conflicts_with = "sites")]
    pub functions: bool,
    /// Only the call sites
    #[arg(long)]
    pub sites: bool,
    /// Print the whole stack of each call site
    #[arg(long, conflicts_with = "functions")]
    pub stacks: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// How inputs are read.
    #[command(flatten)]
    pub input: StreamIn,
    /// Where the text goes.
    #[command(flatten)]
    pub output: TextOut,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

/// Where the bytes go.
#[derive(ClapArgs, Clone, Debug)]
pub struct SizesArgs {
    /// A stream; - or nothing is standard input
    #[arg(value_name = "STREAM", default_value = "-")]
    pub stream: PathBuf,
    /// What the bytes are counted by. Text is by frames and then the largest parameters, CSV and JSON by frames, unless
    /// said otherwise
    #[arg(long, value_enum, value_name = "WHAT")]
    pub by: Option<SizesBy>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// How the input is read.
    #[command(flatten)]
    pub input: StreamIn,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// Where the text goes.
    #[command(flatten)]
    pub output: TextOut,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

/// What bytes are counted by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SizesBy {
    /// Kind of frame
    Frame,
    /// Function and call site: its nodes of the tree, its parameters and its times
    Site,
    /// Parameter of a function at a call site
    Parameter,
}

/// Messages that arrive too early.
#[derive(ClapArgs, Clone, Debug)]
pub struct ViolationsArgs {
    /// The trace's streams, or a directory of streams; - or nothing is standard input
    #[arg(value_name = "STREAM")]
    pub inputs: Vec<PathBuf>,
    /// Least time of a message within a node, in ns [default: as st-sync has it, the shortest that one takes in the trace; 0 if
    /// one arrives before it was sent]
    #[arg(long, value_name = "NS", value_parser = clap::value_parser!(i64).range(0..1 << 40))]
    pub lmin_intra: Option<i64>,
    /// Least time of a message between nodes, in ns [default: as for --lmin-intra]
    #[arg(long, value_name = "NS", value_parser = clap::value_parser!(i64).range(0..1 << 40))]
    pub lmin_inter: Option<i64>,
    /// List the pairs of ranks that violated messages go between, most first
    #[arg(long)]
    pub pairs: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// How inputs are read.
    #[command(flatten)]
    pub input: StreamIn,
    /// Where the text goes.
    #[command(flatten)]
    pub output: TextOut,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

/// Groups of ranks.
#[derive(ClapArgs, Clone, Debug)]
pub struct ClustersArgs {
    /// The trace's streams, clustered (st-cluster) or merged; - or nothing is standard input
    #[arg(value_name = "STREAM")]
    pub inputs: Vec<PathBuf>,
    /// Ranks in a row of the drawing; as wide as the grid that partners are in, or nearly a square, if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub width: Option<u32>,
    /// Draw the clusters on the grid of ranks to FILE: as PNG if it is named .png, else as SVG
    #[arg(long, alias = "svg", value_name = "FILE", help_heading = "Output")]
    pub draw: Option<PathBuf>,
    /// Print instead what clustering takes per rank inside a running program, as if it were done there: a representative's
    /// trace and a rank's signature in bytes, and the space per rank with and without clusters
    #[arg(long)]
    pub space: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// How inputs are read.
    #[command(flatten)]
    pub input: StreamIn,
    /// Where the text goes.
    #[command(flatten)]
    pub output: TextOut,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

/// Two traces.
#[derive(ClapArgs, Clone, Debug)]
pub struct DiffArgs {
    /// The first trace: a stream or a directory of streams
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The second trace
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Compare call sites too
    #[arg(long)]
    pub sites: bool,
    /// Print at most N differing call sites
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// How inputs are read.
    #[command(flatten)]
    pub input: StreamIn,
    /// Where the text goes.
    #[command(flatten)]
    pub output: TextOut,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

/// Runs and their replays.
#[derive(ClapArgs, Clone, Debug)]
pub struct MapeArgs {
    /// Pairs of traces: a recorded one, and the recording of its replay
    #[arg(value_name = "TRACE", num_args = 2.., required_unless_present = "runs")]
    pub traces: Vec<PathBuf>,
    /// Runs from a table instead: CSV with a header line, or JSON, with recorded_s and replayed_s (as st-replay writes them),
    /// name, and reference_s, the time of another replay that accuracy is reckoned against, too; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "traces")]
    pub runs: Option<PathBuf>,
    /// Exit status 4 if the mean absolute error of all runs is above this
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub limit: Option<f64>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// How inputs are read.
    #[command(flatten)]
    pub input: StreamIn,
    /// Where the text goes.
    #[command(flatten)]
    pub output: TextOut,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|p: &f64| p.is_finite() && *p >= 0.0);
    percent.ok_or_else(|| "a number from 0 up".into())
}
