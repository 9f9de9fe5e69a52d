//! Medians and their confidence.

use rand::Rng;
use rand_pcg::Pcg64;
use st_model::num::Exact;

/// Samples drawn anew for an interval.
const DRAWN: usize = 2_000;

/// A median with the interval that holds the true one with a probability of 95 %: percentile bootstrap, which asks nothing of
/// the distribution. Of fewer than five values the interval is their range, which holds the median less often: in half the
/// cases of two.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Estimate {
    /// The median.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The middle of values; NaN of none.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle), values.len() % 2) {
        (Some(high), 0) => f64::midpoint(values[middle - 1], *high),
        (Some(m), _) => *m,
        (None, _) => f64::NAN,
    }
}

/// Their mean; NaN of none.
fn mean(values: &mut [f64]) -> f64 {
    let count: f64 = values.iter().map(|_| 1.0).sum();
    values.iter().sum::<f64>() / count
}

/// Estimates the median of what values are drawn from. The same values give the same estimate.
pub(crate) fn estimate(values: &[f64]) -> Estimate {
    estimate_by(median, values)
}

/// Estimates their mean in the same way: it is the `median` of what is given back.
pub(crate) fn estimate_mean(values: &[f64]) -> Estimate {
    estimate_by(mean, values)
}

fn estimate_by(of: fn(&mut [f64]) -> f64, values: &[f64]) -> Estimate {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = of(&mut sorted);
    let ends = |v: &[f64]| (v.first().copied().unwrap_or(f64::NAN), v.last().copied().unwrap_or(f64::NAN));
    let (mut low, mut high) = ends(&sorted);
    let count = values.len().to_u64();
    if count >= 5 && low < high {
        let mut chance = Pcg64::new(1, 1);
        let mut draw = || {
            let at = (chance.next_u64() % count).to_usize();
            sorted.get(at).copied().unwrap_or(middle)
        };
        let mut medians: Vec<f64> =
            (0..DRAWN).map(|_| of(&mut (0..count).map(|_| draw()).collect::<Vec<_>>())).collect();
        medians.sort_by(f64::total_cmp);
        (low, high) = ends(medians.get(DRAWN / 40..DRAWN - DRAWN / 40).unwrap_or(&medians));
    }
    Estimate { median: middle, low, high }
}

/// Ratios of what was measured in pairs, as [`estimate`] of their distribution. Pairs of two zeros are equal.
pub(crate) fn ratio(old: &[f64], new: &[f64]) -> Estimate {
    let ratios: Vec<f64> =
        old.iter().zip(new).map(|(o, n)| if o.total_cmp(n).is_eq() { 1.0 } else { n / o }).collect();
    estimate(&ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_few_have_the_range() {
        assert_eq!(estimate(&[3.0, 1.0]), Estimate { median: 2.0, low: 1.0, high: 3.0 });
        assert_eq!(estimate(&[7.0]), Estimate { median: 7.0, low: 7.0, high: 7.0 });
        assert!(estimate(&[]).median.is_nan());
    }

    #[test]
    fn means_have_intervals_of_means() {
        assert_eq!(estimate_mean(&[3.0, 1.0, 5.0]), Estimate { median: 3.0, low: 1.0, high: 5.0 });
        let e = estimate_mean(&[0.0, 0.0, 0.0, 0.0, 0.0, 12.0]);
        assert!((e.median - 2.0).abs() < 1e-9 && e.low < 2.0 && e.high > 2.0, "{e:?}");
    }

    #[test]
    fn intervals_hold_the_truth_nineteen_times_of_twenty() {
        let mut chance = Pcg64::new(7, 7);
        let mut uniform = || f64::from(u32::try_from(chance.next_u64() >> 32).unwrap()) / f64::from(u32::MAX);
        let held = (0..60)
            .filter(|_| {
                let e = estimate(&(0..21).map(|_| uniform()).collect::<Vec<_>>());
                assert!(e.low <= e.median && e.median <= e.high);
                e.low <= 0.5 && 0.5 <= e.high
            })
            .count();
        assert!((51..=60).contains(&held), "{held} of 60");
    }

    #[test]
    fn a_doubled_cost_is_told_from_noise() {
        let old: Vec<f64> = (0..11).map(|i| 100.0 + f64::from(i % 5)).collect();
        let new: Vec<f64> = (0..11).map(|i| 200.0 + f64::from(i % 3)).collect();
        let r = ratio(&old, &new);
        assert!(r.low > 1.9 && r.high < 2.1, "{r:?}");
        assert!((ratio(&[0.0], &[0.0]).median - 1.0).abs() < f64::EPSILON);
    }
}
