//! Sets of ranks.

use crate::num::{narrow, saturate};
use crate::ranks::{RankSeq, Run, Runs};

/// A set of ranks, ascending. Regular sets (a block, a stride) take one run whatever their size.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct RankList {
    seq: RankSeq,
}

impl RankList {
    /// The set {rank}.
    #[must_use]
    pub fn single(rank: u32) -> Self {
        [rank].into_iter().collect()
    }
    /// The set {0, …, n-1}.
    #[must_use]
    pub fn first(n: u32) -> Self {
        Self { seq: RankSeq::first(n) }
    }
    /// From runs; `None` unless they are strictly ascending ranks below 2^32 - 1: their number is one of 32 bits, too.
    pub fn from_runs(runs: impl IntoIterator<Item = Run>) -> Option<Self> {
        let seq = RankSeq::from_runs(runs);
        let mut next = 0;
        for r in seq.runs().iter() {
            let span = i128::from(r.step) * i128::from(r.n.checked_sub(1)?);
            let last = i128::from(r.start) + span;
            if i128::from(r.start) < next
                || r.step < 0
                || (r.n > 1 && r.step == 0)
                || last >= i128::from(u32::MAX)
            {
                return None;
            }
            next = last + 1;
        }
        Some(Self { seq })
    }
    /// Number of ranks.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.seq.len()
    }
    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seq.is_empty()
    }
    /// Whether a rank is in the set. *Cost:* O(runs).
    #[must_use]
    pub fn contains(&self, rank: u32) -> bool {
        self.seq.position(i64::from(rank)).is_some()
    }
    /// Position of a rank in the set. *Cost:* O(runs).
    #[must_use]
    pub fn position(&self, rank: u32) -> Option<u64> {
        self.seq.position(i64::from(rank))
    }
    /// The rank at a position. *Cost:* O(runs).
    #[must_use]
    pub fn nth(&self, position: u64) -> Option<u32> {
        u32::try_from(self.seq.get(position)?).ok()
    }
    /// The lowest rank.
    #[must_use]
    pub fn lowest(&self) -> Option<u32> {
        self.iter().next()
    }
    /// The ranks, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.seq.iter().map(|r| narrow(r))
    }
    /// The runs, canonical.
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        self.seq.runs()
    }
    /// The highest rank. *Cost:* O(runs).
    #[must_use]
    pub fn highest(&self) -> Option<u32> {
        u32::try_from(self.seq.get(self.len().checked_sub(1)?)?).ok()
    }
    /// Adds a rank. *Cost:* O(1) if it is above all others, else O(ranks).
    pub fn insert(&mut self, rank: u32) {
        if self.highest() >= Some(rank) {
            *self = self.union(&Self::single(rank));
        } else {
            self.seq.push(i64::from(rank));
        }
    }
    /// Adds the ranks of another set. *Cost:* O(runs) if all of one are above those of the other, else O(ranks).
    pub fn extend(&mut self, other: &Self) {
        if self.highest() < other.lowest() {
            other.runs().iter().for_each(|run| self.seq.append(*run));
        } else if other.highest() < self.lowest() {
            let below = std::mem::replace(self, other.clone());
            self.extend(&below);
        } else {
            *self = self.union(other);
        }
    }
    /// The lowest rank that is in both sets. *Cost:* O(runs) if all ranks of one are above those of the other, else O(ranks).
    #[must_use]
    pub fn common(&self, other: &Self) -> Option<u32> {
        if self.highest() < other.lowest() || other.highest() < self.lowest() {
            return None;
        }
        let mut others = other.iter().peekable();
        self.iter().find(|rank| {
            while others.next_if(|o| o < rank).is_some() {}
            others.peek() == Some(rank)
        })
    }
    /// The ranks from one to another, both included. *Cost:* O(runs).
    #[must_use]
    pub fn between(&self, first: u32, last: u32) -> Self {
        let mut seq = RankSeq::default();
        for run in self.runs().iter() {
            let step = run.step.max(1);
            let before = (i64::from(first) - run.start + step - 1).max(0) / step;
            let upto = (i64::from(last) - run.start).div_euclid(step) + 1;
            let n = upto.min(saturate(run.n)) - before;
            if n > 0 {
                let start = run.start + before * step;
                seq.append(Run { start, step: if n > 1 { step } else { 0 }, n: n.unsigned_abs() });
            }
        }
        Self { seq }
    }
    /// The ranks below `world` that are not in the set. *Cost:* O(ranks).
    #[must_use]
    pub fn others(&self, world: u32) -> Self {
        let mut seq = RankSeq::default();
        let mut next = 0;
        for rank in self.iter().take_while(|rank| *rank < world).chain([world]) {
            if rank > next {
                seq.append(Run {
                    start: next.into(),
                    step: i64::from(rank > next + 1),
                    n: (rank - next).into(),
                });
            }
            next = rank.saturating_add(1);
        }
        Self { seq }
    }
    /// The ranks that are not in another set.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut b = other.iter().peekable();
        let mut seq = RankSeq::default();
        for r in self.iter() {
            while b.next_if(|&x| x < r).is_some() {}
            if b.peek() != Some(&r) {
                seq.push(i64::from(r));
            }
        }
        Self { seq }
    }
    /// The union with another set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if self.is_empty() {
            return other.clone();
        }
        let (mut a, mut b) = (self.iter().peekable(), other.iter().peekable());
        let mut seq = RankSeq::default();
        loop {
            let next = match (a.peek().copied(), b.peek().copied()) {
                (Some(x), Some(y)) => x.min(y),
                (Some(x), None) | (None, Some(x)) => x,
                (None, None) => return Self { seq },
            };
            if a.peek() == Some(&next) {
                a.next();
            }
            if b.peek() == Some(&next) {
                b.next();
            }
            seq.push(i64::from(next));
        }
    }
}

