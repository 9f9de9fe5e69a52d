//! The words of an execution of a symbol, where they lie, and what they hash to.

use super::symbol::SymInfo;
use st_model::calls::{LANES, Meaning, Slot};
use st_model::lanes::{Digest, lanes_of};
use st_model::num::{narrow, saturate};
use st_model::objects::Objects;
use st_model::proof::{Digests, by_slot, hashed};
use std::ops::Range;

/// The last execution: of a symbol, or at a place of a round. Most executions repeat the words of the one before, and of others most
/// have lists of the same lengths: only the words that differ are looked at.
#[derive(Debug, Clone)]
pub(super) struct Last {
    pub(super) words: Vec<i64>,
    layout: Layout,
    /// Large, and of most symbols there is none.
    hashed: Option<Box<Hashed>>,
    pub(super) digests: Digests,
}

/// Where the slots' words are.
#[derive(Debug, Clone, Default)]
struct Layout {
    /// The slots' words; those of a list begin after its length.
    spans: Vec<(u32, u32)>,
    /// Slot of each word, and its lane if the word is an element or a scalar other than a number of calls; empty if the words
    /// have not the row's shape.
    places: Vec<(u16, Option<u8>)>,
}

/// The words as the proof hashes them, by lane, from the first time that some of them differ.
#[derive(Debug, Clone, Default)]
struct Hashed {
    lanes: [Vec<u64>; LANES],
    /// Lane and place in it of each word; empty if the words have been replaced since.
    places: Vec<(u8, u16)>,
}

impl Last {
    /// Of a symbol that has not been executed.
    pub(super) fn new(info: &SymInfo) -> Self {
        Self {
            words: Vec::new(),
            layout: Layout::default(),
            hashed: None,
            digests: Digests::new(info.call, info.error, info.site, info.slots),
        }
    }

    /// Takes what another execution was, in the memory that this one has.
    pub(super) fn copy(&mut self, other: &Self) {
        self.words.clone_from(&other.words);
        self.layout.spans.clone_from(&other.layout.spans);
        self.layout.places.clone_from(&other.layout.places);
        // Made again when it is needed: most words never differ.
        self.forget_hashed();
        self.digests = other.digests;
    }

    /// Whether the next execution has these words.
    #[inline]
    pub(super) fn repeats(&self, words: &[i64]) -> bool {
        equal(&self.words, words)
    }

    /// Whether words lie where these do and are again those of one call: then `changed` are the positions at which they differ
    /// from `old`, which lie there too.
    pub(super) fn compare(&self, old: &[i64], words: &[i64], changed: &mut Vec<u16>) -> bool {
        changed.clear();
        if self.layout.places.len() != words.len() || old.len() != words.len() || words.is_empty() {
            return false;
        }
        let differ = (0..).zip(old.iter().zip(words)).filter(|(_, (a, b))| a != b).map(|(i, _)| i);
        changed.extend(differ);
        changed.iter().all(|i| self.lane(*i).is_some())
    }

    /// The lane of the word at a position, if it may differ with all others lying where they do.
    #[inline]
    pub(super) fn lane(&self, at: u16) -> Option<u8> {
        self.layout.places.get(usize::from(at)).and_then(|p| p.1)
    }

    /// Slot of the word at a position.
    #[inline]
    pub(super) fn slot(&self, at: u16) -> usize {
        self.layout.places.get(usize::from(at)).map_or(0, |p| p.0.into())
    }

    /// Where a slot's words are, if they have the row's shape.
    #[inline]
    pub(super) fn span(&self, slot: usize) -> Range<usize> {
        self.layout.spans.get(slot).map_or(0..0, |(from, to)| *from as usize..*to as usize)
    }

    /// A slot's words, if they have the row's shape.
    #[inline]
    pub(super) fn words_of(&self, slot: usize) -> &[i64] {
        self.words.get(self.span(slot)).unwrap_or_default()
    }

    /// Whether the words have the row's shape.
    pub(super) fn is_shaped(&self, slots: &[Slot]) -> bool {
        self.layout.places.len() == self.words.len() && self.layout.spans.len() == slots.len()
    }

    /// Takes words at some positions, as [`Last::compare`] finds them. `after` is told the lanes whose digests have changed, and by
    /// how much.
    #[inline]
    pub(super) fn edit(
        &mut self,
        info: &SymInfo,
        changes: impl Iterator<Item = (u16, i64)>,
        objects: &Objects,
        mut after: impl FnMut(usize, u128),
    ) {
        let known = self.hashed.get_or_insert_default();
        known.know(&self.words, &self.layout, info.slots, objects);
        let mut lanes = 0_u8;
        for (at, word) in changes {
            let at = usize::from(at);
            let (Some(&(slot, _)), Some(&(lane, hash))) = (self.layout.places.get(at), known.places.get(at))
            else {
                return;
            };
            self.words[at] = word;
            if let Some(hash) = known.lanes[usize::from(lane)].get_mut(usize::from(hash)) {
                *hash = hashed(&info.slots[usize::from(slot)], word, &objects.words());
            }
            lanes |= 1 << lane;
        }
        for lane in lanes_of(lanes) {
            let (old, new) = self.digests.set(lane, Digest::new(), &known.lanes[lane]);
            after(lane, new.wrapping_sub(old));
        }
    }

