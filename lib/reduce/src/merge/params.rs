//! Merging parameter streams: per (symbol, slot) classes of ranks, in symbolic forms where they unite ranks.

use st_model::num::{Exact, narrow, saturate};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::merge::Tell;
use foldhash::fast::FixedState;
use st_model::calls::{CallTable, Meaning, Object, Slot};
use st_model::form::Own;
use st_model::ints::Sealed;
use st_model::ranklist::RankList;
use st_model::section::{Elastic, Section, SlotStreams, Sym, Thread};
use st_model::steps::Budget;
use st_model::tree::Item;

use crate::lossy::{Lossy, ParamKind};
use crate::merge::callers::Callers;
use crate::merge::error::Error;
use crate::merge::predicted;
use crate::merge::slots::SlotClasses;
use crate::merge::tags::Emptied;
use crate::user::{self, Param};
use crate::who::Who;
use st_model::unite::Partitions;
use st_model::unite::Renaming;

/// Values that are added up at most to learn how many another stream has, unless it must be known.
const COUNTED: u64 = 1 << 22;

/// How sections are added.
#[derive(Clone, Copy)]
pub(crate) struct Adding<'a> {
    pub(crate) users: &'a [Param],
    pub(crate) lossy: &'a Lossy,
    /// Classes at which forms are reviewed first.
    pub(crate) review: usize,
    pub(crate) budget: &'a Budget,
}

/// Short steps ([`Budget::take_short`]) for each rank of a section of many: to learn who it is in a symbol's calls, and how
/// often it makes them where ranks differ in that.
const WHO: (u64, u64) = (1, 4);
/// Steps for such a rank that is another one in the symbol's communicators: measured in memory, 140 bytes.
const ELSEWHERE: u64 = 5;

/// Steps that a slot of a rank that comes alone pays for: it is put into another form at each level of a tree at most.
const PAID: u64 = 64;

/// Steps that streams of ranks that come alone have paid for by their bytes.
pub(crate) fn paid(threads: &[Thread]) -> u64 {
    let slots = threads.iter().flat_map(|t| &t.params).map(|slots| slots.len() + 1).sum::<usize>();
    slots.to_u64().saturating_mul(PAID)
}

/// The parameters of one thread index under construction, by united symbol.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    symbols: Vec<SymbolParams>,
}

#[derive(Clone, Debug, Default)]
struct SymbolParams {
    slots: Vec<SlotClasses>,
    callers: Callers,
}

