//! Time sketches: the distribution of durations with a guaranteed relative error, exact totals, and merging that
//! gives the same bits in any order.
//!
//! A DDSketch with relative error α = 1 %: bucket i holds durations x with g^(i-1) < x ≤ g^i nanoseconds,
//! g = (1+α)/(1−α). Bucket bounds are integers computed by integer arithmetic, so that all machines agree.
//!
//! Instead of buckets a sketch may keep the few balanced bins of the papers ([`histogram`]), or the totals alone.
//!
//! Source: algorithms after Masson, Rim, Lee 2019 (DDSketch); keys by predecessor as in Ratn, Mueller, de Supinski,
//! Schulz 2008, section 3 (path-sensitive delta times).

mod buckets;
pub mod histogram;
mod live;
mod modes;
pub mod quantiles;

use crate::num::saturate;
use std::collections::BTreeMap;

pub use buckets::{bucket, edges, representative};
use histogram::{Bin, Binning, Histogram};
pub use live::LiveSketch;
pub use modes::Mode;
use quantiles::Quantiles;

/// What a sketch keeps beside the totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Shape {
    /// Buckets of 1 % relative error.
    #[default]
    Buckets,
    /// Few balanced bins.
    Bins(Binning),
    /// Nothing.
    Totals,
    /// Durations at fixed ranks.
    Quantiles,
}

impl Shape {
    /// As many bins as the papers have.
    pub const BINS: Self = Self::Bins(Binning::DEFAULT);

    /// What sketches of both keep that are put together, if that is more than totals: of bins as many as the one of more has.
    #[must_use]
    pub fn with(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Bins(a), Self::Bins(b)) => Some(Self::Bins(if a.bins() < b.bins() { b } else { a })),
            (a, b) => (a == b).then_some(a),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Detail {
    /// Bucket index and number, ascending.
    Buckets(Vec<(u16, u64)>),
    Bins(Histogram),
    Totals,
    Quantiles(Quantiles),
}

impl Default for Detail {
    fn default() -> Self {
        Self::Buckets(Vec::new())
    }
}

/// Distribution of one phase's durations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sketch {
    /// Number of durations.
    pub count: u64,
    /// Sum in ns.
    pub sum: u128,
    /// Sum of squares in ns².
    pub squares: u128,
    /// Shortest, with the lowest rank that had it.
    pub min: (u64, u32),
    /// Longest, with the lowest rank that had it.
    pub max: (u64, u32),
    detail: Detail,
}

