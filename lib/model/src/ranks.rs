//! Ordered sequences of ranks: the members of communicators and groups.

use std::ops::Deref;

use crate::num::saturate;
use xxhash_rust::xxh3::Xxh3;

/// A sequence of ranks in a given order, stored as arithmetic runs: the members of `MPI_COMM_WORLD` take one run
/// whatever their number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RankSeq(Stored);

/// Tables of a million ranks hold as many sequences, of one run as a rule.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stored {
    /// None or one, if it is a small one.
    One(Small),
    Many(Box<Many>),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Small {
    start: u32,
    step: i32,
    n: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Many {
    runs: Vec<Run>,
    len: u64,
}

// Less than half of what a vector, or a run as it is handed out, and a number take.
const _: () = assert!(size_of::<RankSeq>() == 16);

impl Default for RankSeq {
    fn default() -> Self {
        Self(Stored::One(Small::default()))
    }
}

impl Small {
    fn of(run: Run) -> Option<Self> {
        let (start, step, n) =
            (run.start.try_into().ok()?, run.step.try_into().ok()?, run.n.try_into().ok()?);
        Some(Self { start, step, n })
    }
    fn run(self) -> Option<Run> {
        let run = Run { start: self.start.into(), step: self.step.into(), n: self.n.into() };
        (self.n > 0).then_some(run)
    }
}

/// The runs of a sequence.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    one: Option<Run>,
    many: &'a [Run],
}

impl<'a> Runs<'a> {
    fn each(self) -> impl Iterator<Item = Run> + 'a {
        self.one.into_iter().chain(self.many.iter().copied())
    }
}

impl Deref for Runs<'_> {
    type Target = [Run];

    fn deref(&self) -> &[Run] {
        if self.many.is_empty() { self.one.as_slice() } else { self.many }
    }
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
            let last = self.runs().last().copied();
            let follows = |l: &Run| {
                l.n >= 2 && l.step == r.step && r.start == last_of(*l).wrapping_add(l.step) && r.step != 0
            };
            if let Some(last) = last.filter(follows) {
                self.change_last(Run { n: last.n + r.n, ..last });
                break;
            }
            self.push(r.start);
            r.start = r.start.wrapping_add(r.step);
            r.n -= 1;
        }
    }
    /// Appends a rank.
    pub fn push(&mut self, rank: i64) {
        let last = self.runs().last().copied();
        let gap = last.map_or(0, |l| rank.wrapping_sub(last_of(l)));
        match last.filter(|l| gap != 0 && (l.n == 1 || gap == l.step)) {
            Some(last) => self.change_last(Run { step: gap, n: last.n + 1, ..last }),
            None => self.add(Run { start: rank, step: 0, n: 1 }),
        }
    }
    /// Adds a run that is not part of the last one.
    fn add(&mut self, run: Run) {
        match &mut self.0 {
            Stored::One(none) if none.n == 0 => self.0 = Stored::of(run),
            Stored::One(one) => {
                let runs: Vec<Run> = one.run().into_iter().chain([run]).collect();
                let len = u64::from(one.n) + run.n;
                self.0 = Stored::Many(Box::new(Many { runs, len }));
            }
            Stored::Many(many) => {
                many.len += run.n;
                many.runs.push(run);
            }
        }
    }
    /// Puts a longer run in the place of the last one.
    fn change_last(&mut self, run: Run) {
        match &mut self.0 {
            Stored::One(_) => self.0 = Stored::of(run),
            Stored::Many(many) => {
                if let Some(last) = many.runs.last_mut() {
                    many.len += run.n - last.n;
                    *last = run;
                }
            }
        }
    }
    /// Number of ranks.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Stored::One(one) => one.n.into(),
            Stored::Many(many) => many.len,
        }
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The i-th rank. *Cost:* O(runs).
    #[must_use]
    pub fn get(&self, i: u64) -> Option<i64> {
        let mut i = i;
        for r in self.runs().each() {
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
        for r in self.runs().each() {
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
        self.runs().each().flat_map(|r| {
            (0..r.n).scan(r.start, move |v, _| {
                let x = *v;
                *v = v.wrapping_add(r.step);
                Some(x)
            })
        })
    }
    /// The runs, canonical.
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        match &self.0 {
            Stored::One(one) => Runs { one: one.run(), many: &[] },
            Stored::Many(many) => Runs { one: None, many: &many.runs },
        }
    }
    /// Feeds a hash: equal sequences feed equal bytes.
    pub fn hash_into(&self, h: &mut Xxh3) {
        h.update(&self.len().to_le_bytes());
        for r in self.runs().each() {
            h.update(&r.start.to_le_bytes());
            h.update(&r.step.to_le_bytes());
            h.update(&r.n.to_le_bytes());
        }
    }
}

impl Stored {
    fn of(run: Run) -> Self {
        match Small::of(run) {
            Some(one) => Self::One(one),
            None => Self::Many(Box::new(Many { runs: vec![run], len: run.n })),
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

    proptest! {
        #[test]
        fn wide_ranks_are_kept(v in proptest::collection::vec((any::<i64>(), 0..8i64), 0..9)) {
            let mut s = RankSeq::default();
            // Among others two of the same run, whose distance fits where they do not, or the other way round.
            let all: Vec<i64> = v.iter().flat_map(|(r, up)| [*r >> (8 * up), (*r >> (8 * up)).wrapping_add(*r >> 30)]).collect();
            all.iter().for_each(|r| s.push(*r));
            prop_assert_eq!(s.iter().collect::<Vec<_>>(), &all[..]);
            prop_assert_eq!(s.len(), all.len() as u64);
            prop_assert_eq!(&RankSeq::from_runs(s.runs().iter().copied()), &s);
        }
    }

    #[test]
    fn more_ranks_than_a_small_run_has_are_counted() {
        let run = |start, n| Run { start, step: 1, n };
        let mut s = RankSeq::from_runs([run(0, u64::from(u32::MAX))]);
        s.append(run(u32::MAX.into(), 5));
        assert_eq!((&*s.runs(), s.len()), (&[run(0, u64::from(u32::MAX) + 5)][..], u64::from(u32::MAX) + 5));
    }

    #[test]
    fn the_world_is_one_run() {
        assert_eq!(RankSeq::first(1_000_000).runs().len(), 1);
        assert_eq!((0..1000).collect::<RankSeq>(), RankSeq::first(1000));
    }
}
