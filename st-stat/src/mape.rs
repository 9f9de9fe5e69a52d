//! How well replays reproduce run times.
//!
//! Of a run with time Ta whose replay took Tr: the signed error 100·(Tr − Ta)/Ta; MAPE, the mean of its absolute values
//! over the runs; and the accuracy 100·(1 − |t − t'|/t), once with t = Ta and, where a reference is given (the replay of
//! the trace without clustering), once with that. The time of a run is that of its slowest rank
//! ([`st_model::rank_times`]).
//!
//! Sources: Wu, Mueller 2013, section 4.2 (MAPE); Ratn, Mueller, de Supinski, Schulz 2008, section 5.4 (signed); Bahmani,
//! Mueller 2014, section 5.1 (accuracy, of which text and formula name another t).

use st_model::num::saturate;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use st_cli::options::{StreamIn, Talk};
use st_cli::{InvalidStream, UsageError, each_section, reads};
use st_model::anonymise::PROGRAM;
use st_model::calls::{CallId, CallTable, Kind};
use st_model::header::Header;
use st_model::rank_times::rank_times;
use st_model::ranklist::RankList;
use st_model::steps::Budget;

use crate::input::NAME;
use crate::table::{Cell, Column, Table, named};

/// The program that a recorded replay is of.
const REPLAY: &str = "st-replay";

/// Times of one run, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// What it is called.
    pub name: String,
    /// Of the program.
    pub recorded: f64,
    /// Of the replay.
    pub replayed: f64,
    /// Of the replay that accuracy is also reckoned against.
    pub reference: Option<f64>,
    /// The largest of the ranks' absolute errors in percent, where ranks are known.
    pub worst: Option<f64>,
}

impl Run {
    /// Signed error of the replay, percent.
    #[must_use]
    pub fn error(&self) -> f64 {
        100.0 * (self.replayed - self.recorded) / self.recorded
    }

    /// Accuracy against the program, percent.
    #[must_use]
    pub fn accuracy(&self) -> f64 {
        100.0 - self.error().abs()
    }

    /// Accuracy against the reference, percent.
    #[must_use]
    pub fn against_reference(&self) -> Option<f64> {
        self.reference.map(|t| 100.0 * (1.0 - (t - self.replayed).abs() / t))
    }
}

/// The runs of a list of traces, recorded and replayed by turns.
///
/// # Errors
///
/// If a trace cannot be read, has no times, or has no partner, or its partner is of another program, or of other ranks, or there are more ranks
/// than may be looked at.
pub fn pairs(paths: &[PathBuf], input: &StreamIn, talk: &Talk) -> Result<Vec<Run>> {
    if !paths.len().is_multiple_of(2) {
        let n = paths.len();
        bail!(UsageError(format!("traces come in pairs, a recorded one and that of its replay: not {n}")));
    }
    let budget = input.steps.budget();
    let run = |pair: &[PathBuf]| {
        let of = |path: &Path| times(path, input, &budget, talk);
        let [a, b] = [of(&pair[0])?, of(&pair[1])?];
        if let Some(how) = b.unlike(&a) {
            let (a, b) = (pair[0].display(), pair[1].display());
            bail!(InvalidStream(format!(
                "{b}: does not belong to {a}: {how}: give the recording of its replay (st-record -o {b} -- st-replay {a})"
            )));
        }
        let [a, b] = [a.ranks, b.ranks];
        let longest = |t: &BTreeMap<u32, f64>| t.values().copied().fold(0.0, f64::max);
        let each = a.iter().filter_map(|(rank, t)| b.get(rank).map(|u| 100.0 * ((u - t) / t).abs()));
        let worst = each.filter(|e| e.is_finite()).fold(0.0, f64::max);
        let name = pair[0].file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (recorded, replayed) = (longest(&a), longest(&b));
        Ok(Run { name, recorded, replayed, reference: None, worst: Some(worst) })
    };
    paths.chunks(2).map(run).collect()
}

/// What a trace has for a comparison of times.
struct Times {
    header: Header,
    /// Time of each rank, s.
    ranks: BTreeMap<u32, f64>,
    /// What is called beside initialisation and its counterpart.
    functions: BTreeSet<CallId>,
}

impl Times {
    /// What this trace has otherwise than one of which it is to be the replay, or another run, if it cannot be.
    fn unlike(&self, of: &Self) -> Option<String> {
        let (mine, theirs) = (self.header.command(), of.header.command());
        let replay = Path::new(&self.header.program).file_name().is_some_and(|name| name == REPLAY);
        let nameless = [self, of].iter().any(|trace| trace.header.program == PROGRAM);
        if !replay && !nameless && mine != theirs {
            return Some(format!("it is no replay, and of {mine}, not {theirs}"));
        }
        let held = |trace: &Self| trace.ranks.keys().copied().collect::<RankList>();
        let (mine, theirs) = (held(self), held(of));
        let only =
            |a: &RankList, b: &RankList| Some(a.difference(b)).filter(|d| !d.is_empty()).map(|d| named(&d));
        if let Some(ranks) = only(&mine, &theirs) {
            return Some(format!("it has {ranks} besides"));
        }
        if let Some(ranks) = only(&theirs, &mine) {
            return Some(format!("it lacks {ranks}"));
        }
        let apart = !of.functions.is_empty() && self.functions.is_disjoint(&of.functions);
        apart.then(|| format!("it calls none of the functions that {} calls", of.header.command()))
    }
}