impl Sketch {
    /// Adds a duration of a rank.
    pub fn add(&mut self, ns: u64, rank: u32) {
        let one = Self {
            count: 1,
            sum: u128::from(ns),
            squares: u128::from(ns) * u128::from(ns),
            min: (ns, rank),
            max: (ns, rank),
            detail: Detail::Totals,
        };
        match &mut self.detail {
            Detail::Buckets(buckets) => count(buckets, bucket(ns), 1),
            Detail::Bins(bins) => bins.add(ns, Binning::of(bins.bins())),
            Detail::Totals => {}
            Detail::Quantiles(_) => {
                let mut buckets: Vec<_> = self.spread().collect();
                count(&mut buckets, bucket(ns), 1);
                self.detail = Detail::Buckets(buckets);
            }
        }
        self.totals(&one);
    }
    /// Adds another sketch. Totals and buckets are commutative and associative, bit for bit; bins depend on the order.
    /// Durations at fixed ranks become buckets. Of sketches of other different shapes the totals remain.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            self.clone_from(other);
            return;
        }
        if let Detail::Quantiles(_) = self.detail {
            self.detail = Detail::Buckets(self.spread().collect());
        }
        if let Detail::Quantiles(_) = other.detail {
            let theirs = Detail::Buckets(other.spread().collect());
            return self.merge(&Self { detail: theirs, ..*other });
        }
        self.totals(other);
        match (&mut self.detail, &other.detail) {
            (Detail::Buckets(mine), Detail::Buckets(theirs)) => {
                if theirs.len() <= SEARCHED {
                    theirs.iter().for_each(|&(b, n)| count(mine, b, n));
                } else {
                    *mine = sum(mine, theirs);
                }
            }
            (Detail::Bins(mine), Detail::Bins(theirs)) => mine.merge(theirs),
            (detail, _) => *detail = Detail::Totals,
        }
    }
    fn totals(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            (self.min, self.max) = (other.min, other.max);
        } else {
            self.min = self.min.min(other.min);
            if other.max.0 > self.max.0 || (other.max.0 == self.max.0 && other.max.1 < self.max.1) {
                self.max = other.max;
            }
        }
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
    }
    /// Buckets in ascending order with their numbers: where durations at fixed ranks are kept, with what counts as being in them.
    pub fn buckets(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let buckets = if let Detail::Buckets(buckets) = &self.detail { Some(buckets) } else { None };
        buckets.into_iter().flatten().copied().chain(self.spread())
    }
    /// The same as a list; nothing of a sketch that keeps none, or durations at fixed ranks.
    #[must_use]
    pub fn kept_buckets(&self) -> &[(u16, u64)] {
        if let Detail::Buckets(buckets) = &self.detail { buckets } else { &[] }
    }
    fn spread(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.quantiles().into_iter().flat_map(|kept| kept.spread(self.count))
    }
    /// Durations at fixed ranks; none of a sketch of another shape.
    #[must_use]
    pub fn quantiles(&self) -> Option<&Quantiles> {
        if let Detail::Quantiles(kept) = &self.detail { Some(kept) } else { None }
    }
    /// Whether of several durations number, sum and deviation alone are known.
    #[must_use]
    pub fn is_mean(&self) -> bool {
        self.count > 1 && self.quantiles().is_some_and(|kept| kept.buckets().len() == 1)
    }
    /// Keeps of buckets durations at fixed ranks, where these take less room; number and sum stay, shortest, longest and deviation
    /// are right to 1 %. The area between what is kept and these buckets is at most `error` millionths of the sum
    /// ([`quantiles::ERROR`] unless asked otherwise), where [`quantiles::most`] further durations suffice.
    pub fn keep_quantiles(&mut self, error: u32) {
        if let (Detail::Buckets(buckets), 1..) = (&self.detail, self.count) {
            let deviation = saturate(self.variance().isqrt());
            let kept = Quantiles::of(buckets, self.count, deviation, error);
            if kept.is_smaller_than(buckets.len()) {
                *self = Self::from_quantiles(self.clone(), kept);
            }
        }
    }
    /// Keeps of buckets number, sum and deviation.
    pub fn keep_mean(&mut self, rank: u32) {
        if let (Detail::Buckets(_), 1..) = (&self.detail, self.count) {
            let totals = Self { min: (0, rank), max: (0, rank), ..self.clone() };
            let deviation = saturate(self.variance().isqrt());
            *self = Self::from_quantiles(totals, Quantiles::of_mean(self.mean(), deviation));
        }
    }
    /// From decoded number, sum and ranks of the shortest and longest, and durations at fixed ranks.
    #[must_use]
    pub fn from_quantiles(totals: Self, kept: Quantiles) -> Self {
        let (squares, min, max) = kept.made(totals.count, totals.sum);
        let (min, max) = ((min, totals.min.1), (max, totals.max.1));
        Self { squares, min, max, detail: Detail::Quantiles(kept), ..totals }
    }
    /// Bins in ascending order; none of a sketch of another shape.
    #[must_use]
    pub fn bins(&self) -> &[Bin] {
        if let Detail::Bins(bins) = &self.detail { bins.bins() } else { &[] }
    }
    /// What is kept beside the totals.
    #[must_use]
    pub fn shape(&self) -> Shape {
        match &self.detail {
            Detail::Buckets(_) => Shape::Buckets,
            Detail::Bins(bins) => Shape::Bins(Binning::of(bins.bins())),
            Detail::Totals => Shape::Totals,
            Detail::Quantiles(_) => Shape::Quantiles,
        }
    }
    /// From decoded totals alone.
    #[must_use]
    pub fn from_totals(totals: Self) -> Self {
        Self { detail: Detail::Totals, ..totals }
    }
    /// From decoded parts, with bins in ascending order.
    #[must_use]
    pub fn from_bins(totals: Self, bins: Vec<Bin>) -> Self {
        Self { detail: Detail::Bins(Histogram::from_bins(bins)), ..totals }
    }
    /// From decoded parts. Of a bucket that comes twice the last number counts.
    #[must_use]
    pub fn from_parts(totals: Self, buckets: impl IntoIterator<Item = (u16, u64)>) -> Self {
        let mut buckets: Vec<(u16, u64)> = buckets.into_iter().collect();
        if !buckets.is_sorted_by(|a, b| a.0 < b.0) {
            buckets = buckets.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect();
        }
        Self { detail: Detail::Buckets(buckets), ..totals }
    }
    /// A duration within 1 % of the ⌈q·count⌉-th shortest; 0 if there is none. `q` in thousandths. Of bins it is that of an even
    /// spread inside each; of totals alone the mean, or the shortest or longest for the ends.
    #[must_use]
    pub fn quantile(&self, q: u64) -> u64 {
        match &self.detail {
            Detail::Buckets(_) | Detail::Quantiles(_) => {}
            Detail::Bins(bins) => return bins.quantile(q).clamp(self.min.0, self.max.0),
            Detail::Totals if q == 0 => return self.min.0,
            Detail::Totals if q < 1000 => return self.mean(),
            Detail::Totals => return self.max.0,
        }
        let target = (u128::from(self.count) * u128::from(q.min(1000))).div_ceil(1000).max(1);
        let mut seen = 0u128;
        for (b, n) in self.buckets() {
            seen += u128::from(n);
            if seen >= target {
                return representative(b).clamp(self.min.0, self.max.0);
            }
        }
        self.max.0
    }
    /// Mean in ns, rounded down; 0 if empty.
    #[must_use]
    pub fn mean(&self) -> u64 {
        saturate(self.sum / u128::from(self.count.max(1)))
    }

    /// Variance in ns², rounded down: the mean of the squares less the square of the mean.
    #[must_use]
    pub fn variance(&self) -> u128 {
        let mean = u128::from(self.mean());
        (self.squares / u128::from(self.count.max(1))).saturating_sub(mean * mean)
    }
}

