//! Distributions by durations at fixed ranks: what is made of them is near what was measured, and stays what it is.

use proptest::prelude::*;
use st_model::num::{float, narrow};
use st_model::sketch::quantiles::{ERROR, Quantiles, most, positions};
use st_model::sketch::{LiveSketch, Shape, Sketch, representative};

fn sketch(values: &[u64]) -> Sketch {
    let mut live = LiveSketch::new(Shape::Buckets);
    live.add_all(values);
    live.finish(3)
}

fn kept(values: &[u64]) -> Sketch {
    within(values, ERROR)
}

/// What is kept may be so many millionths of the sum away.
fn within(values: &[u64], error: u32) -> Sketch {
    let mut sketch = sketch(values);
    sketch.keep_quantiles(error);
    sketch
}

/// The durations that a sketch stands for, ascending.
fn stood_for(sketch: &Sketch) -> Vec<u64> {
    let each = |(bucket, n): (u16, u64)| std::iter::repeat_n(representative(bucket), narrow(n));
    sketch.buckets().flat_map(each).collect()
}

/// Evenly spread over the unit interval, the same each time.
fn even(i: u64) -> f64 {
    float(u128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11)) / 2f64.powi(53)
}

/// A duration of a kind of distribution.
fn drawn(kind: u8, i: u64) -> u64 {
    let (x, y) = (even(i), even(i + 1_000_003));
    let normal = (-2.0 * x.max(1e-12).ln()).sqrt() * (std::f64::consts::TAU * y).cos();
    let ns = match kind {
        0 => 1e5 * (0.3 * normal).exp(),
        1 => 2e4 + 8e4 * x,
        2 => -5e5 * x.max(1e-12).ln(),
        // Two kinds of durations: the slow ones are one in five.
        3 if y < 0.2 => 5e6 * (0.05 * normal).exp(),
        3 => 1e3 * (0.05 * normal).exp(),
        // Three, of which one comes once in two hundred.
        4 if y < 0.005 => 2e8,
        4 if y < 0.4 => 3e5 * (0.1 * normal).exp(),
        4 => 4e4 * (0.1 * normal).exp(),
        _ => 1e6 * (1.0 + 0.001 * normal),
    };
    st_model::num::rounded(ns)
}

#[test]
fn quantiles_are_near_for_common_distributions() {
    for kind in 0..6 {
        for n in [200u64, 3000, 50_000] {
            let mut values: Vec<u64> = (0..n).map(|i| drawn(kind, i)).collect();
            let sketch = kept(&values);
            values.sort_unstable();
            let made = stood_for(&sketch);
            assert_eq!(made.len(), values.len());
            let apart: u128 = made.iter().zip(&values).map(|(a, b)| u128::from(a.abs_diff(*b))).sum();
            // A hundredth, and what buckets are wide.
            assert!(apart * 50 <= sketch.sum, "kind {kind}, {n}: {apart} of {}", sketch.sum);
            // Of 50 quantiles all but those beside a jump.
            let far = |q: &u64| {
                let at = usize::try_from((n * (2 * q + 1)).div_ceil(100) - 1).unwrap();
                made[at].abs_diff(values[at]) * 20 > values[at]
            };
            let far = (0..50).filter(far).count();
            assert!(far <= if n < 1000 { 6 } else { 2 }, "kind {kind}, {n}: {far} quantiles");
        }
    }
}

/// Less error takes more room, and is less.
#[test]
fn an_error_that_is_asked_for_is_kept() {
    for kind in 0..6 {
        let values: Vec<u64> = (0..50_000).map(|i| drawn(kind, i)).collect();
        let measured = stood_for(&sketch(&values));
        let sum: u128 = measured.iter().map(|ns| u128::from(*ns)).sum();
        let mut places = 0;
        for error in [100_000, 20_000, 5_000, 1_000, 0] {
            let sketch = within(&values, error);
            let made = stood_for(&sketch);
            let apart: u128 = made.iter().zip(&measured).map(|(a, b)| u128::from(a.abs_diff(*b))).sum();
            assert!(apart * 1_000_000 <= sum * u128::from(error), "kind {kind}, {error}: {apart}");
            let now = sketch.quantiles().map_or(usize::MAX, |kept| kept.buckets().len());
            assert!(now >= places, "kind {kind}, {error}: {now} and {places}");
            places = now;
        }
        assert_eq!(stood_for(&within(&values, 0)), measured);
    }
}

