//! Whether a place took longer in one run than in another, beyond what chance does.
//!
//! A trace has many durations of a place, but they are few witnesses. Durations of a rank depend on those just before
//! them; ranks depend on each other, because they wait for each other and share nodes; and what is slow about one whole
//! run (where ranks were put, how warm a node was) is in all of its durations. A test that takes each duration for a
//! witness finds differences between any two runs. So the time that a rank spends at a place is what is compared, and no
//! single duration; and its variance is the sum of three, as if they were independent of each other:
//!
//! * Over time: of the blocks ([`crate::times`]), those of the second run beside those of the same number of the first, so that phases
//!   of the program do not count as chance; larger by the dependence of neighbouring blocks (`dependence`). Without exact
//!   times the variance of the mean of n durations of a rank is taken to fall with n^⅔ instead of n, as that of series with
//!   long-range dependence does (Hurst exponent ⅔), and all ranks to vary together.
//! * Over ranks: rank beside rank, if the same ranks are in both runs, else of the ranks of each. A change that differs much
//!   between few ranks is lost in that, however large it is: so where the ranks are the same it is also tried with what is
//!   known of ranks ([`Apart`]) in the place of how they differ there.
//! * From run to run: 2.5 % of the time (`BETWEEN_RUNS`). Two traces cannot tell it, being one run each. Where there are more runs of
//!   the first program, their variance, moderated towards that (Smyth 2004), since few runs tell little.
//!
//! Where there are three runs of the first program, it is also tried with nothing but how these differ ([`Usual`]): what ranks do
//! differently, they do in each of them.
//!
//! Of the probabilities of what is tried the smallest counts, times their number (Bonferroni).
//!
//! The difference over its deviation is compared with Student's distribution, of as many degrees of freedom as the sum
//! has (Satterthwaite 1946), and the probabilities of all places of a comparison are adjusted for their number (Holm 1979).
//!
//! Sources: clusters in two ways, Cameron, Gelbach, Miller 2011, of which we leave out the negative term; blocks,
//! Schmeiser 1982; the constants are our own.

mod apart;
mod runs;
mod side;
mod student;

use st_model::num::{Exact, float};

pub use self::apart::Apart;
use self::apart::USUAL;
use self::runs::BETWEEN_RUNS;
pub use self::runs::Usual;
pub use self::side::Side;
use self::side::{Variance, distances, products};
use self::student::{Tested, quantile, student, tested};

/// Standard deviation of the difference of the times of two runs as a whole, as a share of these: they also differ by where their ranks are
/// put. Chosen on drawn pairs of equal programs.
const WHOLE_RUNS: f64 = 0.1;
/// So many runs more this weighs as much as, once there are several.
const RUNS: f64 = 2.0;

/// Fewest blocks, or durations that depend on each other little, that tell how a time varies.
const FEWEST: f64 = 4.0;

/// A difference and how sure it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Judged {
    /// What the second run is expected to take, ns per rank: the mean of the first and of others of its program.
    pub expected: f64,
    /// The probability that chance makes a difference that is as large.
    pub probability: f64,
    /// The difference is known to so much, ns, in 99 of 100 cases.
    pub uncertainty: f64,
}

/// What more is known of two runs of which a place is judged.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Times per rank of more runs of the first program there, ns.
    pub others: &'a [f64],
    /// How runs of that usually differ.
    pub usual: Usual,
    /// How ranks do, if those of both runs are the same.
    pub apart: Option<Apart>,
}

/// Whether `b` differs from `a` and from other runs of that program; `None` if there are too few durations to tell.
#[must_use]
pub fn judge(a: Side<'_>, b: Side<'_>, known: Known<'_>) -> Option<Judged> {
    let runs: Vec<f64> = known.others.iter().copied().chain([a.mean()]).collect();
    let expected = runs.iter().sum::<f64>() / float(runs.len().to_u64().into());
    let change = (b.mean() - expected).abs();
    let mut within = over_time(a, b)?;
    within.push(between_runs(&runs, BETWEEN_RUNS * f64::midpoint(expected, b.mean())));
    let ranks = match known.apart {
        None => vec![vec![of_mean(&a.by_group()), of_mean(&b.by_group())]],
        Some(apart) => {
            let differing = of_mean(&residuals(a.by_group().into_iter().zip(b.by_group())));
            vec![vec![apart.moderated(differing, a, b)], vec![apart.known(a, b)]]
        }
    };
    let by_ranks = ranks.iter().map(|ranks| tested(change, &[&within[..], ranks].concat()));
    let tests: Vec<Tested> = by_ranks.chain([known.usual.tested(&runs, b.mean())]).flatten().collect();
    let least = tests.iter().min_by(|x, y| x.probability.total_cmp(&y.probability))?;
    let probability = (float(tests.len().to_u64().into()) * least.probability).min(1.0);
    Some(Judged { expected, probability, uncertainty: least.uncertainty })
}

