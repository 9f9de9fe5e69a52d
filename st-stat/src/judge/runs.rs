//! What several runs of the first program tell of a place by themselves.
//!
//! How ranks differ and how the time varies while the program runs says nothing more where runs as a whole are there to be compared: the
//! second run, if it is of an equal program, is one more of them. Few runs agree by chance, though, and then seem surer than they are. So
//! they are taken to differ at each place by no less than runs do at the median place, and by no less than on a quiet machine; where there
//! are many places one degree of freedom more is reckoned with for this than they have by themselves. More would take places for independent of each other, which they
//! are not where a whole run is slow: of drawn equal runs, with places of one or of very different variances, and with whole runs of
//! different speeds, some one comparison in a hundred at most then finds a difference. Logarithms are compared, as a time that varies by
//! a half is as often twice as long as half as long.

use super::side::{Variance, distances, products};
use super::student::{Tested, tested};

/// Standard deviation of the difference of the times of two runs of one program at a place on a quiet machine, as a share of these.
pub(super) const BETWEEN_RUNS: f64 = 0.025;
/// Fewest runs that tell how they differ.
const FEWEST_RUNS: usize = 3;
/// Places from which on they are worth one degree of freedom more.
const MANY: usize = 8;

/// How runs of one program usually differ at a place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Usual {
    /// Variance of the logarithm of one run's time.
    variance: f64,
    /// Degrees of freedom that other places are worth.
    freedom: f64,
    /// Added to all times, ns: where they are shorter than this it is all one by what factor they differ.
    least: f64,
}

/// Logarithms of a place's times, their mean and variance.
struct Runs {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Usual {
    /// By the times per rank at places that take long enough to matter.
    #[must_use]
    pub fn of(places: impl IntoIterator<Item = Vec<f64>>, least: f64) -> Self {
        let mut usual = Self { variance: BETWEEN_RUNS.powi(2) / 2.0, freedom: 0.0, least };
        let mut all: Vec<f64> =
            places.into_iter().filter_map(|runs| Some(usual.runs(&runs)?.to_median())).collect();
        all.sort_by(f64::total_cmp);
        usual.freedom = if all.len() >= MANY { 1.0 } else { 0.0 };
        usual.variance = usual.variance.max(all.get(all.len() / 2).copied().unwrap_or_default());
        usual
    }

    fn log(self, ns: f64) -> f64 {
        (ns + self.least).ln()
    }

    fn runs(self, runs: &[f64]) -> Option<Runs> {
        if runs.len() < FEWEST_RUNS || self.least <= 0.0 {
            return None;
        }
        let logs: Vec<f64> = runs.iter().map(|ns| self.log(*ns)).collect();
        let (distances, count) = distances(&logs);
        let variance = products(&distances, &distances) / (count - 1.0);
        Some(Runs { count, mean: logs.iter().sum::<f64>() / count, variance })
    }

    /// Whether a run is no equal one beside these; `None` if they are too few.
    pub(super) fn tested(self, runs: &[f64], second: f64) -> Option<Tested> {
        let first = self.runs(runs)?;
        let of_mean = first.variance.max(self.variance) * (1.0 + 1.0 / first.count);
        let change = (self.log(second) - first.mean).abs();
        let by = tested(change, &[Variance { of_mean, freedom: first.count - 1.0 + self.freedom }])?;
        // A part of the longer time, as it is compared.
        let longer = (runs.iter().sum::<f64>() / first.count).max(second) + self.least;
        Some(Tested { uncertainty: by.uncertainty * longer, ..by })
    }
}

impl Runs {
    /// The variance, as large as the true one at the median place: of few runs most are below it.
    ///
    /// Source: Wilson, Hilferty 1931 (the median of χ²).
    fn to_median(&self) -> f64 {
        let freedom = self.count - 1.0;
        self.variance / (1.0 - 2.0 / (9.0 * freedom)).powi(3)
    }
}

#[cfg(test)]
mod tests {
    use rand::Rng;
    use rand_pcg::Pcg64;
    use st_model::num::float;

