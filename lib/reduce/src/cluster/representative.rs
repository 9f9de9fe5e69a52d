//! A cluster: ranks with equal call paths. Its structure is that of its first rank, its parameters are classes of ranks, its
//! times and proofs are those of all ranks, folded in position by position.

use st_model::num::narrow;
use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::calls::{CallId, CallTable, LANES, Slot};
use st_model::columns::Column;
use st_model::form::{Codes, Form, Own};
use st_model::ints::Sealed;
use st_model::lanes::LaneSum;
use st_model::ranklist::RankList;
use st_model::section::{Elastic, Ended, NO_SYM, Section, SlotStreams, Sym, Thread};
use st_model::tree::{FlatTree, Item};
use st_model::unite::{Partitions, Renaming, Times, United};

use crate::cluster::options::{Options, Signatures};
use crate::cluster::paper::stands;
use crate::cluster::rank_view::{Owns, View, index};
use crate::cluster::signature::{Signature, total};
use crate::cluster::slot::{Before, End, How, Mine, Rules, SlotCluster, SlotOfRanks, rewritten};
use crate::cluster::tolerance::{Tolerance, united};
use crate::codes::decode;
use crate::lossy::ParamKind;
use crate::user;
use crate::who::Who;

/// All lanes.
const ALL: u8 = (1 << LANES) - 1;

/// A function with an outcome, called from a place.
type Event = (CallId, u32, u128);

/// Parameters that become histograms, by thread, event and slot; and what is counted. Clusters agree in that, so that they
/// can be merged.
pub(crate) type Drawn = HashMap<(usize, Event, usize), Codes, FixedState>;

/// Ranks that one representative stands for.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    /// What the first rank's call path is.
    path: Option<Signature>,
    ranks: RankList,
    hosts: HashMap<String, RankList, FixedState>,
    tables: United,
    threads: Vec<ThreadCluster>,
    ended: Vec<Ended>,
}

#[derive(Debug, Default)]
struct ThreadCluster {
    ranks: RankList,
    tree: FlatTree,
    counts: Vec<Sealed>,
    /// By symbol of the cluster.
    symbols: Vec<SymbolCluster>,
    times: Times,
    lanes: LaneSum,
    /// Calls of the first rank.
    calls: u64,
    columns: Vec<(u32, Column)>,
}

#[derive(Debug, Default)]
struct SymbolCluster {
    executions: u64,
    owns: Owns,
    slots: Vec<SlotCluster>,
}

impl Cluster {
    /// The ranks so far.
    pub(crate) fn ranks(&self) -> &RankList {
        &self.ranks
    }

    /// Adds the section of a rank or of a cluster, whose call path is that of the first one's, unless rules are rigid.
    pub(crate) fn add(&mut self, section: Section, path: Signature, options: &Options) {
        let first = self.ranks.is_empty();
        let follows = *self.path.get_or_insert(path) == path;
        for (host, ranks) in &section.hosts {
            match self.hosts.get_mut(host) {
                Some(all) => all.extend(ranks),
                None => drop(self.hosts.insert(host.clone(), ranks.clone())),
            }
        }
        let renaming = self.tables.number(&section);
        self.ended.extend(section.ended.iter().map(|e| renamed(e, &renaming)));
        if self.threads.len() < section.threads.len() && first {
            self.threads.resize_with(section.threads.len(), ThreadCluster::default);
        }
        for (into, thread) in self.threads.iter_mut().zip(&section.threads) {
            if first {
                let rank = section.ranks.lowest().unwrap_or(0);
                into.begin(View { section: &section, rank }, thread, &renaming);
            }
            into.add(&section, thread, &renaming, (options, follows));
        }
        self.tables.take(section.tables);
        self.ranks.extend(&section.ranks);
        for (into, thread) in self.threads.iter_mut().zip(section.threads) {
            into.columns.extend(thread.columns);
        }
        if !options.keep_columns {
            self.drop_columns();
        }
    }

