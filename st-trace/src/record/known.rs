//! What a recorder knows of one symbol on one thread: the words of its last execution, and the streams before it.

use super::{SymInfo, own};
use crate::calls::{LANES, Meaning, Object, Slot};
use crate::ints::Ints;
use crate::lanes::lanes_of;
use crate::proof::{Digests, by_slot, hashed};
use crate::section::SlotStreams;

/// How the words of an event differ from those of its symbol's event before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// They are the same.
    None,
    /// Some words differ, at known positions; all lists have the lengths they had.
    Some,
    /// There was none before, or the words lie at other places.
    New,
}

/// A symbol's executions on one thread. Most repeat the words of the one before: those cost a comparison. Of others most
/// have lists of the same lengths: only the words that differ are looked at.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// Words of the last execution.
    words: Vec<i64>,
    layout: Layout,
    hashed: Hashed,
    pub(super) digests: Digests,
    /// Number of executions.
    events: u64,
    columns: Vec<SlotColumn>,
}

/// Where the slots' words are.
#[derive(Debug, Clone, Default)]
struct Layout {
    /// The slots' words; those of a list begin after its length.
    spans: Vec<(u32, u32)>,
    /// Slot of each word; empty if the words have not the row's shape.
    slot_of: Vec<u16>,
    /// Places of the lists' lengths.
    lengths: Vec<u32>,
}

/// The words as the proof hashes them, by lane, from the first time that some of them differ.
#[derive(Debug, Clone, Default)]
struct Hashed {
    lanes: [Vec<u64>; LANES],
    /// Lane and place in it of each word; empty if the words have been replaced since.
    places: Vec<(u8, u16)>,
}

#[derive(Debug, Clone)]
struct SlotColumn {
    lens: Option<Ints>,
    values: Ints,
    /// Executions before this one are in the streams; since then the slot has had its last words.
    since: u64,
}

impl Known {
    pub(super) fn new(info: &SymInfo) -> Self {
        let column = |s: &Slot| SlotColumn { lens: s.list.then(Ints::new), values: Ints::new(), since: 0 };
        Self {
            words: Vec::new(),
            layout: Layout::default(),
            hashed: Hashed::default(),
            digests: Digests::new(info.call, info.error, info.site, info.slots),
            events: 0,
            columns: info.slots.iter().map(column).collect(),
        }
    }

    /// Words of the last execution, if there was one.
    pub(super) fn last_words(&self) -> Option<&[i64]> {
        (self.events > 0).then_some(&self.words)
    }

    /// Whether the next execution has the words of the last one.
    #[inline]
    pub(super) fn repeats(&self, words: &[i64]) -> bool {
        self.events != 0 && equal(&self.words, words)
    }

    /// Takes an execution that has the words of the last one.
    #[inline]
    pub(super) fn repeat(&mut self) {
        self.events += 1;
    }

    /// Whether words lie where the last ones did and are again those of one call: the lanes that the words which differ are
    /// in, by bit; `changed` are then their positions.
    pub(super) fn compare(&self, info: &SymInfo, words: &[i64], changed: &mut Vec<u16>) -> Option<u8> {
        if !self.layout.fits(&self.words, words) {
            return None;
        }
        changed.clear();
        let mut lanes = 0;
        for (i, (old, new)) in (0..).zip(self.words.iter().zip(words)) {
            if old != new {
                let slot = &info.slots[usize::from(self.layout.slot_of[usize::from(i)])];
                if slot.meaning == Meaning::Times {
                    return None;
                }
                lanes |= 1 << slot.lane as u8;
                changed.push(i);
            }
        }
        Some(lanes)
    }

    /// The lanes of the words at some positions, by bit, if words lie where the last ones did.
    #[inline]
    pub(super) fn lanes_of(&self, info: &SymInfo, words: &[i64], positions: &[u16]) -> Option<u8> {
        if self.layout.slot_of.len() != words.len() {
            return None;
        }
        positions.iter().try_fold(0, |lanes, i| {
            let slot = info.slots.get(usize::from(*self.layout.slot_of.get(usize::from(*i))?))?;
            (slot.meaning != Meaning::Times).then_some(lanes | 1 << slot.lane as u8)
        })
    }

    /// Takes words that differ where [`Known::compare`] said.
    pub(super) fn edit(
        &mut self,
        info: &SymInfo,
        words: &[i64],
        (changed, lanes): (&[u16], u8),
        object: impl Fn(Object, i64) -> u64,
    ) {
        let mut last = u16::MAX;
        for &i in changed {
            let slot = self.layout.slot_of[usize::from(i)];
            if slot != last {
                last = slot;
                let slot = usize::from(slot);
                self.columns[slot].settle(self.layout.words(slot, &self.words), self.events);
            }
        }
        for i in changed.iter().map(|i| usize::from(*i)) {
            self.words[i] = words[i];
        }
        let slot = |word: usize| info.slots.get(usize::from(*self.layout.slot_of.get(word)?));
        self.hashed.take(&self.words, changed, slot, &object);
        for lane in lanes_of(lanes) {
            self.digests.set(lane, &self.hashed.lanes[lane]);
        }
        self.events += 1;
    }

