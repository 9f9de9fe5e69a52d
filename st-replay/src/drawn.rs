//! Durations from a distribution.
//!
//! Each of `n` durations is the quantile at (j + ½)/n for another j of 0 … n−1, in an order that depends on the rank
//! ([`crate::order`]). What is drawn has the distribution's shape exactly, and totals need hardly any correction.
//!
//! Source: histogram bins in proportion as in Ratn, Mueller, de Supinski, Schulz 2008, section 5.

use st_model::num::{narrow, saturate};
use st_model::sketch::{Shape, Sketch, representative};

/// Durations by their position among a known number of them.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// Durations in ascending order, each with the number of draws up to its last.
    steps: Vec<(u64, u64)>,
    n: u64,
    /// Sum of these.
    sum: u128,
    /// The longest of all ranks, and the rank that had it: where that is known, its last draw.
    longest: Option<(u64, u32)>,
}

impl Drawn {
    /// `n` durations of a rank from a sketch of one or several ranks: of any rank, but for the longest, which is drawn on the rank
    /// that had it.
    #[must_use]
    pub fn new(sketch: &Sketch, n: u64) -> Self {
        let mut steps: Vec<(u64, u64)> = Vec::new();
        let mut seen = 0_u128;
        for (value, count) in values(sketch) {
            seen += u128::from(count);
            // Draws at or below the end of this value's share: (j + ½)/n ≤ seen/count.
            let up_to =
                (2 * u128::from(n) * seen / u128::from(sketch.count.max(1))).div_ceil(2).min(n.into());
            let up_to = narrow(up_to);
            if up_to > steps.last().map_or(0, |s| s.1) {
                steps.push((value.clamp(sketch.min.0, sketch.max.0), up_to));
            }
        }
        if let (Some(last), true) = (steps.last_mut(), n > 0) {
            last.1 = n;
        }
        let longest = (n > 0 && sketch.shape() != Shape::Totals).then_some(sketch.max);
        let mut before = 0;
        let of = |&(value, up_to): &(u64, u64)| {
            let n = up_to - std::mem::replace(&mut before, up_to);
            u128::from(value) * u128::from(n)
        };
        let sum = steps.iter().map(of).sum();
        Self { steps, n, sum, longest }
    }

    /// The longest of all ranks, if a rank had it.
    fn longest(&self, rank: u32) -> Option<u64> {
        self.longest.filter(|longest| longest.1 == rank).map(|longest| longest.0)
    }

    /// Sum of all draws of a rank.
    #[must_use]
    pub fn total(&self, rank: u32) -> u128 {
        let last = u128::from(self.steps.last().map_or(0, |step| step.0));
        self.longest(rank).map_or(self.sum, |longest| self.sum - last + u128::from(longest))
    }

    /// Number of draws.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.n
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// How many draws are shorter than that.
    #[must_use]
    pub fn below(&self, ns: u64) -> u64 {
        let step = self.steps.partition_point(|&(value, _)| value < ns);
        step.checked_sub(1).and_then(|last| self.steps.get(last)).map_or(0, |s| s.1)
    }

    /// The one of a rank at a position in ascending order; 0 if there are none. *Cost:* O(log steps).
    #[must_use]
    pub fn at(&self, position: u64, rank: u32) -> u64 {
        if let Some(longest) = self.longest(rank).filter(|_| position + 1 == self.n) {
            return longest;
        }
        let step = self.steps.partition_point(|&(_, up_to)| up_to <= position);
        self.steps.get(step).map_or(0, |s| s.0)
    }
}

/// Durations in ascending order, each with how often it was measured.
fn values(sketch: &Sketch) -> Vec<(u64, u64)> {
    match sketch.shape() {
        Shape::Buckets | Shape::Quantiles => {
            sketch.buckets().map(|(bucket, n)| (representative(bucket), n)).collect()
        }
        Shape::Bins(_) => {
            let bins: Vec<_> =
                sketch.bins().iter().filter(|b| b.count > 0).map(|b| (b.mean(), b.count)).collect();
            // Splitting a bin takes its values for evenly spread: durations of two kinds become some that never were.
            let measured = |(mean, _): &(u64, u64)| (sketch.min.0..=sketch.max.0).contains(mean);
            if bins.iter().all(measured) { bins } else { two(sketch) }
        }
        Shape::Totals => two(sketch),
    }
}

