//! The command line.

use st_model::num::Exact;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use st_cli::options::{Keeping, StreamIn, StreamOut, Talk};
use st_reduce::cluster::Tolerance;
use st_reduce::distributions::{ERROR, LEAST};
use st_reduce::kept::Kept;
use st_reduce::lossy::{Lossy, ParamKind};
use st_reduce::merge::master;
use st_reduce::options::{Forced, Known};

const EXAMPLES: &str = "\
Examples:
  st-merge -o app.st run/                  merges the streams of a directory
  st-merge --let nr=8 --param 'MPI_Send:dest[n%2==0]' '(me % nr) * nr + me / nr' cg.st
                                           every other message of CG goes to the transposed rank of 8 by 8
  st-merge --let nr=4 --param MPI_Send:dest '2 * ((me / 2 % nr) * nr + me / 2 / nr) + me % 2' cg.st
                                           the same on 4 by 8 ranks
  st-merge --let np=64 --let nz=32 --let 'np2=np==1 ? 1 : np<=nz ? np : np/nz' \\
      --param @ft.f:12:color 'me / np2' --param @ft.f:12:key 'me % np2' \\
      --param @ft.f:13:color 'me % np2' --param @ft.f:13:key 'me / np2' ft.st
                                           the two splits of FT";

/// How loops of different ranks are united.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Loops {
    /// By the calls in them, whatever the loops that ranks have around them (as ScalaTrace II does)
    #[default]
    Agnostic,
    /// Only where their structure is equal, apart from numbers of iterations (as the first ScalaTrace did)
    Structural,
}

impl From<Loops> for master::Loops {
    fn from(loops: Loops) -> Self {
        match loops {
            Loops::Agnostic => Self::Agnostic,
            Loops::Structural => Self::Structural,
        }
    }
}

/// Of which events each rank's total times are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Sums {
    /// Of those in which ranks differ by more than chance, and no finer than that needs; a rank's computation, and its time in MPI,
    /// stay within 0.5 % of what all its totals say, or within 0.01 % of its time. Of more than 4,096 ranks the means of 64 runs of them, and the extremes of what matters
    #[default]
    Differing,
    /// Of all, to 1 %
    All,
}

/// Whether distributions of times tell apart which call came before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum SketchPaths {
    /// A distribution of each call site and call before it: entering a loop and going round it are two
    #[default]
    Each,
    /// One of each call site, but for each thread's first call. Takes less room; a replay then draws the times of all paths in any order
    One,
}