    /// Takes words that need not lie where the last ones did.
    pub(super) fn replace(&mut self, slots: &[Slot], words: &[i64], object: impl Fn(Object, i64) -> u64) {
        let both = by_slot(slots, &self.words).zip(by_slot(slots, words));
        let mut lanes = 0;
        for ((slot, column), (was, is)) in slots.iter().zip(&mut self.columns).zip(both) {
            if was != is || self.events == 0 {
                column.settle(was, self.events);
                lanes |= 1 << slot.lane as u8;
            }
        }
        self.words.clear();
        self.hashed.places.clear();
        self.words.extend_from_slice(words);
        self.layout.find(slots, words);
        self.digests.read(slots, by_slot(slots, words), lanes, object);
        self.events += 1;
    }

    /// The streams, complete.
    pub(super) fn finish(mut self, slots: &[Slot]) -> Vec<SlotStreams> {
        for (column, last) in self.columns.iter_mut().zip(by_slot(slots, &self.words)) {
            column.settle(last, self.events);
        }
        let streams =
            |c: SlotColumn| SlotStreams { lens: c.lens.map(|l| own(l.seal())), values: own(c.values.seal()) };
        self.columns.into_iter().map(streams).collect()
    }
}

impl Layout {
    /// Whether words have this layout, as the last ones do.
    #[inline]
    fn fits(&self, last: &[i64], words: &[i64]) -> bool {
        let same = |at: &u32| {
            let at = *at as usize;
            last.get(at) == words.get(at)
        };
        !self.slot_of.is_empty() && self.slot_of.len() == words.len() && self.lengths.iter().all(same)
    }

    /// A slot's words.
    #[inline]
    fn words<'a>(&self, slot: usize, words: &'a [i64]) -> &'a [i64] {
        let (from, to) = self.spans[slot];
        words.get(from as usize..to as usize).unwrap_or_default()
    }

    /// Takes the layout of words, if they have the row's shape.
    fn find(&mut self, slots: &[Slot], words: &[i64]) {
        self.spans.clear();
        self.slot_of.clear();
        self.lengths.clear();
        let mut at = 0;
        for (slot, number) in slots.iter().zip(0..) {
            let mut n = 1;
            if slot.list {
                self.lengths.push(at);
                self.slot_of.push(number);
                let length = words.get(at as usize).copied();
                n = length.and_then(|l| u32::try_from(l).ok()).unwrap_or(u32::MAX);
                at += 1;
            }
            let end = at.saturating_add(n);
            if end as usize > words.len() || end > u32::from(u16::MAX) {
                self.slot_of.clear();
                return;
            }
            self.slot_of.resize(end as usize, number);
            self.spans.push((at, end));
            at = end;
        }
        if at as usize != words.len() {
            self.slot_of.clear();
        }
    }
}

impl Hashed {
    /// Takes words of which some are `changed`; `slot` is each word's (a list's length belongs to its slot).
    #[inline]
    fn take<'a>(
        &mut self,
        words: &[i64],
        changed: &[u16],
        slot: impl Fn(usize) -> Option<&'a Slot>,
        object: &impl Fn(Object, i64) -> u64,
    ) {
        if self.places.len() != words.len() {
            return self.take_all(words, slot, object);
        }
        for i in changed.iter().map(|i| usize::from(*i)) {
            let (lane, at) = self.places[i];
            if let (Some(slot), Some(place)) =
                (slot(i), self.lanes[usize::from(lane)].get_mut(usize::from(at)))
            {
                *place = hashed(slot, words[i], object);
            }
        }
    }

    #[cold]
    fn take_all<'a>(
        &mut self,
        words: &[i64],
        slot: impl Fn(usize) -> Option<&'a Slot>,
        object: &impl Fn(Object, i64) -> u64,
    ) {
        self.places.clear();
        self.lanes.iter_mut().for_each(Vec::clear);
        let mut rest = 0;
        for (i, word) in words.iter().enumerate() {
            let Some(slot) = slot(i) else { return };
            // A list begins with its length, which is hashed as a number; the number of calls is in no lane.
            let length = slot.list && rest == 0;
            rest = if length { usize::try_from(*word).unwrap_or(0) } else { rest.saturating_sub(1) };
            let lane = &mut self.lanes[slot.lane as usize];
            self.places.push((slot.lane as u8, u16::try_from(lane.len()).unwrap_or(u16::MAX)));
            if slot.meaning != Meaning::Times {
                lane.push(if length { word.cast_unsigned() } else { hashed(slot, *word, object) });
            }
        }
    }
}

/// Whether words are equal. They are few: a loop is faster than the C library's comparison.
#[inline]
fn equal(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |bits, (a, b)| bits | (a ^ b)) == 0
}

impl SlotColumn {
    /// Enters the last words for all executions before `event`.
    fn settle(&mut self, last: &[i64], event: u64) {
        let n = event - self.since;
        self.since = event;
        match &mut self.lens {
            None => self.values.push_run(last.first().copied().unwrap_or(0), n),
            Some(lens) => {
                lens.push_run(i64::try_from(last.len()).unwrap_or(i64::MAX), n);
                self.values.push_cycle(last, n);
            }
        }
    }
}
