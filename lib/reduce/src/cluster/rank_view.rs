//! One rank of a section, as clustering looks at it.

use st_model::num::Exact;
use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::calls::{Object, Slot};
use st_model::form::Own;
use st_model::ints::Sealed;
use st_model::section::{Elastic, Section, SlotStreams, Sym, Thread};
use st_model::tree::Item;

use crate::cluster::signature::total;
use crate::who::Who;

/// Streams of more values than this are not rewritten value by value.
pub(crate) const LONG: u64 = 1 << 20;

/// A rank of a section.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) section: &'a Section,
    pub(crate) rank: u32,
}

impl<'a> View<'a> {
    pub(crate) fn stream(self, e: &'a Elastic) -> &'a Sealed {
        e.of_rank(&self.section.partitions, self.rank)
    }

    /// How often the rank executes each symbol on a thread.
    pub(crate) fn executions(self, thread: &'a Thread) -> Vec<u64> {
        let mut out = vec![0u64; self.section.symbols.len()];
        let mut open: Vec<(usize, u64)> = Vec::new();
        for (i, (item, counts)) in thread.tree.items().iter().zip(&thread.counts).enumerate() {
            while open.last().is_some_and(|(end, _)| *end <= i) {
                open.pop();
            }
            let visits = open.last().map_or(1, |(_, n)| *n);
            let n = total(self.stream(counts), visits);
            match *item {
                Item::Leaf { sym } => {
                    if let Some(all) = out.get_mut(sym as usize) {
                        *all = all.saturating_add(n);
                    }
                }
                Item::Body { .. } => open.push((thread.tree.end_of(i), n)),
            }
        }
        out
    }

    /// Who the rank is in the communicators or windows that a symbol's calls name, if it is the same in all of them.
    pub(crate) fn own(self, who: &mut Who<'a>, streams: &'a [SlotStreams], slots: &[Slot]) -> Option<Own> {
        let base = slots.iter().enumerate().find_map(|(i, s)| Some((i, s.base()?)));
        let Some((at, kind)) = base else {
            return Some(who.own((Object::Comm, -1), self.rank).unwrap_or_default());
        };
        let indices = self.stream(&streams.get(at)?.values);
        let mut of = |index| who.own((kind, index), self.rank).unwrap_or_default();
        if let Some(index) = indices.constant() {
            return Some(of(index));
        }
        let mut all = indices.distinct(16)?.into_iter().map(of);
        let own = all.next()?;
        all.all(|o| o == own).then_some(own)
    }
}

/// Who the ranks of a cluster are in the calls of a symbol. Those that are in them what they are in the world take no space.
#[derive(Debug, Default)]
pub(crate) struct Owns {
    world: i64,
    others: HashMap<u32, Own, FixedState>,
}

impl Owns {
    pub(crate) fn add(&mut self, rank: u32, own: Own) {
        if own.me == i64::from(rank) && (self.world == 0 || own.size == self.world) {
            self.world = own.size;
        } else {
            self.others.insert(rank, own);
        }
    }
    pub(crate) fn of(&self, rank: u32) -> Own {
        self.others.get(&rank).copied().unwrap_or(Own { me: rank.into(), size: self.world })
    }
}

/// The symbol's own number as an index.
pub(crate) fn index(sym: Sym) -> usize {
    sym.to_usize()
}