impl Params {
    /// Adds a section's thread.
    pub(crate) fn add(
        &mut self,
        section: &Section,
        index: usize,
        thread: &Thread,
        renaming: &Renaming,
        how: &Adding<'_>,
    ) -> Result<(), Error> {
        let Adding { users, lossy, review, budget } = *how;
        let table = CallTable::builtin();
        let uniform = thread.counts.iter().all(|c| c.is_of_all(&section.partitions, &thread.ranks));
        let uniform = thread.ranks.lowest().filter(|_| uniform);
        let most = if lossy.is_any() { u64::MAX } else { COUNTED };
        let mut plain = predicted::values(section, index, budget)?;
        let mut runs = Executions { section, thread, uniform, most, alike: None, of: HashMap::default() };
        let mut who = Who::new(section);
        for (s, streams) in thread.params.iter().enumerate() {
            let (Some(symbol), Some(&to)) = (section.symbols.get(s), renaming.symbols.get(s)) else {
                continue;
            };
            let slots = table.slots(symbol.call);
            if streams.is_empty() {
                continue;
            }
            let to = to as usize;
            if self.symbols.len() <= to {
                self.symbols.resize_with(to + 1, SymbolParams::default);
            }
            let into = &mut self.symbols[to];
            if into.slots.is_empty() {
                let row = table.get(symbol.call);
                let rule = |slot: &Slot| lossy.rule(row.and_then(|row| ParamKind::of(row, slot)));
                let new = |slot: &Slot| {
                    SlotClasses::new(slot, user::form(users, section, s, &slot.name), rule(slot), review)
                };
                into.slots = slots.iter().map(new).collect();
            }
            let many = if section.ranks.len() == 1 { 0 } else { thread.ranks.len() };
            budget.take_short(many.saturating_mul(if uniform.is_some() { WHO.0 } else { WHO.1 }))?;
            for rank in executing(section, streams, &thread.ranks) {
                let takes_space = into.callers.add(rank, own(&mut who, streams, slots, rank));
                if takes_space && many > 0 {
                    budget.take(ELSEWHERE)?;
                }
            }
            let sym = narrow(s);
            for (i, ((slot, streams), slot_into)) in
                slots.iter().zip(streams).zip(&mut into.slots).enumerate()
            {
                if let (Some(lens), Some(into)) = (&streams.lens, &mut slot_into.lens) {
                    let classes = &section.partitions[lens.partition as usize].classes;
                    for (stream, ranks) in lens.streams.iter().zip(classes) {
                        into.add_all(stream.clone(), ranks);
                    }
                }
                let classes = &section.partitions[streams.values.partition as usize].classes;
                let mut len = |rank| runs.values(s, streams.lens.as_ref(), rank);
                if !plain.is_empty()
                    && let Some((values, classes)) = plain.remove(&(s, i))
                {
                    slot_into.add(&values, &classes, (&into.callers, budget), &mut len)?;
                    continue;
                }
                match slot.meaning {
                    Meaning::Ref(object) if !renaming.keeps(object) => {
                        let at = SlotAt { thread: index, sym, slot: i };
                        if many > 0 && streams.values.streams.iter().any(|s| !renames(s)) {
                            budget.spend(section, None, 1)?;
                        }
                        let (renamed, classes) = rename(section, at, &streams.values, object, renaming);
                        slot_into.add(&renamed, &classes, (&into.callers, budget), &mut len)?;
                    }
                    _ => slot_into.add(&streams.values, classes, (&into.callers, budget), &mut len)?,
                }
            }
        }
        Ok(())
    }

    /// Takes other streams for slots.
    pub(crate) fn replace(&mut self, streams: Emptied) {
        for ((sym, slot), classes) in streams {
            let symbol = self.symbols.get_mut(sym as usize);
            if let Some(into) = symbol.and_then(|s| s.slots.get_mut(slot)) {
                into.replace(classes);
            }
        }
    }

    /// How many symbols there are.
    pub(crate) fn symbols(&self) -> usize {
        self.symbols.len()
    }

    /// Chooses the forms, symbols shared out among so many threads. Tells of each.
    pub(crate) fn review(&mut self, jobs: usize, tell: Tell<'_>) {
        let all = Mutex::new(self.symbols.iter_mut());
        let work = || {
            loop {
                let next = all.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(symbol) = next else { break };
                for slot in &mut symbol.slots {
                    slot.review(&symbol.callers);
                    slot.lose(&symbol.callers);
                }
                tell(1);
            }
        };
        thread::scope(|scope| {
            for _ in 1..jobs {
                scope.spawn(work);
            }
            work();
        });
    }

    /// Makes no histograms for the sake of room.
    pub(crate) fn keep(&mut self) {
        self.symbols.iter_mut().flat_map(|s| &mut s.slots).for_each(SlotClasses::keep);
    }

    /// Bits of the lanes that histograms void.
    pub(crate) fn voided(&self) -> u8 {
        self.symbols.iter().flat_map(|s| &s.slots).fold(0, |bits, s| bits | s.voided())
    }

    /// The streams, by symbol in the given order.
    pub(crate) fn finish(mut self, order: &[Sym], partitions: &mut Partitions) -> Vec<Vec<SlotStreams>> {
        let of = |s: &Sym| self.symbols.get_mut(*s as usize).map(std::mem::take).unwrap_or_default();
        let lists: Vec<SymbolParams> = order.iter().map(of).collect();
        let finish = |p: SymbolParams, partitions: &mut Partitions| {
            p.slots.into_iter().map(|c| c.finish(partitions)).collect()
        };
        lists.into_iter().map(|p| finish(p, partitions)).collect()
    }
}

