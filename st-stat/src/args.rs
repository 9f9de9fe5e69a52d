//! The command line.

mod compare;
mod explain;
mod forecast;
mod hist;
mod moments;
mod picture;
mod predict;
mod report;
mod timeline;
mod traffic;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use st_cli::Symbols;
use st_cli::options::{Asked, StreamIn, Talk, TextOut};
use st_cli::quantity::in_nanoseconds;

pub use self::compare::DiffArgs;
use self::compare::percent;
pub use self::explain::{
    DelaysArgs, DelaysBy, EfficiencyArgs, Explaining, PathArgs, RanksArgs, WaitsArgs, WaitsBy, WhyArgs,
};
pub use self::forecast::ForecastArgs;
pub use self::hist::HistArgs;
pub use self::moments::{AtArgs, BetweenArgs, BetweenBy, PhasesArgs};
pub(crate) use self::picture::{DPI, PAPER};
pub use self::picture::{PictureArgs, PictureOf};
pub use self::predict::{Faster, PredictArgs};
pub use self::report::ReportArgs;
pub use self::timeline::TimelineArgs;
pub use self::traffic::{LeaksArgs, MatrixArgs, MessagesArgs, RanksBy};
use crate::table::Format;

const EXAMPLES: &str = "\
Examples:
  st-stat app.st                           what the program did, at a glance
  st-record -o - -- mpirun -n 4 ./app | st-stat
  st-stat --format json app.st | jq .sent_bytes

Formats: text is for people: it fits the terminal (80 characters where it goes to a file or another program; \
COLUMNS says otherwise), leaves out columns where there is no room, and is coloured on terminals unless NO_COLOR is set. \
CSV and JSON (an object a line) hold one table, the same columns whatever the width, and plain numbers; names of columns end \
with their units. What is not known is empty or null.

