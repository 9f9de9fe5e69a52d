//! Series of failed polls: one event with a count.

use st_model::section::Sym;
use st_unwind::{Proof, Registers};

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

/// An event that may still grow.
#[derive(Debug, Default)]
pub(crate) struct Series {
    pub(crate) sym: Sym,
    /// Its words; the last one is the number of calls.
    pub(crate) words: Vec<i64>,
    pub(crate) enter: i64,
    pub(crate) exit: i64,
    open: bool,
    stack: Option<SeriesStack>,
}

/// Where the calls of a series come from, of this one or of one before.
#[derive(Debug)]
struct SeriesStack {
    call: u16,
    sym: Sym,
    proof: Proof,
}

impl Series {
    /// Whether an event waits.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Adds a call like those before; `false` if it is not one. `words` end with the count 1.
    pub(crate) fn grow(&mut self, sym: Sym, words: &[i64], exit: i64) -> bool {
        let Some(((times, mine), (_, theirs))) = self.words.split_last_mut().zip(words.split_last()) else {
            return false;
        };
        if !self.open || self.sym != sym || mine != theirs {
            return false;
        }
        *times += 1;
        self.exit = exit;
        true
    }

    /// Adds a call that is known to be like those before, and tells how many there are; nothing if none wait.
    #[inline]
    pub(crate) fn again(&mut self, exit: i64) -> Option<i64> {
        let times = self.words.last_mut().filter(|_| self.open)?;
        *times += 1;
        self.exit = exit;
        Some(*times)
    }

    /// Whether a call of a function comes from where those that wait do, if that is remembered.
    ///
    /// # Safety
    ///
    /// The function in which the registers were captured must not have returned, and must run on the series' thread.
    #[inline]
    pub(crate) unsafe fn is_from(&self, call: u16, registers: &Registers) -> bool {
        self.stack.as_ref().is_some_and(|stack| {
            let same = self.open && self.sym == stack.sym && stack.call == call;
            // SAFETY: the caller's promise.
            same && unsafe { stack.proof.holds(registers) }
        })
    }

    /// Remembers where its calls come from.
    #[cold]
    pub(crate) fn remember(&mut self, call: u16, proof: Option<Proof>) {
        let sym = self.sym;
        self.stack = proof.map(|proof| SeriesStack { call, sym, proof });
    }

    /// Number of calls, if any wait.
    #[inline]
    pub(crate) fn times(&self) -> Option<i64> {
        self.words.last().copied().filter(|_| self.open)
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
        assert!(!s.grow(1, &[5, 1], 3));
        s.begin(1, &[5, 1], 2, 3);
        assert!(s.grow(1, &[5, 1], 7) && s.grow(1, &[5, 1], 9));
        assert!(!s.grow(2, &[5, 1], 10) && !s.grow(1, &[6, 1], 10) && !s.grow(1, &[5, 6, 1], 10));
        assert_eq!((s.words.as_slice(), s.enter, s.exit, s.is_open()), ([5, 3].as_slice(), 2, 9, true));
        assert_eq!((s.again(11), s.times(), s.exit), (Some(4), Some(4), 11));
        s.close();
        assert!(!s.grow(1, &[5, 1], 12));
        assert_eq!((s.again(12), s.times(), s.exit), (None, None, 11));
    }
}