/// Whether there are enough durations of a run at a place to tell how it varies. What is called a few times only, mostly where the program
/// begins, at times takes ten times as long for no reason.
#[must_use]
pub fn is_enough(side: Side<'_>) -> bool {
    of_run(side).is_some()
}

/// How much longer than the mean of these runs, times of a rank in ns, an equal run takes but in one of 200 cases, as a share of
/// that mean: by how these differ, or, of a single one, by what the time of a rank is taken to differ by, since ranks wait for the
/// slowest; `None` if they take no time.
#[must_use]
pub fn usual_growth(runs: &[f64]) -> Option<f64> {
    let expected = runs.iter().sum::<f64>() / float(runs.len().to_u64().into());
    let variance = match runs {
        [_] => Variance { of_mean: USUAL * USUAL, freedom: f64::INFINITY },
        runs => {
            let shares: Vec<f64> = runs.iter().map(|run| run / expected).collect();
            between_runs(&shares, WHOLE_RUNS)
        }
    };
    let student = student(variance.freedom).filter(|_| expected > 0.0)?;
    let most = quantile(&student) * variance.of_mean.sqrt();
    // What ranks are taken to differ by is a share of the mean of both times.
    Some(if runs.len() == 1 { most / (1.0 - most / 2.0) } else { most })
}

/// Variance of the difference of a run and the mean of others, from run to run; that of two is taken to have this deviation.
fn between_runs(runs: &[f64], deviation: f64) -> Variance {
    let prior = deviation.powi(2);
    let (distances, n) = distances(runs);
    if n < 2.0 {
        return Variance { of_mean: prior, freedom: f64::INFINITY };
    }
    let freedom = RUNS + n - 1.0;
    let of_run = (RUNS * prior / 2.0 + products(&distances, &distances)) / freedom;
    Variance { of_mean: of_run * (1.0 + 1.0 / n), freedom }
}

fn over_time(a: Side<'_>, b: Side<'_>) -> Option<Vec<Variance>> {
    let both = a.by_block().into_iter().zip(b.by_block());
    let blocks = residuals(both.filter_map(|(x, y)| Some((x?, y?))));
    if float(blocks.len().to_u64().into()) >= FEWEST {
        return Some(vec![dependence(&blocks)]);
    }
    Some(vec![of_run(a)?, of_run(b)?])
}

/// Variance over time of one run alone.
fn of_run(side: Side<'_>) -> Option<Variance> {
    let blocks: Vec<f64> = side.by_block().into_iter().flatten().collect();
    if float(blocks.len().to_u64().into()) >= FEWEST {
        return Some(dependence(&blocks));
    }
    let calling = side.sample.groups.iter().zip(side.groups).filter(|(sum, _)| **sum > 0);
    let calling = float(calling.map(|(_, n)| u128::from(*n)).sum()).max(1.0);
    let events = float(side.sample.events.into());
    let witnesses = (events / calling).powf(2.0 / 3.0);
    if witnesses < FEWEST {
        return None;
    }
    let mean = float(side.sample.sum) / events;
    let variance = (float(side.sample.squares) / events - mean * mean).max(0.0);
    let per_rank = side.factor * events / side.ranks().max(1.0);
    Some(Variance { of_mean: per_rank * per_rank * variance / witnesses, freedom: witnesses - 1.0 })
}

