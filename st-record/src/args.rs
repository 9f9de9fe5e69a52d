//! The command line.

use clap::{ArgGroup, CommandFactory, Parser, ValueEnum};
use st_cli::options::Talk;
use st_cli::quantity::{memory, within};
use st_model::sketch::histogram::Binning;
use std::ffi::OsString;
use std::path::PathBuf;

/// Calls that an iteration is looked for in by `--fold approx`, and how much alike iterations are, in percent.
const FOLD_WINDOW: u32 = 5_000;
const FOLD_PERCENT: u32 = 50;

/// Record the MPI calls of a program that is not changed, not even relinked
///
/// Outside of mpirun, starts the job and leaves one file; inside (mpirun -n 4 st-record -o run -- ./app), starts one
/// rank and leaves one stream per rank in a directory. The program's output and exit status are its own.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "st-record",
    version,
    after_long_help = AFTER,
    group(ArgGroup::new("merged").args(["merge", "reduce_every"]).multiple(true))
)]
pub struct Args {
    /// Where the trace goes: a file, or inside mpirun a directory (default: from the program's name and the number of ranks).
    /// A trace or empty file that is there is removed when the job starts, another file is refused; of a directory's streams those are removed
    /// that this job replaces, or has no ranks for. Where another recording has put a trace there meanwhile, this one gets the next
    /// name that is free, app-2.st. Of several jobs each has a file of its own (see SEVERAL JOBS)
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// End with status 125 if there is no trace, or some ranks are not in it, though the job itself ended with 0
    #[arg(long, help_heading = "Output")]
    pub must_record: bool,
    /// What is kept of the times: exact ones beside sketches (distributions per event and predecessor), sketches, histograms of
    /// few bins, statistics, or nothing
    #[arg(long, value_enum, default_value_t, value_name = "WHAT", help_heading = "Recording")]
    pub time: Time,
    /// With --time hist: bins of each histogram
    #[arg(long, value_name = "N", default_value_t = Binning::DEFAULT.bins(), value_parser = clap::value_parser!(u32).range(1..=64),
          help_heading = "Recording")]
    pub hist_bins: u32,
    /// With --time hist: how much more than its share of the durations a bin holds before it is split at its mean, and two others are
    /// united in its place: the more, the less even and the steadier bins are
    #[arg(long, value_name = "PERCENT", default_value_t = Binning::DEFAULT.excess(),
          value_parser = clap::value_parser!(u32).range(0..=1000), help_heading = "Recording")]
    pub hist_smooth: u32,
    /// After this much per rank exact times stop, and sketches go on. Looked at about every 16,384 events of a thread; --time sketch has none
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = memory, help_heading = "Recording")]
    pub time_budget: u64,
    /// How loops are found: not at all, by iterations of equal structure, or also by iterations that have some calls of their
    /// own, where that is smaller. No call is lost in any case
    #[arg(long, value_enum, default_value_t, value_name = "HOW", help_heading = "Recording")]
    pub fold: Fold,
    /// With --fold approx: calls that an iteration is looked for in
    #[arg(long, value_name = "N", default_value_t = FOLD_WINDOW, value_parser = clap::value_parser!(u32).range(2..),
          help_heading = "Recording")]
    pub fold_window: u32,
    /// With --fold approx: how many calls the shorter of two iterations has at least, in percent of the longer one's
    #[arg(long, value_name = "PERCENT", default_value_t = FOLD_PERCENT, value_parser = clap::value_parser!(u32).range(0..=100),
          help_heading = "Recording")]
    pub fold_ratio: u32,
    /// With --fold approx: how many of the calls that either of two iterations has both have at least, in percent. With 0 here
    /// and for --fold-ratio it is enough that they begin and end with the same call, as in Wu and Mueller 2013
    #[arg(long, value_name = "PERCENT", default_value_t = FOLD_PERCENT, value_parser = clap::value_parser!(u32).range(0..=100),
          help_heading = "Recording")]
    pub fold_common: u32,
    /// Take call sites of a function for one whose stacks differ in fewer than N frames: one takes the place of the nearest that
    /// was met before. More than 1 gives up exact call sites
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..),
          help_heading = "Recording")]
    pub sig_threshold: u32,
    /// Take all return addresses between these offsets of a module for one, in call sites; may be given several times
    #[arg(long, value_name = "MODULE+0xFROM-0xTO", value_parser = place, help_heading = "Recording")]
    pub sig_range: Vec<String>,
    /// Frames kept per call site, innermost first
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=64),
          help_heading = "Recording")]
    pub stack_depth: u32,
    /// In Python programs: call sites with the files, lines and functions of the program, in the place of the interpreter's own
    /// frames. Reads those of CPython 3.9 to 3.13; others are refused by name, and recorded as without this option
    #[arg(long, help_heading = "Recording")]
    pub python: bool,
    /// Merge the ranks' streams inside MPI_Finalize, as st-cluster and st-merge would, or as st-merge alone
    ///
    /// The ranks do it together: what they have is reduced on the way to rank 0, which writes one stream. Exact times are
    /// then gone, and sketches stand for them. Only when that stream is written do the ranks remove their own; if anything goes
    /// wrong, these stay, exact times included, and are packed as without this option. Needs the recorder's own
    /// communicator: all ranks are recorded, and clocks are compared. With -v st-record says what each level of their tree
    /// took, and how much was handed on: first what ranks make of their own calls, then a level for each doubling of the ranks that are
    /// taken together, and as result what rank 0 makes of the whole before it is written.
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "cluster",
          conflicts_with_all = ["no_sync", "only"], help_heading = "Recording")]
    pub merge: Option<Merge>,
    /// Reduce the ranks' traces every TIME while the program runs, too: 90, 90s, 10m, 2h or 1d; implies --merge
    ///
    /// For programs that run for days. After a barrier or another operation in which all ranks wait for all (see
    /// --sync-interval), when TIME has gone by, the ranks do with the trace so far what they do in MPI_Finalize, and
    /// rank 0 writes interim.st in place of the one before. The trace of the end is the same as without. If the job is
    /// killed and some ranks' streams are lost, that of the last reduction has all ranks. One that fails leaves that
    /// before, and the next is tried. No exact times are kept (as with --time sketch), and the time that reductions take
    /// is in no sketch.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["no_sync", "only"],
          help_heading = "Recording")]
    pub reduce_every: Option<f64>,
    /// With --merge: of these parameters keep how often each value was, not which call had it, where that takes less room
    ///
    /// As st-merge --histogram does, which says what that is. The trace says so, and streams of the ranks that stay have all values.
    #[arg(
        long,
        value_name = "KINDS",
        value_enum,
        value_delimiter = ',',
        requires = "merged",
        help_heading = "Recording"
    )]
    pub histogram: Vec<Param>,
    /// Values from which on --histogram makes a histogram, 1 is always (default: where it takes less room)
    #[arg(long, value_name = "N", requires = "histogram", value_parser = clap::value_parser!(u32).range(1..),
          help_heading = "Recording")]
    pub histogram_threshold: Option<u32>,
    /// With --merge: how long a rank waits for others in MPI_Finalize or an interim reduction, and an eighth of that more
    /// for each level of the tree that they form (default: 20)
    #[arg(long, value_name = "TIME", requires = "merged", value_parser = patience, help_heading = "Recording")]
    pub merge_timeout: Option<f64>,
    /// Do not compare the ranks' clocks in MPI_Init and MPI_Finalize (needed if some ranks of a job run without recorder)
    #[arg(long, help_heading = "Recording")]
    pub no_sync: bool,
    /// Do compare them: all ranks of this job are recorded, even if the launcher does not let st-record know it
    #[arg(long, conflicts_with = "no_sync", help_heading = "Recording")]
    pub sync: bool,
    /// Compare them also about every TIME in between, after barriers and other operations in which all ranks wait for all
    /// (MPI_Allreduce, MPI_Allgather, MPI_Alltoall on communicators of all ranks): for clocks whose drift changes
    #[arg(long, value_name = "TIME", conflicts_with_all = ["no_sync", "only"], value_parser = time, help_heading = "Recording")]
    pub sync_interval: Option<f64>,
    /// Record these ranks of the job only: 3, or 0-3,8, or a ranklist
    #[arg(long, value_name = "RANKS", value_parser = ranks, help_heading = "Recording")]
    pub only: Option<String>,
    /// Where times come from (default: the time stamp counter, held to CLOCK_MONOTONIC, if the kernel trusts it; else
    /// CLOCK_MONOTONIC)
    #[arg(long, value_enum, value_name = "CLOCK", help_heading = "Recording")]
    pub clock: Option<Clock>,
    /// Keep the times of MPI_Wtime and MPI_Wtick too, which take longer to read than these functions take
    ///
    /// Without, they are recorded as over when they begin, as soon as the call before them has ended: what the program computes before
    /// and after them is together before the next other call. The trace says so (query-times in its header).
    #[arg(long, help_heading = "Recording")]
    pub query_times: bool,
    /// With -v: when to say, of what the ranks have recorded so far, how large the trace of an hour will be, as st-stat forecast does
    ///
    /// It takes some seconds of one processor where st-record runs. Only where st-record starts the job (not mpirun … st-record), and not with
    /// --merge or --reduce-every.
    #[arg(long, value_name = "TIME", default_value_t = 60.0, value_parser = time, help_heading = "Talk")]
    pub forecast_after: f64,
    /// Start nothing: say which MPI and which bindings COMMAND uses, and what of it would be missed
    #[arg(long, conflicts_with = "env", help_heading = "Instead of recording")]
    pub check: bool,
    /// Start nothing: COMMAND is traces, or directories of streams, whose call sites are named anew, by what is found now; with --no-symbols
    /// their names are taken out, with --anonymise more than that. Each is replaced, or written to -o
    #[arg(long, conflicts_with_all = ["check", "env"], help_heading = "Instead of recording")]
    pub name: bool,
    /// Start nothing: print the environment that makes COMMAND's ranks record, as shell commands, for containers and
    /// launchers that st-record does not know
    #[arg(long, help_heading = "Instead of recording")]
    pub env: bool,
    /// Start nothing: pack what is left in DIRECTORY of a recording whose st-record was killed (.st-record-…, beside where the
    /// trace was to be), and remove it
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["check", "env", "command"],
          help_heading = "Instead of recording")]
    pub recover: Option<PathBuf>,
    /// With --recover: also what was recorded on another machine, which cannot be asked whether the job is over
    #[arg(long, requires = "recover", help_heading = "Instead of recording")]
    pub force: bool,
    /// Names of call sites.
    #[command(flatten)]
    pub naming: Naming,
    /// Talk.
    #[command(flatten)]
    pub talk: Talk,
    /// The command that starts the job, or inside mpirun the program
    #[arg(required_unless_present_any = ["env", "recover"], trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What the trace says of call sites beside their addresses.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Naming {
    /// Look in DIR for debug information (DIR/.build-id/xx/yyyy.debug, DIR/NAME.debug, DIR/NAME) to name call sites with; may be given
    /// several times
    #[arg(long, value_name = "DIR", conflicts_with_all = ["no_symbols", "anonymise"], help_heading = "Names")]
    pub symbols: Vec<PathBuf>,
    /// Do not look up the functions, files and lines of call sites when the program has ended
    #[arg(long, help_heading = "Names")]
    pub no_symbols: bool,
    /// Leave out of the trace what says who ran what, where and on which data: names of call sites, program, arguments, start, folders; hosts
    /// become numbers; labels, names of the program's modules and of files and objects, keys and values of hints hashes
    ///
    /// Hashes can be guessed by who has the names; so can the run's identity where it is made from the launcher's name for the
    /// job (--no-sync), and else it is a random number. Build-ids of modules stay, by which the program's owner can name call sites
    /// again (--symbols). What the program did stays all, with its times.
    #[arg(long, help_heading = "Names")]
    pub anonymise: bool,
}

