//! Columns of integers written as streams ([`Sealed`]): what is regular over ranks takes no space per rank.
//!
//! Such a column does not say how long it is, and a short one can stand for any number of values. Whoever reads things
//! out of it therefore keeps a [`Budget`] of how many of them there may be.

use super::bytes::{checked, get_bytes, last, put_bytes};
use super::error::DecodeError;
use st_model::ints::{Cursor, Ints, Sealed};
use st_model::num::{narrow, saturate};
use st_model::ranklist::RankList;
use st_model::ranks::{RankSeq, Run};

/// Things of one kind that a payload may hold beyond what its bytes would show.
pub(crate) const MOST: usize = 1 << 22;

/// `N` columns being written.
#[derive(Debug)]
pub(crate) struct Numbers<const N: usize>([Ints; N]);

impl<const N: usize> Numbers<N> {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| Ints::new()))
    }
    pub(crate) fn put(&mut self, column: usize, value: i64) {
        self.0[column].push(value);
    }
    pub(crate) fn put_len(&mut self, column: usize, len: usize) {
        self.put(column, narrow(len));
    }
    /// The heads of all columns, then their values, each with its length in bytes.
    pub(crate) fn finish(self, out: &mut Vec<u8>) {
        let (mut heads, mut values) = (Vec::new(), Vec::new());
        self.0.into_iter().for_each(|c| c.seal().encode(&mut heads, &mut values));
        put_bytes(out, &heads);
        put_bytes(out, &values);
    }
}

/// The columns that [`Numbers::finish`] wrote.
pub(crate) fn get_columns<const N: usize>(src: &mut &[u8]) -> Result<[Sealed; N], DecodeError> {
    let (mut heads, mut values) = (get_bytes(src)?, get_bytes(src)?);
    let mut out = [const { None }; N];
    for column in &mut out {
        *column = Some(Sealed::decode(&mut heads, &mut values)?);
    }
    super::bytes::finish(heads)?;
    super::bytes::finish(values)?;
    Ok(out.map(Option::unwrap_or_default))
}

/// `N` columns being read.
#[derive(Debug)]
pub(crate) struct Readers<'a, const N: usize>([Cursor<'a>; N]);

impl<'a, const N: usize> Readers<'a, N> {
    pub(crate) fn new(columns: &'a [Sealed; N]) -> Self {
        Self(columns.each_ref().map(Sealed::cursor))
    }
    pub(crate) fn get(&mut self, column: usize) -> i64 {
        self.0[column].next()
    }
    /// A number of things, taken from what there may be of them.
    pub(crate) fn get_len(&mut self, column: usize, budget: &mut Budget) -> Result<usize, DecodeError> {
        let n = usize::try_from(self.get(column)).map_err(|_| DecodeError::Integer)?;
        budget.take(n)?;
        Ok(n)
    }
}

/// How many things may still come.
#[derive(Debug)]
pub(crate) struct Budget(usize);

impl Budget {
    pub(crate) fn new(things: usize) -> Self {
        Self(things)
    }
    pub(crate) fn take(&mut self, n: usize) -> Result<(), DecodeError> {
        self.0 = self.0.checked_sub(n).ok_or(DecodeError::Invalid("more than a trace can hold"))?;
        Ok(())
    }
}

/// Bits of a word of a bitmap: a byte each, before compression.
const WORD: u32 = 6;

/// Number of columns of a set or a sequence.
pub(crate) const RUNS: usize = 4;

/// A set in columns `at` to `at + 3`: 0 for all ranks of the section, else 1 + number of runs; per run the distance of
/// its first rank from the last rank before it, less 1 (for the first run, the rank); the number of its ranks less one;
/// and, if there are several, their step less one. Or, if that is fewer numbers, the negative number of words of a bitmap;
/// its first rank; and the words, in the third column.
pub(crate) fn put_set<const N: usize>(n: &mut Numbers<N>, at: usize, ranks: &RankList, all: &RankList) {
    if ranks == all {
        n.put(at, 0);
        return;
    }
    if let Some((first, words)) = bitmap(ranks) {
        n.put(at, -narrow::<i64>(words.len()));
        n.put(at + 1, first.into());
        words.iter().for_each(|word| n.put(at + 2, *word));
        return;
    }
    n.put_len(at, ranks.runs().len() + 1);
    let mut next = 0;
    for r in ranks.runs().iter() {
        n.put(at + 1, r.start.wrapping_sub(next));
        n.put(at + 2, more(r));
        if r.n > 1 {
            n.put(at + 3, r.step.wrapping_sub(1));
        }
        next = last(r).wrapping_add(1);
    }
}

