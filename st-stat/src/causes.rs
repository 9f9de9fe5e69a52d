//! What waits are due to, and what the run time is made of.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use st_cli::{Output, Screen, Status, counted};
use st_explain::{Activity, Cost, Delays, Doing, OnPath, Path, analyse_causes, whole_ns};
use st_model::explanation::ELSEWHERE;
use st_model::num::Exact as _;
use st_model::sites::CallSites;

use crate::args::{DelaysArgs, DelaysBy, PathArgs};
use crate::calls::{SITE, site_cells};
use crate::explain::{Explained, computed_before, rank_cell, rank_rows, tell_of_threads};
use crate::input;
use crate::table::{Cell, Column, Format, Table, duration, grouped};

/// What an activity is called that is none.
const PAUSED: &str = "recording paused";

/// What an activity at a place is called. The call that pauses recording is taken to last until that goes on.
pub(crate) fn activity(explained: &Explained, place: u32, what: Activity) -> &'static str {
    match what {
        Activity::Call if explained.pauses(place) => PAUSED,
        Activity::Computation => "computation",
        Activity::Call => "call",
    }
}

/// The same, where a function follows.
fn activity_cell(explained: &Explained, place: u32, what: Activity) -> Cell {
    let name = activity(explained, place, what);
    let text = match what {
        _ if name == PAUSED => "paused by",
        Activity::Computation => "before",
        Activity::Call => "in",
    };
    Cell { text: text.into(), ..Cell::text(name) }
}

/// `st-stat delays`.
pub(crate) fn delays(args: &DelaysArgs) -> Result<Status> {
    let explained = Explained::read(&args.of, analyse_causes)?;
    let delays = explained.explained()?.delays(&[]);
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    let tables = explained.sections.iter().filter(|_| args.by == DelaysBy::Site);
    let sites = args.symbols.call_sites((input::NAME, &args.of.talk), tables.map(|s| &s.sites));
    let table = match args.by {
        DelaysBy::Site => delays_by_site(&explained, &delays, &sites),
        DelaysBy::Rank => delays_by_rank(&delays),
    };
    let (text, waits) = (args.of.format == Format::Text, whole_ns(delays.waits));
    if table.rows.is_empty() && text {
        writeln!(out, "no wait states")?;
    } else {
        table.write(args.of.format, screen, &mut out)?;
    }
    let left = whole_ns(delays.unexplained());
    if left > waits / 1000 {
        let share = Cell::percent(left.into(), waits.into()).text;
        let left = duration(left);
        args.of.talk.warn(
            input::NAME,
            format!("{left} of waiting, {share} of it, is for ranks that begin later, or clocks disagree: left out"),
        );
    }
    out.commit()?;
    Ok(Status::Ok)
}

/// Columns of costs, and their cells.
const COST: [Column; 6] = [
    Column::right("cost", "cost_ns", 0),
    Column::right("share", "share_percent", 1),
    Column::right("short", "short_term_ns", 3),
    Column::right("long", "long_term_ns", 2),
    Column::right("direct", "direct_ns", 5),
    Column::right("indirect", "indirect_ns", 4),
];

fn cost_cells(cost: &Cost, waits: f64) -> [Cell; 6] {
    let ns = |ns: f64| Cell::ns(whole_ns(ns).into());
    [
        ns(cost.caused()),
        Cell::percent(whole_ns(cost.caused()).into(), whole_ns(waits).into()),
        ns(cost.short_term),
        ns(cost.long_term),
        ns(cost.direct),
        ns(cost.indirect),
    ]
}

/// Those that cost something or wait, most costly first.
fn sorted<K: Ord + Copy>(costs: impl Iterator<Item = (K, Cost)>) -> Vec<(K, Cost)> {
    let ns = |c: &Cost| [whole_ns(c.caused()), whole_ns(c.direct + c.indirect)];
    let mut all: Vec<(K, Cost)> = costs.filter(|(_, cost)| ns(cost) != [0, 0]).collect();
    all.sort_by_key(|(key, cost)| (ns(cost).map(|ns| u64::MAX - ns), *key));
    all
}