impl Naming {
    /// Whether names are looked up and kept.
    #[must_use]
    pub fn wanted(&self) -> bool {
        !self.no_symbols && !self.anonymise
    }
}

/// What follows the options in the help and on the man page.
const AFTER: &str = "Examples:
  One file, app-4r.st, of a job:
    st-record -- mpirun -n 4 ./app
  One stream per rank, in a directory, where a batch system starts the ranks itself:
    mpirun -n 4 st-record -o run -- ./app
  A script that starts the job; in a batch job nothing may go unrecorded unnoticed:
    st-record --must-record -o app.st -- ./job.sh
  Only what is merged, made by the ranks in MPI_Finalize:
    st-record --merge -- mpirun -n 64 ./app
  The same for a program that runs for days and may be killed:
    st-record --reduce-every 10m -- mpirun -n 64 ./app
  What would be missed:
    st-record --check -- mpirun -n 4 ./app
  What st-record had when it was killed:
    st-record --recover .st-record-k3Xw1a -o app.st
  Names of call sites for a trace that has none, from separate debug files:
    st-record --name --symbols /srv/debug app.st

Several jobs: Of a script that starts several jobs, one after the other or at the same time, each is a trace of its own. The first has \
the name that -o gives, later ones that name with -2, -3 and so on before .st, in the order in which they reach MPI_Init; a number \
that is taken is passed over, unless it is what an earlier recording with the same -o has left. Without -o each has the name \
of its own program. The closing lines name each with its ranks and calls. Inside mpirun each job needs a directory of its own: it replaces \
what an earlier one has left there, and of two at the same time the second to end calls its streams rank-N-2.st, which other \
programs refuse to take together. Below --env later jobs have directories of their own, job-2, job-3 and so on, in that of the \
first. All streams of a job carry one identity, by which other programs refuse those of another run: drawn at random \
by rank 0, or without the comparison of clocks made from the launcher's name for the job. Where it has none (--no-sync \
under MPICH on several nodes) a later job of a script is not recorded, and says so.