pub(crate) fn get_set<const N: usize>(
    n: &mut Readers<'_, N>,
    at: usize,
    all: &RankList,
    budget: &mut Budget,
) -> Result<RankList, DecodeError> {
    let count = n.get(at);
    let things = usize::try_from(count.unsigned_abs()).map_err(|_| DecodeError::Integer)?;
    budget.take(things)?;
    let runs = match count {
        0 => return Ok(all.clone()),
        ..0 => return get_bitmap(n, at, things),
        _ => things,
    };
    let mut next = 0i64;
    let mut list = Vec::new();
    for _ in 1..runs {
        let start = n.get(at + 1).checked_add(next).ok_or(DecodeError::Integer)?;
        let more = n.get(at + 2);
        let step = if more > 0 { n.get(at + 3).checked_add(1).ok_or(DecodeError::Integer)? } else { 0 };
        let ranks = u64::try_from(more).ok().and_then(|m| m.checked_add(1)).ok_or(DecodeError::Integer)?;
        let run = checked(Run { start, step, n: ranks })?;
        next = last(&run) + 1;
        list.push(run);
    }
    RankList::from_runs(list).ok_or(DecodeError::Invalid("ranks are not ascending"))
}

/// The lowest rank of a set and a bitmap from there, if that takes fewer numbers than its runs.
fn bitmap(ranks: &RankList) -> Option<(u32, Vec<i64>)> {
    let (first, last) = (ranks.lowest()?, ranks.highest()?);
    let words = usize::try_from((last - first) / WORD + 1).ok()?;
    let runs: usize = ranks.runs().iter().map(|r| 2 + usize::from(r.n > 1)).sum();
    if words >= runs {
        return None;
    }
    let mut out = vec![0; words];
    for bit in ranks.iter().map(|rank| rank - first) {
        if let Some(word) = usize::try_from(bit / WORD).ok().and_then(|at| out.get_mut(at)) {
            *word |= 1 << (bit % WORD);
        }
    }
    Some((first, out))
}

fn get_bitmap<const N: usize>(
    n: &mut Readers<'_, N>,
    at: usize,
    words: usize,
) -> Result<RankList, DecodeError> {
    let mut next = n.get(at + 1);
    let mut ranks = Vec::new();
    for _ in 0..words {
        let word = n.get(at + 2);
        if !(0..1 << WORD).contains(&word) {
            return Err(DecodeError::Invalid("no word of a bitmap"));
        }
        for bit in (0..WORD).filter(|bit| word >> bit & 1 == 1) {
            let rank = next.checked_add(bit.into()).and_then(|rank| u32::try_from(rank).ok());
            ranks.push(rank.ok_or(DecodeError::Integer)?);
        }
        next = next.checked_add(WORD.into()).ok_or(DecodeError::Integer)?;
    }
    Ok(ranks.into_iter().collect())
}

/// A sequence in columns `at` to `at + 3`: its number of runs + `offset`; per run the distance of its first rank from the
/// last rank before it (for the first run, the rank); the number of its ranks less one; and, if there are several, their
/// step.
pub(crate) fn put_seq<const N: usize>(n: &mut Numbers<N>, at: usize, seq: &RankSeq, offset: usize) {
    n.put_len(at, seq.runs().len() + offset);
    let mut before = 0;
    for r in seq.runs().iter() {
        n.put(at + 1, r.start.wrapping_sub(before));
        n.put(at + 2, more(r));
        if r.n > 1 {
            n.put(at + 3, r.step);
        }
        before = last(r);
    }
}

/// A sequence of so many runs.
pub(crate) fn get_seq<const N: usize>(
    n: &mut Readers<'_, N>,
    at: usize,
    runs: usize,
) -> Result<RankSeq, DecodeError> {
    let (mut before, mut total) = (0i64, 0u64);
    let mut list = Vec::new();
    for _ in 0..runs {
        let start = n.get(at + 1).checked_add(before).ok_or(DecodeError::Integer)?;
        let more = n.get(at + 2);
        let step = if more > 0 { n.get(at + 3) } else { 0 };
        let ranks = u64::try_from(more).ok().and_then(|m| m.checked_add(1)).ok_or(DecodeError::Integer)?;
        let run = checked(Run { start, step, n: ranks })?;
        total = total.checked_add(run.n).filter(|t| *t < 1 << 32).ok_or(DecodeError::Integer)?;
        before = last(&run);
        list.push(run);
    }
    Ok(RankSeq::from_runs(list))
}