    /// Leaves of exact times those of the lowest rank that has any.
    pub(crate) fn drop_columns(&mut self) {
        keep_lowest(self.threads.iter_mut().map(|t| &mut t.columns));
    }

    /// Takes in the ranks of another cluster, which may have other counts: those of this one's first rank stand for them.
    pub(crate) fn absorb(&mut self, other: Self, options: &Options) {
        if let Some(path) = other.path {
            self.add(other.finish_part(), path, options);
        }
    }

    /// Makes up its mind, once all ranks are there.
    pub(crate) fn settle(&mut self) {
        for t in &mut self.threads {
            for s in &mut t.symbols {
                let before = Before { ranks: &t.ranks, owns: &s.owns };
                s.slots.iter_mut().for_each(|slot| slot.settle(before));
            }
        }
    }

    /// The parameters in which ranks differ that are to be united, and how.
    pub(crate) fn differing(&self, into: &mut Drawn) {
        for (index, t) in self.threads.iter().enumerate() {
            for (s, symbol) in t.symbols.iter().enumerate() {
                for (slot, cluster) in symbol.slots.iter().enumerate() {
                    let found = cluster.differs().zip(event(&self.tables, s));
                    let Some((codes, event)) = found else { continue };
                    let of = into.entry((index, event, slot)).or_insert(codes);
                    *of = codes.min(*of);
                }
            }
        }
    }

    /// The cluster as a section. With a tolerance, ranks whose counts are near each other have those of the lowest of them, if
    /// nothing else tells them apart, `asked` ([`groups`](st_model::groups::groups)) included.
    pub(crate) fn finish(self, tolerance: Option<Tolerance>, asked: bool, drawn: &Drawn) -> Section {
        let end = End { last: true, tolerant: tolerance.is_some(), histogram: None };
        let mut section = self.section(end, drawn);
        if let Some(tolerance) = tolerance {
            united(&mut section, tolerance, asked);
        }
        section
    }

    /// The cluster as a section that others will be added to.
    pub(crate) fn finish_part(self) -> Section {
        self.section(End::default(), &HashMap::default())
    }

    /// The section, the last one or one that others will be added to.
    fn section(mut self, end: End, drawn: &Drawn) -> Section {
        self.settle();
        let mut partitions = Partitions::new(self.ranks.clone());
        let tables = &self.tables;
        let finish = |(index, t): (usize, ThreadCluster)| {
            let histogram = |s, slot| drawn.get(&(index, event(tables, s)?, slot)).copied();
            t.finish(&mut partitions, |s, slot| End { histogram: histogram(s, slot), ..end }, end.last)
        };
        let threads = std::mem::take(&mut self.threads).into_iter().enumerate();
        let mut threads: Vec<Thread> = threads.map(finish).collect();
        let mut hosts: Vec<_> = self.hosts.into_iter().collect();
        hosts.sort_unstable_by(|(a, r), (b, s)| (r.lowest(), a).cmp(&(s.lowest(), b)));
        let mut ended = self.ended;
        ended.sort_unstable_by_key(|e| (e.rank, e.thread));
        let order: Vec<Sym> = (0..narrow(self.tables.symbols().len())).collect();
        let (sites, symbols, tables) = self.tables.finish(&order);
        threads.iter_mut().for_each(|t| t.params.resize_with(symbols.len(), Vec::new));
        Section {
            ranks: self.ranks,
            hosts,
            sites,
            tables,
            symbols,
            partitions: partitions.into_list(),
            threads,
            ended,
        }
    }
}

