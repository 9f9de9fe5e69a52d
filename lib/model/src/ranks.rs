//! Ordered sequences of ranks: the members of communicators and groups.

use crate::num::saturate;
use smallvec::SmallVec;
use xxhash_rust::xxh3::Xxh3;

/// A sequence of ranks in a given order, stored as arithmetic runs: the members of `MPI_COMM_WORLD` take one run
/// whatever their number.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct RankSeq {
    /// Most have one: tables of a million ranks hold as many of them.
    runs: SmallVec<[Run; 1]>,
    len: u64,
}

/// `n` ranks from `start` in steps of `step`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    /// First rank.
    pub start: i64,
    /// Difference between neighbours; 0 only if `n` is 1.
    pub step: i64,
    /// Number of ranks, at least 1.
    pub n: u64,
}

impl RankSeq {
    /// `0, 1, … n-1`.
    #[must_use]
    pub fn first(n: u32) -> Self {
        Self::from_runs([Run { start: 0, step: 1, n: u64::from(n) }])
    }
    /// From runs, merged into canonical form: what pushing the ranks one by one would give.
    /// *Cost:* O(runs), whatever their lengths.
    pub fn from_runs(runs: impl IntoIterator<Item = Run>) -> Self {
        let mut s = Self::default();
        runs.into_iter().for_each(|run| s.append(run));
        s
    }
    /// Appends a run. *Cost:* O(1), whatever its length.
    pub fn append(&mut self, mut r: Run) {
        // At most two single pushes decide how a run joins what is there; the rest of it follows at once.
        while r.n > 0 {
            let joins = self
                .runs
                .last()
                .is_some_and(|l| l.n >= 2 && l.step == r.step && r.start == last_of(*l).wrapping_add(l.step));
            if joins && r.step != 0 {
                self.len += r.n;
                if let Some(l) = self.runs.last_mut() {
                    l.n += r.n;
                }
                break;
            }
            self.push(r.start);
            r.start = r.start.wrapping_add(r.step);
            r.n -= 1;
        }
    }
    /// Appends a rank.
    pub fn push(&mut self, rank: i64) {
        self.len += 1;
        if let Some(l) = self.runs.last_mut() {
            let gap = rank.wrapping_sub(last_of(*l));
            if gap != 0 && (l.n == 1 || gap == l.step) {
                l.step = gap;
                l.n += 1;
                return;
            }
        }
        self.runs.push(Run { start: rank, step: 0, n: 1 });
    }
    /// Number of ranks.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The i-th rank. *Cost:* O(runs).
    #[must_use]
    pub fn get(&self, i: u64) -> Option<i64> {
        let mut i = i;
        for r in &self.runs {
            if i < r.n {
                return Some(r.start.wrapping_add(r.step.wrapping_mul(i64::try_from(i).ok()?)));
            }
            i -= r.n;
        }
        None
    }
    /// Position of a rank. *Cost:* O(runs).
    #[must_use]
    pub fn position(&self, rank: i64) -> Option<u64> {
        let mut before = 0;
        for r in &self.runs {
            let d = rank.wrapping_sub(r.start);
            if d == 0 {
                return Some(before);
            }
            if r.step != 0
                && d.wrapping_rem(r.step) == 0
                && let Ok(k) = u64::try_from(d.wrapping_div(r.step))
                && k < r.n
            {
                return Some(before + k);
            }
            before += r.n;
        }
        None
    }
    /// The ranks in order.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        self.runs.iter().flat_map(|r| {
            (0..r.n).scan(r.start, move |v, _| {
                let x = *v;
                *v = v.wrapping_add(r.step);
                Some(x)
            })
        })
    }
    /// The runs, canonical.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }
    /// Feeds a hash: equal sequences feed equal bytes.
    pub fn hash_into(&self, h: &mut Xxh3) {
        h.update(&self.len.to_le_bytes());
        for r in &self.runs {
            h.update(&r.start.to_le_bytes());
            h.update(&r.step.to_le_bytes());
            h.update(&r.n.to_le_bytes());
        }
    }
}

fn last_of(r: Run) -> i64 {
    r.start.wrapping_add(r.step.wrapping_mul(saturate(r.n - 1)))
}

impl FromIterator<u32> for RankSeq {
    fn from_iter<I: IntoIterator<Item = u32>>(iter: I) -> Self {
        let mut s = Self::default();
        for r in iter {
            s.push(i64::from(r));
        }
        s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sequence_is_what_was_pushed(v in proptest::collection::vec(0u32..12, 0..40)) {
            let s: RankSeq = v.iter().copied().collect();
            prop_assert_eq!(s.iter().collect::<Vec<_>>(), v.iter().map(|&x| i64::from(x)).collect::<Vec<_>>());
            prop_assert_eq!(&RankSeq::from_runs(s.runs().iter().copied()), &s);
            for (i, &x) in v.iter().enumerate() {
                prop_assert_eq!(s.get(i as u64), Some(i64::from(x)));
                prop_assert_eq!(s.position(i64::from(x)), v.iter().position(|&y| y == x).map(|p| p as u64));
            }
            prop_assert_eq!(s.position(99), None);
        }
    }

    #[test]
    fn the_world_is_one_run() {
        assert_eq!(RankSeq::first(1_000_000).runs().len(), 1);
        assert_eq!((0..1000).collect::<RankSeq>(), RankSeq::first(1000));
    }
}
