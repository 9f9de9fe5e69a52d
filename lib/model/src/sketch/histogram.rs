//! Histograms of few balanced bins, as the papers have them.
//!
//! A histogram begins with bins of equal width from 0 to twice its first value. A value beyond the last bin adds a bin and
//! unites the two neighbours whose means are closest; where every sixteenth value finds a bin that holds so much more than its
//! share, half of it unless said otherwise, two small neighbours are united and the bin is split at its mean. Each bin keeps the number, the sum and the sum of squares of its
//! values, so that uniting is exact and splitting keeps them; all is integers, so that all machines agree.
//!
//! Source: Ratn, Mueller, de Supinski, Schulz 2008, algorithms 1 and 2. They contradict themselves in places; as here,
//! bins are half open and the last one closed, ranges grow on both sides, the balance is tested against the share of a bin,
//! the neighbours that are united do not hold the bin that is split, and the halves lie √3/2 standard deviations below
//! and above its mean, which conserves the variance of a uniform bin.

use crate::num::{Exact, saturate};
use std::fmt;
use std::str::FromStr;

/// How many values pass between two tests of the balance, once there are that many.
const SMOOTH: u64 = 16;

/// How many bins a histogram has, and how even they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binning {
    bins: u32,
    excess: u32,
}

impl Binning {
    /// The papers': with 5 bins replays were as exact as with 10.
    pub const DEFAULT: Self = Self { bins: 5, excess: 50 };

    /// So many bins, each of which is split when it holds so many percent more than its share; `None` outside of 1 to 64 bins, or
    /// more than 1,000 %.
    #[must_use]
    pub fn new(bins: u32, excess: u32) -> Option<Self> {
        ((1..=64).contains(&bins) && excess <= 1000).then_some(Self { bins, excess })
    }

    /// Number of bins.
    #[must_use]
    pub fn bins(self) -> u32 {
        self.bins
    }

    /// How many percent more than its share a bin holds before it is split.
    #[must_use]
    pub fn excess(self) -> u32 {
        self.excess
    }

    /// Of bins that are there; how even they were kept does not show.
    pub(super) fn of(bins: &[Bin]) -> Self {
        Self { bins: saturate(bins.len()), ..Self::DEFAULT }
    }
}

/// Why a text does not say how histograms are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not 1 to 64 bins, a colon and 0 to 1000 percent")]
pub struct NoBinning;

impl FromStr for Binning {
    type Err = NoBinning;

    /// `BINS:PERCENT`.
    fn from_str(text: &str) -> Result<Self, NoBinning> {
        let (bins, excess) = text.split_once(':').ok_or(NoBinning)?;
        let number = |word: &str| word.parse().map_err(|_| NoBinning);
        Self::new(number(bins)?, number(excess)?).ok_or(NoBinning)
    }
}

impl fmt::Display for Binning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.bins, self.excess)
    }
}

/// Values from `low` up to, but not including, `high`; in the last bin including it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bin {
    /// Lower edge.
    pub low: u64,
    /// Upper edge.
    pub high: u64,
    /// Number of values.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// Sum of their squares.
    pub squares: u128,
}

impl Bin {
    fn add(&mut self, x: u64) {
        self.count += 1;
        self.sum += u128::from(x);
        self.squares = self.squares.saturating_add(u128::from(x) * u128::from(x));
    }

    /// Mean, rounded down; the middle of an empty bin.
    #[must_use]
    pub fn mean(&self) -> u64 {
        match self.count {
            0 => self.low.midpoint(self.high),
            // Division of 64 bits is several times as fast.
            n => match u64::try_from(self.sum) {
                Ok(sum) => sum / n,
                Err(_) => saturate(self.sum / u128::from(n)),
            },
        }
    }

    /// Variance in ns², rounded down: the mean of the squares less the square of the mean.
    #[must_use]
    pub fn variance(&self) -> u128 {
        let n = u128::from(self.count.max(1));
        let (whole, rest) = (self.sum / n, self.sum % n);
        let square = whole.saturating_mul(self.sum).saturating_add(rest.saturating_mul(self.sum).div_ceil(n));
        self.squares.saturating_sub(square) / n
    }