impl FromIterator<u32> for RankList {
    /// Sorts and removes duplicates.
    fn from_iter<I: IntoIterator<Item = u32>>(iter: I) -> Self {
        let mut v: Vec<u32> = iter.into_iter().collect();
        v.sort_unstable();
        v.dedup();
        Self { seq: v.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn sets_behave_as_sets(a in proptest::collection::btree_set(0u32..40, 0..20), b in proptest::collection::btree_set(0u32..40, 0..20)) {
            let set = |s: &BTreeSet<u32>| s.iter().copied().collect::<RankList>();
            let (x, y) = (set(&a), set(&b));
            prop_assert_eq!(x.union(&y), set(&a.union(&b).copied().collect()));
            prop_assert_eq!(x.difference(&y), set(&a.difference(&b).copied().collect()));
            prop_assert_eq!(x.common(&y), a.intersection(&b).next().copied());
            let (first, last) = (y.lowest().unwrap_or(9), y.highest().unwrap_or(20));
            prop_assert_eq!(x.between(first, last), set(&a.range(first..=last).copied().collect()));
            prop_assert_eq!(x.others(30), (0..30).filter(|r| !a.contains(r)).collect::<RankList>());
            let apart = set(&b.iter().map(|r| r + 40).collect());
            let both = set(&a.iter().copied().chain(b.iter().map(|r| r + 40)).collect());
            for (mut low, high) in [(x.clone(), &apart), (apart.clone(), &x)] {
                prop_assert_eq!(low.common(high), None);
                low.extend(high);
                prop_assert_eq!(&low, &both);
            }
            let mut z = x.clone();
            z.extend(&y);
            prop_assert_eq!(&z, &x.union(&y));
            let mut w = x.clone();
            b.iter().for_each(|&r| w.insert(r));
            prop_assert_eq!(&w, &z);
            prop_assert_eq!(x.highest(), a.last().copied());
            prop_assert_eq!(RankList::from_runs(x.runs().iter().copied()), Some(x.clone()));
            prop_assert!((0..40).all(|r| x.contains(r) == a.contains(&r)));
        }
    }
}