What it costs: The closing line names processor time of the recorder's own work in the ranks, begin and end included, and its share \
of all that they took, and the time that packing takes afterwards. Calls are sampled so that other programs on the machine \
do not count. Not in it: loading the recorder (some 2 ms a rank), what the program loses because its data left the caches, and \
that other ranks wait for one that is held up.

MPI_Pcontrol: A program says by it what is recorded: after MPI_Pcontrol(0) calls are followed but not recorded, after \
MPI_Pcontrol(1) they are again; also before MPI_Init. MPI_Init, MPI_Finalize and MPI_Pcontrol itself are always recorded. Other \
levels mean nothing here. Ranks should call it at the same places: a message of which only one end is recorded cannot be replayed.

Files: While the job runs, what the ranks record is in a hidden directory, .st-record- and six more characters, beside the file that it will be, or in the working directory: \
streams of ranks that have ended, journals of those that have not; of later jobs in job-2, job-3 and so on there. It is removed when it is packed. If st-record itself is \
killed it stays; the next recording there names it, --recover packs it, and other programs read it as any directory of \
streams.

Environment: Each option has its variable, for sites that preload the recorder without st-record: LD_PRELOAD names \
libst_pmpi.so, and then:
  ST_OUTPUT       the directory of the ranks' streams, made if there is none; without it nothing is recorded
  ST_JOBS         a directory in which jobs that have the same ST_OUTPUT number themselves: those after the first record into
                  job-2, job-3, ... there; without it they replace each other's streams
  ST_TIME         columns, sketch, hist, hist:BINS:PERCENT, stats or none (--time, --hist-bins, --hist-smooth)
  ST_TIME_BUDGET  a size (--time-budget)
  ST_FOLD         none, exact, approx or approx:WINDOW:PERCENT:PERCENT (--fold, --fold-window, --fold-ratio,
                  --fold-common)
  ST_SIG          a number of frames, and ranges, separated by commas (--sig-threshold, --sig-range)
  ST_STACK_DEPTH  1 to 64 (--stack-depth)
  ST_PYTHON       1 (--python)
  ST_SYNC         0 or all (--no-sync, --sync)
  ST_SYNC_INTERVAL seconds (--sync-interval)
  ST_CLOCK        monotonic, tsc or mpi_wtime (--clock)
  ST_QUERY_TIMES  1 (--query-times)
  ST_ONLY         ranks (--only)
  ST_MERGE        cluster, plain or reference (--merge)
  ST_MERGE_TIMEOUT seconds (--merge-timeout)
  ST_REDUCE_EVERY seconds (--reduce-every)
  ST_HISTOGRAM    some of dest, source and count, separated by commas, or that and :N (--histogram, --histogram-threshold)
  ST_QUIET        1: say nothing but errors (--quiet)
  ST_LIBRARY_PATH a directory to look for the recorder in first