impl ThreadCluster {
    /// Takes the first rank's structure.
    fn begin(&mut self, view: View<'_>, thread: &Thread, renaming: &Renaming) {
        let to = |s: Sym| renaming.symbols.get(index(s)).copied().unwrap_or(s);
        let items = thread.tree.items().iter().map(|i| match i {
            Item::Leaf { sym } => Item::Leaf { sym: to(*sym) },
            Item::Body { .. } => *i,
        });
        self.tree = FlatTree::new(items.collect());
        self.counts = thread.counts.iter().map(|c| view.stream(c).clone()).collect();
        self.calls = thread.lanes.calls;
        for (s, n) in (0..).zip(view.executions(thread)) {
            let at = index(to(s));
            if self.symbols.len() <= at {
                self.symbols.resize_with(at + 1, SymbolCluster::default);
            }
            self.symbols[at].executions = n;
        }
    }

    fn add(&mut self, section: &Section, thread: &Thread, renaming: &Renaming, how: (&Options, bool)) {
        let (options, follows) = how;
        let mut voided = if follows { 0 } else { ALL };
        // Ranks that do other calls are not looked at any further: the first one's stand for them.
        if follows {
            let params = thread.params.iter().enumerate();
            for (s, streams) in params.filter(|(_, streams)| !streams.is_empty()) {
                let Some(&to) = renaming.symbols.get(s) else { continue };
                if let Some(into) = self.symbols.get_mut(index(to)) {
                    voided |=
                        into.add((section, &thread.ranks), s, streams, renaming, (options, &self.ranks));
                }
            }
        } else {
            thread.ranks.iter().for_each(|rank| self.stand_in(rank));
        }
        self.ranks.extend(&thread.ranks);
        self.times.add(thread, renaming);
        self.lanes.merge(&LaneSum { voided: thread.lanes.voided | voided, ..thread.lanes });
        if !follows {
            let calls = self.calls.wrapping_mul(thread.ranks.len());
            self.lanes.calls = self.lanes.calls.wrapping_sub(thread.lanes.calls).wrapping_add(calls);
        }
    }

    /// Adds a rank for which the first one stands in everything.
    fn stand_in(&mut self, rank: u32) {
        for s in &mut self.symbols {
            s.slots.iter_mut().for_each(|slot| slot.stand_in(rank));
        }
    }

    fn finish(
        mut self,
        partitions: &mut Partitions,
        end: impl Fn(usize, usize) -> End,
        last: bool,
    ) -> Thread {
        let count = |stream| Elastic { form: Form::Absolute, partition: 0, streams: [stream].into() };
        let ranks = self.ranks;
        let voided = &mut self.lanes.voided;
        let params = self.symbols.into_iter().enumerate().map(|(at, s)| {
            let before = Before { ranks: &ranks, owns: &s.owns };
            let mut finish = |(i, slot): (usize, SlotCluster)| {
                let lane = slot.lane;
                let streams = slot.finish(before, end(at, i), partitions);
                if matches!(streams.values.form, Form::Histogram(_)) {
                    *voided |= 1 << lane as u8;
                }
                streams
            };
            s.slots.into_iter().enumerate().map(&mut finish).collect()
        });
        let params = params.collect();
        let (sketches, sums) =
            if last { self.times.finish(|s| s, &ranks) } else { self.times.finish_part(|s| s, &ranks) };
        let mut columns = self.columns;
        columns.sort_by_key(|c| c.0);
        Thread {
            tree: self.tree,
            counts: self.counts.into_iter().map(count).collect(),
            params,
            lanes: self.lanes,
            sketches,
            sums,
            slow: Vec::new(),
            columns,
            ranks,
        }
    }
}