/// Merge the traces of many ranks into one
///
/// Reads streams (files, directories of streams, or standard input), merges all ranks' structure, parameters, sketches
/// and proofs into one section, and writes it. Nothing is lost but exact times, which their sketches stand for, and what they
/// tell of waits is kept (--waits): --keep-columns keeps them too.
///
/// Below mpirun, its processes share the ranks: `mpirun -n 4 st-merge -o app.st run` writes what st-merge alone would.
#[derive(Parser, Clone, Debug)]
#[command(name = "st-merge", version, after_long_help = EXAMPLES)]
pub struct Args {
    /// Streams, or directories of streams; - or nothing is standard input
    #[arg(value_name = "STREAM")]
    pub inputs: Vec<PathBuf>,
    /// Keep exact times: the file is then a merged structure and a column per rank
    #[arg(long)]
    pub keep_columns: bool,
    /// Round the times that are kept to multiples of so many ns
    ///
    /// Each is wrong by at most half of that, and by at most that where it counts from the first MPI_Init, which is rounded too. The trace says
    /// so (as st-stat and st-view --check do), and takes less space. Sketches stay exact. st-sync refuses such a trace: correct clocks first.
    #[arg(long, value_name = "NS", requires = "keep_columns", value_parser = clap::value_parser!(u32).range(2..=1_000_000_000))]
    pub quantise: Option<u32>,
    /// Leave tags out if no messages are told apart by them
    ///
    /// That is so if all messages from one rank to another in one communicator have the same tag, and so have all that a
    /// rank can receive where it receives from any source by a tag. Otherwise all tags stay, and the reason is said. The
    /// trace says that tags are left out (as st-stat and st-view --check do); it is replayed without them.
    #[arg(long)]
    pub drop_tags: bool,
    /// Keep of these parameters how often each value was, not which call had it
    ///
    /// Of messages only. Where that takes less room, or the streams of a parameter of a call site hold as many values as
    /// --histogram-threshold says, a histogram over all ranks takes their place: exact for peers, which are counted relative to the rank where that
    /// leaves fewer, and of at most about 64 bins for counts, whose number and sum stay exact. The trace says so (as
    /// st-stat and st-view --check do). Reading a rank back draws values by chance, the same each time: what ranks are seen to send then
    /// (st-view, st-stat matrix and messages) comes to some percent more or less than that sum. So does st-replay; st-sync and st-stat violations refuse such a trace.
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',')]
    pub histogram: Vec<ParamKind>,
    /// Values from which on --histogram makes a histogram, 1 is always (default: where it takes less room)
    ///
    /// Those that are stored in the end, all ranks together, once no rule predicts them. A parameter that never changes
    /// stays as it is.
    #[arg(long, value_name = "N", requires = "histogram", value_parser = clap::value_parser!(u32).range(1..))]
    pub histogram_threshold: Option<u32>,
    /// Keep distributions of times as the ranks have recorded them, in buckets of 1 %
    ///
    /// Else the merged trace keeps of each the durations at twelve fixed ranks (shortest, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9 %,
    /// longest), to 1 %, and those between count as evenly spread; at up to 16 further ranks where they are not; and buckets where
    /// these take less room. Numbers and sums are exact in any case.
    #[arg(long)]
    pub sketch_buckets: bool,
    /// How far the distributions that are kept may be from those recorded: area between them, of their sum
    ///
    /// Less than the usual keeps more of the durations between the fixed ranks; a distribution stays in buckets of 1 % where these
    /// take less room. 0% keeps them all as they were recorded. The trace says so; of what is merged again, the larger error. BENCHMARKS.md has bytes beside errors.
    #[arg(long, value_name = "PERCENT%", default_value_t = ERROR, conflicts_with = "sketch_buckets")]
    pub sketch_error: Tolerance,
    /// Keep of times that take less of each rank's run than this number, sum and deviation only; 0% keeps all distributions
    #[arg(long, value_name = "PERCENT%", default_value_t = LEAST, conflicts_with = "sketch_buckets")]
    pub sketch_least: Tolerance,
    /// Whether distributions of times tell apart which call came before
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    pub sketch_paths: SketchPaths,
    /// Of which events each rank's total times are kept
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    pub rank_sums: Sums,
    /// In which parameters ranks that differ are united.
    #[command(flatten)]
    pub forced: Forced,
    /// Threads, 0 for one per processor; the result is the same with any number
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    pub jobs: u16,
    /// How loops of different ranks are united
    #[arg(long = "merge", value_name = "HOW", value_enum, default_value_t)]
    pub loops: Loops,
    /// What the user knows of parameters.
    #[command(flatten)]
    pub known: Known,
    /// What is kept of waits.
    #[command(flatten)]
    pub keeping: Keeping,
    /// How inputs are read.
    #[command(flatten)]
    pub input: StreamIn,
    /// Where the result goes.
    #[command(flatten)]
    pub output: StreamOut,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

impl Args {
    /// What becomes a histogram.
    pub(crate) fn lossy(&self) -> Lossy {
        Lossy {
            histogram: self.histogram.clone(),
            threshold: self.histogram_threshold.map(Exact::to_usize),
            force_merge: self.forced.force_merge.clone(),
        }
    }
    /// What is kept of times.
    pub(crate) fn kept(&self) -> Kept {
        Kept {
            buckets: self.sketch_buckets,
            least: self.sketch_least,
            error: self.sketch_error,
            one_path: self.sketch_paths == SketchPaths::One,
            rank_sums: self.rank_sums == Sums::All,
        }
    }
    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        st_cli::options::threads(self.jobs)
    }
}
