//! The command line of the commands that explain.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use st_cli::Symbols;
use st_cli::options::{StreamIn, Talk, TextOut};

use crate::table::Format;

const WHY: &str = "\
Examples:
  st-stat why app.st                       what makes it slow, most costly first
  st-stat why --all --format json app.st   also what costs less than 1 % of the run

Each finding is two lines: what it costs, what it is and on which ranks; then where, what most of it is due to, through chains of ranks that \
wait for each other, and how sure that is. A cost is time that ranks spend waiting or in calls, as a share of the time that all ranks have (see \"Time\" in \
st-intro(7)). Besides waits there are polling (tests that find nothing: for whom they are the test that then finds something shows, of those between which the rank waits for nothing else); latency (calls that carry at most 1 KiB, with waits for messages of less than 20 µs in the mean), bandwidth (32 KiB and more), files, one-sided access and MPI \
itself, which are the calls' own time; leaks of requests, and of objects where they come with the steps of the run; ranks that are slow wherever they compute (slow rank), as all ranks of a node may be (slow node), or run one after another though all compute alike (serialised), which cost all waits that are due to that, of the 20 most costly findings that are waits, told of there and nowhere else, and a slow rank also the tests of others that find nothing where it hardly tests itself and they do for no longer than it computes longer; more ranks on a node than processors (crowded: it costs what ranks lacked one while they computed, at least, for one that waits in a call and asks again and again is ready to run, too), or ranks whose processors others have (no processor), by what the \
kernel counts; ranks that come to MPI_Finalize last, while the others have nothing to do (late end: then all shares are of the time with that added). A rank is slow that computes a tenth longer than the others in the mean, and so at three call sites or more that have nine tenths of its computation, with \
no more than three quarters of what it computes longer at one of them; a node with several ranks is, if these do so in the mean beside those of other nodes, and each of \
them computes longer than these in the mean by a twentieth. Imbalance at barriers and operations from all to all is \
noise, if three quarters of it or more are waits for single computations that take more than twice the median of their rank there (of 20 or more, and no more than a tenth of them do), and longer than that by as much as is waited, to a quarter; if these \
are three or more, come in a tenth of the operations at most and not after as many of these each time, and no rank has more than two thirds of it: other programs or the system take processors so, and so does what a program does rarely on one rank or another. \
Where ranks come last by turns more often it is an imbalance that moves, unless three fifths of it are due to one rank, as where that sends the others late what they need; noise is told so, too, where exact times have been folded. \
Call sites of one function that each cost less than 1 % are told of together, and what half of that is due to: a call site, or ranks before many of them (not where exact times have been folded). Text has the 20 most costly findings, with --all all, CSV and JSON all; what waits are due to is said of the first 20. Findings need exact times of all calls (st-record without --merge), or what st-merge and st-cluster have kept of them when they folded these \
(--waits there): then costs are exact, which ranks have a part in them is right to 4.5 % or means of many, and calls' own time of less than \
0.1 % of the run at a call site is left out, which is said. Without either only what per-rank sums tell is said.

Columns: those of CSV and JSON are kind; cost_ns, of all ranks; share_percent of the time of all ranks (see share_of); ranks, that are waited for, or that test where it is not known for whom; \
victims, how many ranks wait, without those that are waited for, too, unless that is most of them; what; cause, \"computation\" or \"call\", that takes longer on cause_ranks than on those that wait, and that \
cause_percent of the waits are due to (of the 20 most costly findings that are waits); place, of the cause, of several that where most is, and how many others: computation is that before the call there; where, \
the place of those that wait; sites, how many call sites are told of together; site and place_site, the numbers of the call sites of where and place; for_place and for_site, those that are waited for; most_for_ranks, for whom \
most_for_percent of it is waited; few_waits of few_of_calls calls, in which few_percent of it is; times, how many waits, calls or computations it is; each_ns of a call; moved_bytes, and bytes_per_second and rank; \
longer_ns, by how much late or noisy ranks compute longer; noise_ranks and operations; node_ranks on so many processors, without_processor_ns; told, the words that follow in text; sure; share_of, what share_percent is of.";

const DELAYS: &str = "\
Examples:
  st-stat delays app.st                    what makes others wait, and on which rank
  st-stat delays --by rank app.st          which ranks do
  st-stat delays --format csv app.st > delays.csv

A wait is due to what the rank that is waited for has done longer than the one that waits, since both synchronised last. If it waited itself in that \
time, the wait is partly due to those that it waited for: its indirect part, which they cost in the long term, as far back as it goes. All \
costs together are all waits together (st-stat waits) but for waits for ranks that began later, which is said. Where exact times have been folded it is \
told by what was kept of them: \"(others)\" is what costs less than 0.1 % of all waits, and ranks have about their parts. The definitions are Scalasca's; beyond these, \
what the root of a reduction waits for the last of the others counts, too (late contribution), and what both ranks \
have waited since they synchronised is not passed on.

Columns: those of CSV and JSON are, with --by site, activity (\"computation\" outside of MPI, before the call that is named, or the \"call\" itself), \
function, and rank; with --by rank rank; then cost_ns, what others wait for it; share_percent of all waits; short_term_ns of it for ranks that \
waited for this one, long_term_ns for ranks that waited for others that waited; direct_ns and indirect_ns, the rank's own waits there, by what they are due \
to; and with --by site site and place. In text \"before\" is the computation before a call, \"in\" the call.";

const PATH: &str = "\
Examples:
  st-stat path app.st                      what the run time is made of
  st-stat path --format csv app.st > path.csv

The critical path goes back from the rank that ends last, and at each wait to the rank that is waited for: what is on it makes the run \
longer, and nothing else does. All parts together are the run time, from the first rank's end of MPI_Init to the last one's start of MPI_Finalize; \
what the path's first rank begins later than the first of all counts as its MPI_Init.

Columns: those of CSV and JSON are activity (\"computation\" outside of MPI, before the call that is named, or the \"call\" itself); function; path_ns, the \
time on the path; share_percent of it; ranks, how many ranks do it on the path; imbalance_ns, how much longer it is on the path than the mean \
of all ranks, none counted as longer than the path: what balance could gain at most; impact_ns, the time of all ranks there, none counted as longer \
than the path; headroom_ns, what they all are below it; site; place. In text \"before\" is the computation before a call, \"in\" the call.";

const WAITS: &str = "\
Examples:
  st-stat waits app.st                     kinds of wait states, and how long ranks are in them
  st-stat waits --by pair app.st           who waits for whom
  st-stat waits --by site --format csv app.st > waits.csv

The kinds are Scalasca's, and \"late contribution\": a root that takes from all waits for the first of them (early reduce), and from then on for the \
last. A message counts as in the wrong order only if the rank sends nothing between its wait and the receive of the older message, if that was there for half of the wait at least, and not where the call takes whichever message comes first (MPI_Waitany and its like) or completes several receives. A call \
that completes several messages waits for the last. Libraries wait for more than they must, where data go through others or are too many to be kept: \
a call of a collective operation that goes on for more than 1 ms beyond what it surely waits for (from the fourth call of a rank at a place on: four times what such calls take when nobody is late, and at least 50 µs), and ends soon after another rank has come, waits for that one (wait at NxN); so does one for the call that completes a large non-blocking operation on another rank, and so does one end of a message for the call that completes the other: of up to 4 kB, which most libraries keep, only if calls with messages of about that size, or shorter ones, do so five times or more, and in most cases where they go on for 1 ms beyond what they surely wait for. A wait that would end after its call is cut there; \
how many are is said: clocks disagree (st-sync). Where exact times have been folded it is told by what was kept of them (st-merge --waits), but for pairs: \
sums by kind and site are exact, those of ranks about right.

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
part of that in wait states (empty without exact times, unless it was kept of them); computation_percent of the mean of all ranks; and where the program \
paused recording (MPI_Pcontrol) paused_ns, which is no computation, and paused_percent of the rank's time.";

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
    /// Say also what costs less than 1 % of the run, and in text more than the 20 most costly findings
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

/// Delays.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = DELAYS)]
pub struct DelaysArgs {
    /// What they are added up by
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub by: DelaysBy,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}

/// What delays are added up by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum DelaysBy {
    /// Call site, or computation before it, and rank
    #[default]
    Site,
    /// Rank
    Rank,
}

/// The critical path.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = PATH)]
pub struct PathArgs {
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
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
