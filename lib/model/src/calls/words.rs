//! Words of a call by slot.

use crate::calls::{Row, Slot};
use crate::num::{narrow, saturate};

/// No such slot.
pub const ABSENT: u8 = u8::MAX;

/// Index of the slot with this name; [`ABSENT`] if the row has none.
#[must_use]
pub fn slot(row: &Row, name: &str) -> u8 {
    row.slot(name).map_or(ABSENT, narrow)
}

/// Index of the last slot with this name.
#[must_use]
pub fn last_slot(row: &Row, name: &str) -> u8 {
    let at = row.slots.iter().rposition(|s| s.name == name);
    at.map_or(ABSENT, narrow)
}

/// The words of one call, with where each slot begins.
#[derive(Debug, Default)]
pub struct Words {
    /// All of them, as recorded.
    pub words: Vec<i64>,
    starts: Vec<usize>,
}

impl Words {
    /// The words of a call whose row has these slots.
    #[must_use]
    pub fn of(words: Vec<i64>, slots: &[Slot]) -> Self {
        let mut of = Self { words, starts: Vec::new() };
        of.split(slots);
        of
    }

    /// Finds the slots' places in [`Words::words`].
    pub fn split(&mut self, slots: &[Slot]) {
        self.starts.clear();
        let mut at = 0;
        for s in slots {
            self.starts.push(at);
            at += 1;
            if s.list {
                at += self.words.get(at - 1).map_or(0, |n| saturate(*n));
            }
        }
    }
    /// A scalar; `None` if the row has no such slot.
    #[must_use]
    #[inline]
    pub fn get(&self, slot: u8) -> Option<i64> {
        let at = *self.starts.get(usize::from(slot))?;
        self.words.get(at).copied()
    }
    /// A scalar, 0 if the row has no such slot.
    #[must_use]
    #[inline]
    pub fn one(&self, slot: u8) -> i64 {
        self.get(slot).unwrap_or(0)
    }
    /// A list, empty if the row has no such slot.
    #[must_use]
    #[inline]
    pub fn list(&self, slot: u8) -> &[i64] {
        let Some(&at) = self.starts.get(usize::from(slot)) else { return &[] };
        let n: usize = self.words.get(at).map_or(0, |n| saturate(*n));
        self.words.get(at + 1..at + 1 + n).unwrap_or(&[])
    }
}