Exit status: the program's own, or 128 and the number of the signal that ended it. Of st-record itself: 2 wrong usage; 125 if it fails \
before the program starts, or --must-record is not fulfilled; 127 if the program is not found, 126 if it \
cannot be started; 1 if packing fails after a program \
that ended with 0 (125 with --must-record). With --check: 0 if everything would be recorded, 4 if not, 125 if that cannot be written. With --env and --recover: 0, or 125. With --name: 0 \
done, 1 failed, 2 wrong usage, 3 invalid or truncated stream.";

/// A time, within the recorder's bounds.
fn time(text: &str) -> Result<f64, String> {
    within(text, 1e-6..=3.2e7)
}

/// A time to wait, within the recorder's bounds.
fn patience(text: &str) -> Result<f64, String> {
    within(text, 0.001..=3600.0)
}

/// Checks a set of ranks; the recorder reads it again.
fn ranks(text: &str) -> Result<String, String> {
    st_model::ranklist_notation::parse_any(text).map(|_| text.to_owned())
}

/// Checks a range of addresses; the recorder reads it again.
fn place(text: &str) -> Result<String, String> {
    match text.parse::<st_model::sites::AddressRange>() {
        Ok(_) if text.contains(',') => Err("no commas".into()),
        Ok(_) => Ok(text.to_owned()),
        Err(e) => Err(e.into()),
    }
}

