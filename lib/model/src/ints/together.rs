//! Streams read in step, in time of what they repeat instead of their length.

use super::cursor::Cursor;
use crate::num::Exact as _;

/// Streams of which each turn reads some values; how many follows from the values read. Turns that read what earlier ones
/// read are not made again: one stands for them.
///
/// Three ways of coming back are seen: a turn that reads what the one before it read; a short round of turns whose end finds
/// all streams where its beginning found them; and a long round in which there may be such. For either round it is remembered
/// where the streams were after 1, 2, 4, … turns (R. P. Brent 1980, An improved Monte Carlo factorization algorithm, section
/// 7); for the short one anew after each that was found.
///
/// *Cost:* per turn O(streams); turns up to a few times the least common round of the streams, once for each stretch in which
/// they go round.
#[derive(Debug)]
pub struct Together<'a> {
    cursors: Vec<Cursor<'a>>,
    /// Turns made, and turns in all.
    at: u64,
    turns: u64,
    /// Where the last turn began, and how many more it stands for.
    before: Vec<Cursor<'a>>,
    more: u64,
    /// Where a long and a short round may have begun.
    marks: [Mark<'a>; 2],
    /// Rounds in progress, the inner one last.
    rounds: Vec<Round<'a>>,
}

/// A turn that is remembered.
#[derive(Clone, Debug)]
struct Mark<'a> {
    at: u64,
    cursors: Vec<Cursor<'a>>,
    /// Turns made since: when so many are, another is remembered.
    looked: u64,
    patience: u64,
}

/// A round that stands for all that follow it.
#[derive(Debug)]
struct Round<'a> {
    begin: Mark<'a>,
    end: u64,
    times: u64,
    short: bool,
}

impl<'a> Together<'a> {
    /// Before the first of so many turns.
    #[must_use]
    pub fn new(cursors: Vec<Cursor<'a>>, turns: u64) -> Self {
        let mark = || Mark { at: 0, cursors: cursors.clone(), looked: 0, patience: 1 };
        let marks = [mark(), mark()];
        Self { cursors, at: 0, turns, before: Vec::new(), more: 0, marks, rounds: Vec::new() }
    }

    /// The streams: between two calls of [`Together::next_turn`] each is read as far as one turn does.
    pub fn cursors(&mut self) -> &mut [Cursor<'a>] {
        &mut self.cursors
    }

    /// Begins the next turn: for how many it stands. `None` after the last.
    pub fn next_turn(&mut self) -> Option<u64> {
        skip(&mut self.cursors, &self.before, std::mem::take(&mut self.more));
        self.end_rounds();
        for short in [false, true] {
            self.begin_round(short);
        }
        let left = self.end() - self.at;
        if left == 0 {
            return None;
        }
        let alike = again(&self.cursors, &self.before).map_or(1, |n| n.clamp(1, left));
        self.before.clone_from(&self.cursors);
        self.more = alike - 1;
        self.at += alike;
        self.marks.iter_mut().for_each(|mark| mark.looked += 1);
        Some(self.rounds.iter().fold(alike, |n, round| n * round.times))
    }

    /// The turn up to which the streams are read before they are somewhere else.
    fn end(&self) -> u64 {
        self.rounds.last().map_or(self.turns, |round| round.end)
    }

    /// Passes over the rounds that those that end here stand for.
    fn end_rounds(&mut self) {
        while let Some(round) = self.rounds.pop_if(|round| round.end == self.at) {
            skip(&mut self.cursors, &round.begin.cursors, round.times - 1);
            self.at += (round.end - round.begin.at) * (round.times - 1);
            self.remember(round.short, 1);
            self.remember(true, 1);
        }
    }

    /// Begins a round that stands for all that follow it, if one has ended here.
    fn begin_round(&mut self, short: bool) {
        let mark = &self.marks[usize::from(short)];
        let length = self.at - mark.at;
        if self.rounds.iter().any(|round| round.short || !short) || length == 0 {
            return;
        }
        let times = again(&self.cursors, &mark.cursors).unwrap_or(0).min((self.end() - self.at) / length);
        // A long round is one in which something was passed over: others are found as short ones.
        if times > 1 && (short || mark.looked < length) {
            self.remember(true, 1);
            let begin = self.marks[1].clone();
            self.rounds.push(Round { begin, end: self.at + length, times, short });
        } else if mark.looked >= mark.patience {
            self.remember(short, mark.patience.saturating_mul(2));
        }
    }

