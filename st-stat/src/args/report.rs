//! The command line of the page.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use st_cli::Symbols;
use st_cli::options::{StreamIn, Talk, TextOut};
use st_cli::quantity::{seconds, within};

use super::{Explaining, PictureArgs};
use crate::table::Format;

const REPORT: &str = "\
Examples:
  st-stat report app.st -o app.html        the whole run on one page
  st-stat report --window 1.5..2 app.st -o app.html   single calls from 1.5 s to 2 s, too
  st-stat report after.st --against before.st -o after.html   what has become slower, too
  st-stat report app.st --view matrix --svg matrix.svg --png matrix.png   a picture for a paper
  st-stat report app.st --view timeline --window 1.5..2 --svg part.svg   of half a second
  st-stat report --follow . -o now.html    a program that st-record records here now, every few seconds

The page is one file that needs no network and no server, of at most 5 MB whatever the run: open it in a browser (Chrome 80, Firefox 113, Safari \
16.4, or newer), mail it, print it. Its name cannot end in .st, as those of traces do. It holds the findings of st-stat why with links into a timeline; the tables of st-stat calls, ranks, efficiency, waits and \
matrix, with the same numbers; call paths, each as wide as what it calls takes; and the loops of the program. The timeline goes from the whole run down to single calls, where these are \
in the page, messages as lines and collective operations in which ranks wait as dashed lines: all of a run of few calls, of a longer one those of windows around where each finding costs most, and of --window. Elsewhere it has \
sums per rank (per group of ranks, if there are many; or per node, where there are several, or per cluster, where the trace has clusters) and column of time, and says how wide these are. Of more than 32 ranks those that are waited for, compute or wait most, or compute least have rows of their own above the others; where more than 256 share rows, fewer do when few are looked at, and the upper edge of a row has the colour of the rank that computes most there. The critical path of st-stat path is drawn over it, if asked for (p) also where it leaves no room to see the rows; \
iterations of the outermost loops and phases of MPI_Pcontrol, as st-stat phases has them, are bands above it and bars in the view of loops. Without exact times it shows \
logical time: a row is ranks that do the same, a loop is as wide as all its turns and its body fills it, calls are as wide as they and the computation before them take in the mean, and the \
table below is that of st-stat timeline --rows 64. With --against a view of the changes since \
another run has what st-stat diff --time finds. The last view is about the trace itself: its bytes by st-stat sizes (of a trace in one file), \
the tools that made it, messages that arrive before they were sent by st-stat violations (if --against names the trace of the same run before st-sync, \
also before that), and how clocks moved against that of rank 0. What the trace lacks, and what there was no room for, stands on the page. Of a trace that takes more than --max-steps the page has only what is told of the whole run, and says so. Of each table the first 100 rows are printed.

Following: With --follow the page is that of a program that runs, made anew every few seconds of the journals that st-record's ranks write anyway: of all calls that have \
returned. It says up to which time and of how many ranks it is; a browser that shows it loads it again by itself, at the same view, unless \
something is being typed or selected there, or \"hold\" is pressed. Nothing is asked of the ranks, and no more than a quarter of a processor is used: each page is \
followed by a pause of at least three times what it took. When the run ends the page becomes that of its trace. Which run has ended is seen by processes of this machine: \
follow where st-record or a rank runs. Of a script that starts several jobs below one st-record the page shows the newest that has recorded anything, and says which of how \
many that is; --job names one. It is made anew until st-record ends, and is then the page of the trace of the last job, or of that which --job names.";

/// The page.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = REPORT)]
pub struct ReportArgs {
    /// The trace's streams, or a directory of streams; - or nothing is standard input
    #[arg(value_name = "STREAM")]
    pub inputs: Vec<PathBuf>,
    /// Show the single calls of all ranks from a time to another (1.5..2, 200ms..1s), counted from when the first rank entered MPI_Init; may be
    /// given several times. With --view timeline or path: draw the time from one to the other
    #[arg(long, value_name = "FROM..TO", value_parser = window)]
    pub window: Vec<(f64, f64)>,
    /// Compare the times at call sites with those of another run: which became slower since then
    #[arg(long, value_name = "TRACE")]
    pub against: Option<PathBuf>,
    /// One more run of the program of --against on as many ranks, that tells how its runs differ; may be given several times
    #[arg(long, value_name = "TRACE", requires = "against")]
    pub base: Vec<PathBuf>,
    /// With --against of other numbers of ranks, expect that the time of each rank stays, since the work grows with them (weak scaling)
    #[arg(long, requires = "against")]
    pub weak: bool,
    /// Make the page anew while a program runs, of what its ranks have recorded so far, until the run ends: DIRECTORY is where its trace will
    /// be, or what its ranks record into (.st-record-…, or that of mpirun … st-record -o). Needs -o
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["inputs", "window", "against", "view"])]
    pub follow: Option<PathBuf>,
    /// With --follow: show this job of a script that starts several, the first is 1, in the place of the newest that has recorded anything
    #[arg(long, value_name = "N", value_parser = job, requires = "follow", conflicts_with = "inputs")]
    pub job: Option<usize>,
    /// With --follow: seconds from one page to the next, at least; more where a page takes long to be made
    #[arg(long, value_name = "TIME", default_value_t = 5.0, value_parser = every, requires = "follow", conflicts_with = "inputs")]
    pub every: f64,
    /// Pictures for a paper.
    #[command(flatten)]
    pub picture: PictureArgs,
    /// How inputs are read.
    #[command(flatten)]
    pub input: StreamIn,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// Where the page goes.
    #[command(flatten)]
    pub output: TextOut,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

impl ReportArgs {
    /// As commands have it that print tables.
    #[must_use]
    pub fn explaining(&self) -> Explaining {
        let Self { inputs, input, output, talk, .. } = self.clone();
        Explaining { inputs, format: Format::Json, input, output, talk }
    }
}

fn job(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "a number from 1 on".into())
}

fn every(text: &str) -> Result<f64, String> {
    // A page that is read takes longer than a second.
    within(text, 1.0..=86_400.0)
}

/// Two times, s.
pub(super) fn window(text: &str) -> Result<(f64, f64), String> {
    let (from, to) = text.split_once("..").ok_or("two times with .. between them, as 1.5..2")?;
    let (from, to) = (seconds(from)?, seconds(to)?);
    if from < to { Ok((from, to)) } else { Err("the first time must be before the second".into()) }
}
