//! Receive counts of all-to-all exchanges that need not be stored: what a rank receives from another in an exchange is what
//! that sends to it in the same one.
//!
//! Only the stream's form knows of this: who reads it makes the counts again. That takes every rank's streams of the
//! symbol, so that it holds for sections with all members of a communicator, and is said only of streams that are then
//! equal, value for value.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use st_model::calls::CallTable;
use st_model::ints::{Ints, Sealed};
use st_model::ranklist::RankList;
use st_model::section::{Elastic, Form, Partition, SlotStreams, Symbol, Tables};
use st_model::tree::{FlatTree, Item};

/// Values that may be made again in a section; those that are looked at to learn how often a symbol is executed.
const MOST: u64 = 1 << 25;
/// Values that must be stored otherwise.
const WORTH: usize = 64;

/// What is known of a thread.
#[derive(Clone, Copy)]
pub(super) struct Exchange<'a> {
    pub(super) ranks: &'a RankList,
    pub(super) symbols: &'a [Symbol],
    pub(super) partitions: &'a [Partition],
    pub(super) tables: &'a Tables,
    pub(super) tree: &'a FlatTree,
    pub(super) counts: &'a [Elastic],
    pub(super) params: &'a [Vec<SlotStreams>],
}

/// The slots of a symbol: counts sent, counts received, communicator; `None` if it is no such exchange.
pub(super) fn slots(symbol: &Symbol) -> Option<[usize; 3]> {
    let row = CallTable::builtin().get(symbol.call)?;
    let slots = [row.slot("sendcounts")?, row.slot("recvcounts")?, row.comm_slot()?];
    slots[..2].iter().all(|s| row.slots[*s].list).then_some(slots)
}

/// How many values may still be made again.
#[derive(Debug)]
pub(super) struct Left(u64);

impl Left {
    pub(super) fn all() -> Self {
        Self(MOST)
    }
    fn take(&mut self, n: u64) -> Option<()> {
        self.0 = self.0.checked_sub(n)?;
        Some(())
    }
}

/// Whether a symbol's receive counts follow from its send counts, and are many.
pub(super) fn follows(of: Exchange<'_>, sym: usize, left: &mut Left) -> bool {
    let Some([_, received, _]) = of.symbols.get(sym).and_then(slots) else { return false };
    let Some(stored) = of.params.get(sym).and_then(|p| p.get(received)).map(|s| &s.values) else {
        return false;
    };
    let values: usize = stored.streams.iter().map(|s| s.elements().count()).sum();
    if stored.form != Form::Absolute || values < WORTH {
        return false;
    }
    let Some(made) = made(of, sym, left) else { return false };
    let same = |rank: &u32, made: &Sealed| class(stored, of.partitions, *rank) == Some(made);
    made.iter().all(|(rank, stream)| same(rank, stream))
        && classes(stored, of.partitions).iter().all(|ranks| ranks.iter().any(|r| made.contains_key(&r)))
}

/// The streams of receive counts per class of a partition; `None` if they do not follow.
pub(super) fn streams(of: Exchange<'_>, sym: usize, partition: u32, left: &mut Left) -> Option<Vec<Sealed>> {
    let made = made(of, sym, left)?;
    let classes = &of.partitions.get(partition as usize)?.classes;
    classes.iter().map(|ranks| ranks.iter().find_map(|r| made.get(&r)).cloned()).collect()
}

