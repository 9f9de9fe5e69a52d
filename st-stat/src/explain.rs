//! What a trace tells of where its time goes, and tables of efficiencies and ranks.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Result, bail};
use st_cli::options::{Steps, Talk};
use st_cli::{Amount, Output, Progress, Screen, Status, Whole, counted, grouped};
use st_explain::{Analysis, Efficiency, Explains, Kept, Sum, Tell, Unmatched, analyse};
use st_model::calls::{CallId, CallTable};
use st_model::explanation::{ELSEWHERE, Place};
use st_model::header::{Clock, Header, Queued, SIMULATED};
use st_model::num::{Exact, saturate};
use st_model::paused::{may_pause, some_pause};
use st_model::rank_times::{OtherThreads, RankTime, other_threads, rank_times, totals};
use st_model::section::{Section, Symbol};
use st_model::sites::CallSites;
use st_model::steps::Exceeded;

use crate::args::{EfficiencyArgs, Explaining, RanksArgs};
use crate::calls::function;
use crate::ended::Running;
use crate::input::{self, Lacking};
use crate::table::{Cell, Column, Table, duration};
use crate::untimed::{NO_TIMES, NOTHING_KEPT, partly, without};

/// A trace, and what is found in it: nothing without exact times, unless it has been kept.
pub(crate) struct Explained {
    /// What the streams say of the run, but for what has been kept of waits.
    pub(crate) whole: Whole,
    pub(crate) sections: Vec<Section>,
    /// Ranks of the fullest node, and its processors, if these are fewer.
    pub(crate) crowded: Option<(u64, u32)>,
    /// How long ranks had no processor, if that is known.
    pub(crate) queued: Option<Queued>,
    /// Which ranks are still being recorded.
    pub(crate) running: Running,
    pub(crate) analysis: Option<Analysis>,
    /// What has been kept of exact times that are not there any more.
    pub(crate) kept: Option<Kept>,
    /// Waits are not looked for in exact times that are there: that would take more steps than are allowed.
    pub(crate) too_long: Option<Exceeded>,
}

/// Steps for which a call stands: where all happens at one moment it takes some 200 bytes of memory, 300 where a prediction is
/// made of it.
const CALLS: u64 = 8;

/// How much is looked for.
type Analyse = fn(&[Section], Tell<'_>) -> Result<Analysis, st_model::project::Error>;

/// What there is to tell where waits cannot be found in exact times.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Otherwise {
    /// Nothing of waits; that messages cannot be matched is an error.
    Nothing,
    /// What has been kept of them; the same.
    Kept,
    /// What has been kept of them, and all else, also where looking for waits would take too long.
    AllElse,
}

/// Why messages cannot be matched.
pub(crate) const HISTOGRAMS: &str =
    "parameters are histograms (st-merge --histogram): messages cannot be matched";

/// Calls for which a byte of what was read pays: regular programs have some three in each byte of their exact times.
const BYTE: u64 = 8;

/// Pays for going through all calls, of which each is so many steps, or says that it would take too long.
pub(crate) fn pay(whole: &Whole, sections: &[Section], steps: &Steps, each: u64) -> Result<(), Exceeded> {
    let budget = steps.budget();
    budget.allow(whole.bytes.unwrap_or(0).saturating_mul(BYTE * each));
    budget.spend_all(sections, None, each)
}

impl Explained {
    /// Reads a trace, and says what is left out. What has been kept is told only where exact times are not.
    pub(crate) fn read(of: &Explaining, analyse: Analyse) -> Result<Self> {
        Ok(Self::found(of, Otherwise::Kept, |sections, tell| Ok((analyse(sections, tell)?, ())))?.0)
    }

    /// The same, also of a trace whose messages cannot be matched: without waits.
    pub(crate) fn read_any(of: &Explaining, analyse: Analyse) -> Result<Self> {
        Ok(Self::found(of, Otherwise::AllElse, |sections, tell| Ok((analyse(sections, tell)?, ())))?.0)
    }

