//! Chances of sixteen ways, learned and mixed, and a coder of ways by them.
//!
//! Source: Duda 2013, *Asymmetric numeral systems* (arXiv 1311.2540), and the compressor LZNA: rows of chances that move towards
//! what comes, all of a row at once. All is in integers, so that every machine reads what any has written.

use std::hint::select_unpredictable;

use st_model::num::{Exact as _, narrow};

/// Ways that a place leads to at most.
pub(super) const WAYS: usize = 16;
/// All chances of a row.
pub(super) const ALL: u16 = 32767;
/// All of two weights: with them no start exceeds 32750, so that each of 16 ways gets a chance more.
const WEIGHTS: u16 = 65503;
/// What the first row's weight is at first, and at least; so is that of the second.
pub(super) const HALF: u16 = WEIGHTS / 2;
const LEAST: i32 = 256;
/// How fast weights move.
const FAST: i32 = 1024;
/// A row of a context is learned from in parts of so many and a half at least; one that has none, which is seen more often, from
/// the start as if it had been [`BEFORE`] times, and down to smaller parts.
const SEEN: u16 = 126;
const SEEN_ALONE: u16 = 250;
const BEFORE: u16 = 4;
/// What a state is at least between two ways, and at first.
const BOTTOM: u32 = 1 << 16;
/// Bits of a state that say which way it is.
const BITS: u32 = 15;

/// Where the chances of ways begin in all of them, one after the other, and how often a row was learned from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(64))]
pub(super) struct Row {
    from: [u16; WAYS + 1],
    seen: u16,
}

/// A row that nothing has been put into.
pub(super) const EMPTY: Row = Row { from: [0; WAYS + 1], seen: 0 };

/// The part that is learned, by how often was, in 65536ths: at most a half, then twice 1 / (2 s + 3).
static PARTS: [i16; 256] = {
    let (mut parts, mut i, mut twice) = ([i16::MAX; 256], 1, 5);
    while i < parts.len() {
        let part: u32 = (1 << 17) / twice;
        #[expect(clippy::cast_possible_truncation, reason = "at most 26214")]
        {
            parts[i] = part as i16;
        }
        (i, twice) = (i + 1, twice + 2);
    }
    parts
};

/// By way: ones where starts are behind it.
static BEHIND: [[u16; WAYS]; WAYS] = {
    let (mut behind, mut way) = ([[0; WAYS]; WAYS], 0);
    while way < WAYS {
        let mut i = way + 1;
        while i < WAYS {
            behind[way][i] = ALL;
            i += 1;
        }
        way += 1;
    }
    behind
};

impl Row {
    /// Of ways that begin there.
    pub(super) fn new(from: [u16; WAYS + 1]) -> Self {
        Self { from, seen: 0 }
    }

    /// Takes over another one, if nothing has been put into this.
    #[inline(always)]
    fn fill(&mut self, with: &Self) {
        if self.from[WAYS] == 0 {
            *self = *with;
        }
    }

    #[inline(always)]
    fn chance(&self, way: usize) -> i32 {
        i32::from(self.from[(way & 15) + 1]) - i32::from(self.from[way & 15])
    }

    /// How sure it is, from 0 to 7.
    #[inline(always)]
    fn sure(&self) -> usize {
        (u16::BITS - self.seen.leading_zeros()).to_usize() & 7
    }

    /// Moves towards a way: starts up to it down to 0, those behind it up to [`ALL`], each by a part of how far that is. What is behind
    /// is turned around for it, so that rounding leaves no rest on either side.
    #[inline(always)]
    fn learn(&mut self, way: usize, part: i16) {
        let behind = &BEHIND[way & 15];
        for (from, turn) in self.from.iter_mut().zip(behind) {
            let far = (*from ^ turn).cast_signed();
            let step = ((i32::from(far.wrapping_neg()) * i32::from(part)) >> 16) as i16;
            *from = far.wrapping_add(step).cast_unsigned() ^ turn;
        }
    }
}

/// Where the chances of ways begin, in 32768ths: each way has one at least.
pub(super) struct Chances([u16; WAYS + 1]);

impl Chances {
    /// Those of two rows, of which the first has this weight.
    #[inline(always)]
    fn of(first: &Row, second: &Row, weight: u16) -> Self {
        let mut out = [1 << BITS; WAYS + 1];
        let rest = WEIGHTS - weight;
        let part = |from: u16, weight: u16| ((u32::from(from) * u32::from(weight)) >> 16) as u16;
        for (i, start) in (0..).zip(&mut out[..WAYS]) {
            let at = usize::from(i);
            *start = part(first.from[at], weight) + part(second.from[at], rest) + i;
        }
        Self(out)
    }

    #[inline(always)]
    fn start(&self, way: usize) -> u32 {
        self.0[way & 15].into()
    }

    #[inline(always)]
    fn chance(&self, way: usize) -> u32 {
        u32::from(self.0[(way & 15) + 1]) - self.start(way)
    }

    /// The way in whose part a number below 32768 is.
    #[inline(always)]
    fn way(&self, at: u16) -> usize {
        // No branch: which way it is cannot be foreseen.
        [8, 4, 2, 1].into_iter().fold(0, |way, step| {
            let next = (way + step) & 15;
            select_unpredictable(self.0[next] <= at, next, way)
        })
    }
}

/// Codes ways into bytes, or bytes into ways.
pub(super) trait Coder {
    /// Codes a way, which an encoder asks for; the way that was coded.
    fn code(&mut self, chances: &Chances, way: impl FnOnce() -> usize) -> usize;
}