fn more(r: &Run) -> i64 {
    saturate(r.n.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes sets, reads them, and returns the bytes between.
    fn bytes(sets: &[RankList], all: &RankList) -> Vec<u8> {
        let mut n = Numbers::<RUNS>::new();
        sets.iter().for_each(|s| put_set(&mut n, 0, s, all));
        let mut out = Vec::new();
        n.finish(&mut out);
        let mut src = &out[..];
        let columns = get_columns::<RUNS>(&mut src).unwrap();
        let (mut read, mut budget) = (Readers::new(&columns), Budget::new(MOST));
        let back: Vec<_> = sets.iter().map(|_| get_set(&mut read, 0, all, &mut budget).unwrap()).collect();
        assert_eq!(back, sets);
        out
    }

    proptest! {
        #[test]
        fn sets_read_back(sets in prop::collection::vec(prop::collection::btree_set(0u32..300, 1..200), 0..6)) {
            let sets: Vec<RankList> = sets.into_iter().map(|s| s.into_iter().collect()).collect();
            bytes(&sets, &RankList::first(300));
        }

        #[test]
        fn sequences_read_back(all in prop::collection::vec(prop::collection::vec(0u32..40, 0..12), 0..6)) {
            let all: Vec<RankSeq> = all.into_iter().map(RankSeq::from_iter).collect();
            let mut n = Numbers::<RUNS>::new();
            all.iter().for_each(|s| put_seq(&mut n, 0, s, 5));
            let mut out = Vec::new();
            n.finish(&mut out);
            let columns = get_columns::<RUNS>(&mut &out[..]).unwrap();
            let mut read = Readers::new(&columns);
            for seq in all {
                let runs = usize::try_from(read.get(0)).unwrap() - 5;
                prop_assert_eq!(get_seq(&mut read, 0, runs).unwrap(), seq);
            }
        }

        #[test]
        fn any_numbers_can_be_asked(values in prop::collection::vec(-9i64..70, 4..40)) {
            let column = || values.iter().copied().collect::<Sealed>();
            let columns = [column(), column(), column(), column()];
            let (mut read, mut budget) = (Readers::new(&columns), Budget::new(1000));
            for _ in 0..100 {
                // What is taken for a set is one.
                if let Ok(set) = get_set(&mut read, 0, &RankList::first(7), &mut budget) {
                    prop_assert_eq!(RankList::from_runs(set.runs().iter().copied()), Some(set));
                }
            }
        }
    }

    /// What is read for a set, of the numbers in its four columns.
    fn set(columns: [&[i64]; RUNS], budget: usize) -> Result<RankList, DecodeError> {
        let columns = columns.map(|c| c.iter().copied().collect::<Sealed>());
        get_set(&mut Readers::new(&columns), 0, &RankList::first(7), &mut Budget::new(budget))
    }

    #[test]
    fn what_is_no_set_is_refused() {
        // Two runs of two ranks each, 3 and 4, 9 and 10; as it is, and with the second before, at and over the first.
        let two_runs = |distance| set([&[3], &[3, distance], &[1, 1], &[0, 0]], MOST);
        assert_eq!(two_runs(4).unwrap(), [3, 4, 9, 10].into_iter().collect());
        for distance in [-1, -2, -4, i64::MAX] {
            assert!(two_runs(distance).is_err(), "{distance}");
        }
        // More ranks than there can be, fewer than one, and a step that goes nowhere.
        assert!(set([&[2], &[3], &[1 << 40], &[0]], MOST).is_err());
        assert!(set([&[2], &[3], &[-1], &[0]], MOST).is_err());
        assert!(set([&[2], &[3], &[1], &[-1]], MOST).is_err());
        // A bitmap's words are of six bits, and its ranks are ranks.
        assert_eq!(set([&[-1], &[3], &[0b100_001], &[]], MOST).unwrap(), [3, 8].into_iter().collect());
        assert!(set([&[-1], &[3], &[64], &[]], MOST).is_err());
        assert!(set([&[-1], &[-3], &[1], &[]], MOST).is_err());
    }

    #[test]
    fn no_more_is_read_than_may_come() {
        // Runs, and words of a bitmap.
        for columns in [[&[3][..], &[3, 4], &[1, 1], &[0, 0]], [&[-3], &[3], &[1, 1, 1], &[]]] {
            assert!(set(columns, 3).is_ok());
            assert!(set(columns, 2).is_err());
        }
        let columns = [[9].into_iter().collect::<Sealed>()];
        let mut budget = Budget::new(17);
        assert_eq!(Readers::new(&columns).get_len(0, &mut budget).unwrap(), 9);
        assert!(Readers::new(&columns).get_len(0, &mut budget).is_err());
    }

    #[test]
    fn sets_without_structure_are_bitmaps() {
        // Squares modulo a prime: half of all numbers, in no order.
        let dense: RankList = (1u32..500).map(|i| i * i % 1009).collect();
        let words = 1009 / 6 + 2;
        assert!(bitmap(&dense).is_some());
        assert!(bytes(std::slice::from_ref(&dense), &RankList::first(1009)).len() < words + 20);
        for sparse in [RankList::first(1000), [3, 1_000_000].into_iter().collect()] {
            assert_eq!(bitmap(&sparse), None);
        }
    }
}
