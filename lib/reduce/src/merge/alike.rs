//! Ranks that are merged at once instead of level by level.
//!
//! Where all ranks of a block have the same calls in the same loops, and the same kinds of objects, it makes no difference
//! in which order they are merged: nothing is aligned or renumbered, and what they differ in are sets that are put in order
//! at the end. Ranks of a block that is not so are merged in the tree.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use st_model::calls::{CallTable, Lane};
use st_model::columns::Column;
use st_model::form::Form;
use st_model::ints::Sealed;
use st_model::lanes::LaneSum;
use st_model::ranklist::RankList;
use st_model::section::{
    Elastic, Ended, Entry, Section, SlotStreams, Sym, Symbol, Tables, Thread, number_anew,
};
use st_model::sites::SiteTable;
use st_model::sketch::Shape;
use st_model::steps::Budget;
use st_model::tree::FlatTree;
use st_model::unite::{Classes, Partitions, Renaming, Times, United};

use super::error::Error;
use super::params::paid;
use super::renumber::{first_appearance, renumbered};
use super::slots::REVIEW_PART;
use crate::tree::RADIX;

/// Blocks of more levels are merged in the tree.
pub const LEVELS: u32 = 3;

// Parts that may look for symbolic forms learn of ranks in the tree's order.
const _: () = assert!(RADIX.pow(LEVELS) < REVIEW_PART as u64);

/// Ranks of a block, as long as they are alike. *Memory:* as a merger's.
#[derive(Debug)]
pub struct Alike {
    /// Whether exact times are kept, and what they are rounded to multiples of, ns; 0 is not at all.
    columns: (bool, u32),
    budget: Budget,
    first: Option<First>,
    ranks: RankList,
    hosts: HashMap<String, RankList, FixedState>,
    united: United,
    threads: Vec<ThreadAlike>,
    ended: Vec<Ended>,
}

/// What all ranks have in common.
#[derive(Debug)]
struct First {
    sites: SiteTable,
    symbols: Vec<Symbol>,
    families: Vec<u128>,
    renaming: Renaming,
}

#[derive(Debug)]
struct ThreadAlike {
    tree: FlatTree,
    counts: Vec<Stream>,
    /// Lengths and values, by symbol and slot.
    params: Vec<Vec<(Option<Stream>, Stream)>>,
    times: Times,
    lanes: LaneSum,
    columns: Vec<(u32, Column)>,
}

/// A stream of all ranks, in classes once they differ.
#[derive(Debug)]
struct Stream {
    first: Sealed,
    classes: Option<Classes>,
}

impl Stream {
    fn new(first: &Sealed) -> Self {
        Self { first: first.clone(), classes: None }
    }

    /// Adds the stream of a rank to those of the ranks before.
    fn add(&mut self, stream: &Sealed, rank: u32, before: &RankList) {
        if self.classes.is_none() && *stream == self.first {
            return;
        }
        let classes = self.classes.get_or_insert_with(|| {
            let mut classes = Classes::default();
            classes.add_all(self.first.clone(), before);
            classes
        });
        classes.add(stream.clone(), rank);
    }

    fn finish(self, all: &RankList) -> Classes {
        self.classes.unwrap_or_else(|| {
            let mut classes = Classes::default();
            classes.add_all(self.first, all);
            classes
        })
    }
}

