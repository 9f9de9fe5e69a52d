//! The shortest times that messages take from clock to clock, part by part of the run.
//!
//! Clocks drift by little in a short time, so that of all messages between two clocks in a part of the run the quickest one
//! in each direction says the most about how they stand to each other.

use st_match::graph::Span;
use st_model::num::{narrow, saturate};
use std::collections::BTreeMap;

use crate::pack::Words;

/// Most parts of a run, and most entries of all pairs of clocks together, if each has [`PEERS`].
const PARTS: i64 = 1 << 10;
const ENTRIES: usize = 1 << 22;
const PEERS: usize = 16;

/// No message.
pub(crate) const NONE: i64 = i64::MAX;

/// A sending and a receiving clock, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ClockPair {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl ClockPair {
    /// Whether these are one clock.
    pub(crate) fn is_one(self) -> bool {
        self.from == self.to
    }
}

/// The quickest message between two clocks in a part of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lag {
    pub(crate) clocks: ClockPair,
    pub(crate) part: usize,
    /// ns.
    pub(crate) took: i64,
}

/// Shortest times of messages, ns, by sending and receiving clock and by part of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lags {
    /// The first point of the run, and the number of parts.
    from: i64,
    parts: usize,
    /// Parts have 2 to the power of this many ns.
    shift: u32,
    pairs: BTreeMap<ClockPair, Vec<i64>>,
}

impl Lags {
    /// Of no messages yet, between so many clocks.
    pub(crate) fn new(run: Span, clocks: usize) -> Self {
        let most = narrow::<i64>(ENTRIES / PEERS / clocks.max(1)).clamp(PARTS / 16, PARTS);
        let length = run.last.saturating_sub(run.first).max(0);
        let shift = (0..62).find(|s| length >> s < most).unwrap_or(62);
        let parts = narrow::<usize>(length >> shift) + 1;
        Self { from: run.first, parts, shift, pairs: BTreeMap::new() }
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
    pub(crate) fn add(&mut self, clocks: ClockPair, took: i64, at: i64) {
        self.set(Lag { clocks, part: self.part(at), took });
    }

    #[inline]
    fn set(&mut self, lag: Lag) {
        let parts = self.parts;
        let known = &mut self.pairs.entry(lag.clocks).or_insert_with(|| vec![NONE; parts])[lag.part];
        *known = lag.took.min(*known);
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

    /// The quickest message of each pair and part that has one.
    pub(crate) fn each(&self) -> impl Iterator<Item = Lag> + '_ {
        self.pairs.iter().flat_map(|(clocks, lags)| {
            let there = lags.iter().enumerate().filter(|(_, took)| **took != NONE);
            there.map(move |(part, took)| Lag { clocks: *clocks, part, took: *took })
        })
    }

    /// The quickest message between two clocks; [`NONE`] if there is none.
    pub(crate) fn least(&self) -> i64 {
        let between = self.pairs.iter().filter(|(clocks, _)| !clocks.is_one());
        between.flat_map(|(_, lags)| lags).copied().min().unwrap_or(NONE)
    }

    /// Appends what [`Lags::get`] takes.
    pub(crate) fn put(&self, out: &mut Vec<i64>) {
        for Lag { clocks, part, took } in self.each() {
            out.extend([clocks.from.into(), clocks.to.into(), narrow(part), took]);
        }
    }

    /// Adds what another process has found.
    pub(crate) fn get(&mut self, words: &mut Words<'_>) {
        while !words.0.as_slice().is_empty() {
            let clocks = ClockPair { from: words.id(), to: words.id() };
            let part = saturate::<usize>(words.one()).min(self.parts - 1);
            self.set(Lag { clocks, part, took: words.one() });
        }
    }
}