    use super::super::adjusted;
    use super::*;

    fn normal(from: &mut Pcg64) -> f64 {
        (0..12).map(|_| float((from.next_u64() >> 11).into()) / float(1 << 53)).sum::<f64>() - 6.0
    }

    /// Runs of a program with this many places: how much whole runs differ, how much places do, and how much the latter differs.
    #[derive(Clone, Copy, Debug)]
    struct Drawn {
        runs: usize,
        places: usize,
        whole: f64,
        each: f64,
        unlike: f64,
    }

    /// In how many comparisons something is found.
    #[derive(Default)]
    struct Found {
        equal: u32,
        /// Where the first place takes a fiftieth.
        shorter: u32,
    }

    fn found(drawn: Drawn, comparisons: u32) -> Found {
        let mut from = Pcg64::new(5, 5);
        let mut found = Found::default();
        for _ in 0..comparisons {
            let scales: Vec<f64> =
                (0..drawn.places).map(|_| drawn.each * (drawn.unlike * normal(&mut from)).exp()).collect();
            let speeds: Vec<f64> = (0..=drawn.runs).map(|_| drawn.whole * normal(&mut from)).collect();
            let mut time = |speed: f64, scale: f64| 1e8 * (speed + scale * normal(&mut from)).exp();
            let mut all: Vec<Vec<f64>> = scales
                .iter()
                .map(|scale| speeds.iter().map(|speed| time(*speed, *scale)).collect())
                .collect();
            let second: Vec<f64> = all.iter_mut().filter_map(Vec::pop).collect();
            let usual = Usual::of(all.clone(), 1e5);
            let probability = |runs: &[f64], second| usual.tested(runs, second).unwrap().probability;
            let mut each: Vec<f64> = all.iter().zip(&second).map(|(runs, x)| probability(runs, *x)).collect();
            found.equal += u32::from(adjusted(&each).iter().any(|p| *p <= 0.01));
            each[0] = probability(&all[0], second[0] / 50.0);
            found.shorter += u32::from(adjusted(&each)[0] <= 0.01);
        }
        found
    }

    #[test]
    fn equal_runs_are_taken_for_others_in_one_comparison_of_a_hundred_at_most() {
        let spreads = [
            (0.0, 0.01, 0.0),
            (0.0, 0.1, 0.0),
            (0.0, 0.05, 0.7),
            (0.0, 0.05, 1.2),
            (0.15, 0.01, 0.0),
            (0.15, 0.03, 0.7),
        ];
        for (runs, places, (whole, each, unlike)) in [3, 4]
            .into_iter()
            .flat_map(|n| [1, 8, 30].map(|m| (n, m)))
            .flat_map(|(n, m)| spreads.map(|s| (n, m, s)))
        {
            let drawn = Drawn { runs, places, whole, each, unlike };
            let Found { equal, shorter } = found(drawn, 400);
            // As many as 9 of 400 are there by chance in 1 of 100 cases where 1 in 100 is wrong.
            assert!(equal <= 9, "{drawn:?}: {equal} of 400");
            let least = if whole > 0.0 { 200 } else { 320 };
            assert!(shorter >= least, "{drawn:?}: {shorter} of 400");
        }
    }

    #[test]
    fn runs_that_agree_by_chance_differ_as_others_do() {
        let noisy = || vec![1e8, 2e8, 1.4e8];
        let usual = Usual::of([noisy(), noisy(), vec![1e8, 1e8, 1e8]], 1e5);
        let [agreeing, quiet] =
            [usual, Usual::of([], 1e5)].map(|usual| usual.tested(&[1e8, 1e8, 1e8], 2e8).unwrap());
        assert!(quiet.probability < 0.01 && agreeing.probability > 0.1, "{quiet:?} {agreeing:?}");
        assert!(usual.tested(&[1e8, 1e8], 2e8).is_none());
    }
}