impl Alike {
    pub(super) fn new(keep_columns: bool, rounding: u32, budget: Budget) -> Self {
        Self {
            columns: (keep_columns, rounding),
            budget,
            first: None,
            ranks: RankList::default(),
            hosts: HashMap::default(),
            united: United::default(),
            threads: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Adds a section; whether it was like those before. If not, nothing here is of use any more.
    ///
    /// # Errors
    ///
    /// If its rank has been added already.
    pub fn add(&mut self, section: Section) -> Result<bool, Error> {
        let Some(rank) = section.ranks.lowest().filter(|_| is_plain(&section)) else { return Ok(false) };
        if self.ranks.contains(rank) {
            return Err(Error::Duplicate(rank));
        }
        match &self.first {
            None => {
                let renaming = self.united.number(&section);
                let keeps_symbols = renaming.symbols.iter().zip(0..).all(|(to, s)| *to == s);
                if !keeps_symbols || !keep_their_numbers(&section.tables) {
                    return Ok(false);
                }
                self.threads = section.threads.iter().map(ThreadAlike::new).collect();
                self.first = Some(First {
                    sites: section.sites.clone(),
                    symbols: section.symbols.clone(),
                    families: families(&section.tables).collect(),
                    renaming,
                });
            }
            Some(first) => {
                if !first.is_like(&section) || !alike(&self.threads, &section.threads) {
                    return Ok(false);
                }
            }
        }
        let Some(First { renaming, .. }) = &self.first else { return Ok(false) };
        for (into, thread) in self.threads.iter_mut().zip(&section.threads) {
            into.add(thread, rank, &self.ranks);
            into.times.add(thread, renaming);
            into.lanes.merge(&thread.lanes);
        }
        self.united.take(section.tables);
        for (host, ranks) in section.hosts {
            match self.hosts.get_mut(&host) {
                Some(all) => all.extend(&ranks),
                None => drop(self.hosts.insert(host, ranks)),
            }
        }
        self.budget.allow(paid(&section.threads));
        self.ended.extend(section.ended);
        self.ranks.insert(rank);
        if self.columns.0 {
            for (into, thread) in self.threads.iter_mut().zip(section.threads) {
                let columns = thread.columns.into_iter();
                into.columns.extend(columns.map(|(rank, column)| (rank, column.rounded(self.columns.1))));
            }
        }
        Ok(true)
    }

    /// What the tree would have for the block.
    #[must_use]
    pub fn finish(self) -> Vec<Section> {
        let Self { ranks, united, mut ended, .. } = self;
        let trees = self.threads.iter().map(|t| &t.tree);
        let (order, numbers) = first_appearance(trees, united.symbols().len());
        let number = |sym: Sym| number_anew(sym, |s| numbers.get(&s).copied().unwrap_or(s));
        let mut partitions = Partitions::new(ranks.clone()).exact();
        let mut elastic = |stream: Stream| partitions.elastic(stream.finish(&ranks), Form::Absolute);
        // Partitions are numbered as a merger does it: counts of all threads come first.
        let mut streams = self.threads;
        let of_thread =
            |t: &mut ThreadAlike| std::mem::take(&mut t.counts).into_iter().map(&mut elastic).collect();
        let counts: Vec<Vec<Elastic>> = streams.iter_mut().map(of_thread).collect();
        let mut threads = Vec::new();
        for (t, counts) in streams.into_iter().zip(counts) {
            let mut by_symbol: Vec<Vec<_>> = t.params;
            let params = order.iter().map(|sym| {
                let slots = by_symbol.get_mut(*sym as usize).map(std::mem::take).unwrap_or_default();
                let slot = |(lens, values): (Option<Stream>, Stream)| {
                    let lens = lens.map(&mut elastic);
                    SlotStreams { lens, values: elastic(values) }
                };
                slots.into_iter().map(slot).collect()
            });
            let params = params.collect();
            let (sketches, sums) = t.times.finish_part(number, &ranks);
            let mut columns = t.columns;
            columns.sort_by_key(|c| c.0);
            let (tree, lanes) = (renumbered(&t.tree, number), t.lanes);
            let ranks = ranks.clone();
            let slow = Vec::new();
            threads.push(Thread { ranks, tree, counts, params, lanes, sketches, sums, slow, columns });
        }
        let (sites, symbols, tables) = united.finish(&order);
        let mut hosts: Vec<_> = self.hosts.into_iter().collect();
        hosts.sort_unstable_by(|(a, r), (b, s)| (r.lowest(), a).cmp(&(s.lowest(), b)));
        for e in &mut ended {
            (e.last, e.inside) = (number(e.last), number(e.inside));
        }
        ended.sort_unstable_by_key(|e| (e.rank, e.thread));
        vec![Section {
            ranks,
            hosts,
            sites,
            tables,
            symbols,
            partitions: partitions.into_list(),
            threads,
            ended,
        }]
    }
}

impl ThreadAlike {
    fn new(t: &Thread) -> Self {
        let slot = |s: &SlotStreams| {
            (s.lens.as_ref().map(|l| Stream::new(&l.streams[0])), Stream::new(&s.values.streams[0]))
        };
        Self {
            tree: t.tree.clone(),
            counts: t.counts.iter().map(|c| Stream::new(&c.streams[0])).collect(),
            params: t.params.iter().map(|slots| slots.iter().map(slot).collect()).collect(),
            times: Times::default(),
            lanes: LaneSum::default(),
            columns: Vec::new(),
        }
    }

    /// Whether a rank's thread has the same calls in the same loops.
    fn is_like(&self, t: &Thread) -> bool {
        self.tree == t.tree
            && self.counts.len() == t.counts.len()
            && self.lanes.is_voided(Lane::Tag) == t.lanes.is_voided(Lane::Tag)
            && self.params.len() == t.params.len()
            && self.params.iter().zip(&t.params).all(|(a, b)| a.len() == b.len())
    }

    fn add(&mut self, t: &Thread, rank: u32, before: &RankList) {
        for (into, of) in self.counts.iter_mut().zip(&t.counts) {
            of.streams.iter().for_each(|s| into.add(s, rank, before));
        }
        for (into, of) in self.params.iter_mut().flatten().zip(t.params.iter().flatten()) {
            if let (Some(into), Some(of)) = (&mut into.0, &of.lens) {
                of.streams.iter().for_each(|s| into.add(s, rank, before));
            }
            of.values.streams.iter().for_each(|s| into.1.add(s, rank, before));
        }
    }
}

/// Whether a rank's threads are like those before.
fn alike(known: &[ThreadAlike], threads: &[Thread]) -> bool {
    known.len() == threads.len() && known.iter().zip(threads).all(|(a, b)| a.is_like(b))
}

impl First {
    fn is_like(&self, s: &Section) -> bool {
        (self.sites.shares(&s.sites) || self.sites == s.sites)
            && self.symbols == s.symbols
            && families(&s.tables).eq(self.families.iter().copied())
    }
}

/// Whether objects keep their indices when tables are united: no two of a table are of one family.
fn keep_their_numbers(tables: &Tables) -> bool {
    fn unique<T>(table: &[Entry<T>]) -> bool {
        table.iter().map(|e| e.family).collect::<HashSet<_>>().len() == table.len()
    }
    unique(&tables.comms)
        && unique(&tables.groups)
        && unique(&tables.types)
        && unique(&tables.ops)
        && unique(&tables.wins)
        && unique(&tables.files)
        && unique(&tables.texts)
}

/// Families of all objects, table by table.
fn families(tables: &Tables) -> impl Iterator<Item = u128> + '_ {
    fn of<T>(table: &[Entry<T>]) -> impl Iterator<Item = u128> + '_ {
        // The number of entries keeps tables apart.
        std::iter::once(table.len() as u128).chain(table.iter().map(|e| e.family))
    }
    of(&tables.comms)
        .chain(of(&tables.groups))
        .chain(of(&tables.types))
        .chain(of(&tables.ops))
        .chain(of(&tables.wins))
        .chain(of(&tables.files))
        .chain(of(&tables.texts))
}