impl SymbolCluster {
    /// Adds the streams of a symbol of a rank or a cluster; the lanes in which they are not what the cluster stores.
    fn add(
        &mut self,
        (section, all): (&Section, &RankList),
        s: usize,
        streams: &[SlotStreams],
        renaming: &Renaming,
        how: (&Options, &RankList),
    ) -> u8 {
        let (options, before) = how;
        let Some(symbol) = section.symbols.get(s) else { return 0 };
        let slots = CallTable::builtin().slots(symbol.call);
        let mut who = Who::new(section);
        let mut own = |rank| View { section, rank }.own(&mut who, streams, slots);
        let owns: Vec<(u32, Option<Own>)> = all.iter().map(|rank| (rank, own(rank))).collect();
        for (rank, own) in &owns {
            own.iter().for_each(|own| self.owns.add(*rank, *own));
        }
        let mut voided = 0;
        for (i, (slot, streams)) in slots.iter().zip(streams).enumerate() {
            let part = SlotOfRanks { section, ranks: all, owns: &owns, streams, executions: self.executions };
            let mut known = before.clone();
            let mut tried = None;
            for (rank, own) in &owns {
                // All at once as soon as the form is the one: those that are there already do no harm.
                if let Some(into) = self.slots.get_mut(i).filter(|s| tried != Some(s.form())) {
                    tried = Some(into.form());
                    if into.takes(&part, renaming) {
                        break;
                    }
                }
                let view = View { section, rank: *rank };
                let lens = streams.lens.as_ref().map(|l| view.stream(l));
                let len = lens.map_or(self.executions, |l| total(l, self.executions));
                let values = values(view.stream(&streams.values), streams.values.form, *own, len);
                let values = part.renamed(slot.meaning, renaming, values, len);
                let lens = lens.map(|l| (l, self.executions));
                let mine = Mine { rank: *rank, own: *own, lens, values: &values, len };
                if let Some(into) = self.slots.get_mut(i) {
                    if !into.add(mine, Before { ranks: &known, owns: &self.owns }) {
                        voided |= 1 << into.lane as u8;
                    }
                } else {
                    let row = CallTable::builtin().get(symbol.call);
                    let kind = row.and_then(|row| ParamKind::of(row, slot));
                    let forced = kind.is_some_and(|kind| options.force_merge.contains(&kind));
                    let user = user::form(&options.users, section, s, &slot.name);
                    let how =
                        How { rules: rules(options.signatures, symbol.call, slot, forced), user, forced };
                    self.slots.push(SlotCluster::new(slot, how, mine));
                }
                known.insert(*rank);
            }
        }
        voided
    }
}

/// Leaves of the exact times of threads those of the lowest rank that has any.
pub fn keep_lowest<'a>(columns: impl Iterator<Item = &'a mut Vec<(u32, Column)>>) {
    let mut columns: Vec<_> = columns.collect();
    let lowest = columns.iter().flat_map(|c| c.iter()).map(|(rank, _)| *rank).min();
    columns.iter_mut().for_each(|c| c.retain(|(rank, _)| Some(*rank) == lowest));
}

/// The event that a symbol of a cluster stands for.
fn event(tables: &United, symbol: usize) -> Option<Event> {
    let s = tables.symbols().get(symbol)?;
    Some((s.call, s.error, tables.sites().get(s.site)?.id))
}

/// A rank's values of its codes.
fn values(codes: &Sealed, form: Form, own: Option<Own>, len: u64) -> Sealed {
    match own.filter(|_| form != Form::Absolute) {
        None => codes.clone(),
        // What was put into a form has led back when that was done.
        Some(own) if form.counts() => decode(codes, form, own, len).unwrap_or_else(|| codes.clone()),
        Some(own) => rewritten(codes, len, |c| form.value(c, own)),
    }
}

/// How the values of a slot of a function's calls are compared, which may be united by force.
fn rules(signatures: Signatures, call: CallId, slot: &Slot, forced: bool) -> Rules {
    match signatures {
        Signatures::Exact => Rules::Common,
        Signatures::Reference => Rules::Relative,
        Signatures::Paper if !forced => stands(call, slot).map_or(Rules::Modulo, Rules::Rigid),
        Signatures::Paper => Rules::Modulo,
    }
}

/// Where a thread stopped, over the cluster's symbols.
fn renamed(e: &Ended, renaming: &Renaming) -> Ended {
    let to = |s: Sym| if s == NO_SYM { s } else { renaming.symbols.get(index(s)).copied().unwrap_or(s) };
    Ended { last: to(e.last), inside: to(e.inside), ..*e }
}
