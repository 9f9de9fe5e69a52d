//! The command line of comparisons.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use st_cli::Symbols;
use st_cli::options::{StreamIn, Talk, TextOut};

use crate::table::Format;

const DIFF: &str = "\
Examples:
  st-stat diff app.st again.st             do the same calls happen?
  st-stat diff --sites before.st after.st  also from the same places?
  st-stat diff --format csv app.st again.st
  st-stat diff --time before.st after.st   which call sites became slower?
  st-stat diff --time --threshold 10 before.st after.st || echo slower
  st-stat diff --time before.st after.st --base again.st --base third.st
  st-stat diff --time p8.st p64.st         which call sites do not scale?

Calls: where the jobs have other numbers of ranks, what is compared is which functions are called from which call sites, as by --sites, without parameters: \
partners, counts and others may follow from the number of ranks.

Times: what is compared is the time that a rank spends at a call site, in the call and, apart from that, computing before it. A difference \
counts if chance makes one of its size at any call site in less than one comparison of a hundred, if it is 5 % or more of the time there (less with a \
smaller --threshold), and 0.1 % of the run. How sure it is follows from how ranks differ and how the time varies from one sixteenth of \
the calls to the next, not from the number of calls, which depend on each other; without exact times (st-merge without --keep-columns) the \
latter is estimated, and small changes are not found, nor what one of several ranks takes longer. Of few ranks large changes only are found, and none where ranks differ by as much \
from run to run by themselves: they are taken to do so by up to a quarter, or by what they do at most places, but by no more than two fifths. What differs between \
any two runs (another node, other jobs beside it) is told from a change of the program only by more runs of the first one: --base, twice or more where \
the machine is not quiet. Then the first run is the mean of all these. With two or more of them it is also tried by nothing but how these runs differ, by the logarithms of their times: the second run is no equal one if it is too far \
from them. They are taken to differ at each call site by no less than at the median call site, and by 1.8 %. Ranks that wait very differently, but in each run alike, \
are no chance then: what takes a fiftieth beside three runs that agree is found.

Where calls are slower and no computation is, a line names the rank that computes longer alone, by 5 % and at least four times as much as any other; of more than 64 ranks, \
of which sums of neighbours are kept, these.

The run as a whole is judged by itself, by the time of a rank from MPI_Init to MPI_Finalize: where it takes longer by more than equal runs differ, a line says so, \
and --threshold counts it, too. Equal runs are taken to differ by up to 95 %, and with --base by three \
to seven standard deviations of these runs (fewer, the more there are), beside which a tenth weighs as much as two runs.

Scaling: with other numbers of ranks the time that all ranks together spend at a call site is expected to stay, with --weak that of each rank. slower \
are the sites that do not scale. The speedup is the time of a rank in the first run by that in the second; the efficiency, the expected time by \
that in the second.

Call sites are the same in both traces if they are of one build, or by function, file and line of their stacks: several that only one run has and that are called \
the same are then taken for one, and sites says how many; where lines have moved, by the functions, \
if as many calls go through the same ones. Others are new or gone, and do not count for --threshold but by the time of the run. Traces without a call site in common are refused; that one may be of \
another program is said where most of its time is at others' call sites, or where only names of functions are the same and those of their files are not; as --base that is refused, as is one run twice (status 2). \
Where the commands differ it is said what ran.

Columns: those of CSV and JSON are what, one row for each: equal and different, whose calls are so many; missing, a rank or thread that only one trace holds, \
as first says; object, which first names and second says how it differs; and call site, where so many calls differ, with the rank and thread \
of the first of them, and that call as first and second. They hold all call sites.

Columns with --time: those of CSV and JSON are verdict (slower, faster, new, gone, alike, unsure where it differs but perhaps by chance, or too few calls to tell); phase, before (computation) or in call; \
function; first_calls and second_calls, of all ranks, a series of polls being one; first_ns and second_ns, per rank; change_percent of what is expected; \
uncertainty_percent, to which that is known in 99 of 100 cases; run_percent, the change by the time of the second run; probability that \
chance makes such a difference at any site; speedup; efficiency_percent; sites that are taken for one; site and place in the first trace, of what is new in the second. They hold all call sites, \
text those with a difference that matters to the run, unsure ones last, unless --all.

Exit status: 0 no difference, 1 failed, 2 wrong usage, 3 invalid or truncated stream, or nothing in common, 4 the traces differ; with --time 4 only beyond --threshold.";

/// Two traces.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = DIFF)]
pub struct DiffArgs {
    /// The first trace: a stream or a directory of streams
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The second trace
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Compare call sites too
    #[arg(long, conflicts_with = "time")]
    pub sites: bool,
    /// Compare the times at call sites, and not what is called: which became slower or faster
    #[arg(long)]
    pub time: bool,
    /// Another run of the first program on as many ranks, that tells how its runs differ; may be given several times
    #[arg(long, value_name = "TRACE", requires = "time")]
    pub base: Vec<PathBuf>,
    /// Exit status 4 if a call site is slower by more than this, or the run as a whole is and equal runs do not differ as much
    #[arg(long, value_name = "PERCENT", requires = "time", value_parser = percent)]
    pub threshold: Option<f64>,
    /// With other numbers of ranks, expect that the time of each rank stays, since the work grows with them (weak scaling)
    #[arg(long, requires = "time")]
    pub weak: bool,
    /// Also print call sites whose times do not differ
    #[arg(long, requires = "time")]
    pub all: bool,
    /// Print at most N differing call sites
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
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

/// Reads a share of a hundred.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|p: &f64| p.is_finite() && *p >= 0.0);
    percent.ok_or_else(|| "a number from 0 up".into())
}