/// How loops are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Fold {
    /// Not at all
    None,
    /// Iterations of equal structure
    #[default]
    Exact,
    /// Iterations that are alike
    Approx,
}

/// How ranks' streams become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Merge {
    /// Ranks that behave alike are put into clusters first
    Cluster,
    /// All ranks are merged as they are
    Plain,
    /// Clusters are those of `st-cluster --signature reference`, to compare with: of ranks that differ in no parameter
    Reference,
}

/// A parameter of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Param {
    /// Destinations
    Dest,
    /// Sources, also those that wildcards received from
    Source,
    /// Numbers of elements, and the bytes received
    Count,
}

/// A clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Clock {
    /// CLOCK_MONOTONIC, read by clock_gettime
    Monotonic,
    /// The time stamp counter, held to CLOCK_MONOTONIC
    Tsc,
    /// MPI_Wtime
    #[value(name = "mpi_wtime")]
    MpiWtime,
}

/// What is kept of the times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Time {
    /// Exact times and sketches
    #[default]
    Columns,
    /// Sketches: distributions with an error of 1 %
    Sketch,
    /// Histograms of few balanced bins, as the papers have them
    Hist,
    /// Number, sum, sum of squares, shortest and longest
    Stats,
    /// Nothing
    None,
}

impl Args {
    /// A word of the command that is an option of ours, and hardly anybody else's.
    #[must_use]
    pub fn passed_on(&self) -> Option<String> {
        let own = Self::command();
        let names: Vec<_> = own.get_arguments().filter_map(|a| a.get_long()).collect();
        let ours = |word: &&str| {
            let name = word.strip_prefix("--").map(|w| w.split('=').next().unwrap_or_default());
            name.is_some_and(|n| names.contains(&n) && (n.contains('-') || n == "merge"))
        };
        let words: Vec<&str> = self.command.iter().skip(1).filter_map(|word| word.to_str()).collect();
        // The one that is forgotten most often: others' outputs are not named like traces.
        let output = words.windows(2).find(|w| ["-o", "--output"].contains(&w[0]) && w[1].ends_with(".st"));
        words.iter().find(|word| ours(word)).or(output.map(|w| &w[0])).map(|word| (*word).to_owned())
    }