fn delays_by_site(explained: &Explained, delays: &Delays, sites: &CallSites) -> Table {
    let row = |(Doing { at, what }, cost): (Doing, Cost)| {
        let (function, site) = explained.place(at.place, sites);
        let first = [activity_cell(explained, at.place, what), Cell::text(function), rank_cell(at.rank)];
        first.into_iter().chain(cost_cells(&cost, delays.waits)).chain(site_cells(site, sites)).collect()
    };
    let columns = [
        Column::left("what", "activity"),
        Column::left("function", "function"),
        Column::right("rank", "rank", 0),
    ];
    let costs = delays.costs.iter().map(|(doing, cost)| (*doing, *cost));
    let rows = sorted(costs).into_iter().map(row).collect();
    Table { columns: columns.into_iter().chain(COST).chain(SITE).collect(), rows, total: None }
}

fn delays_by_rank(delays: &Delays) -> Table {
    let mut ranks: BTreeMap<u32, Cost> = BTreeMap::new();
    for (doing, cost) in &delays.costs {
        ranks.entry(doing.at.rank).or_default().add(cost);
    }
    let row = |(rank, cost): (u32, Cost)| {
        std::iter::once(rank_cell(rank)).chain(cost_cells(&cost, delays.waits)).collect()
    };
    let columns = std::iter::once(Column::right("rank", "rank", 0)).chain(COST).collect();
    Table { columns, rows: sorted(ranks.into_iter()).into_iter().map(row).collect(), total: None }
}

/// `st-stat path`.
pub(crate) fn path(args: &PathArgs) -> Result<Status> {
    let explained = Explained::measured(&args.of, analyse_causes)?;
    let analysis = explained.known()?;
    let path = analysis.path();
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    let tables = explained.sections.iter().map(|s| &s.sites);
    let sites = args.symbols.call_sites((input::NAME, &args.of.talk), tables);
    if args.of.format == Format::Text {
        screen.sentence(&headline(&path, analysis.ranks.len()), &mut out)?;
        writeln!(out)?;
    }
    let row = |on: &OnPath| path_row(on, &path, analysis.ranks.len(), &explained, &sites);
    let columns = [
        Column::left("what", "activity"),
        Column::left("function", "function"),
        Column::right("on path", "path_ns", 0),
        Column::right("share", "share_percent", 0),
        Column::right("ranks", "ranks", 3),
        Column::right("imbalance", "imbalance_ns", 0).spare(),
        Column::right("impact", "impact_ns", 5),
        Column::right("headroom", "headroom_ns", 4),
    ];
    let columns = columns.into_iter().chain(SITE).collect();
    let table = Table { columns, rows: path.activities.iter().map(row).collect(), total: None };
    table.write(args.of.format, screen, &mut out)?;
    out.commit()?;
    tell_of_threads(&explained.sections, &args.of.talk);
    Ok(Status::Ok)
}

/// How long it is, on which ranks, and how often it moves.
pub(crate) fn headline(path: &Path, ranks: usize) -> String {
    let on = path.ranks.len();
    let moves = match path.moves {
        1 => "moves once".to_owned(),
        n => format!("moves {} times", grouped(n)),
    };
    let most = path.ranks.iter().max_by_key(|(rank, ns)| (*ns, u32::MAX - rank));
    let most = most.filter(|_| on > 1).map_or_else(String::new, |(rank, ns)| {
        let share = Cell::percent((*ns).into(), path.time().into()).text;
        format!("; {share} of it on rank {rank}")
    });
    let (on, ranks) = (grouped(on.to_u64()), counted(ranks.to_u64(), "rank"));
    format!("critical path: {} on {on} of {ranks}, {moves}{most}", duration(path.time()))
}