/// Receive counts by rank, of those that execute the symbol.
fn made(of: Exchange<'_>, sym: usize, left: &mut Left) -> Option<HashMap<u32, Sealed, FixedState>> {
    let [sent, received, comm] = slots(of.symbols.get(sym)?)?;
    let slots = of.params.get(sym)?;
    let lengths = [slots.get(sent)?.lens.as_ref()?, slots.get(received)?.lens.as_ref()?];
    let (sent, comm) = (&slots.get(sent)?.values, &slots.get(comm)?.values);
    if sent.form != Form::Absolute || comm.form != Form::Absolute {
        return None;
    }
    let mut rows: HashMap<u32, (u64, Vec<i64>), FixedState> = HashMap::default();
    let mut executions = Executions { of, sym, left, known: None };
    for rank in of.ranks.iter() {
        let n = executions.on(rank)?;
        if n == 0 {
            continue;
        }
        let index = class(comm, of.partitions, rank)?.constant()?;
        let members = &Tables::find(&of.tables.comms, index, rank)?.content.members;
        let size = i64::try_from(members.len()).ok()?;
        if lengths.iter().any(|l| class(l, of.partitions, rank).and_then(Sealed::constant) != Some(size)) {
            return None;
        }
        let len = n.checked_mul(members.len())?;
        executions.left.take(len)?;
        let mut cursor = class(sent, of.partitions, rank)?.cursor();
        rows.insert(rank, (n, (0..len).map(|_| cursor.next()).collect()));
    }
    let mut out = HashMap::default();
    for (&rank, (n, _)) in &rows {
        let index = class(comm, of.partitions, rank)?.constant()?;
        let content = &Tables::find(&of.tables.comms, index, rank)?.content;
        let members: Vec<i64> = content.members.iter().collect();
        let me = usize::try_from(content.members.position(rank.into())?).ok()?;
        let member = |m: &i64| rows.get(&u32::try_from(*m).ok()?);
        let members: Vec<&(u64, Vec<i64>)> = members.iter().map(member).collect::<Option<_>>()?;
        let size = members.len();
        if !content.remote.is_empty() || members.iter().any(|m| m.0 != *n || m.1.len() % size != 0) {
            return None;
        }
        let mut stream = Ints::new();
        for call in 0..usize::try_from(*n).ok()? {
            stream.extend(members.iter().map(|m| m.1.get(call * size + me).copied().unwrap_or(0)));
        }
        out.insert(rank, stream.seal());
    }
    (!out.is_empty()).then_some(out)
}

fn classes<'a>(e: &Elastic, partitions: &'a [Partition]) -> &'a [RankList] {
    partitions.get(e.partition as usize).map_or(&[], |p| &p.classes)
}

/// The stream that a rank reads.
fn class<'a>(e: &'a Elastic, partitions: &[Partition], rank: u32) -> Option<&'a Sealed> {
    e.streams.get(partitions.get(e.partition as usize)?.class_of(rank)?)
}

/// How often ranks execute a symbol.
struct Executions<'a, 'b> {
    of: Exchange<'a>,
    sym: usize,
    left: &'b mut Left,
    /// The number that all ranks have in common.
    known: Option<u64>,
}

impl Executions<'_, '_> {
    fn on(&mut self, rank: u32) -> Option<u64> {
        if let Some(n) = self.known {
            return Some(n);
        }
        let (mut total, mut open) = (0u64, Vec::<(usize, u64)>::new());
        for (i, (item, counts)) in self.of.tree.items().iter().zip(self.of.counts).enumerate() {
            while open.last().is_some_and(|(end, _)| *end == i) {
                open.pop();
            }
            let visits = open.last().map_or(1, |(_, n)| *n);
            let n = match class(counts, self.of.partitions, rank) {
                Some(stream) => self.sum(stream, visits)?,
                None => 0,
            };
            match *item {
                Item::Leaf { sym } if sym as usize == self.sym => total = total.checked_add(n)?,
                Item::Leaf { .. } => {}
                Item::Body { below } => open.push((i + 1 + below as usize, n)),
            }
        }
        if self.of.counts.iter().all(|c| c.is_of_all(self.of.partitions, self.of.ranks)) {
            self.known = Some(total);
        }
        Some(total)
    }

    /// Sum of the first values of a stream.
    fn sum(&mut self, stream: &Sealed, n: u64) -> Option<u64> {
        if let Some(v) = stream.constant() {
            return u64::try_from(v).ok()?.checked_mul(n);
        }
        self.left.take(n)?;
        let mut cursor = stream.cursor();
        let mut total = 0u64;
        for _ in 0..n {
            total = total.checked_add(u64::try_from(cursor.next()).ok()?)?;
        }
        Some(total)
    }
}
