//! Reading the words of one call in slot order.

use st_model::calls::{Meaning, Row, Slot};

/// The words of a call end before its slots do, or do not fit their C type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Fewer words than the row has slots.
    #[error("fewer words than parameters")]
    Short,
    /// A value that MPI has no room for.
    #[error("{0} does not fit a C int")]
    Wide(i64),
}

/// The words of a call that have not been read yet.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    rest: &'a [i64],
}

impl<'a> Words<'a> {
    /// Words in slot order.
    #[must_use]
    pub fn new(words: &'a [i64]) -> Self {
        Self { rest: words }
    }

    /// The next scalar slot.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn word(&mut self) -> Result<i64, Malformed> {
        let (&first, rest) = self.rest.split_first().ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(first)
    }

    fn one(&mut self) -> Result<&'a [i64], Malformed> {
        let (one, rest) = self.rest.split_at_checked(1).ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(one)
    }

    /// The next scalar slot as a C `int`.
    ///
    /// # Errors
    ///
    /// If there is none or it does not fit.
    pub fn int(&mut self) -> Result<i32, Malformed> {
        let word = self.word()?;
        i32::try_from(word).map_err(|_| Malformed::Wide(word))
    }

    /// The next list slot.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn list(&mut self) -> Result<&'a [i64], Malformed> {
        let n = usize::try_from(self.word()?).map_err(|_| Malformed::Short)?;
        let (list, rest) = self.rest.split_at_checked(n).ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(list)
    }

    /// The next list slot as C `int`s.
    ///
    /// # Errors
    ///
    /// If there is none or an element does not fit.
    pub fn ints(&mut self) -> Result<Vec<i32>, Malformed> {
        self.list()?.iter().map(|&w| i32::try_from(w).map_err(|_| Malformed::Wide(w))).collect()
    }
}

/// The words of a call's first slot that is wanted: one, or a list's elements. Nothing if there is no such slot.
#[must_use]
pub fn slot<'w>(row: &Row, words: &'w [i64], mut wanted: impl FnMut(&Slot) -> bool) -> &'w [i64] {
    let mut rest = Words::new(words);
    for slot in &row.slots {
        let found = if slot.list { rest.list() } else { rest.one() };
        match found {
            Ok(found) if wanted(slot) => return found,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    &[]
}

/// Whether the words are of a poll that found nothing: its flag is 0, or (`MPI_Testsome`, which has no flag) it
/// completed nothing.
#[must_use]
pub fn failed_poll(row: &Row, words: &[i64]) -> bool {
    if !row.properties.poll {
        return false;
    }
    let has_flag = row.slot("flag").is_some();
    let mut rest = Words::new(words);
    for slot in &row.slots {
        let decides =
            if has_flag { slot.meaning == Meaning::Flag } else { slot.meaning == Meaning::Position };
        let found = if slot.list { rest.list().map(|l| !l.is_empty()) } else { rest.word().map(|w| w != 0) };
        match found {
            Ok(found) if decides => return !found,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_model::calls::CallTable;

    #[test]
    fn words_are_read_in_slot_order_and_never_past_the_end() {
        let mut w = Words::new(&[7, 2, 3, 4, 1 << 40]);
        assert_eq!(w.int(), Ok(7));
        assert_eq!(w.ints(), Ok(vec![3, 4]));
        assert_eq!(w.int(), Err(Malformed::Wide(1 << 40)));
        assert_eq!(w.word(), Err(Malformed::Short));
        assert_eq!(Words::new(&[2, 1]).list(), Err(Malformed::Short));
        assert_eq!(Words::new(&[-1]).list(), Err(Malformed::Short));
    }

    #[test]
    fn a_failed_poll_is_told_by_its_flag_or_its_empty_completion() {
        let row = |name| CallTable::builtin().by_name(name).unwrap();
        // requests[1] flag completed source tag bytes times
        assert!(failed_poll(row("MPI_Test"), &[1, 5, 0, 0, 0, 0, 0, 9]));
        assert!(!failed_poll(row("MPI_Test"), &[1, 5, 1, 1, 0, 1, 3, 1, 4, 1, 8, 1]));
        // n requests completed source tag bytes times
        assert!(failed_poll(row("MPI_Testsome"), &[1, 1, 5, 0, 0, 0, 0, 9]));
        assert!(!failed_poll(row("MPI_Testsome"), &[1, 1, 5, 1, 0, 1, -9, 1, -9, 1, -9, 1]));
        assert!(!failed_poll(row("MPI_Wait"), &[1, 5, 0, 0, 0, 0]));
    }
}