fn path_row(on: &OnPath, path: &Path, ranks: usize, explained: &Explained, sites: &CallSites) -> Vec<Cell> {
    let (function, site) = explained.place(on.place, sites);
    let cells = [
        activity_cell(explained, on.place, on.what),
        Cell::text(function),
        Cell::ns(on.time.into()),
        Cell::percent(on.time.into(), path.time().into()),
        Cell::count(on.ranks.to_u64()),
        Cell::ns(on.imbalance(ranks).into()),
        Cell::ns(on.impact.into()),
        Cell::ns(on.headroom.into()),
    ];
    cells.into_iter().chain(site_cells(site, sites)).collect()
}

/// Of many places those are counted to which as much as one part in so many of the most is due.
const LITTLE: u64 = 100;

/// What most of a finding is due to.
pub(crate) struct Cause {
    /// Of several places the one where that is most.
    pub(crate) place: u32,
    /// How many there are.
    pub(crate) places: usize,
    pub(crate) what: Activity,
    /// Ranks that do it, ascending.
    pub(crate) ranks: Vec<u32>,
    /// Its part of the cost, and the cost, ns.
    pub(crate) part: [u64; 2],
}

impl Cause {
    /// The activity that most is due to, on whatever ranks.
    pub(crate) fn of(all: &[(Doing, f64)]) -> Option<Self> {
        let mut activities: BTreeMap<(u32, Activity), Vec<(u32, u64)>> = BTreeMap::new();
        for (Doing { at, what }, ns) in all {
            activities.entry((at.place, *what)).or_default().push((at.rank, whole_ns(*ns)));
        }
        let sum = |ranks: &[(u32, u64)]| ranks.iter().map(|(_, ns)| *ns).fold(0, u64::saturating_add);
        let whole = activities.values().map(|ranks| sum(ranks)).fold(0, u64::saturating_add);
        // What is not told apart is many activities.
        let apart = activities.into_iter().filter(|((place, _), _)| *place != ELSEWHERE);
        let ((place, what), ranks) = apart.max_by_key(|(_, ranks)| sum(ranks))?;
        let named = alone(&ranks).map_or_else(|| most(&ranks), |rank| vec![rank]);
        let of_named = ranks.iter().filter(|(rank, _)| named.binary_search(rank).is_ok());
        let part = of_named.map(|(_, ns)| *ns).fold(0, u64::saturating_add);
        Some(Self { place, places: 1, what, ranks: named, part: [part, whole] })
    }

    /// The same of findings at many places, which may be due to as many: what ranks do at one place or, if no place has half of the
    /// cost, what they do at all of them; nothing if that has not half of it either.
    pub(crate) fn of_many(all: &[(Doing, f64)]) -> Option<Self> {
        let accounts = |cause: &Self| cause.part[0] > cause.part[1] / 2;
        let one = Self::of(all)?;
        if accounts(&one) {
            return Some(one);
        }
        let mut activities: BTreeMap<Activity, Vec<(u32, u32, u64)>> = BTreeMap::new();
        for (Doing { at, what }, ns) in all.iter().filter(|(doing, _)| doing.at.place != ELSEWHERE) {
            activities.entry(*what).or_default().push((at.rank, at.place, whole_ns(*ns)));
        }
        let cause = |(what, parts): (Activity, Vec<(u32, u32, u64)>)| {
            let mut of_ranks: BTreeMap<u32, u64> = BTreeMap::new();
            parts.iter().for_each(|(rank, _, ns)| *of_ranks.entry(*rank).or_default() += ns);
            let ranks = most(&of_ranks.into_iter().collect::<Vec<_>>());
            let mut of_places: BTreeMap<u32, u64> = BTreeMap::new();
            let named = parts.iter().filter(|(rank, ..)| ranks.binary_search(rank).is_ok());
            named.for_each(|(_, place, ns)| *of_places.entry(*place).or_default() += ns);
            let part = of_places.values().sum();
            let (place, greatest) = of_places.iter().max_by_key(|(place, ns)| (**ns, u32::MAX - **place))?;
            // What next to nothing is due to is not told of, nor does a trace keep it whose exact times are folded.
            let counts = |ns: &&u64| **ns > 0 && **ns >= greatest / LITTLE;
            let (place, places) = (*place, of_places.values().filter(counts).count());
            Some(Self { place, places, what, ranks, part: [part, one.part[1]] })
        };
        activities.into_iter().filter_map(cause).max_by_key(|cause| cause.part[0]).filter(accounts)
    }