/// How often the ranks of a section execute its symbols, found out when asked.
struct Executions<'a> {
    section: &'a Section,
    thread: &'a Thread,
    /// The first rank, if all have the same counts.
    uniform: Option<u32>,
    /// Values that are added up to learn how many another stream has.
    most: u64,
    /// The ranks, ascending, and of each the first one that has the same counts.
    alike: Option<Vec<(u32, u32)>>,
    /// Executions by symbol, of the first of such ranks.
    of: HashMap<u32, Vec<u64>, FixedState>,
}

impl Executions<'_> {
    /// Number of values that a rank reads of a symbol's slot with these lengths.
    fn values(&mut self, sym: usize, lens: Option<&Elastic>, rank: u32) -> u64 {
        let first = self.first_alike(rank);
        if !self.of.contains_key(&first) {
            self.of.insert(first, self.executions(first));
        }
        let n = self.of.get(&first).and_then(|v| v.get(sym)).copied().unwrap_or(0);
        lens.map_or(n, |l| self.stream(l, rank).map_or(0, |s| sum(s, n, self.most)))
    }
    /// The first rank that has a rank's counts.
    fn first_alike(&mut self, rank: u32) -> u32 {
        if let Some(first) = self.uniform {
            return first;
        }
        let alike = self.alike.get_or_insert_with(|| alike(self.section, self.thread));
        alike.binary_search_by_key(&rank, |(rank, _)| *rank).map_or(rank, |at| alike[at].1)
    }
    fn stream<'b>(&self, e: &'b Elastic, rank: u32) -> Option<&'b Sealed> {
        e.streams.get(self.section.partitions.get(e.partition as usize)?.class_of(rank)?)
    }
    fn executions(&self, rank: u32) -> Vec<u64> {
        let mut out = vec![0u64; self.section.symbols.len()];
        let mut open: Vec<(usize, u64)> = Vec::new();
        for (i, (item, counts)) in self.thread.tree.items().iter().zip(&self.thread.counts).enumerate() {
            while open.last().is_some_and(|(end, _)| *end == i) {
                open.pop();
            }
            let visits = open.last().map_or(1, |(_, n)| *n);
            let n = self.stream(counts, rank).map_or(0, |s| sum(s, visits, self.most));
            match *item {
                Item::Leaf { sym } => {
                    if let Some(total) = out.get_mut(sym as usize) {
                        *total = total.saturating_add(n);
                    }
                }
                Item::Body { below } => open.push((i + 1 + below as usize, n)),
            }
        }
        out
    }
}

/// The ranks of a thread, ascending, and of each the first one that has the same counts.
fn alike(section: &Section, thread: &Thread) -> Vec<(u32, u32)> {
    let mut used: Vec<u32> = thread.counts.iter().map(|c| c.partition).collect();
    used.sort_unstable();
    used.dedup();
    let first = thread.ranks.lowest().unwrap_or(0);
    let mut all: Vec<(u32, u32)> = thread.ranks.iter().map(|rank| (rank, first)).collect();
    for partition in used.iter().filter_map(|p| section.partitions.get(*p as usize)) {
        let mut class = vec![u32::MAX; all.len()];
        for (number, ranks) in (0..).zip(&partition.classes) {
            for rank in ranks.iter() {
                if let Ok(at) = all.binary_search_by_key(&rank, |(rank, _)| *rank) {
                    class[at] = number;
                }
            }
        }
        let mut firsts: HashMap<(u32, u32), u32, FixedState> = HashMap::default();
        for ((rank, of), class) in all.iter_mut().zip(class) {
            *of = *firsts.entry((*of, class)).or_insert(*rank);
        }
    }
    all
}

/// Sum of the first values of a stream; very large if that would take long.
fn sum(stream: &Sealed, n: u64, most: u64) -> u64 {
    if let Some(v) = stream.constant() {
        return saturate::<u64>(v).saturating_mul(n);
    }
    if n > most {
        return u64::MAX;
    }
    let mut cursor = stream.cursor();
    let (mut total, mut left) = (0u64, n);
    while left > 0 {
        let (v, times) = cursor.next_run(left);
        total = total.saturating_add(saturate::<u64>(v).saturating_mul(times));
        left -= times;
    }
    total
}