fn times(path: &Path, input: &StreamIn, budget: &Budget, talk: &Talk) -> Result<Times> {
    let (mut all, mut functions) = (BTreeMap::new(), BTreeSet::new());
    let whole = each_section(&[path.to_owned()], &input.shown(NAME, talk), |_, section| {
        budget.spend_rows(std::slice::from_ref(&section))?;
        all.extend(rank_times(&section).into_iter().map(|t| (t.rank, seconds(t.whole))));
        functions.extend(section.symbols.iter().map(|s| s.call).filter(|call| {
            let kind = CallTable::builtin().get(*call).map(|row| row.kind);
            !matches!(kind, Some(Kind::Init | Kind::Finalize))
        }));
        Ok(())
    })?;
    whole.remark(NAME, talk);
    if all.values().all(|t| *t == 0.0) {
        bail!("{}: no times", path.display());
    }
    Ok(Times { header: whole.header, ranks: all, functions })
}

fn seconds(ns: u128) -> f64 {
    std::time::Duration::from_nanos(saturate(ns)).as_secs_f64()
}

/// The runs of a table: CSV with a header line, or JSON (objects, one a line or in a list), with `recorded_s` and
/// `replayed_s`, and `reference_s` and `name` where there are.
///
/// # Errors
///
/// If it cannot be read, or a row lacks a time.
pub fn table(path: &Path) -> Result<Vec<Run>> {
    let name = || path.display().to_string();
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin()).with_context(name)?
    } else {
        reads(path)?;
        fs::read_to_string(path).with_context(name)?
    };
    let rows = if text.trim_start().starts_with(['{', '[']) { json(&text) } else { csv(&text) };
    let rows = rows.with_context(name)?;
    if rows.is_empty() {
        bail!("{}: no run: CSV has a line of names and one for each run, JSON an object", name());
    }
    (1..).zip(rows).map(|(n, row)| run(n, &row).with_context(name)).collect()
}

type Row = BTreeMap<String, String>;

fn csv(text: &str) -> Result<Vec<Row>> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers()?.clone();
    let row = |record: csv::StringRecord| {
        header.iter().map(str::to_owned).zip(record.iter().map(str::to_owned)).collect()
    };
    Ok(reader.records().map(|r| r.map(row)).collect::<Result<_, _>>()?)
}

fn json(text: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value? {
            Value::Array(list) => rows.extend(list),
            other => rows.push(other),
        }
    }
    let row = |value: Value| {
        let Value::Object(object) = value else { bail!("a run is an object, not {value}") };
        let plain = |v: Value| if let Value::String(s) = v { s } else { v.to_string() };
        Ok(object.into_iter().map(|(k, v)| (k, plain(v))).collect())
    };
    rows.into_iter().map(row).collect()
}

fn run(n: usize, row: &Row) -> Result<Run> {
    let time = |column: &str| {
        let Some(text) = row.get(column).filter(|t| !t.is_empty() && *t != "null") else { return Ok(None) };
        let time = text.parse::<f64>().ok().filter(|t| t.is_finite() && *t > 0.0);
        time.map(Some).with_context(|| format!("run {n}: {column}: not a time in seconds: {text}"))
    };
    let needed = |column| time(column)?.with_context(|| format!("run {n}: no {column}"));
    let name = ["name", "run", "program"].iter().find_map(|c| row.get(*c));
    Ok(Run {
        name: name.cloned().unwrap_or_else(|| n.to_string()),
        recorded: needed("recorded_s")?,
        replayed: needed("replayed_s")?,
        reference: time("reference_s")?,
        worst: None,
    })
}

/// Mean absolute error of all runs, percent.
#[must_use]
pub fn mape(runs: &[Run]) -> f64 {
    mean(runs.iter().map(|r| r.error().abs())).unwrap_or(0.0)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum) = values.fold((0u32, 0.0), |(n, sum), v| (n + 1, sum + v));
    (n > 0).then(|| sum / f64::from(n))
}

/// A row per run; as text also one of all: means, and the largest of the ranks' errors.
#[must_use]
pub fn report(runs: &[Run]) -> Table {
    let columns = vec![
        Column::left("run", "run"),
        Column::right("recorded", "recorded_s", 0),
        Column::right("replayed", "replayed_s", 0),
        Column::right("error", "error_percent", 0),
        Column::right("MAPE", "mape_percent", 0),
        Column::right("accuracy", "accuracy_percent", 1),
        Column::right("of reference", "reference_accuracy_percent", 3),
        Column::right("worst rank", "worst_rank_percent", 2),
    ];
    let row = |r: &Run| {
        vec![
            Cell::text(r.name.clone()),
            Cell::number(Some(r.recorded), 6, " s"),
            Cell::number(Some(r.replayed), 6, " s"),
            percent(Some(r.error())),
            percent(Some(r.error().abs())),
            percent(Some(r.accuracy())),
            percent(r.against_reference()),
            percent(r.worst),
        ]
    };
    let total = vec![
        Cell::text("all"),
        Cell::none(),
        Cell::none(),
        percent(mean(runs.iter().map(Run::error))),
        percent(Some(mape(runs))),
        percent(mean(runs.iter().map(Run::accuracy))),
        percent(mean(runs.iter().filter_map(Run::against_reference))),
        percent(runs.iter().filter_map(|r| r.worst).reduce(f64::max)),
    ];
    Table { columns, rows: runs.iter().map(row).collect(), total: Some(total) }
}

fn percent(value: Option<f64>) -> Cell {
    Cell::number(value, 2, " %")
}
