//! Looks for loops in a thread's symbols: a period that has come twice in a row.

use st_model::num::Exact;
use st_model::section::{NO_SYM, Sym};

/// Symbols of a period at most.
const LONGEST: u64 = 2048;
/// Symbols that are kept.
const KEPT: usize = 4096;
/// A period has to go on for so long at least: what comes two or three times is mostly part of something longer.
const LEAST: u64 = 4;
/// Pairs of symbols whose latest place is kept, by hash: few at first, for a thread may make few calls, more from so many symbols on.
const PAIRS: [usize; 2] = [64, 4096];
const MANY: u64 = 1024;
/// Longest pause after a period that did not come again, in symbols.
const LONGEST_PAUSE: u64 = 1 << 12;

/// The latest symbols, and a period that they have.
#[derive(Debug, Clone, Default)]
pub(super) struct Finder {
    /// By number modulo [`KEPT`].
    latest: Vec<Sym>,
    /// Number of symbols so far.
    at: u64,
    /// Number after each symbol's latest, by symbol; 0: it has not come.
    after: Vec<u64>,
    /// The same of a symbol and the one before it, by hash: of a loop in which every symbol comes several times pairs tell the period.
    after_pair: Vec<u64>,
    /// The last `run` symbols are those that came a period before.
    period: u64,
    run: u64,
    /// Periods are not told before this many symbols.
    from: u64,
    pause: u64,
}

impl Finder {
    /// Takes the next symbol: how many symbols the period has that has now come twice. Among periods that begin at the same
    /// symbol the one that was found first is kept as long as it goes on: a loop around another is found at a symbol that
    /// the inner one does not have.
    #[inline]
    pub(super) fn note(&mut self, sym: Sym) -> Option<usize> {
        let i = sym.to_usize();
        if self.after.len() <= i {
            self.after.resize(i + 1, 0);
        }
        if self.period > 0 && self.before(self.period) == sym {
            self.run += 1;
        } else {
            let after = self.pair_before(sym).unwrap_or(self.after[i]);
            let since = self.at + 1 - after;
            let found = after > 0 && since <= LONGEST;
            (self.period, self.run) = if found { (since, 1) } else { (0, 0) };
        }
        self.take(sym);
        let twice = self.period > 0 && self.run >= self.period.max(LEAST) && self.at >= self.from;
        twice.then(|| self.period.to_usize())
    }

    /// Takes a symbol that is part of no loop.
    pub(super) fn bar(&mut self) {
        self.take(NO_SYM);
        (self.period, self.run) = (0, 0);
    }

    /// Takes a round's symbols, which have come `whole` times, and then the first `at` of them.
    pub(super) fn note_rounds(&mut self, round: &[Sym], whole: u64, at: usize) {
        let length = round.len().to_u64();
        // Nobody asks for what came before the last round's worth of symbols.
        let mut earlier = round.len();
        if whole > 0 {
            earlier = at;
            self.at += (whole - 1) * length + at.to_u64();
        }
        round[earlier..].iter().chain(&round[..at]).for_each(|sym| self.take(*sym));
        (self.period, self.run) = (length, length);
        // A round that does not come again costs more than it saves.
        self.pause = if whole > 0 { 1 } else { (self.pause * 2).clamp(1, LONGEST_PAUSE) };
        self.from = self.at + self.pause;
    }

    /// Number after a symbol's latest that came after the symbol which has come last, if that is known.
    #[inline]
    fn pair_before(&self, sym: Sym) -> Option<u64> {
        let last = self.before(1);
        let after = *self.after_pair.get(self.pair(last, sym))?;
        let ago = self.at + 1 - after;
        // Another pair may have the hash.
        (after > 1 && ago <= LONGEST && self.before(ago) == sym && self.before(ago + 1) == last)
            .then_some(after)
    }

    /// Where a symbol after another one has its place.
    #[inline]
    fn pair(&self, last: Sym, sym: Sym) -> usize {
        let hash = (last.wrapping_mul(0x9E37_79B1).rotate_left(15) ^ sym).wrapping_mul(0x85EB_CA6B);
        hash.to_usize() >> 20 & self.after_pair.len().saturating_sub(1)
    }

    fn take(&mut self, sym: Sym) {
        match self.at {
            0 => self.after_pair.resize(PAIRS[0], 0),
            MANY => self.after_pair = vec![0; PAIRS[1]],
            _ => {}
        }
        let pair = self.pair(self.before(1), sym);
        if let Some(after) = self.after_pair.get_mut(pair) {
            *after = self.at + 1;
        }
        let place = (self.at % KEPT as u64).to_usize();
        if self.latest.len() <= place {
            self.latest.resize(place + 1, NO_SYM);
        }
        self.latest[place] = sym;
        self.at += 1;
        if let Some(after) = usize::try_from(sym).ok().and_then(|i| self.after.get_mut(i)) {
            *after = self.at;
        }
    }

    /// The symbol that came so many before the next one.
    #[inline]
    fn before(&self, n: u64) -> Sym {
        let place = self.at.wrapping_sub(n) % KEPT as u64;
        self.latest.get(place.to_usize()).copied().unwrap_or(NO_SYM)
    }

    /// The last symbols of a period, the first of which is the next one to come.
    pub(super) fn round(&self, length: usize) -> impl Iterator<Item = Sym> {
        (1..=length).rev().map(|n| self.before(n.to_u64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The period that is found first in a series of symbols, and after how many.
    fn found(symbols: impl IntoIterator<Item = Sym>) -> Option<(usize, usize)> {
        let mut finder = Finder::default();
        symbols.into_iter().zip(1..).find_map(|(sym, n)| Some((finder.note(sym)?, n)))
    }

    /// One call site for all neighbours: the loop of time steps is found, not the loop over neighbours in it.
    #[test]
    fn the_outer_loop_is_found() {
        let step = [1, 1, 1, 1, 2, 2, 2, 2, 3];
        assert_eq!(found(step.repeat(4)), Some((9, 22)));
        assert_eq!(found([1, 2, 3].repeat(4)), Some((3, 7)));
        assert_eq!(found([1, 2, 1, 3].repeat(4)), Some((4, 9)));
    }

    /// Of symbols that all come several times in a round the latest one is never a round ago.
    #[test]
    fn a_loop_without_a_symbol_of_its_own_is_found() {
        assert_eq!(found([1, 1, 2, 1, 2, 2].repeat(4)), Some((6, 13)));
    }

    #[test]
    fn what_comes_four_times_is_a_loop() {
        assert_eq!(found([7; 4]), None);
        assert_eq!(found([7; 5]), Some((1, 5)));
        assert_eq!(found(0..1000), None);
    }

    /// After a round that came again, the next symbol that goes on with it is part of it.
    #[test]
    fn a_round_is_known_again() {
        for (whole, at) in [(0, 2), (1, 0), (5, 1)] {
            let mut finder = Finder::default();
            finder.note(9);
            finder.note_rounds(&[1, 2, 3], whole, at);
            let next: Vec<Sym> = finder.round(3).collect();
            if whole > 0 {
                assert_eq!(next, [[1, 2, 3], [2, 3, 1], [3, 1, 2]][at]);
            }
            assert_eq!(finder.note(8), None);
            assert_eq!(finder.at, whole * 3 + u64::try_from(at).unwrap_or(0) + 2);
        }
    }
}