    /// Remembers this turn.
    fn remember(&mut self, short: bool, patience: u64) {
        let mark = &mut self.marks[usize::from(short)];
        mark.cursors.clone_from(&self.cursors);
        (mark.at, mark.looked, mark.patience) = (self.at, 0, patience);
        self.before.clear();
    }
}

/// How often what was read since can be read again, if all are where they were.
fn again(now: &[Cursor<'_>], before: &[Cursor<'_>]) -> Option<u64> {
    if now.len().to_u64() != before.len().to_u64() {
        return None;
    }
    now.iter().zip(before).map(|(now, before)| now.again(before)).try_fold(u64::MAX, |n, a| Some(n.min(a?)))
}

fn skip<'a>(now: &mut [Cursor<'a>], before: &[Cursor<'a>], times: u64) {
    if times > 0 {
        now.iter_mut().zip(before).for_each(|(now, before)| now.skip(before, times));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ints::{Ints, Sealed};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// How often each turn's values come, and how many turns were made.
    fn counted(
        streams: &[Sealed],
        lists: &Sealed,
        turns: u64,
        folded: bool,
    ) -> (BTreeMap<Vec<i64>, u64>, u64) {
        let mut cursors: Vec<_> = streams.iter().map(Sealed::cursor).collect();
        cursors.push(lists.cursor());
        let mut together = Together::new(cursors.clone(), turns);
        let (mut all, mut made) = (BTreeMap::new(), 0);
        let mut turn = |cursors: &mut [Cursor<'_>], n| {
            let mut values: Vec<i64> = cursors.iter_mut().map(Cursor::next).collect();
            // The first value says how many more are read of the last stream.
            for _ in 0..values[0].rem_euclid(3) {
                values.extend(cursors.last_mut().map(Cursor::next));
            }
            *all.entry(values).or_insert(0) += n;
            made += 1;
        };
        if folded {
            while let Some(n) = together.next_turn() {
                turn(together.cursors(), n);
            }
        } else {
            (0..turns).for_each(|_| turn(&mut cursors, 1));
        }
        (all, made)
    }

    fn stream() -> impl Strategy<Value = Sealed> {
        let piece = (proptest::collection::vec(0..4_i64, 1..5), 1..60_usize, 0..2_i64);
        let rises = |(values, times, rise): (Vec<i64>, usize, i64)| {
            let n = values.len();
            let value = move |i: usize| values[i % n] + rise * i64::try_from(i).unwrap_or(0);
            (0..n * times).map(value).collect::<Vec<_>>()
        };
        let pieces = proptest::collection::vec(piece.prop_map(rises), 0..5);
        (pieces, 1..4_usize)
            .prop_map(|(p, times)| p.concat().repeat(times).into_iter().collect::<Ints>().seal())
    }

    proptest! {
        #[test]
        fn turns_are_those_of_one_by_one(
            streams in proptest::collection::vec(stream(), 1..4),
            lists in stream(),
            turns in 0..3000_u64,
        ) {
            let (all, made) = counted(&streams, &lists, turns, true);
            prop_assert_eq!(&all, &counted(&streams, &lists, turns, false).0);
            prop_assert!(made <= turns);
        }
    }

    #[test]
    fn a_million_turns_cost_what_ten_do() {
        let round = |n: i64| (0..4 * n).map(|i| i * i % n).collect::<Ints>().seal();
        let runs: Vec<i64> = [vec![1; 100], vec![2; 50]].concat().repeat(4);
        let runs = runs.into_iter().collect::<Ints>().seal();
        let streams = [round(7), round(4), Sealed::from_constant(3)];
        for (streams, most) in [(&streams[..], 200), (&[runs][..], 100)] {
            let (all, made) = counted(streams, &round(5), 1_000_000, true);
            assert!(made < 10 * most, "{made}");
            assert_eq!(all.values().sum::<u64>(), 1_000_000);
            assert_eq!(all, counted(streams, &round(5), 1_000_000, false).0);
        }
    }
}
