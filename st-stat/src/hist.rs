//! How long the calls of a site take, and the computation before them: the distribution.

mod draw;

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::{Result, bail};
use st_cli::{Output, Screen, Status, counted, wrapped};
use st_model::num::Exact;
use st_model::rank_times::totals;
use st_model::section::{ANY_SYM, NO_SYM, PathSketch, Section, Sym, Thread};
use st_model::sites::CallSites;
use st_model::sketch::{Shape, Sketch, edges};
use st_model::steps::Budget;

use self::draw::draw;
pub(crate) use self::draw::{Range, lines};
use crate::args::HistArgs;
use crate::calls::{SITE, at, function, named, site_cells, site_of, unknown};
use crate::exact;
use crate::input::{self, Lacking};
use crate::table::{Cell, Column, Format, Table, duration};
use crate::times::STEPS_OF_A_RANK;

/// A function and the number of the call site that it is called from.
pub(crate) type Call = (String, Option<u32>);

/// Computation before calls, and time in them.
pub(crate) type Durations = [Sketch; 2];

/// What the phases are called.
pub(crate) const PHASES: [&str; 2] = ["before", "in call"];

/// Paths that people are shown at most.
const PATHS: usize = 8;

/// What comes before a call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Before {
    /// Nothing: the start of a thread.
    Start,
    /// A call; the trace does not tell which.
    Any,
    After(Call),
}

/// What is known of the calls of one function from one site.
#[derive(Default)]
pub(crate) struct Found {
    /// By what comes before.
    paths: BTreeMap<Before, Durations>,
    /// Sums of each rank, ns.
    pub(crate) ranks: BTreeMap<u32, [u128; 2]>,
    /// Whether of some number and sum alone are known.
    pub(crate) means: [bool; 2],
}

/// `st-stat hist`.
pub(crate) fn hist(args: &HistArgs) -> Result<Status> {
    let (_, sections) = input::sections(&args.of.inputs, &args.of.input, &args.of.talk)?;
    let sites = args.symbols.call_sites((input::NAME, &args.of.talk), sections.iter().map(|s| &s.sites));
    let meant = sites.meant(&args.site);
    let wanted =
        |name: &str, site: Option<u32>| name == args.site || site.is_some_and(|n| meant.contains(&n));
    let (all, any) = gathered(&sections, &sites, wanted, &args.of.input.steps.budget())?;
    if all.is_empty() && any {
        bail!(Lacking(format!("the trace holds no times of {}", args.site)));
    }
    if all.is_empty() {
        bail!(unknown(&args.site, &sections));
    }
    exact::source(&sections).into_iter().for_each(|how| args.of.talk.note(input::NAME, how));
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    match args.of.format {
        Format::Text => write_text(&all, &sites, args.paths, screen, &mut out)?,
        format => table(&all, &sites, args.paths).write(format, screen, &mut out)?,
    }
    out.commit()?;
    Ok(Status::Ok)
}

/// What is known of the calls that are wanted, by function and call site, and whether there are such; those of which the trace
/// holds times.
pub(crate) fn gathered<'a>(
    sections: impl IntoIterator<Item = &'a Section>,
    sites: &CallSites,
    wanted: impl Fn(&str, Option<u32>) -> bool,
    budget: &Budget,
) -> Result<(BTreeMap<Call, Found>, bool)> {
    let (mut all, mut any) = (BTreeMap::new(), false);
    for section in sections {
        budget.take(section.ranks.len().saturating_mul(STEPS_OF_A_RANK))?;
        let calls: Vec<Option<Call>> = section
            .symbols
            .iter()
            .map(|s| {
                let name = function(s.call, &section.tables);
                let site = site_of(section, s, sites);
                wanted(&name, site).then(|| (named(&name, s.error), site))
            })
            .collect();
        any |= calls.iter().any(Option::is_some);
        for (i, thread) in section.threads.iter().enumerate() {
            budget.take_short(thread.ranks.len().saturating_mul(thread.sums.len().to_u64()))?;
            if exact::tells(thread) || exact::tells_ranks(thread) {
                budget.spend_times(section)?;
            }
            let (sketches, ranks) = exact::of_ranks(section, i)?;
            add(section, &sketches, &calls, sites, &mut all);
            match ranks {
                Some(ranks) => add_ranks(ranks, &calls, &mut all),
                None => add_ranks(kept_of_ranks(thread), &calls, &mut all),
            }
        }
    }
    Ok((all, any))
}

/// Adds what a thread knows of the calls that are asked for, by symbol.
fn add(
    section: &Section,
    sketches: &[PathSketch],
    calls: &[Option<Call>],
    sites: &CallSites,
    all: &mut BTreeMap<Call, Found>,
) {
    let call = |sym: Sym| calls.get(sym.to_usize())?.as_ref();
    let before = |sym: Sym| match (sym, section.symbols.get(sym.to_usize())) {
        (NO_SYM, _) => Before::Start,
        (ANY_SYM, _) | (_, None) => Before::Any,
        (_, Some(symbol)) => {
            let name = named(&function(symbol.call, &section.tables), symbol.error);
            Before::After((name, site_of(section, symbol, sites)))
        }
    };
    for s in sketches {
        let Some(call) = call(s.sym).filter(|_| s.comm.count > 0) else { continue };
        let found = all.entry(call.clone()).or_default();
        let [compute, comm] = found.paths.entry(before(s.pred)).or_default();
        compute.merge(&s.compute);
        comm.merge(&s.comm);
        found.means[0] |= s.compute.is_mean();
        found.means[1] |= s.comm.is_mean();
    }
}