/// Whether it is a recorded rank, with all streams of what it calls and nothing that is numbered or put in order while
/// merging.
fn is_plain(s: &Section) -> bool {
    let params = || s.threads.iter().flat_map(|t| t.params.iter().flatten());
    let of_params = params().flat_map(|p| p.lens.iter().chain([&p.values]));
    let mut elastic = s.threads.iter().flat_map(|t| &t.counts).chain(of_params);
    let mut sketches = s.threads.iter().flat_map(|t| &t.sketches).flat_map(|p| [&p.compute, &p.comm]);
    s.ranks.len() == 1
        && matches!(&s.partitions[..], [p] if matches!(&p.classes[..], [ranks] if *ranks == s.ranks))
        && s.tables.names.is_empty()
        && s.threads.iter().all(|t| t.ranks == s.ranks && has_all_slots(&s.symbols, &t.params))
        && elastic.all(|e| e.form == Form::Absolute && e.partition == 0 && e.streams.len() == 1)
        && sketches.all(|sketch| !matches!(sketch.shape(), Shape::Bins(_)))
}

/// Whether symbols have no streams or those of all their slots.
fn has_all_slots(symbols: &[Symbol], params: &[Vec<SlotStreams>]) -> bool {
    let table = CallTable::builtin();
    let all = |(symbol, streams): (&Symbol, &Vec<SlotStreams>)| {
        let slots = table.slots(symbol.call);
        streams.is_empty()
            || slots.len() == streams.len()
                && slots.iter().zip(streams).all(|(slot, s)| slot.list == s.lens.is_some())
    };
    params.len() <= symbols.len() && symbols.iter().zip(params).all(all)
}
