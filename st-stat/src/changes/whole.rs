//! Whether a run as a whole takes longer than another, also where no call site can be named for it.

use st_model::num::{Exact, float};

use crate::judge::usual_growth;

/// How much longer a rank of the second run takes than expected, beside what equal runs differ by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Whole {
    /// Percent of what is expected.
    pub(super) percent: f64,
    /// What equal runs are taken to differ by at most, in percent of the same.
    usual: f64,
    /// Runs of the first program.
    runs: usize,
}

impl Whole {
    /// Of the times of a rank: of the runs of the first program, as far as all scales, and of the second run.
    pub(super) fn of(first: &[f64], second: f64) -> Option<Self> {
        let expected = first.iter().sum::<f64>() / float(first.len().to_u64().into());
        let usual = 100.0 * usual_growth(first)?;
        Some(Self { percent: 100.0 * (second / expected - 1.0), usual, runs: first.len() })
    }

    /// Whether the run is longer by more than equal runs differ.
    pub(super) fn is_longer(self, least: f64) -> bool {
        self.percent > self.usual.max(least)
    }

    /// What is said of a run that is longer, whether or not a call site is.
    pub(super) fn told(self, slower: usize, unsure: usize) -> String {
        let Self { percent, usual, runs } = self;
        let beside = match runs {
            1 => format!("{usual:.0} %, as is assumed without --base"),
            n => format!("{usual:.0} %, by the {n} of the first program"),
        };
        let sites = match (slower, unsure) {
            (1.., _) => "",
            (0, 0) => "; no call site can be named for sure",
            (0, _) => "; no call site can be named for sure: those that are unsure follow",
        };
        format!("the run takes {percent:+.1} %, beyond what equal runs differ by ({beside}){sites}")
    }
}