Columns of the summary: CSV and JSON have one row: program, mpi, mpi_version; ranks that the trace holds, of world; hosts; complete (false of a \
truncated stream); calls; ended_early_ranks, running_ranks, which are still recorded, and perhaps_running_ranks, whose machine alone knows; failed_calls; name_only_calls, of functions whose parameters are not known; rank_time_mean_ns, \
rank_time_longest_ns and rank_time_longest_rank, and mpi_percent, the share of that time in MPI (see \"Time\" in st-intro(7)); paused_mean_ns, paused_percent, paused_longest_ns and paused_longest_rank, time for which recording was paused; other_threads, beside each rank's first one, and other_threads_mpi_ns, \
their time in MPI; start_up_mean_ns, per rank in MPI_Init and MPI_Finalize; sent_bytes and received_bytes (see \"Bytes sent and \
received\" in st-intro(7)); partners_least and partners_most, ranks that a rank sends to; call_sites, loops, loop_depth, \
tree_nodes, sections; file_bytes; times, what the trace keeps of them; left_out, what lossy options have changed; histograms, \
parameters that are such.";

const CALLS: &str = "\
Examples:
  st-stat calls app.st                     functions, then functions by call site
  st-stat calls --sites --stacks app.st    with all callers
  COLUMNS=200 st-stat calls app.st         all columns, also how long ranks compute before these calls
  st-stat calls --sites --format csv app.st > sites.csv
  st-stat calls --spread app.st            medians, extremes, and the ranks that take most

Columns: those of CSV and JSON are function; calls, polls counted one by one; time_ns in them, of all ranks; share_percent of the time in MPI between \
MPI_Init and MPI_Finalize, which have none; sent_bytes and received_bytes (see \"Bytes sent and received\" in st-intro(7)); \
mean_ns of a call; longest_ns, the longest call, or series of polls that find nothing, on longest_rank; before_ns, what all ranks compute before these calls, since the \
one before on the same thread; site, its number, and place. CSV and JSON hold the functions, or with --sites or --stacks the call sites. With --spread: function; phase, \"before\" (computation) or \"in call\"; \
calls; time_ns in all; mean_ns; shortest_ns; percent_1_ns, percent_10_ns, median_ns, percent_90_ns and percent_99_ns, durations that so many calls do not \
exceed, to 1 %; longest_ns, on longest_rank; most_ns, all calls of most_rank, and least_ns of least_rank, the ranks that take most and least (of merged traces without exact times to 1 %, or to 2, 5 or 10 % where ranks are spread more widely than four times that); site and place. \
st-stat hist draws one of them.";

const SIZES: &str = "\
Examples:
  st-stat sizes app.st                     frames, and the parameters that take most
  st-stat sizes --by site app.st           call sites instead

Columns: those of CSV and JSON are frame and number of frames, or function, parameter, site and place; bytes in the file; share_percent; uncompressed_bytes; \
cause, why it takes so many. Frames have their contents; heads and checksums are a row of their own, which also has the stream's first \
bytes, and what is cut off of a truncated one. Of a compressed frame each piece has its part in proportion to what it takes before compression.";

const VIOLATIONS: &str = "\
Examples:
  st-stat violations app.st                messages and collective operations
  st-stat violations --pairs app.st        which ranks' clocks are off

Columns: those of CSV and JSON are messages; all of them; reversed, received before they were sent; violated, received sooner than the least time after \
they were sent; mean_error_ns and largest_error_ns, by how much these are too early. Messages of collective operations are counted once \
per rank that waits for others, and pair by pair. With --pairs: from_rank, to_rank, reversed, violated, \
largest_error_ns.";

const CLUSTERS: &str = "\
Examples:
  st-cluster app.st | st-stat clusters     which ranks behave alike
  st-cluster app.st | st-stat clusters --draw grid.svg

Columns: those of CSV and JSON are main, number of the main cluster; sub, of the sub-cluster in it; letter, of the drawing; head_rank; ranks, how many; \
share_percent of all; ranklist; unlike_before, the first call in which its lowest rank differs from that of the cluster before. \
With --space: ranks; trace_bytes of a representative; signature_bytes; main and sub, numbers of clusters; clustered_bytes and \
unclustered_bytes per rank.";

const MAPE: &str = "\
Examples:
  st-stat mape app.st replayed.st          how far the replay's time is off
  st-stat mape --limit 5 --runs runs.csv   status 4 if it is more than 5 % in the mean

Columns: those of CSV and JSON are run; recorded_s and replayed_s; error_percent, signed; mape_percent, its absolute value; accuracy_percent; \
reference_accuracy_percent, against reference_s; worst_rank_percent. As text a last line has the means of all runs, and the \
worst rank.";

/// Say what a trace holds
///
/// Without a command: a summary of what the program did, that a person understands at once. The commands give the
/// details, as text, CSV or JSON.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "st-stat",
    version,
    args_conflicts_with_subcommands = true,
    flatten_help = true,
    after_long_help = EXAMPLES
)]
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
    /// Calls, time, bytes sent and received per function and per call site
    Calls(CallsArgs),
    /// Why the program is slow: what costs most, where, and which ranks are at fault
    Why(WhyArgs),
    /// One page that shows the whole run in a browser: findings, timeline, call sites, ranks, who talks to whom
    Report(ReportArgs),
    /// What ranks do when, drawn: computation, MPI and waits by their kinds
    Timeline(TimelineArgs),
    /// Wait states: late senders, late receivers, waiting in collective operations
    Waits(WaitsArgs),
    /// What waits are due to, also through others that wait, and on which rank
    Delays(DelaysArgs),
    /// The critical path: what the run time is made of
    Path(PathArgs),
    /// Parallel efficiency, and what it is made of
    Efficiency(EfficiencyArgs),
    /// What would help: the run time on another network, with faster or balanced computation
    Predict(PredictArgs),
    /// Computation, MPI and waiting per rank
    Ranks(RanksArgs),
    /// How the iterations of the outermost loops change over the run
    Phases(PhasesArgs),
    /// Where each rank is at a time: call, place and iteration
    At(AtArgs),
    /// What happens between two times
    Between(BetweenArgs),
    /// Who talks to whom: bytes and messages per pair of ranks, nodes or clusters
    Matrix(MatrixArgs),
    /// Messages per call site: how many, how large, and whether latency or bandwidth bounds them
    Messages(MessagesArgs),
    /// What is never completed, freed or received, per call site
    Leaks(LeaksArgs),
    /// How long calls of a site take, and the computation before them: the distribution
    Hist(HistArgs),
    /// Where the bytes of a file go
    Sizes(SizesArgs),
    /// How large the trace of a longer run will be
    Forecast(ForecastArgs),
    /// Count messages that arrive before they were sent, or sooner than possible
    Violations(ViolationsArgs),
    /// Which ranks behave alike, and what the others do differently
    Clusters(ClustersArgs),
    /// Compare what two traces' programs did, and how long that took; exit status 4 if it differs
    Diff(DiffArgs),
    /// How far the times of replays are from those of the programs: signed, MAPE, accuracy
    Mape(MapeArgs),
}

