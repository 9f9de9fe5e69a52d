//! What ranks do at a time, and between two.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::ops::Range;

use anyhow::{Result, bail};
use st_cli::options::Steps;
use st_cli::{Output, Screen, Status, UsageError};
use st_model::num::{Exact as _, saturate};
use st_model::section::Section;
use st_model::sites::CallSites;
use st_model::steps::Budget;

use crate::args::{AtArgs, BetweenArgs, BetweenBy, Explaining};
use crate::calls::{SITE, function, site_cells, site_of};
use crate::input;
use crate::moment::{Clocks, Moment, State};
use crate::table::{Cell, Column, Format, Table, duration, ranks as named_ranks};

/// A trace, and the times of its calls.
struct Timed {
    sections: Vec<Section>,
    clocks: Clocks,
}

impl Timed {
    fn read(of: &Explaining) -> Result<Self> {
        let (_, sections) = input::sections(&of.inputs, &of.input, &of.talk)?;
        let budget = of.input.steps.budget();
        budget.spend_rows(&sections)?;
        let clocks = Clocks::of(&sections, &budget)?;
        if !clocks.exact {
            of.talk.warn(
                input::NAME,
                "estimated from mean times of calls: the trace does not hold exact ones of all ranks",
            );
        }
        Ok(Self { sections, clocks })
    }

    fn moments(&self, t: u64, steps: &Steps) -> Result<Vec<(&Section, Moment<'_>)>> {
        let mut all = Vec::new();
        for (number, section) in self.sections.iter().enumerate() {
            for rank in section.ranks.iter() {
                for thread in 0..section.threads.len() {
                    let found = self.clocks.moment(number, section, rank, thread, t, steps.max_steps)?;
                    all.extend(found.map(|moment| (section, moment)));
                }
            }
        }
        all.sort_by_key(|(_, m)| (m.rank, m.thread));
        Ok(all)
    }
}

/// What a row of text has in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    thread: usize,
    state: &'static str,
    function: String,
    site: Option<u32>,
    path: String,
}

/// `st-stat at`.
pub(crate) fn at(args: &AtArgs) -> Result<Status> {
    let of = &args.of;
    let timed = Timed::read(of)?;
    let sites = args.symbols.call_sites((input::NAME, &of.talk), timed.sections.iter().map(|s| &s.sites));
    let moments = timed.moments(nanoseconds(args.time), &of.input.steps)?;
    let mut out = Output::text(&of.output.output)?;
    let screen = Screen::of(&out);
    if of.format == Format::Text {
        let how = if timed.clocks.exact { "exact times" } else { "estimated" };
        writeln!(out, "{} after the first rank's MPI_Init ({how})\n", duration(nanoseconds(args.time)))?;
        grouped(&moments, &sites).write(of.format, screen, &mut out)?;
    } else {
        listed(&moments, &sites).write(of.format, screen, &mut out)?;
    }
    out.commit()?;
    Ok(Status::Ok)
}

fn nanoseconds(seconds: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0, and cut at the largest"
    )]
    let ns = (seconds * 1e9).round() as u64;
    ns
}

/// A state in words.
fn state(state: State) -> &'static str {
    match state {
        State::Before => "not begun",
        State::Computation => "computation",
        State::Call => "call",
        State::After => "ended",
        State::Untimed => "times end",
    }
}

/// Iterations of the loops around a call: `3/100 5/10`, counted from 0.
fn path(of: &Moment<'_>) -> String {
    let turns: Vec<String> = of.turns.iter().map(|(turn, turns)| format!("{turn}/{turns}")).collect();
    turns.join(" ")
}

