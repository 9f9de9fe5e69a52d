//! Settings: environment variables, each the twin of an option of st-record.

use st_capture::fold::Fold;
use st_capture::record::Options;
use st_model::quantity::memory;
use st_model::ranklist::RankList;
use st_model::ranklist_notation;
use st_model::sites::Similar;
use st_model::sketch::Shape;
use st_model::sketch::histogram::Binning;
use st_reduce::lossy::Lossy;
use std::env;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Bytes of exact times per rank, unless said otherwise.
const TIME_BUDGET: u64 = 256 << 20;

/// How long ranks wait for each other when their streams are merged, ns, unless said otherwise.
const PATIENCE: i64 = 20_000_000_000;

/// What to record, and where to.
#[derive(Debug)]
pub(crate) struct Settings {
    /// `ST_OUTPUT`: the directory of the ranks' streams.
    pub(crate) output: PathBuf,
    /// `ST_JOBS`: the directory in which the jobs that record into that one number themselves; `None`: a later one replaces an
    /// earlier one's streams.
    pub(crate) jobs: Option<PathBuf>,
    /// `ST_TIME`: `columns` (exact), `sketch`, `hist`, `stats` or `none`.
    pub(crate) time: String,
    /// How histograms are kept: `hist:BINS:PERCENT`.
    pub(crate) binning: Binning,
    /// `ST_TIME_BUDGET`: after this many bytes exact times stop.
    pub(crate) time_budget: u64,
    /// `ST_FOLD`: how loops are found.
    pub(crate) fold: Fold,
    /// `ST_SIG`: call sites that are taken for one, as given and as understood.
    pub(crate) similar: (String, Similar),
    /// `ST_STACK_DEPTH`: frames kept per call site.
    pub(crate) stack_depth: usize,
    /// `ST_PYTHON`: call sites have the frames of the Python interpreter.
    pub(crate) python: bool,
    /// `ST_QUERY_TIMES`: times of calls that only ask for the time are kept, too.
    pub(crate) query_times: bool,
    /// `ST_CLOCK`: `monotonic`, `tsc` or `mpi_wtime`; empty: the best.
    pub(crate) clock: String,
    /// `ST_ONLY`: the ranks that are recorded, as given and as understood; `None`: all.
    pub(crate) only: Option<(String, RankList)>,
    /// `ST_MERGE`: how the ranks' streams become one in `MPI_Finalize`; `None`: they stay apart.
    pub(crate) merge: Option<How>,
    /// `ST_MERGE_TIMEOUT`: how long ranks wait for each other for that, ns.
    pub(crate) patience: i64,
    /// `ST_REDUCE_EVERY`: time between interim reductions, ns; `None`: there are none.
    pub(crate) reduce_every: Option<i64>,
    /// `ST_HISTOGRAM`: which parameters become histograms where streams become one, as given and as understood.
    pub(crate) lossy: Option<(String, Lossy)>,
    /// `ST_QUIET`: say nothing but errors.
    pub(crate) quiet: bool,
}

/// How the ranks' streams become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    /// As by st-cluster and st-merge.
    Cluster,
    /// As by st-merge.
    Plain,
    /// As by st-cluster with its reference, and st-merge.
    Reference,
}

/// Interim reductions: the time between them, and how long ranks wait for each other then, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reductions {
    pub(crate) every: i64,
    pub(crate) patience: i64,
}