/// The ranks that have streams of a symbol.
fn executing<'a>(
    section: &'a Section,
    streams: &'a [SlotStreams],
    all: &'a RankList,
) -> impl Iterator<Item = u32> + 'a {
    // Where all ranks are one class, those that never execute the symbol cannot be told apart, and do no harm.
    let widest = streams.iter().max_by_key(|s| (s.values.streams.len(), s.values.partition));
    let partition = widest.and_then(|s| section.partitions.get(s.values.partition as usize));
    let told = |classes: &[RankList]| classes.len() > 1 || widest.is_some_and(|s| s.values.partition > 0);
    let classes = partition.map(|p| &p.classes[..]).filter(|c| told(c));
    classes.unwrap_or(std::slice::from_ref(all)).iter().flat_map(RankList::iter)
}

/// A slot's streams with united object indices, and the ranks of each.
fn rename(
    section: &Section,
    at: SlotAt,
    e: &Elastic,
    object: Object,
    renaming: &Renaming,
) -> (Elastic, Vec<RankList>) {
    let united = |v| renaming.object(object, v);
    let (mut streams, mut classes) = (Vec::new(), Vec::new());
    for (stream, ranks) in e.streams.iter().zip(&section.partitions[e.partition as usize].classes) {
        if renames(stream) {
            streams.push(stream.map(united));
            classes.push(ranks.clone());
            continue;
        }
        // A renaming is no affine map, so indices that run up or down are renamed one by one, and by rank: ranks that
        // read more of a common run read on where it is none any more.
        for rank in ranks.iter() {
            let values = values(section, at, rank);
            streams.push(Sealed::from(values.into_iter().map(united).collect::<Vec<_>>()));
            classes.push(RankList::single(rank));
        }
    }
    (Elastic { streams: streams.into(), ..e.clone() }, classes)
}

/// Whether a stream can be renamed as a whole.
fn renames(stream: &Sealed) -> bool {
    stream.elements().all(|x| x.step == 0)
}

/// A slot of a symbol of a thread.
#[derive(Clone, Copy)]
struct SlotAt {
    thread: usize,
    sym: Sym,
    slot: usize,
}

/// All values of a slot on a rank. *Cost:* O(calls).
fn values(section: &Section, at: SlotAt, rank: u32) -> Vec<i64> {
    let mut out = Vec::new();
    let Some(calls) = section.project(at.thread, rank) else { return out };
    let slots = CallTable::builtin().slots(section.symbols[at.sym as usize].call);
    // A section that cannot be read back to its end cannot be checked either; what can be read is kept.
    for call in calls.map_while(Result::ok).filter(|c| c.sym == at.sym) {
        let mut rest = &call.words[..];
        for (i, slot) in slots.iter().enumerate() {
            let Some((&first, tail)) = rest.split_first() else { break };
            let n = if slot.list { saturate(first) } else { 1 };
            let from = if slot.list { tail } else { rest };
            if i == at.slot {
                out.extend_from_slice(from.get(..n).unwrap_or(&[]));
            }
            rest = from.get(n..).unwrap_or(&[]);
        }
    }
    out
}

/// Who a rank is in the communicators or windows that a symbol's calls name, if it is the same in all of them.
fn own(who: &mut Who<'_>, streams: &[SlotStreams], slots: &[Slot], rank: u32) -> Option<Own> {
    let section = who.section;
    let base = slots.iter().enumerate().find_map(|(i, s)| Some((i, s.base()?)));
    let Some((at, kind)) = base else {
        return Some(who.own((Object::Comm, -1), rank).unwrap_or_default());
    };
    let e = &streams.get(at)?.values;
    let class = match e.streams.len() {
        1 => 0,
        _ => section.partitions.get(e.partition as usize)?.class_of(rank)?,
    };
    let stream = e.streams.get(class)?;
    if let Some(only) = stream.constant().filter(|_| !stream.is_empty()) {
        return Some(who.own((kind, only), rank).unwrap_or_default());
    }
    let mut own = None;
    for c in stream.distinct(16)? {
        // As in reading back: who is not known in a communicator is nobody in particular there.
        let here = who.own((kind, c), rank).unwrap_or_default();
        if own.is_some_and(|o| o != here) {
            return None;
        }
        own = Some(here);
    }
    own
}
