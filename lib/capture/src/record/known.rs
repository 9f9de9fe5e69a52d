//! What a recorder knows of one symbol on one thread: its last execution, and the streams of those before.

use super::last::Last;
use super::symbol::SymInfo;
use st_model::calls::Slot;
use st_model::ints::Ints;
use st_model::num::{Exact, narrow};
use st_model::objects::Objects;
use st_model::proof::by_slot;
use st_model::section::{Elastic, SlotStreams};

/// A symbol's executions on one thread. While it is in the round in progress, its last executions are those of the round's places.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) last: Last,
    /// Number of executions; while it is in the round in progress, of those before the round.
    pub(super) events: u64,
    pub(super) in_round: bool,
    pub(super) columns: Vec<SlotColumn>,
}

#[derive(Debug, Clone)]
pub(super) struct SlotColumn {
    lens: Option<Ints>,
    values: Ints,
    /// Executions before this one are in the streams; since then the slot has had its last words.
    since: u64,
}

impl Known {
    pub(super) fn new(info: &SymInfo) -> Self {
        let column = |s: &Slot| SlotColumn { lens: s.list.then(Ints::new), values: Ints::new(), since: 0 };
        let columns = info.slots.iter().map(column).collect();
        Self { last: Last::new(info), events: 0, in_round: false, columns }
    }

    /// Words of the last execution, if there was one.
    pub(super) fn last_words(&self) -> Option<&[i64]> {
        (self.events > 0).then_some(&self.last.words)
    }

    /// Takes an execution whose words differ from the last one's at some positions, as [`Last::compare`] finds them.
    pub(super) fn edit(&mut self, info: &SymInfo, words: &[i64], changed: &[u16], objects: &Objects) {
        let mut before = None;
        for &at in changed {
            let slot = self.last.slot(at);
            if before != Some(slot) {
                before = Some(slot);
                self.columns[slot].settle(self.last.words_of(slot), self.events);
            }
        }
        let changes = changed.iter().map(|at| (*at, words.get(usize::from(*at)).copied().unwrap_or(0)));
        self.last.edit(info, changes, objects, |_, _| ());
        self.events += 1;
    }

    /// Takes an execution with words that need not lie where the last ones did.
    pub(super) fn replace(&mut self, slots: &[Slot], words: &[i64], objects: &Objects) {
        let both = by_slot(slots, &self.last.words).zip(by_slot(slots, words));
        let mut lanes = 0;
        for ((slot, column), (was, is)) in slots.iter().zip(&mut self.columns).zip(both) {
            if was != is || self.events == 0 {
                column.settle(was, self.events);
                lanes |= 1 << slot.lane as u8;
            }
        }
        self.last.replace(slots, words, lanes, objects);
        self.events += 1;
    }

    /// Enters the last words for all executions so far.
    pub(super) fn settle(&mut self, slots: &[Slot]) {
        for (column, last) in self.columns.iter_mut().zip(by_slot(slots, &self.last.words)) {
            column.settle(last, self.events);
        }
    }

    /// The streams, complete.
    pub(super) fn finish(mut self, slots: &[Slot]) -> Vec<SlotStreams> {
        self.settle(slots);
        let streams = |c: SlotColumn| SlotStreams {
            lens: c.lens.map(|l| Elastic::only(l.seal())),
            values: Elastic::only(c.values.seal()),
        };
        self.columns.into_iter().map(streams).collect()
    }
}

impl SlotColumn {
    /// Number of executions before `event` that are not in the streams.
    pub(super) fn lacks(&self, event: u64) -> u64 {
        event - self.since
    }

    /// Enters the last words for all executions before `event`.
    pub(super) fn settle(&mut self, last: &[i64], event: u64) {
        let n = event - self.since;
        self.since = event;
        match &mut self.lens {
            None => self.values.push_run(last.first().copied().unwrap_or(0), n),
            Some(lens) => {
                lens.push_run(narrow(last.len()), n);
                self.values.push_cycle(last, n);
            }
        }
    }

    /// Enters all executions before the last of some changes. Each change names the execution from which on a word of the slot is
    /// another one; `words` are the slot's before the first of them, and become those after the last. `space` is for values on
    /// their way.
    pub(super) fn settle_changes(
        &mut self,
        words: &mut [i64],
        changes: impl Iterator<Item = (u64, usize, i64)>,
        space: &mut Vec<i64>,
    ) {
        let begun = self.since;
        space.clear();
        for (event, at, word) in changes {
            match event - self.since {
                0 => {}
                // They are few: a loop is faster than copying memory.
                1 => words.iter().for_each(|word| space.push(*word)),
                n => {
                    self.values.push_all(space);
                    space.clear();
                    self.values.push_cycle(words, n);
                }
            }
            self.since = event;
            words[at] = word;
        }
        self.values.push_all(space);
        if let Some(lens) = &mut self.lens {
            lens.push_run(narrow(words.len()), self.since - begun);
        }
    }

    /// Enters the words of the executions before `event`: `last` holds those of the last ones in order, and those before took
    /// turns likewise. A slot of one word has always one.
    pub(super) fn settle_turns(&mut self, last: &[&[i64]], event: u64) {
        let n = event - self.since;
        self.since = event;
        let turns = last.len().to_u64().max(1);
        let (whole, rest) = (n / turns, (n % turns).to_usize());
        let first = &last[last.len() - rest..];
        if let Some(lens) = &mut self.lens {
            let length = |words: &&[i64]| narrow(words.len());
            first.iter().map(length).for_each(|n| lens.push(n));
            lens.push_cycle(&last.iter().map(length).collect::<Vec<_>>(), whole);
        }
        first.iter().copied().flatten().for_each(|word| self.values.push(*word));
        self.values.push_cycle(&last.concat(), whole);
    }
}