    /// Whether its ranks compute so much longer there than the others that a quarter of what is waited may come of that. If not, they
    /// come late for another reason: one after another, or each in its turn. Where most ranks compute elsewhere all of it counts.
    fn computes_longer(&self, explained: &Explained) -> bool {
        // How long a rank computes is told of its first thread.
        if explained.sections.iter().any(|section| section.threads.len() > 1) {
            return true;
        }
        let rows = rank_rows(explained);
        let of_place = explained.told().and_then(|told| told.places().get(self.place));
        let mut computed = of_place.map(|at| computed_before(&explained.sections, at)).unwrap_or_default();
        computed.retain(|_, ns| *ns > 0);
        if self.places > 1 || computed.len() * 2 <= rows.len() {
            computed = rows.iter().map(|(r, _)| (r.rank, r.computation())).collect();
        }
        let all: u128 = computed.values().sum();
        let others = u128::from(rows.len().to_u64()).saturating_sub(1).max(1);
        let named = self.ranks.iter().filter_map(|rank| computed.get(rank));
        let more = named.map(|own| own.saturating_sub((all - own) / others)).sum::<u128>();
        // Each of the others waits for it.
        more.saturating_mul(others * 4) >= self.part[0].into()
    }

    /// In words, with its ranks and its place in theirs.
    pub(crate) fn words(&self, explained: &Explained, ranks: &str, place: &str) -> String {
        let [part, whole] = self.part;
        let share = Cell::percent(part.into(), whole.into()).text;
        let (verb, how) = match self.what {
            Activity::Computation => ("compute", "before"),
            Activity::Call => ("take", "in"),
        };
        let s = if self.ranks.len() == 1 { "s" } else { "" };
        let place = match self.places {
            1 => place.to_owned(),
            n => format!("the calls of {} call sites, most {how} {place}", grouped(n.to_u64())),
        };
        if self.what == Activity::Call && explained.pauses(self.place) {
            return format!(
                "{share} since recording of {ranks} was paused by {place}: what was done then is not in the trace"
            );
        }
        if self.what == Activity::Computation && !self.computes_longer(explained) {
            return format!(
                "{share} since {ranks} compute{s} until late before {place}, though in all no longer than others"
            );
        }
        format!("{share} since {ranks} {verb}{s} longer {how} {place}")
    }
}

/// The rank that has more than half of a sum, and three times as much as any other: a list would hide it.
fn alone(parts: &[(u32, u64)]) -> Option<u32> {
    let (rank, ns) = *parts.iter().max_by_key(|(rank, ns)| (*ns, u32::MAX - rank))?;
    let others = || parts.iter().filter(|(other, _)| *other != rank).map(|(_, ns)| u128::from(*ns));
    let (ns, next) = (u128::from(ns), others().max().unwrap_or_default());
    (ns > others().sum() && ns >= 3 * next).then_some(rank)
}

