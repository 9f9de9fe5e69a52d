//! Merging parameter streams: per (symbol, slot) classes of ranks, endpoints in the cheaper of two forms.

use st_trace::calls::{CallTable, Meaning, Object, Slot};
use st_trace::ints::Sealed;
use st_trace::project::{from_relative, to_relative};
use st_trace::ranklist::RankList;
use st_trace::section::{Elastic, Form, Section, SlotStreams, Sym, Thread};

use crate::classes::{Classes, Partitions};
use crate::tables::Renaming;

/// A form with more than this many classes is given up where the other has far fewer.
const MANY: usize = 64;

/// The streams of one slot under construction.
#[derive(Debug)]
pub(crate) struct SlotClasses {
    lens: Option<Classes>,
    absolute: Option<Classes>,
    /// `None` for what is not an endpoint, and where some rank's own rank varies from call to call.
    relative: Option<Classes>,
    /// Own rank per rank, for turning one form into the other: (ranks, own rank) as met.
    own: Vec<(u32, i64)>,
}

impl SlotClasses {
    fn new(slot: &Slot) -> Self {
        Self {
            lens: slot.list.then(Classes::default),
            absolute: Some(Classes::default()),
            relative: (slot.meaning == Meaning::Rank).then(Classes::default),
            own: Vec::new(),
        }
    }

    fn add(&mut self, e: &Elastic, classes: &[RankList], own: &dyn Fn(u32) -> Option<i64>) {
        for (stream, ranks) in e.streams.iter().zip(classes) {
            if self.relative.is_none() && e.form == Form::Absolute {
                if let Some(a) = &mut self.absolute {
                    a.add_all(stream.clone(), ranks);
                }
                continue;
            }
            self.add_endpoint(stream, e.form, ranks, own);
        }
        self.prune();
    }

    fn add_endpoint(
        &mut self,
        stream: &Sealed,
        form: Form,
        ranks: &RankList,
        own: &dyn Fn(u32) -> Option<i64>,
    ) {
        if form == Form::Relative
            && self.absolute.is_some()
            && ranks.len() > MANY as u64
            && self.relative.is_some()
        {
            self.absolute = None;
        }
        for rank in ranks.iter() {
            let me = own(rank);
            let same = |s: &Sealed| s.clone();
            match (form, me) {
                (Form::Absolute, Some(me)) => {
                    self.put(rank, Some(same(stream)), Some(stream.map(|v| to_relative(v, me))), me);
                }
                (Form::Absolute, None) => {
                    self.give_up_relative();
                    self.put(rank, Some(same(stream)), None, 0);
                }
                (Form::Relative, me) => {
                    let me = me.unwrap_or(0);
                    let absolute = self.absolute.is_some().then(|| stream.map(|v| from_relative(v, me)));
                    self.put(rank, absolute, Some(same(stream)), me);
                }
            }
        }
    }

    fn put(&mut self, rank: u32, absolute: Option<Sealed>, relative: Option<Sealed>, me: i64) {
        if let (Some(c), Some(s)) = (&mut self.absolute, absolute) {
            c.add(s, rank);
        }
        if let (Some(c), Some(s)) = (&mut self.relative, relative) {
            c.add(s, rank);
            self.own.push((rank, me));
        }
    }

    /// Goes back to absolute values for all ranks met so far.
    fn give_up_relative(&mut self) {
        let Some(relative) = self.relative.take() else { return };
        if self.absolute.is_some() {
            return;
        }
        let mut absolute = Classes::default();
        let own: std::collections::HashMap<u32, i64> = self.own.drain(..).collect();
        for (stream, ranks) in relative.list() {
            for rank in ranks.iter() {
                let me = own.get(&rank).copied().unwrap_or(0);
                absolute.add(stream.map(|v| from_relative(v, me)), rank);
            }
        }
        self.absolute = Some(absolute);
    }

    /// Gives up a form that is clearly losing, so that memory follows the winner.
    fn prune(&mut self) {
        let (Some(a), Some(r)) = (&self.absolute, &self.relative) else { return };
        if a.len() > MANY && a.len() > 8 * r.len() {
            self.absolute = None;
        } else if r.len() > MANY && r.len() > 8 * a.len() {
            self.relative = None;
            self.own = Vec::new();
        }
    }