/// Differences of the values of two runs when the one that takes less long is brought to the level of the other: their
/// deviation is that of the difference of the means, also where what is larger differs by more.
///
/// Source: Cochran 1977, section 6.4 (residuals of ratio estimates).
fn residuals(both: impl Iterator<Item = (f64, f64)> + Clone) -> Vec<f64> {
    let (a, b) = both.clone().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    let ratio = if a > 0.0 && b > 0.0 { b / a } else { 1.0 };
    both.map(|(x, y)| y / ratio.min(1.0) - ratio.max(1.0) * x).collect()
}

/// Variance of the mean of values that do not depend on each other; one tells nothing.
fn of_mean(values: &[f64]) -> Variance {
    let (distances, n) = distances(values);
    let freedom = (n - 1.0).max(1.0);
    Variance { of_mean: products(&distances, &distances) / freedom / n.max(1.0), freedom }
}

/// Variance of the mean of values of which neighbours depend on each other: as of fewer, n·(1 − ρ)/(1 + ρ) with the correlation ρ of
/// neighbours, and known to as many degrees of freedom as if they were n·(1 − ρ²)/(1 + ρ²). What ρ lacks in short series is made up
/// for.
///
/// Sources: Bayley, Hammersley 1946 (effective numbers); Marriott, Pope 1954 (bias, −(1 + 4ρ)/n).
fn dependence(values: &[f64]) -> Variance {
    let (distances, n) = distances(values);
    let squares = products(&distances, &distances);
    let measured = if squares > 0.0 {
        products(&distances, distances.get(1..).unwrap_or_default()) / squares
    } else {
        0.0
    };
    let correlation = (measured + (1.0 + 4.0 * measured) / n).clamp(0.0, MOST_DEPENDENT);
    let effective = |correlation: f64| n * (1.0 - correlation) / (1.0 + correlation);
    let freedom = (effective(correlation * correlation) - 1.0).max(LEAST_FREEDOM);
    Variance { of_mean: squares / (n - 1.0) / effective(correlation), freedom }
}

/// Fewest degrees of freedom of a series of blocks: also where they depend on each other much, all of them show how large the variation is.
const LEAST_FREEDOM: f64 = 5.0;

/// Largest correlation of neighbours that is reckoned with: beyond it a series of blocks is one witness.
const MOST_DEPENDENT: f64 = 0.8;

/// Probabilities adjusted for their number, so that of all together one in so many is below a level by chance.
///
/// Source: Holm 1979.
#[must_use]
pub fn adjusted(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let (mut out, mut highest) = (vec![0.0; order.len()], 0.0f64);
    for (i, at) in order.iter().enumerate() {
        let left = float((order.len() - i).to_u64().into());
        highest = highest.max(left * probabilities[*at]).min(1.0);
        out[*at] = highest;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;
    use rand_pcg::Pcg64;

    /// Sixteen values, each as far like the one before as the correlation says.
    fn series(correlation: f64, from: &mut Pcg64) -> Vec<f64> {
        let mut draw =
            || (0..12).map(|_| float((from.next_u64() >> 11).into()) / float(1 << 53)).sum::<f64>() - 6.0;
        let mut last = draw();
        let mut next = |_| {
            last = correlation * last + (1.0 - correlation * correlation).sqrt() * draw();
            last
        };
        (0..16).map(&mut next).collect()
    }

    #[test]
    fn the_variance_of_means_is_estimated_also_where_neighbours_are_alike() {
        for correlation in [0.0, 0.4, 0.7] {
            let mut from = Pcg64::new(7, 7);
            let all: Vec<_> = (0..2_000).map(|_| series(correlation, &mut from)).collect();
            let means: Vec<f64> = all.iter().map(|s| s.iter().sum::<f64>() / 16.0).collect();
            let of_one = 2_000.0 * of_mean(&means).of_mean;
            let estimated = all.iter().map(|s| dependence(s).of_mean).sum::<f64>() / 2_000.0;
            let ratio = estimated / of_one;
            assert!((0.8..1.7).contains(&ratio), "correlation {correlation}: {ratio}");
        }
    }

    #[test]
    fn probabilities_are_adjusted_by_how_many_are_left() {
        let found = adjusted(&[0.5, 0.001, 0.02]);
        let expected = [0.5, 0.003, 0.04];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        assert!(adjusted(&[]).is_empty());
    }
}