/// The ranks that have most of a sum, ascending: those with three quarters of it, and those with half as much as the least
/// of these. Where no rank has a part, all.
pub(crate) fn most(parts: &[(u32, u64)]) -> Vec<u32> {
    let mut sorted = parts.to_vec();
    sorted.sort_by_key(|(rank, ns)| (u64::MAX - ns, *rank));
    let all = sorted.iter().map(|(_, ns)| *ns).fold(0, u64::saturating_add);
    let mut due = 0;
    let least = sorted.iter().map(|(_, ns)| *ns).find(|ns| {
        due = ns.saturating_add(due);
        due >= all - all / 4
    });
    let least = least.unwrap_or_default();
    let mut ranks: Vec<u32> =
        sorted.iter().filter(|(_, ns)| *ns >= least.div_ceil(2)).map(|(rank, _)| *rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

#[cfg(test)]
mod tests {
    use st_explain::{Activity, At, Doing};

    use super::{Cause, alone, most};

    #[test]
    fn what_most_of_many_places_is_due_to_is_a_place_or_ranks_at_many_of_them() {
        let before = |rank, place| Doing { at: At { rank, place }, what: Activity::Computation };
        let one = [(before(1, 5), 60.0), (before(2, 6), 40.0)];
        let found = Cause::of_many(&one).map(|c| (c.place, c.places, c.ranks, c.part));
        assert_eq!(found, Some((5, 1, vec![1], [60, 100])));
        let many: Vec<_> = (0..10).map(|n| (before(2, n), if n == 3 { 9.0 } else { 8.0 })).collect();
        let rest = [(before(0, 1), 10.0), (before(3, 1), 9.0)];
        let found =
            Cause::of_many(&[&many[..], &rest].concat()).map(|c| (c.place, c.places, c.ranks, c.part));
        assert_eq!(found, Some((3, 10, vec![2], [81, 100])));
        // A place of next to nothing is none.
        let parts = [(2, 0, 40_000.0), (2, 1, 40_000.0), (2, 2, 39.0), (0, 3, 50_000.0)];
        let found = Cause::of_many(&parts.map(|(rank, place, ns)| (before(rank, place), ns)));
        assert_eq!(found.map(|c| (c.place, c.places, c.ranks)), Some((3, 3, vec![0, 2])));
        let call = |rank| Doing { what: Activity::Call, ..before(rank, 2) };
        assert!(Cause::of_many(&[(before(0, 1), 40.0), (call(0), 30.0), (call(1), 30.0)]).is_some());
        assert!(Cause::of_many(&[(before(0, 1), 40.0), (before(0, u32::MAX), 60.0)]).is_none());
    }

    #[test]
    fn a_rank_that_does_most_of_it_by_far_is_named_without_the_others() {
        // A pipeline of which the third of four stages takes longest.
        let stages = [(0, 168), (1, 150), (2, 1_190), (3, 300)];
        assert_eq!((alone(&stages), most(&stages)), (Some(2), vec![0, 1, 2, 3]));
        assert_eq!(alone(&[(0, 50), (1, 20), (2, 20), (3, 20)]), None);
        assert_eq!(alone(&[(0, 60), (1, 30)]), None);
        let before =
            |(rank, ns): (u32, f64)| (Doing { at: At { rank, place: 5 }, what: Activity::Computation }, ns);
        let found =
            Cause::of(&[(0, 10.0), (1, 70.0), (2, 12.0), (3, 8.0)].map(before)).map(|c| (c.ranks, c.part));
        assert_eq!(found, Some((vec![1], [70, 100])));
    }

    #[test]
    fn ranks_that_have_about_as_much_as_others_are_named_with_them() {
        assert!(most(&[]).is_empty());
        assert_eq!(most(&[(3, 0), (1, 0)]), [1, 3]);
        assert_eq!(most(&[(0, 10), (1, 10), (2, 10), (3, 10), (4, 10)]), [0, 1, 2, 3, 4]);
        assert_eq!(most(&[(0, 1), (4, 90), (5, 89), (6, 2), (7, 91)]), [4, 5, 7]);
        assert_eq!(most(&[(9, 80), (1, 40), (2, 39), (3, 1)]), [1, 2, 9]);
        assert_eq!(most(&[(0, u64::MAX / 2), (1, 0)]), [0]);
    }
}