    fn finish(self, partitions: &mut Partitions) -> SlotStreams {
        let lens = self.lens.map(|l| partitions.elastic(l, Form::Absolute));
        let values = match (self.absolute, self.relative) {
            (Some(a), Some(r)) if r.cost() < a.cost() => partitions.elastic(r, Form::Relative),
            (None, Some(r)) => partitions.elastic(r, Form::Relative),
            (a, _) => partitions.elastic(a.unwrap_or_default(), Form::Absolute),
        };
        SlotStreams { lens, values }
    }
}

/// The parameters of one thread index under construction, by united symbol.
#[derive(Debug, Default)]
pub(crate) struct Params {
    symbols: Vec<Vec<SlotClasses>>,
}

impl Params {
    /// Adds a section's thread.
    pub(crate) fn add(&mut self, section: &Section, index: usize, thread: &Thread, renaming: &Renaming) {
        let table = CallTable::builtin();
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
                self.symbols.resize_with(to + 1, Vec::new);
            }
            if self.symbols[to].is_empty() {
                self.symbols[to] = slots.iter().map(SlotClasses::new).collect();
            }
            let own = |rank| own_rank(section, streams, slots, rank);
            let sym = Sym::try_from(s).unwrap_or(Sym::MAX);
            for (i, ((slot, streams), into)) in
                slots.iter().zip(streams).zip(&mut self.symbols[to]).enumerate()
            {
                if let (Some(lens), Some(into)) = (&streams.lens, &mut into.lens) {
                    let classes = &section.partitions[lens.partition as usize].classes;
                    for (stream, ranks) in lens.streams.iter().zip(classes) {
                        into.add_all(stream.clone(), ranks);
                    }
                }
                let classes = &section.partitions[streams.values.partition as usize].classes;
                match slot.meaning {
                    Meaning::Ref(object) if !renaming.keeps(object) => {
                        let at = SlotAt { thread: index, sym, slot: i };
                        let (renamed, classes) = rename(section, at, &streams.values, object, renaming);
                        into.add(&renamed, &classes, &own);
                    }
                    _ => into.add(&streams.values, classes, &own),
                }
            }
        }
    }

    /// The streams, by symbol in the given order.
    pub(crate) fn finish(mut self, order: &[Sym], partitions: &mut Partitions) -> Vec<Vec<SlotStreams>> {
        let of = |s: &Sym| self.symbols.get_mut(*s as usize).map(std::mem::take).unwrap_or_default();
        let lists: Vec<Vec<SlotClasses>> = order.iter().map(of).collect();
        lists.into_iter().map(|l| l.into_iter().map(|c| c.finish(partitions)).collect()).collect()
    }
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
        if stream.elements().all(|x| x.step == 0) {
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
    (Elastic { streams, ..e.clone() }, classes)
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
            let n = if slot.list { usize::try_from(first).unwrap_or(0) } else { 1 };
            let from = if slot.list { tail } else { rest };
            if i == at.slot {
                out.extend_from_slice(from.get(..n).unwrap_or(&[]));
            }
            rest = from.get(n..).unwrap_or(&[]);
        }
    }
    out
}

/// The rank's own rank in the communicators that a symbol's calls name, if it is the same in all of them.
fn own_rank(section: &Section, streams: &[SlotStreams], slots: &[Slot], rank: u32) -> Option<i64> {
    let comm = slots.iter().position(|s| s.meaning == Meaning::Ref(Object::Comm) && !s.list);
    let Some(comm) = comm else { return Some(i64::from(rank)) };
    let e = &streams.get(comm)?.values;
    let class = section.partitions.get(e.partition as usize)?.class_of(rank)?;
    let mut own = None;
    for c in e.streams.get(class)?.distinct(16)? {
        let me = section.own_rank(c, rank)?;
        if own.is_some_and(|o| o != me) {
            return None;
        }
        own = Some(me);
    }
    own
}