impl Settings {
    /// Reads the environment; `None` if no output is named, and nothing is to be recorded.
    ///
    /// # Errors
    ///
    /// If a variable has an impossible value.
    pub(crate) fn read() -> Result<Option<Self>, String> {
        let Some(output) = env::var_os("ST_OUTPUT").filter(|v| !v.is_empty()) else { return Ok(None) };
        // The program may change its directory.
        let fixed = |path: OsString| std::path::absolute(&path).unwrap_or_else(|_| path.into());
        let get = |name: &str| env::var(name).ok().filter(|v| !v.is_empty());
        let mut time = get("ST_TIME").unwrap_or_else(|| "columns".into());
        let binning = binning(&time)?;
        time.truncate(time.find(':').unwrap_or(time.len()));
        if !matches!(time.as_str(), "columns" | "sketch" | "hist" | "stats" | "none") {
            return Err(format!(
                "ST_TIME={time}: not columns, sketch, hist, hist:BINS:PERCENT, stats or none"
            ));
        }
        let time_budget = get("ST_TIME_BUDGET")
            .map_or(Ok(TIME_BUDGET), |v| memory(&v).map_err(|e| format!("ST_TIME_BUDGET: {e}")))?;
        let fold =
            get("ST_FOLD").map_or(Ok(Fold::Exact), |v| v.parse().map_err(|e| format!("ST_FOLD={v}: {e}")))?;
        let sig = get("ST_SIG").unwrap_or_else(|| "1".into());
        let similar = similar(&sig).map_err(|e| format!("ST_SIG={sig}: {e}"))?;
        let stack_depth = get("ST_STACK_DEPTH").map_or(Ok(st_unwind::DEPTH_LIMIT), |v| depth(&v))?;
        let clock = get("ST_CLOCK").unwrap_or_default();
        if !matches!(clock.as_str(), "" | "monotonic" | "tsc" | "mpi_wtime") {
            return Err(format!("ST_CLOCK={clock}: not monotonic, tsc or mpi_wtime"));
        }
        let only = match get("ST_ONLY") {
            None => None,
            Some(v) => match ranklist_notation::parse_any(&v) {
                Ok(ranks) => Some((v, ranks)),
                Err(e) => return Err(format!("ST_ONLY={v}: {e}")),
            },
        };
        interval()?;
        let reduce_every = match get("ST_REDUCE_EVERY") {
            None => None,
            Some(v) => Some(
                seconds(&v, 1e-6..=3.2e7)
                    .ok_or_else(|| format!("ST_REDUCE_EVERY={v}: not a number of seconds"))?,
            ),
        };
        if reduce_every.is_some() && time == "columns" {
            // No reduction takes exact times along: they would grow with the calls, and be lost in the end.
            time = "sketch".into();
        }
        let merge = match get("ST_MERGE").as_deref() {
            None => reduce_every.map(|_| How::Cluster),
            Some("cluster") => Some(How::Cluster),
            Some("plain") => Some(How::Plain),
            Some("reference") => Some(How::Reference),
            Some(v) => return Err(format!("ST_MERGE={v}: not cluster, plain or reference")),
        };
        if merge.is_some() && only.is_some() {
            return Err("ST_MERGE merges all ranks, and ST_ONLY records some".into());
        }
        let patience = get("ST_MERGE_TIMEOUT").map_or(Ok(PATIENCE), |v| {
            seconds(&v, 0.001..=3600.0)
                .ok_or_else(|| format!("ST_MERGE_TIMEOUT={v}: not 0.001 to 3,600 seconds"))
        })?;
        let lossy = get("ST_HISTOGRAM").map(|v| match v.parse() {
            Ok(lossy) => Ok((v, lossy)),
            Err(e) => Err(format!("ST_HISTOGRAM={v}: {e}")),
        });
        let on = |name| get(name).is_some_and(|v| v != "0");
        let similar = (sig, similar);
        Ok(Some(Self {
            output: fixed(output),
            jobs: env::var_os("ST_JOBS").filter(|v| !v.is_empty()).map(fixed),
            time,
            binning,
            time_budget,
            fold,
            similar,
            stack_depth,
            python: on("ST_PYTHON"),
            clock,
            query_times: on("ST_QUERY_TIMES"),
            only,
            merge,
            patience,
            reduce_every,
            lossy: lossy.transpose()?,
            quiet: on("ST_QUIET"),
        }))
    }

    /// The interim reductions, if there are any.
    pub(crate) fn reductions(&self) -> Option<Reductions> {
        self.reduce_every.map(|every| Reductions { every, patience: self.patience })
    }

    /// What the recorder keeps beside the structure.
    pub(crate) fn recorder_options(&self) -> Options {
        let shape = match self.time.as_str() {
            "hist" => Shape::Bins(self.binning),
            "stats" => Shape::Totals,
            _ => Shape::Buckets,
        };
        Options {
            shape,
            columns: self.time == "columns",
            sketches: self.time != "none",
            fold: self.fold,
            ..Options::default()
        }
    }
}

/// Time between comparisons, ns: `ST_SYNC_INTERVAL`, in seconds; `None` if it is not set.
///
/// # Errors
///
/// If it is not a number of seconds.
pub(crate) fn interval() -> Result<Option<i64>, String> {
    let Some(text) = std::env::var("ST_SYNC_INTERVAL").ok().filter(|v| !v.is_empty()) else {
        return Ok(None);
    };
    let ns = seconds(&text, 1e-6..=3.2e7);
    ns.map(Some).ok_or_else(|| format!("ST_SYNC_INTERVAL={text}: not a number of seconds"))
}

/// A number of seconds within bounds, as ns.
pub(crate) fn seconds(text: &str, bounds: RangeInclusive<f64>) -> Option<i64> {
    let seconds = text.parse().ok().filter(|s| bounds.contains(s))?;
    #[expect(clippy::cast_possible_truncation, reason = "at most a year, in ns")]
    Some((seconds * 1e9) as i64)
}

/// Frames of a call stack that are kept at most.
fn depth(v: &str) -> Result<usize, String> {
    let depth = v.parse().ok().filter(|n| (1..=st_unwind::DEPTH_LIMIT).contains(n));
    depth.ok_or_else(|| format!("ST_STACK_DEPTH={v}: not 1 to {}", st_unwind::DEPTH_LIMIT))
}

/// How histograms are kept, of `hist:BINS:PERCENT`; other texts say nothing of it.
fn binning(time: &str) -> Result<Binning, String> {
    match time.split_once(':') {
        Some(("hist", how)) => how.parse().map_err(|e| format!("ST_TIME={time}: {e}")),
        Some(_) => Err(format!("ST_TIME={time}: only hist has how it is kept")),
        None => Ok(Binning::DEFAULT),
    }
}

/// A threshold, and ranges of addresses, separated by commas.
fn similar(text: &str) -> Result<Similar, &'static str> {
    let (threshold, ranges) = text.split_once(',').unwrap_or((text, ""));
    let threshold = threshold.parse().ok().filter(|t| *t > 0).ok_or("not a number of frames")?;
    let places = ranges.split(',').filter(|r| !r.is_empty()).map(str::parse).collect::<Result<_, _>>()?;
    Ok(Similar { threshold, places })
}