proptest! {
    #[test]
    fn numbers_and_sums_are_exact_and_all_else_stays(
        values in prop::collection::vec(prop_oneof![0u64..9, 0u64..5000, any::<u64>().prop_map(|x| x >> (x % 60))], 1..400),
        extra in prop::collection::vec(0u64..1_000_000, 0..50),
    ) {
        let (exact, sketch) = (sketch(&values), kept(&values));
        prop_assert_eq!((sketch.count, sketch.sum), (exact.count, exact.sum));
        prop_assert_eq!((sketch.min.1, sketch.max.1), (3, 3));
        prop_assert_eq!(sketch.buckets().map(|(_, n)| n).sum::<u64>(), exact.count);
        prop_assert!(sketch.buckets().map(|(b, _)| b).is_sorted_by(|a, b| a < b));
        // Few buckets stay as they are.
        let Some(parts) = sketch.quantiles() else {
            prop_assert_eq!(&sketch, &exact);
            return Ok(());
        };
        prop_assert!(parts.more().len() <= most(ERROR));
        let mean = u128::from(sketch.mean());
        prop_assert!(u128::from(sketch.min.0) <= mean && u128::from(sketch.max.0) >= mean);
        prop_assert!(sketch.quantile(0) >= sketch.min.0 && sketch.quantile(1000) <= sketch.max.0);
        for (made, was) in [(sketch.min.0, exact.min.0), (sketch.max.0, exact.max.0)] {
            // The last bucket has all that are longer, too.
            prop_assert!(u128::from(made.abs_diff(was)) * 99 <= u128::from(was) + 99 || was >> 61 > 0);
        }
        // At the positions that are kept durations are those that were measured.
        let (made, mut sorted) = (stood_for(&sketch), values.clone());
        sorted.sort_unstable();
        for at in positions(exact.count, parts.more()) {
            let at = usize::try_from(at - 1).unwrap();
            prop_assert_eq!(made[at], representative(st_model::sketch::bucket(sorted[at])));
        }
        let again = Quantiles::from_parts(parts.more().to_vec(), parts.buckets().to_vec(), parts.deviation(), sketch.count);
        prop_assert_eq!(&Sketch::from_quantiles(sketch.clone(), again.unwrap()), &sketch);
        // Sketches that are added become buckets.
        let (mut both, other) = (sketch.clone(), self::sketch(&extra));
        both.merge(&other);
        prop_assert_eq!((both.count, both.sum), (sketch.count + other.count, sketch.sum + other.sum));
        let mut turned = other.clone();
        turned.merge(&sketch);
        prop_assert_eq!(both.buckets().collect::<Vec<_>>(), turned.buckets().collect::<Vec<_>>());
    }

    #[test]
    fn any_parts_are_refused_or_spread_over_all(
        n in prop_oneof![0u64..40, any::<u64>()],
        mut buckets in prop::collection::vec(0u16..2300, 0..30),
        mut more in prop::collection::vec(0u64..40, 0..6),
        deviation: u16,
    ) {
        buckets.sort_unstable();
        more.sort_unstable();
        more.dedup();
        let places = positions(n, &more).len();
        let last = buckets.last().copied().unwrap_or_default();
        buckets.resize(if n % 3 == 0 { 1 } else { places }, last);
        if let Some(kept) = Quantiles::from_parts(more, buckets, deviation, n) {
            let mut totals = Sketch::default();
            totals.count = n;
            let sketch = Sketch::from_quantiles(totals, kept);
            prop_assert_eq!(sketch.buckets().map(|(_, n)| u128::from(n)).sum::<u128>(), u128::from(n));
        }
    }
}