/// What is kept of what each rank takes before an event and in it, in all, ns.
fn kept_of_ranks(thread: &Thread) -> impl Iterator<Item = (Sym, u32, [u128; 2])> {
    totals(thread).flat_map(|t| {
        let each = thread.ranks.iter().zip(t.compute).zip(t.comm);
        each.map(move |((rank, compute), comm)| (t.sym, rank, [compute, comm]))
    })
}

/// Adds what ranks take to the calls that are asked for.
fn add_ranks(
    ranks: impl IntoIterator<Item = (Sym, u32, [u128; 2])>,
    calls: &[Option<Call>],
    all: &mut BTreeMap<Call, Found>,
) {
    for (sym, rank, sums) in ranks {
        let call = calls.get(sym.to_usize()).and_then(Option::as_ref);
        let Some(found) = call.and_then(|call| all.get_mut(call)) else { continue };
        let into = found.ranks.entry(rank).or_default();
        into.iter_mut().zip(sums).for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
}

impl Found {
    /// Of all paths.
    pub(crate) fn durations(&self) -> Durations {
        let mut all = Durations::default();
        for path in self.paths.values() {
            all.iter_mut().zip(path).for_each(|(sum, s)| sum.merge(s));
        }
        all
    }
}

fn write_text(
    all: &BTreeMap<Call, Found>,
    sites: &CallSites,
    paths: bool,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (i, ((name, site), found)) in all.iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        let durations = found.durations();
        let head = format!("{}: {}", at(name, *site, sites), counted(durations[1].count, "call"));
        for line in wrapped(head.split(' '), screen.width, ["", "  "]) {
            writeln!(out, "{}", screen.bold(&line))?;
        }
        if paths {
            for (before, durations) in &found.paths {
                let after =
                    format!("after {}: {}", after(before, sites), counted(durations[1].count, "call"));
                writeln!(out)?;
                screen.sentence(&after, out)?;
                write_phases(durations, found.means, None, screen, out)?;
            }
            continue;
        }
        write_phases(&durations, found.means, Some(&found.ranks), screen, out)?;
        if found.paths.len() > 1 {
            write_paths(found, sites, screen, out)?;
        }
    }
    Ok(())
}

fn after(before: &Before, sites: &CallSites) -> String {
    match before {
        Before::Start => "the start of the thread".into(),
        Before::Any => "any call (st-merge --sketch-paths)".into(),
        Before::After((name, site)) => at(name, *site, sites),
    }
}

/// The calls before, most frequent first.
fn write_paths(found: &Found, sites: &CallSites, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    let mut all: Vec<_> = found.paths.iter().collect();
    all.sort_by_key(|(_, [_, comm])| std::cmp::Reverse(comm.count));
    let columns = vec![
        Column::right("calls", "calls", 0),
        Column::right("mean before", "before_ns", 0),
        Column::right("in call", "in_call_ns", 0),
        Column::tail("after (--paths: apart)", "after"),
    ];
    let rows = all.iter().take(PATHS).map(|(before, [compute, comm])| {
        let mean = |s: &Sketch| Cell::ns(s.mean().into());
        vec![Cell::count(comm.count), mean(compute), mean(comm), Cell::text(after(before, sites))]
    });
    writeln!(out)?;
    Table { columns, rows: rows.collect(), total: None }.write(Format::Text, screen, out)?;
    if all.len() > PATHS {
        writeln!(out, "… and {} more", all.len() - PATHS)?;
    }
    Ok(())
}

/// Both distributions, with the sums of ranks where these are of all the calls.
fn write_phases(
    durations: &Durations,
    means: [bool; 2],
    ranks: Option<&BTreeMap<u32, [u128; 2]>>,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (phase, sketch) in durations.iter().enumerate().filter(|(_, s)| s.max.0 > 0) {
        let title = if phase == 0 { "computation before" } else { "in call" };
        let sum = Cell::ns(sketch.sum).text;
        writeln!(out, "\n{title}: {sum} in all, mean {}", duration(sketch.mean()))?;
        let mut facts = if means[phase] {
            vec![
                "(number, sum and deviation are kept: it takes little of each rank's run; st-merge --sketch-least)"
                    .into(),
            ]
        } else {
            vec![quantiles(sketch), extremes(sketch)]
        };
        facts.extend(ranks.and_then(|ranks| sums(ranks, phase)));
        facts.extend(modes(sketch).filter(|_| !means[phase]));
        for line in facts.iter().flat_map(|fact| wrapped(fact.split(' '), screen.width, ["  ", "    "])) {
            writeln!(out, "{line}")?;
        }
        if !means[phase] {
            draw(&ranges(sketch), screen.width, out)?;
        }
    }
    Ok(())
}