    /// This bin and the next as one: exact.
    fn with(&self, next: &Self) -> Self {
        Self {
            low: self.low,
            high: next.high,
            count: self.count.saturating_add(next.count),
            sum: self.sum.saturating_add(next.sum),
            squares: self.squares.saturating_add(next.squares),
        }
    }

    /// The bin cut at its mean, if that lies inside it.
    fn split(&self) -> Option<[Self; 2]> {
        let at = self.mean();
        // Equal values cannot be told apart by an edge.
        if self.count < 2 || at <= self.low || at >= self.high || self.variance() == 0 {
            return None;
        }
        let (more, fewer) = (self.count.div_ceil(2), self.count / 2);
        let (a, b) = (u128::from(more), u128::from(fewer));
        // (√3/2)σ·√(b/a), so that the mean of both halves stays; to the nearest ns.
        let below = (self.variance().saturating_mul(3 * b) / a).isqrt().div_ceil(2);
        let n = a + b;
        let sum =
            (self.sum / n * a + self.sum % n * a / n).saturating_sub(below * a).max(a * u128::from(self.low));
        let sum = sum.min(self.sum);
        // Half the standard deviation: a quarter of the variance.
        let (whole, rest) = (sum / a, sum % a);
        let square = whole.saturating_mul(sum).saturating_add(rest.saturating_mul(sum) / a);
        let squares = (a * (self.variance() / 4)).saturating_add(square).min(self.squares);
        Some([
            Self { low: self.low, high: at, count: more, sum, squares },
            Self {
                low: at,
                high: self.high,
                count: fewer,
                sum: self.sum - sum,
                squares: self.squares - squares,
            },
        ])
    }
}

/// The bins of a distribution, in ascending order without gaps; none before the first value.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    bins: Vec<Bin>,
}

impl Histogram {
    /// From decoded bins, in ascending order.
    #[must_use]
    pub fn from_bins(bins: Vec<Bin>) -> Self {
        Self { bins }
    }

    /// The bins.
    #[must_use]
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.bins.iter().map(|bin| bin.count).sum()
    }

    /// Adds a value. *Cost:* O(bins) comparisons and additions; divisions only where the range grows or bins are balanced.
    pub fn add(&mut self, x: u64, how: Binning) {
        if self.bins.is_empty() {
            self.create(x, how.bins);
        }
        self.reach(x);
        let last = self.bins.len() - 1;
        let at = self.bins.iter().position(|bin| x < bin.high).unwrap_or(last);
        self.bins[at].add(x);
        let count = self.count();
        let share = |n: u64, of: u64| u128::from(n) * u128::from(of);
        let full = share(self.bins[at].count, 100 * self.bins.len().to_u64())
            > share(count, 100 + u64::from(how.excess));
        if full && (count < SMOOTH || count.is_multiple_of(SMOOTH)) {
            self.balance(at);
        }
    }

    /// Equal bins from 0 to twice the first value, at least 1 wide.
    fn create(&mut self, x: u64, bins: u32) {
        let width = x.saturating_mul(2).div_ceil(bins.into()).max(1);
        let edge = |i: u32| width.saturating_mul(i.into());
        self.bins = (0..bins).map(|i| Bin { low: edge(i), high: edge(i + 1), ..Bin::default() }).collect();
    }

    /// Makes the range hold a value.
    fn reach(&mut self, x: u64) {
        let Some(end) = self.bins.last().map(|bin| bin.high) else { return };
        if let Some(first) = self.bins.first_mut() {
            first.low = first.low.min(x);
        }
        if x > end {
            let high = x.saturating_mul(2).saturating_sub(end).max(x);
            self.bins.push(Bin { low: end, high, ..Bin::default() });
            let closest = (0..self.bins.len() - 1)
                .min_by_key(|&i| self.bins[i + 1].mean().saturating_sub(self.bins[i].mean()));
            self.unite(closest.unwrap_or(0));
        }
    }

    fn unite(&mut self, at: usize) {
        if at + 1 < self.bins.len() {
            self.bins[at] = self.bins[at].with(&self.bins[at + 1]);
            self.bins.remove(at + 1);
        }
    }

    /// Splits a full bin in the place of two neighbours that hold less together.
    fn balance(&mut self, full: usize) {
        let pairs = (0..self.bins.len().saturating_sub(1)).filter(|&i| i != full && i + 1 != full);
        let total = |i: usize| self.bins[i].count + self.bins[i + 1].count;
        let Some(least) = pairs.min_by_key(|&i| total(i)) else { return };
        if total(least) >= self.bins[full].count {
            return;
        }
        let Some(halves) = self.bins[full].split() else { return };
        self.bins.splice(full..=full, halves);
        self.unite(if least > full { least + 1 } else { least });
    }

    /// Adds the values of another histogram; those of a bin across an edge of the other count as evenly spread. There are as many bins
    /// as the one of more has. Numbers, sums and sums of squares stay exact. *Cost:* O(bins²).
    pub fn merge(&mut self, other: &Self) {
        if self.bins.is_empty() || other.bins.is_empty() {
            self.bins.extend_from_slice(&other.bins);
            return;
        }
        let most = self.bins.len().max(other.bins.len());
        let mut edges: Vec<u64> =
            [&self.bins, &other.bins].into_iter().flatten().flat_map(|b| [b.low, b.high]).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut united: Vec<Bin> =
            edges.windows(2).map(|e| Bin { low: e[0], high: e[1], ..Bin::default() }).collect();
        for bin in self.bins.iter().chain(&other.bins) {
            spread(bin, &mut united);
        }
        self.bins = united;
        while self.bins.len() > most {
            let total = |i: usize| self.bins[i].count + self.bins[i + 1].count;
            let least = (0..self.bins.len() - 1).min_by_key(|&i| total(i)).unwrap_or(0);
            self.unite(least);
        }
    }

    /// A value at a share of the distribution, in thousandths: evenly spread inside its bin.
    #[must_use]
    pub fn quantile(&self, q: u64) -> u64 {
        let target = (u128::from(self.count()) * u128::from(q.min(1000))).div_ceil(1000).max(1);
        let mut seen = 0_u128;
        for bin in &self.bins {
            let n = u128::from(bin.count);
            if seen + n >= target {
                let width = u128::from(bin.high - bin.low);
                let inside = width * (target - seen) / n.max(1);
                return bin.low.saturating_add(saturate(inside));
            }
            seen += n;
        }
        self.bins.last().map_or(0, |bin| bin.high)
    }
}

