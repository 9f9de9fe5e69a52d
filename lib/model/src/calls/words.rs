//! Words of a call by slot.

use crate::calls::{Meaning, Row, Slot};
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

/// Each slot with its words: one, or a list's elements. It ends where the words do.
pub fn each<'w>(slots: &'w [Slot], words: &'w [i64]) -> impl Iterator<Item = (&'w Slot, &'w [i64])> {
    let mut rest = words;
    slots.iter().map_while(move |slot| {
        let (first, tail) = rest.split_first()?;
        let (n, from) = if slot.list { (usize::try_from(*first).ok()?, tail) } else { (1, rest) };
        let (own, after) = from.split_at_checked(n)?;
        rest = after;
        Some((slot, own))
    })
}

/// The words of the first slot that is wanted; none if there is no such slot.
pub fn find<'w>(row: &'w Row, words: &'w [i64], mut wanted: impl FnMut(&Slot) -> bool) -> &'w [i64] {
    each(&row.slots, words).find(|(slot, _)| wanted(slot)).map_or(&[], |(_, own)| own)
}

/// Whether the words are of a poll that found nothing: its flag is 0, or (`MPI_Testsome`, which has no flag) it completed
/// nothing.
#[must_use]
pub fn found_nothing(row: &Row, words: &[i64]) -> bool {
    let decides = if row.slot("flag").is_some() { Meaning::Flag } else { Meaning::Position };
    row.properties.poll
        && each(&row.slots, words)
            .find(|(slot, _)| slot.meaning == decides)
            .is_some_and(|(slot, own)| if slot.list { own.is_empty() } else { own == [0] })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::CallTable;

    #[test]
    fn a_poll_that_finds_nothing_is_told_by_its_flag_or_its_empty_completion() {
        let row = |name| CallTable::builtin().by_name(name).unwrap();
        // requests[1] flag completed source tag bytes times
        assert!(found_nothing(row("MPI_Test"), &[1, 5, 0, 0, 0, 0, 0, 9]));
        assert!(!found_nothing(row("MPI_Test"), &[1, 5, 1, 1, 0, 1, 3, 1, 4, 1, 8, 1]));
        // n requests completed source tag bytes times
        assert!(found_nothing(row("MPI_Testsome"), &[1, 1, 5, 0, 0, 0, 0, 9]));
        assert!(!found_nothing(row("MPI_Testsome"), &[1, 1, 5, 1, 0, 1, -9, 1, -9, 1, -9, 1]));
        assert!(!found_nothing(row("MPI_Wait"), &[1, 5, 0, 0, 0, 0]));
    }

    #[test]
    fn slots_end_where_words_do() {
        let row = CallTable::builtin().by_name("MPI_Waitall").unwrap();
        let lengths = |words| each(&row.slots, words).map(|(_, own)| own.len()).collect::<Vec<_>>();
        assert_eq!(lengths(&[2, 2, 7, 8, 0]), [1, 2, 0]);
        assert_eq!(lengths(&[2, 2, 7]), [1]);
        assert_eq!(lengths(&[2, -1]), [1]);
        assert_eq!(find(row, &[2, 2, 7, 8], |slot| slot.list), [7, 8]);
        assert!(find(row, &[2], |slot| slot.list).is_empty());
    }
}
