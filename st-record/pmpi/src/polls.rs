//! Series of failed polls: one event with a count.
//!
//! What the program does between its polls is computation, as between any calls: it stands before the series, so that this takes as long
//! as the program was in MPI. A loop that does nothing but poll takes a moment between two of them, which is part of its polling.

use st_model::section::Sym;
use st_unwind::{Proof, Registers};
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Times of calls that only ask for the time are wanted.
pub(crate) static QUERY_TIMES: AtomicBool = AtomicBool::new(false);

impl Repeat {
    /// Whether the times of such a call are kept. Those of one that only asks for the time are not, unless wanted: to read the clock
    /// twice takes longer than it does. It is over when it begins, as soon as the call before it has ended.
    #[inline(always)]
    pub(crate) fn keeps_times(self) -> bool {
        self != Self::Always || QUERY_TIMES.load(Ordering::Relaxed)
    }
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
    stack: Option<SeriesStack>,
    /// The unwinder's number of the stack that its last call has come by, if similar ones are taken for one.
    from: u32,
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
    pub(crate) fn grow(&mut self, sym: Sym, words: &[i64], enter: i64, exit: i64) -> bool {
        let Some(((times, mine), (_, theirs))) = self.words.split_last_mut().zip(words.split_last()) else {
            return false;
        };
        if !self.open || self.sym != sym || mine != theirs {
            return false;
        }
        *times += 1;
        self.lengthen(enter, exit);
        true
    }

    /// Adds a call that is known to be like those before, takes but a moment, and has ended now; tells how many there are, nothing if
    /// none wait.
    #[inline]
    pub(crate) fn again(&mut self, exit: i64) -> Option<i64> {
        let times = self.words.last_mut().filter(|_| self.open)?;
        *times += 1;
        let times = *times;
        self.lengthen(exit, exit);
        Some(times)
    }

    /// Ends later, with a call that has begun then.
    #[inline]
    fn lengthen(&mut self, enter: i64, exit: i64) {
        let between = enter.saturating_sub(self.exit);
        if between >= BETWEEN {
            self.enter = self.enter.saturating_add(between);
        }
        // A clock may go back.
        self.exit = exit.max(self.exit);
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

    /// Takes the number of the stack that a call comes by: whether the last one has come by another.
    pub(crate) fn moves(&mut self, from: u32) -> bool {
        let moves = self.from != from;
        if moves {
            (self.from, self.stack) = (from, None);
        }
        moves
    }

    /// Remembers where its calls come from.
    #[cold]
    pub(crate) fn remember(&mut self, call: u16, proof: Option<Proof>) {
        let sym = self.sym;
        self.stack = proof.map(|proof| SeriesStack { call, sym, proof });
    }

    /// Forgets that.
    pub(crate) fn forget(&mut self) {
        self.stack = None;
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

/// How sure it is that a call that always repeats is made once at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Several {
    /// So often it has to be made once before that is taken for its habit.
    singles: u32,
    /// How often that had to be when it was made several times in a row last.
    needed: u32,
}

impl Several {
    /// It has been made again: the habit is believed later than the last time.
    pub(crate) fn again(&mut self) {
        self.needed = (self.needed * 4).clamp(64, 1 << 20);
        self.singles = self.needed;
    }

    /// It has been made once.
    pub(crate) fn once(&mut self) {
        self.singles = self.singles.saturating_sub(1);
    }

    /// Whether making it several times in a row is no habit of it.
    pub(crate) fn is_single(&self) -> bool {
        self.singles == 0
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
        assert_eq!((s.again(11), s.times(), s.exit), (Some(4), Some(4), 11));
        s.close();
        assert!(!s.grow(1, &[5, 1], 11, 12));
        assert_eq!((s.again(12), s.times(), s.exit), (None, None, 11));
    }

    #[test]
    fn who_repeats_is_believed_later_each_time() {
        let mut habit = Several::default();
        assert!(habit.is_single());
        for singles in [64, 256, 1024] {
            habit.again();
            (1..singles).for_each(|_| habit.once());
            assert!(!habit.is_single());
            habit.once();
            assert!(habit.is_single());
        }
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
        // Of calls whose ends alone are known what they take counts where that is near the one before.
        assert_eq!((s.again(90_570), s.again(100_570)), (Some(5), Some(6)));
        assert_eq!((s.enter - 100, s.exit - s.enter), (100_000, 470));
    }
}
