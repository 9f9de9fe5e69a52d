//! The shortest times that messages take from clock to clock, part by part of the run.
//!
//! Clocks drift by little in a short time, so that of all messages between two clocks in a part of the run the quickest one
//! in each direction says the most about how they stand to each other.

use st_model::num::{narrow, saturate};
use std::collections::BTreeMap;

use crate::pack::Words;

/// Most parts of a run, and most entries of all pairs of clocks together, if each has [`PEERS`].
const PARTS: i64 = 1 << 10;
const ENTRIES: usize = 1 << 22;
const PEERS: usize = 16;

/// No message.
pub(crate) const NONE: i64 = i64::MAX;

/// Shortest times of messages, ns, by sending and receiving clock and by part of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lags {
    /// The first point of the run, and the number of parts.
    from: i64,
    parts: usize,
    /// Parts have 2 to the power of this many ns.
    shift: u32,
    pairs: BTreeMap<(u32, u32), Vec<i64>>,
}

impl Lags {
    /// Of no messages yet, between so many clocks in a run from the first to the last point.
    pub(crate) fn new(span: (i64, i64), clocks: usize) -> Self {
        let most = narrow::<i64>(ENTRIES / PEERS / clocks.max(1)).clamp(PARTS / 16, PARTS);
        let length = span.1.saturating_sub(span.0).max(0);
        let shift = (0..62).find(|s| length >> s < most).unwrap_or(62);
        let parts = narrow::<usize>(length >> shift) + 1;
        Self { from: span.0, parts, shift, pairs: BTreeMap::new() }
    }

    /// Number of parts.
    pub(crate) fn parts(&self) -> usize {
        self.parts
    }

    /// Length of a part, ns.
    pub(crate) fn length(&self) -> i64 {
        1 << self.shift
    }

    /// The part that a time is in, or the nearest one.
    pub(crate) fn part(&self, t: i64) -> usize {
        let part = t.saturating_sub(self.from).max(0) >> self.shift;
        narrow::<usize>(part).min(self.parts - 1)
    }

    /// The middle of a part.
    pub(crate) fn middle(&self, part: usize) -> i64 {
        let before = narrow::<i64>(part) << self.shift;
        self.from.saturating_add(before).saturating_add(self.length() / 2)
    }

    /// Adds a message that arrived at some time.
    #[inline]
    pub(crate) fn add(&mut self, pair: (u32, u32), took: i64, at: i64) {
        self.set(pair, self.part(at), took);
    }

    #[inline]
    fn set(&mut self, pair: (u32, u32), part: usize, took: i64) {
        let parts = self.parts;
        let known = &mut self.pairs.entry(pair).or_insert_with(|| vec![NONE; parts])[part];
        *known = took.min(*known);
    }

    /// Adds those of others in the same run.
    pub(crate) fn absorb(&mut self, other: Self) {
        for (pair, lags) in other.pairs {
            match self.pairs.get_mut(&pair) {
                Some(mine) => mine.iter_mut().zip(lags).for_each(|(a, b)| *a = b.min(*a)),
                None => drop(self.pairs.insert(pair, lags)),
            }
        }
    }

    /// The quickest message of each pair and part that has one: pair, part, and how long it took.
    pub(crate) fn each(&self) -> impl Iterator<Item = ((u32, u32), usize, i64)> + '_ {
        self.pairs.iter().flat_map(|(pair, lags)| {
            let there = lags.iter().enumerate().filter(|(_, took)| **took != NONE);
            there.map(move |(part, took)| (*pair, part, *took))
        })
    }

    /// The quickest message between two clocks; [`NONE`] if there is none.
    pub(crate) fn least(&self) -> i64 {
        let between = self.pairs.iter().filter(|((a, b), _)| a != b);
        between.flat_map(|(_, lags)| lags).copied().min().unwrap_or(NONE)
    }

    /// Appends what [`Lags::get`] takes.
    pub(crate) fn put(&self, out: &mut Vec<i64>) {
        for (pair, part, took) in self.each() {
            let part = narrow(part);
            out.extend([pair.0.into(), pair.1.into(), part, took]);
        }
    }

    /// Adds what another process has found.
    pub(crate) fn get(&mut self, words: &mut Words<'_>) {
        while !words.0.as_slice().is_empty() {
            let (pair, part, took) = ((words.id(), words.id()), words.one(), words.one());
            self.set(pair, saturate::<usize>(part).min(self.parts - 1), took);
        }
    }
}