/// The shortest duration and a longer one, in such numbers that mean and variance are those of the totals: what is nearest to a
/// program that is mostly as fast and sometimes slow.
fn two(sketch: &Sketch) -> Vec<(u64, u64)> {
    let (mean, count) = (sketch.mean(), sketch.count);
    let (wide, variance) = (u128::from(mean), sketch.variance());
    let above = wide.saturating_sub(sketch.min.0.into());
    if above == 0 || variance == 0 {
        return vec![(mean, count)];
    }
    // mean = shortest + share·(longer − shortest), and variance = (mean − shortest)·(longer − mean).
    let longer = wide.saturating_add(variance / above);
    let number = (u128::from(count) * above).div_ceil(longer - u128::from(sketch.min.0)).min(count.into());
    let number = narrow(number);
    vec![(sketch.min.0, count - number), (saturate(longer), number)]
}

/// Shares of a total: what is handed out sums up to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scale {
    own: u128,
    expected: u128,
    rest: u128,
}

impl Scale {
    /// Parts of `expected` become parts of `own`.
    #[must_use]
    pub fn new(own: u128, expected: u128) -> Self {
        Self { own, expected, rest: 0 }
    }

    /// A part, scaled; what rounding takes is given to the next.
    pub fn share(&mut self, part: u64) -> u64 {
        if self.expected == 0 {
            return part;
        }
        let wide = u128::from(part).saturating_mul(self.own).saturating_add(self.rest);
        self.rest = wide % self.expected;
        saturate(wide / self.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_model::sketch::LiveSketch;

    fn sketch(values: impl IntoIterator<Item = u64>, shape: Shape) -> Sketch {
        let mut live = LiveSketch::new(shape);
        values.into_iter().for_each(|x| live.add(x));
        live.finish(0)
    }

    fn all(sketch: &Sketch, n: u64, rank: u32) -> Vec<u64> {
        let drawn = Drawn::new(sketch, n);
        let values: Vec<u64> = (0..n).map(|i| drawn.at(i, rank)).collect();
        assert_eq!(values.iter().copied().map(u128::from).sum::<u128>(), drawn.total(rank));
        values
    }

    #[test]
    fn as_many_draws_as_measurements_have_their_distribution() {
        let measured = (0..1000).map(|i| if i % 100 == 0 { 1_000_000 } else { 1000 });
        let got = all(&sketch(measured, Shape::Buckets), 1000, 0);
        assert_eq!(got.iter().filter(|&&x| x > 900_000).count(), 10);
    }

    #[test]
    fn fewer_draws_are_spread_over_the_quantiles() {
        let got = all(&sketch(1..=10_000, Shape::Buckets), 10, 1);
        let mut sorted = got.clone();
        sorted.sort_unstable();
        for (i, x) in sorted.iter().enumerate() {
            let wanted = 1000 * i + 500;
            assert!(x.abs_diff(wanted as u64) <= 15 + wanted as u64 / 50, "{sorted:?}");
        }
    }

    #[test]
    fn the_longest_is_drawn_on_its_own_rank() {
        let measured = sketch((0..100).map(|i| if i == 50 { 1_000_000 } else { 10 }), Shape::Buckets);
        assert_eq!(all(&measured, 10, 0).iter().filter(|&&x| x == 1_000_000).count(), 1);
        assert_eq!(all(&measured, 10, 1).iter().filter(|&&x| x == 1_000_000).count(), 0);
    }

    #[test]
    fn bins_come_in_proportion_and_totals_as_two_durations() {
        let measured = (0..300).map(|i| if i % 3 == 0 { 3000 } else { 1000 });
        let bins = sketch(measured.clone(), Shape::BINS);
        let total: u64 = all(&bins, 30, 1).iter().sum();
        assert!(total.abs_diff(50_000) < 2500, "{total}");
        assert_eq!(all(&sketch(measured, Shape::Totals), 6, 0), [1000, 1000, 1000, 1000, 3000, 3000]);
        assert_eq!(all(&sketch([5; 4], Shape::Totals), 3, 0), [5; 3]);
    }

    #[test]
    fn shares_sum_up_to_the_total() {
        let mut scale = Scale::new(1000, 33);
        assert_eq!((0..33).map(|_| scale.share(1)).sum::<u64>(), 1000);
        assert_eq!(Scale::new(5, 0).share(7), 7);
    }
}
