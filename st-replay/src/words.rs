//! Reading the words of one call in slot order.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