/// Makes bytes.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    /// Start and chance of each way: what comes first is coded last.
    steps: Vec<(u16, u16)>,
}

impl Encoder {
    pub(super) fn finish(self) -> Vec<u8> {
        let (mut state, mut words) = (BOTTOM, Vec::<u16>::new());
        for (start, chance) in self.steps.into_iter().rev() {
            let chance = u32::from(chance);
            if state >> (32 - BITS) >= chance {
                words.push(narrow(state & 0xffff));
                state >>= 16;
            }
            state = ((state / chance) << BITS) + state % chance + u32::from(start);
        }
        let mut out = state.to_le_bytes().to_vec();
        out.extend(words.iter().rev().flat_map(|word| word.to_le_bytes()));
        out
    }
}

impl Coder for Encoder {
    #[inline(always)]
    fn code(&mut self, chances: &Chances, way: impl FnOnce() -> usize) -> usize {
        let way = way();
        self.steps.push((narrow(chances.start(way)), narrow(chances.chance(way))));
        way
    }
}

/// Reads bytes.
#[derive(Debug)]
pub(super) struct Decoder {
    state: u32,
    words: Vec<u16>,
    /// Words that were read, of those that are there and of zeros after them.
    at: usize,
}

impl Decoder {
    pub(super) fn new(src: &[u8]) -> Option<Self> {
        let (state, src) = src.split_first_chunk()?;
        let (words, rest) = src.as_chunks();
        let words = words.iter().map(|word| u16::from_le_bytes(*word)).collect();
        rest.is_empty().then(|| Self { state: u32::from_le_bytes(*state), words, at: 0 })
    }

    /// Whether more was asked for than there is.
    pub(super) fn is_over(&self) -> bool {
        self.at > self.words.len()
    }

    /// Whether all words were used, and led to where an encoder began.
    pub(super) fn is_done(&self) -> bool {
        self.at == self.words.len() && self.state == BOTTOM
    }
}

impl Coder for Decoder {
    #[inline(always)]
    fn code(&mut self, chances: &Chances, _: impl FnOnce() -> usize) -> usize {
        let at = self.state & ((1 << BITS) - 1);
        let way = chances.way(at as u16);
        let state = chances.chance(way) * (self.state >> BITS) + at - chances.start(way);
        let word = self.words.get(self.at).map_or(0, |word| u32::from(*word));
        // No branch: whether a state needs a word cannot be foreseen.
        let needs = state < BOTTOM;
        self.state = select_unpredictable(needs, state << 16 | word, state);
        self.at += usize::from(needs);
        way
    }
}

/// The first row's weight in two, by how sure both are.
pub(super) type Weights = [[u16; 8]; 8];

/// Codes a way by what the rows of two contexts say of it, and learns. Rows that nothing has been put into begin like another one.
#[inline(always)]
pub(super) fn mixed<C: Coder>(
    coder: &mut C,
    way: impl FnOnce() -> usize,
    begin: &Row,
    [first, second]: [&mut Row; 2],
    weights: &mut Weights,
) -> usize {
    first.fill(begin);
    second.fill(begin);
    let weight = &mut weights[first.sure()][second.sure()];
    let chances = Chances::of(first, second, *weight);
    let way = coder.code(&chances, way);
    // Along the slope of the way's length in bits.
    let slope =
        (first.chance(way) - second.chance(way)) * FAST / i32::from(narrow::<u16>(chances.chance(way)));
    let moved = (i32::from(*weight) + slope).clamp(LEAST, i32::from(WEIGHTS) - LEAST);
    *weight = narrow(moved);
    for row in [first, second] {
        row.learn(way, PARTS[usize::from(row.seen) & 255]);
        row.seen += u16::from(row.seen < SEEN);
    }
    way
}

/// Codes a way by what one row says of it, and learns.
#[inline(always)]
pub(super) fn alone<C: Coder>(coder: &mut C, way: impl FnOnce() -> usize, row: &mut Row) -> usize {
    let way = coder.code(&Chances::of(row, row, HALF), way);
    row.learn(way, PARTS[usize::from(row.seen + BEFORE) & 255]);
    row.seen += u16::from(row.seen < SEEN_ALONE);
    way
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever comes: starts stay in order, so that each way has a chance, and a number leads to the way whose part it is in.
        #[test]
        fn each_way_keeps_a_chance(
            ways in prop::collection::vec((0..WAYS, 1usize..200), 1..20), weight in 256u16..65_248, at in 0u16..32_768,
        ) {
            let mut rows = [Row::new([0, 9, 9, 9, 40, 50, 60, 70, 80, 90, 100, 1_000, 2_000, 3_000, ALL, ALL, ALL]); 2];
            for (i, (way, times)) in ways.into_iter().enumerate() {
                for part in &PARTS[..times] {
                    rows[i % 2].learn(way, *part);
                }
            }
            let chances = Chances::of(&rows[0], &rows[1], weight);
            prop_assert!(rows.iter().all(|row| row.from.is_sorted() && row.from[0] == 0 && row.from[WAYS] == ALL));
            prop_assert!(chances.0.is_sorted_by(|a, b| a < b) && chances.0[0] == 0 && chances.0[WAYS] == 1 << BITS);
            let way = chances.way(at);
            prop_assert!(chances.0[way] <= at && at < chances.0[way + 1]);
        }
    }
}