    /// Takes the words of several executions at one position. `after` is told as by [`Last::edit`], with what is told of each
    /// execution.
    #[inline]
    pub(super) fn edit_one<T>(
        &mut self,
        info: &SymInfo,
        at: u16,
        changes: impl Iterator<Item = (T, i64)>,
        objects: &Objects,
        mut after: impl FnMut(T, usize, u128),
    ) {
        let known = self.hashed.get_or_insert_default();
        known.know(&self.words, &self.layout, info.slots, objects);
        let at = usize::from(at);
        let (Some(&(slot, _)), Some(&(lane, hash))) = (self.layout.places.get(at), known.places.get(at))
        else {
            return;
        };
        let (slot, lane) = (&info.slots[usize::from(slot)], usize::from(lane));
        // What comes before it in its lane need be hashed but once.
        let (before, rest) = known.lanes[lane].split_at_mut(usize::from(hash));
        let mut begun = Digest::new();
        before.iter().for_each(|w| begun.word(*w));
        for (of, word) in changes {
            self.words[at] = word;
            rest[0] = hashed(slot, word, &objects.words());
            let (old, new) = self.digests.set(lane, begun, rest);
            after(of, lane, new.wrapping_sub(old));
        }
    }

    /// Makes the words as the proof hashes them again when they are needed.
    #[inline]
    fn forget_hashed(&mut self) {
        if let Some(hashed) = &mut self.hashed {
            hashed.places.clear();
        }
    }

    /// Takes words that need not lie where these did; `lanes` (by bit) hold those that differ.
    pub(super) fn replace(&mut self, slots: &[Slot], words: &[i64], lanes: u8, objects: &Objects) {
        self.words.clear();
        self.forget_hashed();
        self.words.extend_from_slice(words);
        self.layout.find(slots, words);
        self.digests.read(slots, by_slot(slots, words), lanes, objects.words());
    }
}

impl Layout {
    /// Takes the layout of words, if they have the row's shape.
    fn find(&mut self, slots: &[Slot], words: &[i64]) {
        self.spans.clear();
        self.places.clear();
        let mut at = 0_u32;
        for (slot, number) in slots.iter().zip(0..) {
            let mut n = 1;
            if slot.list {
                self.places.push((number, None));
                let length = words.get(at as usize).copied();
                n = length.map_or(u32::MAX, saturate);
                at += 1;
            }
            let end = at.saturating_add(n);
            if end as usize > words.len() || end > u32::from(u16::MAX) {
                self.places.clear();
                return;
            }
            let lane = (slot.meaning != Meaning::Times).then_some(slot.lane as u8);
            self.places.resize(end as usize, (number, lane));
            self.spans.push((at, end));
            at = end;
        }
        if at as usize != words.len() {
            self.places.clear();
        }
    }
}

impl Hashed {
    /// They are needed.
    #[inline]
    fn know(&mut self, words: &[i64], layout: &Layout, slots: &[Slot], objects: &Objects) {
        if self.places.len() != words.len() {
            self.take_all(words, layout, slots, objects);
        }
    }

    /// Takes all words, whose slots the layout tells (a list's length belongs to its slot).
    #[cold]
    fn take_all(&mut self, words: &[i64], layout: &Layout, slots: &[Slot], objects: &Objects) {
        self.places.clear();
        self.lanes.iter_mut().for_each(Vec::clear);
        let mut rest = 0_usize;
        for (word, place) in words.iter().zip(&layout.places) {
            let Some(slot) = slots.get(usize::from(place.0)) else { return };
            // A list begins with its length, which is hashed as a number; the number of calls is in no lane.
            let length = slot.list && rest == 0;
            rest = if length { saturate(*word) } else { rest.saturating_sub(1) };
            let lane = &mut self.lanes[slot.lane as usize];
            self.places.push((slot.lane as u8, narrow(lane.len())));
            if slot.meaning != Meaning::Times {
                lane.push(if length { word.cast_unsigned() } else { hashed(slot, *word, &objects.words()) });
            }
        }
    }
}

/// Whether words are equal. They are few: a loop is faster than the C library's comparison.
#[inline]
pub(super) fn equal(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |bits, (a, b)| bits | (a ^ b)) == 0
}