/// So many buckets are looked up one by one.
const SEARCHED: usize = 32;

/// Adds to a bucket's number.
fn count(buckets: &mut Vec<(u16, u64)>, bucket: u16, n: u64) {
    match buckets.binary_search_by_key(&bucket, |(b, _)| *b) {
        Ok(at) => buckets[at].1 += n,
        Err(at) => buckets.insert(at, (bucket, n)),
    }
}

/// Buckets with the numbers of both.
fn sum(a: &[(u16, u64)], b: &[(u16, u64)]) -> Vec<(u16, u64)> {
    let mut out = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().copied().peekable(), b.iter().copied().peekable());
    while let (Some(x), Some(y)) = (a.peek().copied(), b.peek().copied()) {
        let at = x.0.min(y.0);
        let [m, n] = [a.next_if(|x| x.0 == at), b.next_if(|y| y.0 == at)].map(|n| n.map_or(0, |(_, n)| n));
        out.push((at, m + n));
    }
    out.extend(a.chain(b));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Minimum and maximum keep the lowest rank on ties, whoever is merged into whom.
    #[test]
    fn the_lowest_rank_wins_a_tie() {
        for shape in [Shape::Buckets, Shape::BINS, Shape::Totals] {
            let of = |rank| {
                let mut s = LiveSketch::new(shape);
                [5, 9].into_iter().for_each(|x| s.add(x));
                s.finish(rank)
            };
            for order in [[2, 1, 3], [1, 2, 3], [3, 2, 1]] {
                let mut all = Sketch::default();
                order.into_iter().for_each(|r| all.merge(&of(r)));
                assert_eq!((all.min, all.max, all.count, all.sum, all.squares), ((5, 1), (9, 1), 6, 42, 318));
            }
        }
    }

    /// Sketches of other shapes have totals in common, and those are kept.
    #[test]
    fn different_shapes_keep_their_totals() {
        let of = |shape| {
            let mut s = LiveSketch::new(shape);
            s.add(7);
            s.finish(0)
        };
        for (a, b) in
            [(Shape::Buckets, Shape::BINS), (Shape::Totals, Shape::Buckets), (Shape::BINS, Shape::Totals)]
        {
            let mut both = of(a);
            both.merge(&of(b));
            assert_eq!((both.shape(), both.count, both.sum), (Shape::Totals, 2, 14));
        }
    }

    proptest! {
        #[test]
        fn ranks_add_up_in_any_order(
            v in proptest::collection::vec(proptest::collection::vec(prop_oneof![0..9_u64, 0..1_u64 << 50], 0..30), 1..6),
            order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(),
        ) {
            let mut plain = Sketch::default();
            v.iter().zip(0..).for_each(|(v, r)| v.iter().for_each(|&x| plain.add(x, r)));
            for shape in [Shape::Buckets, Shape::BINS, Shape::Totals] {
                let of = |rank: usize| {
                    let mut s = LiveSketch::new(shape);
                    v[rank].iter().for_each(|&x| s.add(x));
                    let s = s.finish(u32::try_from(rank).unwrap());
                    assert_eq!(LiveSketch::resume(&s, shape).finish(u32::try_from(rank).unwrap()), s);
                    s
                };
                let sum = |mut ranks: Vec<Sketch>, from_the_end: bool| {
                    // A chain, or a tree that begins at its other end.
                    while ranks.len() > 1 {
                        let at = if from_the_end { ranks.len() - 2 } else { 0 };
                        let next = ranks.remove(at + 1);
                        ranks[at].merge(&next);
                    }
                    ranks.remove(0)
                };
                let straight = sum((0..v.len()).map(of).collect(), false);
                let shuffled = sum(order.iter().filter(|&&r| r < v.len()).map(|&r| of(r)).collect(), true);
                let totals = |s: &Sketch| (s.count, s.sum, s.squares, s.min, s.max);
                prop_assert_eq!(totals(&straight), totals(&plain));
                prop_assert_eq!(totals(&shuffled), totals(&plain));
                if matches!(shape, Shape::Bins(_)) {
                    let held = |s: &Sketch| s.bins().iter().map(|b| b.count).sum::<u64>();
                    prop_assert_eq!((held(&straight), held(&shuffled)), (plain.count, plain.count));
                } else {
                    prop_assert_eq!(&straight, &shuffled);
                }
                if plain.count > 0 {
                    prop_assert_eq!(straight.shape(), shape);
                    prop_assert!((plain.min.0..=plain.max.0).contains(&straight.quantile(500)));
                }
                let (a, b) = (of(0), of(v.len() - 1));
                let (mut ab, mut ba) = (a.clone(), b.clone());
                ab.merge(&b);
                ba.merge(&a);
                prop_assert_eq!(ab, ba);
            }
        }

        #[test]
        fn merge_order_does_not_matter(v in proptest::collection::vec((0u64..1 << 50, 0u32..8), 1..60), cut in 0usize..60) {
            let build = |v: &[(u64, u32)]| {
                let mut s = Sketch::default();
                v.iter().for_each(|&(x, r)| s.add(x, r));
                s
            };
            let cut = cut.min(v.len());
            let (a, b) = (build(&v[..cut]), build(&v[cut..]));
            let (mut ab, mut ba) = (a.clone(), b.clone());
            ab.merge(&b);
            ba.merge(&a);
            prop_assert_eq!(&ab, &ba);
            prop_assert_eq!(&ab, &build(&v));
            let mut live = LiveSketch::default();
            v.iter().for_each(|&(x, _)| live.add(x));
            let mut plain = Sketch::default();
            v.iter().for_each(|&(x, _)| plain.add(x, 0));
            prop_assert_eq!(live.finish(0), plain);
            let mut sorted: Vec<u64> = v.iter().map(|x| x.0).collect();
            sorted.sort_unstable();
            let median = sorted[v.len().div_ceil(2) - 1];
            let q = ab.quantile(500);
            prop_assert!(u128::from(q.abs_diff(median)) * 100 <= u128::from(median) + 100, "{q} {median}");
        }
    }
}
