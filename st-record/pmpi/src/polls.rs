//! Series of failed polls: one event with a count.
//!
//! What the program does between its polls is computation, as between any calls: it stands before the series, so that this takes as long
//! as the program was in MPI. A loop that does nothing but poll takes a moment between two of them, which is part of its polling.

use st_model::section::Sym;

/// How a call may repeat the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Repeat {
    /// Not at all.
    Never,
    /// A poll: while it fails.
    WhileFailing,
    /// Always (`MPI_Wtime`).
    Always,
}

/// From one poll to the next takes less in a loop that does nothing else, recording included, ns.
const BETWEEN: i64 = 1_000;

/// An event that may still grow.
#[derive(Debug, Default)]
pub(crate) struct Series {
    pub(crate) sym: Sym,
    /// Its words; the last one is the number of calls.
    pub(crate) words: Vec<i64>,
    /// As long before its exit as it took, without what the program did between its calls.
    pub(crate) enter: i64,
    pub(crate) exit: i64,
    open: bool,
}

impl Series {
    /// Whether an event waits.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Adds a call like those before; `false` if it is not one. `words` end with the count 1.
    pub(crate) fn grow(&mut self, sym: Sym, words: &[i64], enter: i64, exit: i64) -> bool {
        let Some(((times, mine), (_, theirs))) = self.words.split_last_mut().zip(words.split_last()) else {
            return false;
        };
        if !self.open || self.sym != sym || mine != theirs {
            return false;
        }
        *times += 1;
        let between = enter.saturating_sub(self.exit);
        if between >= BETWEEN {
            self.enter = self.enter.saturating_add(between);
        }
        self.exit = exit;
        true
    }

    /// Begins with a first call.
    pub(crate) fn begin(&mut self, sym: Sym, words: &[i64], enter: i64, exit: i64) {
        self.words.clear();
        self.words.extend_from_slice(words);
        (self.sym, self.enter, self.exit, self.open) = (sym, enter, exit, true);
    }

    /// Ends it.
    pub(crate) fn close(&mut self) {
        self.open = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_calls_fold_and_others_do_not() {
        let mut s = Series::default();
        assert!(!s.grow(1, &[5, 1], 2, 3));
        s.begin(1, &[5, 1], 2, 3);
        assert!(s.grow(1, &[5, 1], 5, 7) && s.grow(1, &[5, 1], 8, 9));
        assert!(!s.grow(2, &[5, 1], 9, 10) && !s.grow(1, &[6, 1], 9, 10) && !s.grow(1, &[5, 6, 1], 9, 10));
        assert_eq!((s.words.as_slice(), s.enter, s.exit, s.is_open()), ([5, 3].as_slice(), 2, 9, true));
        s.close();
        assert!(!s.grow(1, &[5, 1], 9, 10));
    }

    #[test]
    fn what_is_done_between_polls_is_before_them() {
        let mut s = Series::default();
        s.begin(1, &[1], 100, 160);
        // A moment of the loop's own; then work, twice.
        assert!(s.grow(1, &[1], 400, 440));
        assert!(s.grow(1, &[1], 50_440, 50_470) && s.grow(1, &[1], 90_470, 90_520));
        // Computation before it, and time in it: 60 + 240 + 40, 30, 50.
        assert_eq!((s.enter - 100, s.exit - s.enter), (90_000, 420));
    }
}