    /// The same, by exact times only.
    pub(crate) fn measured(of: &Explaining, analyse: Analyse) -> Result<Self> {
        Ok(Self::read_with(of, |sections, tell| Ok((analyse(sections, tell)?, ())))?.0)
    }

    /// The same, and what else is found beside the analysis.
    pub(crate) fn read_with<T>(
        of: &Explaining,
        analyse: impl FnOnce(&[Section], Tell<'_>) -> Result<(Analysis, T), st_model::project::Error>,
    ) -> Result<(Self, Option<T>)> {
        Self::found(of, Otherwise::Nothing, analyse)
    }

    fn found<T>(
        of: &Explaining,
        otherwise: Otherwise,
        analyse: impl FnOnce(&[Section], Tell<'_>) -> Result<(Analysis, T), st_model::project::Error>,
    ) -> Result<(Self, Option<T>)> {
        let Explaining { inputs, input, talk, .. } = of;
        let (whole, sections): (Whole, Vec<Section>) = input::sections(inputs, input, talk)?;
        if !whole.complete {
            talk.warn(input::NAME, "what the stream lacks is not explained");
        }
        // Of all ranks of the job together it is known, not of those that are left.
        let queued = whole.header.queued.filter(|_| whole.complete);
        let crowded = crowded(&whole.header, &sections);
        let running = Running::of(inputs, sections.iter());
        let ended = running.ended(&sections);
        if ended > 0 {
            let what = "ended early: what they did after their last call, or in one that did not return, is not counted";
            talk.warn(input::NAME, format!("{} {what}", counted(ended, "rank")));
        }
        let mut found =
            Self { whole, sections, crowded, queued, running, analysis: None, kept: None, too_long: None };
        let Self { whole, sections, .. } = &mut found;
        let budget = input.steps.budget();
        let kept = whole
            .explanation
            .take()
            .filter(|_| otherwise != Otherwise::Nothing && !sections.iter().all(is_timed));
        if let Some(kept) = kept {
            budget.spend_rows(sections)?;
            budget.take_short(kept.rows().saturating_mul(ROW))?;
            let kept = Kept::of(&kept);
            remark(&kept, &whole.header.clock, talk);
            if kept.unknown > 0 {
                talk.warn(
                    input::NAME,
                    format!("{} rows of waits are of kinds that a newer st knows: left out", kept.unknown),
                );
            }
            return Ok((Self { kept: Some(kept), ..found }, None));
        }
        let histograms = sections.iter().any(|s| s.histograms().next().is_some());
        let timed = sections.iter().any(Section::has_times);
        if histograms && timed && otherwise != Otherwise::AllElse {
            bail!("{HISTOGRAMS}");
        }
        let looked = timed && !histograms;
        let too_long = match looked.then(|| pay(whole, sections, &input.steps, CALLS)) {
            Some(Err(exceeded)) if otherwise == Otherwise::AllElse => Some(exceeded),
            spent => spent.transpose()?.and(None),
        };
        if !looked || too_long.is_some() {
            budget.spend_rows(sections)?;
            return Ok((Self { too_long, ..found }, None));
        }
        let progress = explaining(sections, talk);
        let (analysis, more) = analyse(sections, &|n| progress.advance(n))?;
        drop(progress);
        remark(&analysis, &whole.header.clock, talk);
        Ok((Self { analysis: Some(analysis), ..found }, Some(more)))
    }

    /// What is found, or has been kept.
    pub(crate) fn told(&self) -> Option<&dyn Explains> {
        let kept = self.kept.as_ref().map(|kept| kept as &dyn Explains);
        self.analysis.as_ref().map(|analysis| analysis as &dyn Explains).or(kept)
    }

    /// The same, where it must be there.
    pub(crate) fn explained(&self) -> Result<&dyn Explains> {
        let Some(told) = self.told() else { bail!(Lacking(without(NOTHING_KEPT, &self.whole.header))) };
        Ok(told)
    }

    /// What is found by exact times.
    pub(crate) fn known(&self) -> Result<&Analysis> {
        let Some(analysis) = &self.analysis else { bail!(Lacking(without(NO_TIMES, &self.whole.header))) };
        Ok(analysis)
    }

    /// Function and call site of a place.
    pub(crate) fn place(&self, number: u32, sites: &CallSites) -> (String, Option<u32>) {
        if number == ELSEWHERE {
            return ("(others)".to_owned(), None);
        }
        let Some(place) = self.told().and_then(|a| a.places().get(number)) else {
            return (String::new(), None);
        };
        (self.function(place.call), place.site.and_then(|id| sites.number(id)))
    }

    /// Whether calls at a place pause recording, or may.
    pub(crate) fn pauses(&self, place: u32) -> bool {
        let pausing = self.told().and_then(|a| a.places().get(place)).filter(|place| may_pause(place.call));
        let Some(place) = pausing else { return false };
        self.sections.iter().any(|section| {
            let mut here = (0..).zip(&section.symbols).filter(|(_, s)| Place::of(section, s) == place);
            here.any(|(sym, s)| section.threads.iter().any(|thread| some_pause(thread, sym, s)))
        })
    }

    fn function(&self, call: CallId) -> String {
        // Only functions outside the call table have names in sections, and these may be many.
        let outside = CallTable::builtin().get(call).is_none();
        let named =
            outside.then(|| self.sections.iter().find(|s| s.tables.names.contains_key(&call))).flatten();
        self.sections.first().map_or_else(String::new, |first| function(call, &named.unwrap_or(first).tables))
    }
}

/// Short steps that a row of what is kept takes.
const ROW: u64 = 16;

/// How far all calls that have times are read. Says so where only some ranks' calls have any.
pub(crate) fn explaining(sections: &[Section], talk: &Talk) -> Progress {
    partly(sections).iter().for_each(|what| talk.warn(input::NAME, what));
    let threads = sections.iter().flat_map(|s| &s.threads);
    let columns = threads.flat_map(|t| &t.columns).map(|(_, column)| column.events());
    talk.progress(input::NAME, "explaining", Amount::Things("calls", columns.fold(0, u64::saturating_add)))
}

/// Whether all calls have exact times, as far as the number of columns tells.
fn is_timed(section: &Section) -> bool {
    section.threads.iter().all(|t| t.columns.len().to_u64() >= t.ranks.len())
}

/// Ranks of the fullest node and processors that they may run on, if these are fewer. Of nodes that differ the most
/// processors count, for the trace does not say which is which.
fn crowded(header: &Header, sections: &[Section]) -> Option<(u64, u32)> {
    let mut nodes: HashMap<&str, u64> = HashMap::new();
    for (host, ranks) in sections.iter().flat_map(|s| &s.hosts) {
        *nodes.entry(host).or_default() += ranks.len();
    }
    let ranks = nodes.into_values().max()?;
    let processors = header.processors.keys().copied().max()?;
    (ranks > processors.into()).then_some((ranks, processors))
}

/// What is left out, and what is doubtful: how many, and of what.
pub(crate) fn left_out(told: &dyn Explains, clock: &Clock) -> impl Iterator<Item = (u64, &'static str)> {
    let u: Unmatched = told.unmatched();
    let all = [
        (u.sends, "sends without receive: left out"),
        (u.receives, "receives without send: left out"),
        (u.ambiguous, "messages whose order between threads is unknown: left out"),
        (u.operations, "collective operations that lack a member: left out"),
        (u.untimed_threads, "threads whose exact times end early: the rest of them is left out"),
        (
            told.waits().violations,
            if clock.source == SIMULATED {
                ON_PAPER
            } else {
                "waits end after their calls, and are cut there: clocks disagree (st-sync)"
            },
        ),
    ];
    all.into_iter().filter(|(n, _)| *n > 0)
}

/// Of times that were made without a run: each rank has its own, unless `st-kernels --slow` has made all.
const ON_PAPER: &str = "waits end after their calls, and are cut there: on paper no rank waits for others (st-kernels --slow 0:1 lets them)";

/// Says it. What is so by intention is no warning.
pub(crate) fn remark(told: &dyn Explains, clock: &Clock, talk: &Talk) {
    for (n, what) in left_out(told, clock) {
        let text = format!("{} {what}", grouped(n));
        if what == ON_PAPER { talk.note(input::NAME, text) } else { talk.warn(input::NAME, text) }
    }
}

pub(crate) fn rank_cell(rank: u32) -> Cell {
    Cell::count(rank.into())
}

pub(crate) fn added<K: Ord>(sums: impl Iterator<Item = (K, Sum)>) -> BTreeMap<K, Sum> {
    let mut all = BTreeMap::new();
    for (key, sum) in sums {
        all.entry(key).or_insert_with(Sum::default).add(sum);
    }
    all
}

/// `st-stat efficiency`.
pub(crate) fn efficiency(args: &EfficiencyArgs) -> Result<Status> {
    let explained = Explained::read(&args.of, analyse)?;
    let table = efficiency_table(&explained, explained.explained()?);
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    table.write(args.of.format, screen, &mut out)?;
    out.commit()?;
    tell_of_threads(&explained.sections, &args.of.talk);
    Ok(Status::Ok)
}

/// What the run time is made of.
pub(crate) fn efficiency_table(explained: &Explained, told: &dyn Explains) -> Table {
    let (rows, e) = (rank_rows(explained), told.efficiency());
    let paused = || rows.iter().map(|(r, _)| r.paused);
    let mean = saturate(paused().sum::<u128>() / u128::from(rows.len().to_u64().max(1)));
    let e = Efficiency { paused: saturate(paused().min().unwrap_or(0)), ..e };
    let share = |name: &str, value: Option<f64>| {
        let cell = value.map_or_else(Cell::none, |v| Cell::shown(v.into(), format!("{v:.3}")));
        vec![Cell::text(name), cell]
    };
    let time = |name: &str, ns: u64| vec![Cell::text(name), Cell::ns(ns.into())];
    let mut rows = vec![
        share("parallel efficiency", e.parallel()),
        share("load balance", e.load_balance()),
        share("communication efficiency", e.communication()),
        share("serialisation", e.serialisation()),
        share("transfer", e.transfer()),
        time("run time", e.run),
        time("on an ideal network", e.ideal),
        time("computation, mean", e.mean),
        time("computation, longest", e.longest),
    ];
    rows.extend((mean > 0).then(|| time("recording paused, mean", mean)));
    let columns = vec![Column::left("measure", "measure"), Column::right("value", "value", 0)];
    Table { columns, rows, total: None }
}

/// Ranks with their times, and waits where these are known.
pub(crate) fn rank_rows(explained: &Explained) -> Vec<(RankTime, Option<u64>)> {
    let of = |r: &st_explain::RankTotals| {
        let [whole, mpi, paused] = [r.whole(), r.mpi, r.paused].map(u128::from);
        (RankTime { rank: r.rank, whole, mpi, paused }, Some(r.wait.ns))
    };
    if let Some(analysis) = &explained.analysis {
        return analysis.ranks.iter().map(of).collect();
    }
    let kept = explained.kept.as_ref().map(|kept| {
        let victims = kept.waits().victims.iter();
        added(victims.map(|((_, at), sum)| (at.rank, *sum)))
    });
    // Both are kept apart, each approximately; no rank waits for longer than it is in MPI.
    let waited = |r: &RankTime| {
        kept.as_ref().map(|waits| waits.get(&r.rank).map_or(0, |sum| sum.ns).min(saturate(r.mpi)))
    };
    let mut rows: Vec<_> = explained.sections.iter().flat_map(rank_times).map(|r| (r, waited(&r))).collect();
    rows.sort_by_key(|(r, _)| r.rank);
    rows
}

/// What each rank computes before the calls of a function from a site, ns, by its totals.
pub(crate) fn computed_before(sections: &[Section], at: Place) -> BTreeMap<u32, u128> {
    let mut all: BTreeMap<u32, u128> = BTreeMap::new();
    for section in sections {
        let is_meant =
            |s: &Symbol| s.call == at.call && section.sites.get(s.site).map(|site| site.id) == at.site;
        for thread in &section.threads {
            let meant =
                totals(thread).filter(|t| section.symbols.get(t.sym.to_usize()).is_some_and(is_meant));
            for t in meant {
                for (rank, ns) in thread.ranks.iter().zip(&t.compute) {
                    let into = all.entry(rank).or_default();
                    *into = into.saturating_add(*ns);
                }
            }
        }
    }
    all
}

/// Computation of ranks without exact times.
pub(crate) fn computation(explained: &Explained) -> Vec<(u32, u64, u64)> {
    let rows = rank_rows(explained);
    rows.iter().map(|(r, _)| (r.rank, saturate(r.whole), saturate(r.computation()))).collect()
}

/// Says so where single ranks' waits are not known as well as those of all.
pub(crate) fn tell_of_ranks(explained: &Explained, talk: &Talk) {
    if explained.kept.is_some() {
        talk.note(
            input::NAME,
            "waits of each rank are what was kept when exact times were folded: right to 4.5 % where few ranks differ, else means of \
             many, from which one rank's may be far (st-merge --keep-columns keeps exact times)",
        );
    }
}

/// What is said where ranks have several threads, if they have.
pub(crate) fn several_threads(sections: &[Section]) -> Option<&'static str> {
    let said = "calls and waits of all threads of a rank count, and its time once: several threads may come to more than 100 % of it";
    sections.iter().any(|section| section.threads.len() > 1).then_some(said)
}

/// Says so where ranks have threads whose times are not those that are told of ranks.
pub(crate) fn tell_of_threads(sections: &[Section], talk: &Talk) {
    let OtherThreads { threads, mpi } = other_threads(sections);
    if threads > 0 {
        let message = format!(
            "a rank's time, computation and time in MPI are those of the thread that stands for it; {} that {} in MPI for {} {} left out",
            counted(threads, "other thread"),
            if threads == 1 { "is" } else { "are" },
            duration(saturate(mpi)),
            if threads == 1 { "is" } else { "are" },
        );
        talk.note(input::NAME, message);
    }
}

/// `st-stat ranks`.
pub(crate) fn ranks(args: &RanksArgs) -> Result<Status> {
    let explained = Explained::read(&args.of, analyse)?;
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    ranks_table(&explained).write(args.of.format, screen, &mut out)?;
    out.commit()?;
    tell_of_threads(&explained.sections, &args.of.talk);
    tell_of_ranks(&explained, &args.of.talk);
    Ok(Status::Ok)
}

/// Ranks and what their time goes into.
pub(crate) fn ranks_table(explained: &Explained) -> Table {
    let rows = rank_rows(explained);
    let mean =
        rows.iter().map(|(r, _)| r.computation()).sum::<u128>() / u128::from(rows.len().to_u64().max(1));
    // Where no rank has any time, none was recorded.
    let timed = rows.iter().any(|(r, _)| r.whole > 0);
    let time = |ns: u128| if timed { Cell::ns(ns) } else { Cell::none() };
    let pauses = rows.iter().any(|(r, _)| r.paused > 0);
    let row = |(r, wait): &(RankTime, Option<u64>)| {
        let mut cells = vec![
            rank_cell(r.rank),
            time(r.whole),
            time(r.computation()),
            time(r.mpi),
            wait.map_or_else(Cell::none, |ns| time(ns.into())),
            if timed { Cell::percent(r.computation(), mean) } else { Cell::none() },
        ];
        cells
            .extend(pauses.then(|| [time(r.paused), Cell::percent(r.paused, r.whole)]).into_iter().flatten());
        cells
    };
    let mut columns = vec![
        Column::right("rank", "rank", 0),
        Column::right("time", "time_ns", 0),
        Column::right("computation", "computation_ns", 0),
        Column::right("in MPI", "mpi_ns", 0),
        Column::right("waiting", "wait_ns", 0),
        Column::right("of mean", "computation_percent", 0),
    ];
    if pauses {
        let more = [Column::right("paused", "paused_ns", 0), Column::right("share", "paused_percent", 0)];
        columns.extend(more);
    }
    Table { columns, rows: rows.iter().map(row).collect(), total: None }
}
