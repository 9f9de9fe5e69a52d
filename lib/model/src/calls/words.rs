//! Words of a call by slot.

use crate::calls::{Row, Slot};

/// No such slot.
pub const ABSENT: u8 = u8::MAX;

/// Index of the slot with this name; [`ABSENT`] if the row has none.
#[must_use]
pub fn slot(row: &Row, name: &str) -> u8 {
    row.slot(name).and_then(|i| u8::try_from(i).ok()).unwrap_or(ABSENT)
}

/// Index of the last slot with this name.
#[must_use]
pub fn last_slot(row: &Row, name: &str) -> u8 {
    let at = row.slots.iter().rposition(|s| s.name == name);
    at.and_then(|i| u8::try_from(i).ok()).unwrap_or(ABSENT)
}

/// The words of one call, with where each slot begins.
#[derive(Debug, Default)]
pub struct Words {
    /// All of them, as recorded.
    pub words: Vec<i64>,
    starts: Vec<usize>,
}

impl Words {
    /// Finds the slots' places in [`Words::words`].
    pub fn split(&mut self, slots: &[Slot]) {
        self.starts.clear();
        let mut at = 0;
        for s in slots {
            self.starts.push(at);
            at += 1;
            if s.list {
                at += usize::try_from(self.words.get(at - 1).copied().unwrap_or(0)).unwrap_or(0);
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
        let n = self.words.get(at).and_then(|n| usize::try_from(*n).ok()).unwrap_or(0);
        self.words.get(at + 1..at + 1 + n).unwrap_or(&[])
    }
}