pub(crate) fn quantiles(sketch: &Sketch) -> String {
    if sketch.shape() == Shape::Totals {
        return "(the trace keeps number, sum and extremes only)".into();
    }
    let of = [(10, "1 %"), (100, "10 %"), (500, "median"), (900, "90 %"), (990, "99 %")];
    of.map(|(q, name)| format!("{name} {}", duration(sketch.quantile(q)))).join(", ")
}

pub(crate) fn extremes(sketch: &Sketch) -> String {
    let [(short, first), (long, last)] = [sketch.min, sketch.max];
    format!("shortest {} (rank {first}), longest {} (rank {last})", duration(short), duration(long))
}

/// The ranks that take least and most, if there are several.
pub(crate) fn sums(ranks: &BTreeMap<u32, [u128; 2]>, phase: usize) -> Option<String> {
    let each = || ranks.iter().map(|(rank, sums)| (sums[phase], *rank));
    let ((least, first), (most, last)) = each().min().zip(each().max())?;
    let [least, most] = [least, most].map(|ns| Cell::ns(ns).text);
    (ranks.len() > 1)
        .then(|| format!("in all calls of a rank: least {least} (rank {first}), most {most} (rank {last})"))
}

/// The modes, if there are several.
fn modes(sketch: &Sketch) -> Option<String> {
    let modes = sketch.modes();
    let each = modes.iter().map(|m| {
        format!("{} around {}", Cell::percent(m.count.into(), sketch.count.into()).text, duration(m.median))
    });
    let all = each.collect::<Vec<_>>().join(", ");
    (modes.len() > 1).then(|| format!("{} modes: {all}", modes.len()))
}

/// The buckets, or whatever else is kept.
pub(crate) fn ranges(sketch: &Sketch) -> Vec<Range> {
    match sketch.shape() {
        Shape::Buckets | Shape::Quantiles => {
            let range = |(b, n)| {
                let (low, high) = edges(b);
                (low, high.min(sketch.max.0).max(low), n)
            };
            sketch.buckets().map(range).collect()
        }
        Shape::Bins(_) => sketch.bins().iter().map(|b| (b.low, b.high, b.count)).collect(),
        Shape::Totals => Vec::new(),
    }
}

/// A row for each bucket; where only totals are kept, from the shortest to the longest.
fn table(all: &BTreeMap<Call, Found>, sites: &CallSites, paths: bool) -> Table {
    let columns = vec![
        Column::left("function", "function"),
        SITE[0],
        SITE[1],
        Column::left("time", "phase"),
        Column::left("after", "after_function"),
        Column::right("site", "after_site", 0),
        Column::tail("place", "after_place"),
        Column::right("from", "from_ns", 0),
        Column::right("to", "to_ns", 0),
        Column::right("calls", "calls", 0),
        Column::right("share", "share_percent", 0),
        Column::right("up to here", "cumulative_percent", 0),
    ];
    let mut rows = Vec::new();
    for ((name, site), found) in all {
        let whole = [(None, found.durations())];
        let apart = found.paths.iter().map(|(before, d)| (Some(before), d.clone())).collect::<Vec<_>>();
        for (before, durations) in if paths { &apart[..] } else { &whole[..] } {
            let [after, before_number] = match before {
                Some(Before::After((name, site))) => {
                    [Cell::text(name.clone()), site.map_or_else(Cell::none, |n| Cell::count(n.into()))]
                }
                Some(Before::Any) => [Cell::text("any"), Cell::none()],
                Some(Before::Start) | None => [Cell::none(), Cell::none()],
            };
            let before_site = match before {
                Some(Before::After((_, site))) => *site,
                _ => None,
            };
            let before_place = site_cells(before_site, sites)[1].clone();
            for (phase, sketch) in PHASES.iter().zip(durations) {
                let [number, place] = site_cells(*site, sites);
                let head = [Cell::text(name.clone()), number, place, Cell::text(*phase)];
                let path = [after.clone(), before_number.clone(), before_place.clone()];
                rows.extend(
                    buckets(sketch)
                        .into_iter()
                        .map(|cells| head.iter().chain(&path).cloned().chain(cells).collect()),
                );
            }
        }
    }
    Table { columns, rows, total: None }
}

fn buckets(sketch: &Sketch) -> Vec<[Cell; 5]> {
    let mut all = ranges(sketch);
    if all.is_empty() && sketch.count > 0 {
        all.push((sketch.min.0, sketch.max.0, sketch.count));
    }
    let mut seen = 0u128;
    let row = |(from, to, n): Range| {
        seen += u128::from(n);
        let share = |part| Cell::percent(part, sketch.count.into());
        [Cell::ns(from.into()), Cell::ns(to.into()), Cell::count(n), share(n.into()), share(seen)]
    };
    all.into_iter().filter(|r| r.2 > 0).map(row).collect()
}