    /// An option that says nothing since another one is not given, and that one.
    #[must_use]
    pub fn idle(&self) -> Option<[&'static str; 2]> {
        const HIST: &str = "--time hist";
        const APPROX: &str = "--fold approx";
        let [bins, smooth] = [Binning::DEFAULT.bins(), Binning::DEFAULT.excess()];
        let (hist, approx) = (self.time == Time::Hist, self.fold == Fold::Approx);
        let idle = [
            ("--hist-bins", HIST, !hist && self.hist_bins != bins),
            ("--hist-smooth", HIST, !hist && self.hist_smooth != smooth),
            ("--fold-window", APPROX, !approx && self.fold_window != FOLD_WINDOW),
            ("--fold-ratio", APPROX, !approx && self.fold_ratio != FOLD_PERCENT),
            ("--fold-common", APPROX, !approx && self.fold_common != FOLD_PERCENT),
        ];
        idle.into_iter().find_map(|(option, without, is_idle)| is_idle.then_some([option, without]))
    }

    /// The options as the recorder's environment variables, without `ST_OUTPUT`.
    #[must_use]
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let time = match self.time {
            Time::Columns => "columns".to_owned(),
            Time::Sketch => "sketch".to_owned(),
            Time::Hist => format!("hist:{}:{}", self.hist_bins, self.hist_smooth),
            Time::Stats => "stats".to_owned(),
            Time::None => "none".to_owned(),
        };
        let clock = match self.clock {
            None => "",
            Some(Clock::Monotonic) => "monotonic",
            Some(Clock::Tsc) => "tsc",
            Some(Clock::MpiWtime) => "mpi_wtime",
        };
        let fold = match self.fold {
            Fold::None => "none".to_owned(),
            Fold::Exact => "exact".to_owned(),
            Fold::Approx => {
                format!("approx:{}:{}:{}", self.fold_window, self.fold_ratio, self.fold_common)
            }
        };
        let mut sig = vec![self.sig_threshold.to_string()];
        sig.extend(self.sig_range.iter().cloned());
        let sync = match (self.no_sync, self.sync) {
            (true, _) => "0",
            (_, true) => "all",
            _ => "1",
        };
        let mut all: Vec<(&'static str, OsString)> = vec![
            ("ST_TIME", time.into()),
            ("ST_TIME_BUDGET", self.time_budget.to_string().into()),
            ("ST_FOLD", fold.into()),
            ("ST_SIG", sig.join(",").into()),
            ("ST_STACK_DEPTH", self.stack_depth.to_string().into()),
            ("ST_PYTHON", if self.python { "1" } else { "0" }.into()),
            ("ST_QUERY_TIMES", if self.query_times { "1" } else { "0" }.into()),
            ("ST_SYNC", sync.into()),
            ("ST_QUIET", if self.talk.quiet { "1" } else { "0" }.into()),
        ];
        let only = self.only.as_deref().unwrap_or_default();
        let interval =
            self.sync_interval.filter(|_| !self.no_sync).map(|s| s.to_string()).unwrap_or_default();
        let merge = match self.merge {
            None => "",
            Some(Merge::Cluster) => "cluster",
            Some(Merge::Plain) => "plain",
            Some(Merge::Reference) => "reference",
        };
        let patience = self.merge_timeout.map(|s| s.to_string()).unwrap_or_default();
        let every = self.reduce_every.map(|s| s.to_string()).unwrap_or_default();
        let kinds = self.histogram.iter().map(|kind| match kind {
            Param::Dest => "dest",
            Param::Source => "source",
            Param::Count => "count",
        });
        let mut histogram = kinds.collect::<Vec<_>>().join(",");
        histogram.extend(self.histogram_threshold.map(|n| format!(":{n}")));
        let named = [
            ("ST_CLOCK", clock),
            ("ST_ONLY", only),
            ("ST_SYNC_INTERVAL", &interval),
            ("ST_MERGE", merge),
            ("ST_MERGE_TIMEOUT", &patience),
            ("ST_REDUCE_EVERY", &every),
            ("ST_HISTOGRAM", &histogram),
        ];
        let set = named.into_iter().filter(|(_, v)| !v.is_empty());
        all.extend(set.map(|(n, v)| (n, v.into())));
        all
    }
}

#[cfg(test)]
mod tests;