/// The summary.
#[derive(ClapArgs, Clone, Debug)]
pub struct SummaryArgs {
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}

/// Per function and per call site.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = CALLS)]
pub struct CallsArgs {
    /// Only the functions
    #[arg(long, conflicts_with = "sites")]
    pub functions: bool,
    /// Only the call sites
    #[arg(long)]
    pub sites: bool,
    /// Print the whole stack of each call site
    #[arg(long, conflicts_with = "functions")]
    pub stacks: bool,
    /// Say instead how calls of each site are spread from the shortest to the longest, and the computation before them, and which
    /// ranks take most and least
    #[arg(long, conflicts_with_all = ["functions", "sites", "stacks"])]
    pub spread: bool,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}

/// Where the bytes go.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = SIZES)]
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
#[command(after_long_help = VIOLATIONS)]
pub struct ViolationsArgs {
    /// Least time of a message within a node, in ns or with its unit (1.5us) [default: as st-sync has it, the shortest that one takes
    /// in the trace; 0 if one arrives before it was sent]
    #[arg(long, value_name = "NS", value_parser = in_nanoseconds)]
    pub lmin_intra: Option<i64>,
    /// Least time of a message between nodes [default: as for --lmin-intra]
    #[arg(long, value_name = "NS", value_parser = in_nanoseconds)]
    pub lmin_inter: Option<i64>,
    /// List the pairs of ranks that violated messages go between, most first
    #[arg(long)]
    pub pairs: bool,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}

/// Groups of ranks.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = CLUSTERS)]
pub struct ClustersArgs {
    /// Ranks in a row of the drawing; as wide as the grid that partners are in, or nearly a square, if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub width: Option<u32>,
    /// Draw the clusters on the grid of ranks to FILE, in the width of a paper's column: as PNG if it is named .png, else as SVG
    #[arg(long, alias = "svg", value_name = "FILE", help_heading = "Output")]
    pub draw: Option<PathBuf>,
    /// Print instead what clustering takes per rank inside a running program, as if it were done there: a representative's
    /// trace and a rank's signature in bytes, and the space per rank with and without clusters
    #[arg(long)]
    pub space: bool,
    /// What tells ranks apart beside what they do.
    #[command(flatten)]
    pub asked: Asked,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}

/// Runs and their replays.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = MAPE)]
pub struct MapeArgs {
    /// Pairs of traces: a recorded one, and the recording of its replay, or of the same command once more
    #[arg(value_name = "TRACE", num_args = 2.., required_unless_present = "runs")]
    pub traces: Vec<PathBuf>,
    /// Runs from a table instead: CSV with a header line, or JSON, with recorded_s and replayed_s (as st-replay writes them, for each rank),
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