/// Shares a bin out among the bins that it lies across, by their widths; what rounding leaves goes to the last.
fn spread(bin: &Bin, onto: &mut [Bin]) {
    let mut left = *bin;
    let inside: Vec<usize> =
        (0..onto.len()).filter(|&i| onto[i].low >= bin.low && onto[i].high <= bin.high).collect();
    for (k, &i) in inside.iter().enumerate() {
        let to = &mut onto[i];
        let (count, sum, squares) = if k + 1 == inside.len() {
            (left.count, left.sum, left.squares)
        } else {
            let part = |n: u128| {
                n.saturating_mul((to.high - to.low).into()) / u128::from((bin.high - bin.low).max(1))
            };
            let count = saturate::<u64>(part(bin.count.into())).min(left.count);
            let middle = u128::from(to.low.midpoint(to.high));
            let sum = (middle * u128::from(count)).min(left.sum);
            let squares = middle.saturating_mul(middle).saturating_mul(count.into()).min(left.squares);
            (count, sum, squares)
        };
        left.count -= count;
        left.sum -= sum;
        left.squares -= squares;
        to.count = to.count.saturating_add(count);
        to.sum = to.sum.saturating_add(sum);
        to.squares = to.squares.saturating_add(squares);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn binned(values: &[u64], how: Binning) -> Histogram {
        let mut h = Histogram::default();
        values.iter().for_each(|&x| h.add(x, how));
        h
    }

    fn of(values: &[u64]) -> Histogram {
        binned(values, Binning::DEFAULT)
    }

    fn totals(h: &Histogram) -> (u64, u128, u128) {
        let add = |(n, s, q): (u64, u128, u128), b: &Bin| (n + b.count, s + b.sum, q + b.squares);
        h.bins().iter().fold((0, 0, 0), add)
    }

    fn exact(values: &[u64]) -> (u64, u128, u128) {
        let wide = || values.iter().map(|&x| u128::from(x));
        (values.len() as u64, wide().sum(), wide().map(|x| x * x).sum())
    }

    fn sound(h: &Histogram, bins: u32) {
        assert_eq!(h.bins().len(), bins.to_usize());
        assert!(h.bins().iter().all(|b| b.low < b.high), "{h:?}");
        assert!(h.bins().windows(2).all(|w| w[0].high == w[1].low), "{h:?}");
    }

    proptest! {
        #[test]
        fn totals_are_exact_and_bins_sound(
            a in proptest::collection::vec(prop_oneof![0..20_u64, 0..1_u64 << 40], 1..200),
            b in proptest::collection::vec(prop_oneof![0..20_u64, 0..1_u64 << 40], 1..200),
            bins in 1..=64_u32,
            excess in 0..=1000_u32,
        ) {
            let how = Binning::new(bins, excess).unwrap();
            let (mut x, y) = (binned(&a, how), binned(&b, how));
            sound(&x, bins);
            prop_assert_eq!(totals(&x), exact(&a));
            x.merge(&y);
            sound(&x, bins);
            prop_assert_eq!(totals(&x), exact(&[a, b].concat()));
        }
    }

    /// Source: `algorithms.md` §7.1, the printed algorithm's defects one by one.
    #[test]
    fn defects_of_the_printed_algorithm() {
        // A first value of 0 makes bins of width 1.
        let edges = |h: &Histogram| {
            h.bins().iter().map(|b| b.low).chain(h.bins().last().map(|b| b.high)).collect::<Vec<_>>()
        };
        assert_eq!(edges(&of(&[0])), [0, 1, 2, 3, 4, 5]);
        // Equal bins from 0 to twice the first value; a value on an edge lies in one bin; the last bin is closed.
        let h = of(&[50, 20, 100]);
        assert_eq!(edges(&h), [0, 20, 40, 60, 80, 100]);
        assert_eq!(h.bins().iter().map(|b| b.count).collect::<Vec<_>>(), [0, 1, 1, 0, 1]);
        // The range grows to max(2v - end, v), and the neighbours with the closest means become one.
        let h = of(&[50, 130]);
        assert_eq!(h.bins().last().map(|b| (b.low, b.high, b.count)), Some((100, 160, 1)));
        // Splitting at the mean gives half of the values, rounded up, to the lower half, and conserves totals.
        let bin = Bin { low: 0, high: 100, count: 5, sum: 250, squares: 16_500 };
        let [a, b] = bin.split().unwrap();
        assert_eq!((a.count, b.count, a.high, b.low), (3, 2, 50, 50));
        assert_eq!((a.sum + b.sum, a.squares + b.squares), (250, 16_500));
        // Uniform bins keep their variance: σ²/4 inside the halves and 3σ²/4 between them.
        let uniform = Bin { low: 0, high: 1000, count: 1000, sum: 499_500, squares: 332_833_500 };
        let [a, b] = uniform.split().unwrap();
        let near = |x: u128, y: u128| x.abs_diff(y) * 50 <= y;
        assert!(near(a.variance(), uniform.variance() / 4) && near(b.variance(), uniform.variance() / 4));
        assert!(near((b.mean() - a.mean()).into(), (uniform.variance() * 3).isqrt()));
    }

    fn counts(h: &Histogram) -> Vec<u64> {
        h.bins().iter().map(|b| b.count).collect()
    }

    /// Bins 10 wide whose values lie at their middle and two beside it.
    fn tens(counts: [u64; 5]) -> Histogram {
        let bin = |(i, count): (u64, u64)| {
            let (low, middle) = (10 * i, 10 * i + 5);
            let around = |x: u64| u128::from(x) * u128::from(count / 2);
            let sum = u128::from(middle * (count % 2)) + around(middle - 2) + around(middle + 2);
            let squares = u128::from(middle * middle * (count % 2))
                + around((middle - 2) * (middle - 2))
                + around((middle + 2) * (middle + 2));
            Bin { low, high: low + 10, count, sum, squares }
        };
        Histogram::from_bins((0..).zip(counts).map(bin).collect())
    }

    /// Source: `algorithms.md` §7.1: the rebalance.
    #[test]
    fn a_full_bin_is_split_in_the_place_of_two_small_neighbours() {
        // 16 values: a share is 3.2, half as much again 4.8. The neighbours of least total, without the full bin: 1 + 1.
        let mut h = tens([1, 1, 8, 2, 3]);
        h.add(25, Binning::DEFAULT);
        assert_eq!(counts(&h), [2, 5, 4, 2, 3]);
        assert_eq!(h.bins()[1].high, 25);
        // Not where they hold as much as the full one.
        let mut h = tens([5, 4, 8, 4, 5]);
        h.balance(2);
        assert_eq!(counts(&h), [5, 4, 8, 4, 5]);
        // Not below the threshold: 4 of 16 values.
        let mut h = tens([3, 3, 3, 3, 3]);
        h.add(25, Binning::DEFAULT);
        assert_eq!(counts(&h), [3, 3, 4, 3, 3]);
        // A value on an edge that a smaller one follows: the first edge is lowered.
        let mut h = Histogram::from_bins(vec![Bin { low: 10, high: 20, ..Bin::default() }]);
        [20, 7].into_iter().for_each(|x| h.add(x, Binning::DEFAULT));
        assert_eq!((h.bins()[0].low, h.bins()[0].high, h.count()), (7, 20, 2));
    }

    /// Source: `algorithms.md` §7.1: uniting is exact, M2 = M2a + M2b + (difference of means)²·na·nb/(na+nb), where M2 is
    /// the sum of squared distances from the mean and the variance is M2/n.
    #[test]
    fn uniting_bins_is_exact() {
        let (a, b) = (of(&[2, 4]), of(&[10, 14, 18]));
        let bin = |h: &Histogram| h.bins().iter().fold(Bin::default(), |all, b| all.with(b));
        let (a, b) = (bin(&a), bin(&b));
        assert_eq!((a.variance() * 2, a.mean(), b.variance(), b.mean()), (2, 3, 32 / 3, 14));
        let m2 = 2 + 32 + 11 * 11 * 2 * 3 / 5;
        assert_eq!(a.with(&b).variance(), m2 / 5);
    }

    /// Ranks' histograms become one of as many bins; a bin across an edge counts as evenly spread.
    #[test]
    fn histograms_of_ranks_add_up() {
        let mut h = tens([1, 2, 1, 2, 1]);
        h.merge(&tens([1, 2, 1, 2, 1]));
        assert_eq!((counts(&h), h.bins().len()), (vec![2, 4, 2, 4, 2], 5));
        let empty = |low, high| Bin { low, high, ..Bin::default() };
        let wide = Bin { low: 0, high: 100, count: 10, sum: 500, squares: 33_000 };
        let narrow = Bin { low: 40, high: 60, count: 2, sum: 100, squares: 5_000 };
        let mut h = Histogram::from_bins(vec![wide, empty(100, 101), empty(101, 102)]);
        h.merge(&Histogram::from_bins(vec![narrow]));
        assert_eq!((counts(&h), h.bins()[1].low), (vec![4, 4, 4], 40));
        assert_eq!(totals(&h), (12, 600, 38_000));
    }

    #[test]
    fn bins_become_balanced() {
        let values: Vec<u64> =
            (0..10_000).map(|i| if i == 0 { 1_000_000 } else { 1_000 + i * 7 % 100 }).collect();
        let h = of(&values);
        assert!(h.bins().iter().all(|b| b.count < 7_000), "{h:?}");
        assert!(h.quantile(500).abs_diff(1_050) < 60, "{h:?}");
        // The more so the less a bin may hold beyond its share; not at all where that is all there is.
        let fullest = |excess| {
            let h = binned(&values, Binning::new(10, excess).unwrap());
            h.bins().iter().map(|b| b.count).max().unwrap()
        };
        assert!(
            fullest(10) < fullest(400) && fullest(400) < fullest(1000),
            "{:?}",
            [10, 400, 1000].map(fullest)
        );
        assert_eq!(fullest(1000), 9_999);
    }

    #[test]
    fn how_they_are_kept_is_told_in_words() {
        let how: Binning = "10:20".parse().unwrap();
        assert_eq!((how.bins(), how.excess(), how.to_string().as_str()), (10, 20, "10:20"));
        for wrong in ["", "10", "0:50", "65:50", "5:1001", "5:-1", "5:50:1"] {
            assert!(wrong.parse::<Binning>().is_err(), "{wrong}");
        }
    }
}