fn named((section, moment): &(&Section, Moment<'_>), sites: &CallSites) -> (String, Option<u32>) {
    let symbol = moment.sym.and_then(|sym| section.symbols.get(sym as usize));
    symbol.map_or_else(Default::default, |s| (function(s.call, &section.tables), site_of(section, s, sites)))
}

/// One row per rank and thread.
fn listed(moments: &[(&Section, Moment<'_>)], sites: &CallSites) -> Table {
    let columns = vec![
        Column::right("rank", "rank", 0),
        Column::right("thread", "thread", 0),
        Column::left("in", "state"),
        Column::left("function", "function"),
        Column::right("call", "call", 0),
        Column::left("iteration", "iteration"),
        Column::right("since", "since_ns", 0),
        Column::right("left", "left_ns", 0),
        Column::left("exact", "exact"),
    ];
    let row = |found: &(&Section, Moment<'_>)| {
        let (name, site) = named(found, sites);
        let m = &found.1;
        let known = |ns: u64| if m.sym.is_some() { Cell::ns(ns.into()) } else { Cell::none() };
        let mut row = vec![
            Cell::count(m.rank.into()),
            Cell::count(m.thread.to_u64()),
            Cell::text(state(m.state)),
            Cell::text(name),
            if m.sym.is_some() { Cell::count(m.index) } else { Cell::none() },
            Cell::text(path(m)),
            known(m.since),
            known(m.left),
            Cell::shown(m.exact.into(), if m.exact { "yes" } else { "no" }),
        ];
        row.extend(site_cells(site, sites));
        row
    };
    Table {
        columns: columns.into_iter().chain(SITE).collect(),
        rows: moments.iter().map(row).collect(),
        total: None,
    }
}

/// One row for all ranks that are at the same place.
fn grouped(moments: &[(&Section, Moment<'_>)], sites: &CallSites) -> Table {
    let mut groups: BTreeMap<Alike, (Vec<u32>, u64)> = BTreeMap::new();
    for found in moments {
        let (name, site) = named(found, sites);
        let (thread, state) = (found.1.thread, state(found.1.state));
        let key = Alike { thread, state, function: name, site, path: path(&found.1) };
        let group = groups.entry(key).or_default();
        group.0.push(found.1.rank);
        group.1 = group.1.max(found.1.since);
    }
    let mut list: Vec<(Alike, (Vec<u32>, u64))> = groups.into_iter().collect();
    list.sort_by_key(|(alike, (ranks, _))| (ranks.first().copied(), alike.thread));
    let threads = list.iter().any(|(alike, _)| alike.thread > 0);
    let first =
        [Some(Column::left("ranks", "ranks")), threads.then_some(Column::right("thread", "thread", 0))];
    let columns = [
        Column::left("in", "state"),
        Column::left("of, or before", "function"),
        Column::left("iteration", "iteration"),
        Column::right("for", "since_ns", 1),
    ];
    let row = |(alike, (ranks, since)): (Alike, (Vec<u32>, u64))| {
        let since = if alike.function.is_empty() { Cell::none() } else { Cell::ns(since.into()) };
        let mut row = vec![Cell::text(named_ranks(&ranks))];
        row.extend(threads.then(|| Cell::count(alike.thread.to_u64())));
        row.extend([Cell::text(alike.state), Cell::text(alike.function), Cell::text(alike.path), since]);
        row.extend(site_cells(alike.site, sites));
        row
    };
    Table {
        columns: first.into_iter().flatten().chain(columns).chain(SITE).collect(),
        rows: list.into_iter().map(row).collect(),
        total: None,
    }
}

/// What is between two times.
#[derive(Default)]
struct Spent {
    calls: u64,
    ns: u64,
    longest: (u64, u32),
    ranks: Vec<u32>,
}

/// A rank, or a function and its call site; nothing for computation.
type What = (Option<u32>, Option<(String, Option<u32>)>);

/// `st-stat between`.
pub(crate) fn between(args: &BetweenArgs) -> Result<Status> {
    let of = &args.of;
    let (from, to) = (nanoseconds(args.from), nanoseconds(args.to));
    if from >= to {
        bail!(UsageError(format!("{} is not before {}", args.from, args.to)));
    }
    let timed = Timed::read(of)?;
    let named = timed.sections.iter().filter(|_| args.by == BetweenBy::Site).map(|s| &s.sites);
    let sites = args.symbols.call_sites((input::NAME, &of.talk), named);
    let (budget, mut spent) = (of.input.steps.budget(), BTreeMap::new());
    for (section, moment) in timed.moments(from, &of.input.steps)? {
        add(&mut spent, section, moment, from..to, args.by, &sites, &budget)?;
    }
    if spent.is_empty() {
        bail!(UsageError(format!("nothing of the run is between {} and {} s", args.from, args.to)));
    }
    let mut out = Output::text(&of.output.output)?;
    let screen = Screen::of(&out);
    window(spent, args.by, &sites).write(of.format, screen, &mut out)?;
    out.commit()?;
    Ok(Status::Ok)
}

/// Adds what a thread does in a window.
fn add(
    spent: &mut BTreeMap<What, Spent>,
    section: &Section,
    moment: Moment<'_>,
    Range { start: from, end: to }: Range<u64>,
    by: BetweenBy,
    sites: &CallSites,
    budget: &Budget,
) -> Result<()> {
    let rank = moment.rank;
    let mut enter = |what: Option<(String, Option<u32>)>, calls: u64, ns: u64| {
        let key =
            if by == BetweenBy::Rank { (Some(rank), what.map(|_| Default::default())) } else { (None, what) };
        let into: &mut Spent = spent.entry(key).or_default();
        (into.calls, into.ns) = (into.calls + calls, into.ns + ns);
        into.longest = into.longest.max((ns, rank));
        if into.ranks.last() != Some(&rank) {
            into.ranks.push(rank);
        }
    };
    // Before its first call a thread is not there; nor after its last.
    let mut last = if moment.state == State::Before { None } else { Some(from) };
    let mut calls = moment.calls;
    while let Some((sym, begin, end)) = calls.next_call()? {
        budget.take(1)?;
        if let Some(gap) = last.map(|last| begin.min(to).saturating_sub(last)).filter(|gap| *gap > 0) {
            enter(None, 0, gap);
        }
        if begin >= to {
            break;
        }
        let symbol = section.symbols.get(sym as usize);
        let what = symbol.map(|s| (function(s.call, &section.tables), site_of(section, s, sites)));
        enter(what, 1, end.min(to).saturating_sub(begin.max(from)));
        last = Some(end.max(from));
    }
    Ok(())
}

fn window(spent: BTreeMap<What, Spent>, by: BetweenBy, sites: &CallSites) -> Table {
    let whole: u128 = spent.values().map(|s| u128::from(s.ns)).sum();
    let mut list: Vec<(What, Spent)> = spent.into_iter().collect();
    if by == BetweenBy::Site {
        list.sort_by_key(|(_, s)| u64::MAX - s.ns);
    }
    let first = match by {
        BetweenBy::Site => Column::left("function", "function"),
        BetweenBy::Rank => Column::right("rank", "rank", 0),
    };
    let mut columns = vec![
        first,
        Column::right("calls", "calls", 0),
        Column::right("time", "time_ns", 0),
        Column::right("share", "share_percent", 1),
        Column::right("longest", "longest_ns", 2),
        Column::right("on rank", "longest_rank", 3),
        Column::right("ranks", "ranks", 4),
    ];
    match by {
        BetweenBy::Site => columns.extend(SITE),
        BetweenBy::Rank => columns.insert(1, Column::left("in", "state")),
    }
    let row = |((rank, what), s): (What, Spent)| {
        let state = if what.is_some() { "MPI" } else { "computation" };
        let (name, site) = what.unwrap_or_else(|| ("(computation)".to_owned(), None));
        let mut row = match rank {
            Some(rank) => vec![Cell::count(rank.into()), Cell::text(state)],
            None => vec![Cell::text(name)],
        };
        row.extend([
            Cell::count(s.calls),
            Cell::ns(s.ns.into()),
            Cell::percent(s.ns.into(), whole),
            Cell::ns(s.longest.0.into()),
            Cell::count(s.longest.1.into()),
            Cell::count(saturate(s.ranks.len())),
        ]);
        row.extend(rank.is_none().then(|| site_cells(site, sites)).into_iter().flatten());
        row
    };
    Table { columns, rows: list.into_iter().map(row).collect(), total: None }
}
