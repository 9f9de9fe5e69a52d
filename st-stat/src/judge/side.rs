//! A run's time at a place, by groups of ranks and blocks of calls.

use st_model::num::{Exact as _, float};

use crate::times::Sample;

/// A sample of one run, and what it is to be compared as.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The sample.
    pub sample: &'a Sample,
    /// Ranks of the run in each group.
    pub groups: &'a [u64],
    /// Times are multiplied by this, if runs have other numbers of ranks.
    pub factor: f64,
}

/// Estimated variance of a mean, with its degrees of freedom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variance {
    pub(super) of_mean: f64,
    pub(super) freedom: f64,
}

impl Side<'_> {
    pub(super) fn ranks(&self) -> f64 {
        float(self.groups.iter().map(|n| u128::from(*n)).sum())
    }

    /// Time per rank, ns, as it is compared.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.factor * float(self.sample.sum) / self.ranks().max(1.0)
    }

    /// Time per rank of each group.
    pub(crate) fn by_group(&self) -> Vec<f64> {
        let each = self.sample.groups.iter().zip(self.groups);
        each.map(|(sum, n)| self.factor * float(*sum) / float((*n).max(1).into())).collect()
    }

    /// Time per rank if all of the run were as each block is.
    pub(super) fn by_block(&self) -> Vec<Option<f64>> {
        let per_rank = self.factor * float(self.sample.events.into()) / self.ranks().max(1.0);
        let each = self.sample.blocks.iter();
        each.map(|(sum, n)| (*n > 0).then(|| per_rank * float(*sum) / float((*n).into()))).collect()
    }
}

/// Distances from the mean, and how many there are.
pub(super) fn distances(values: &[f64]) -> (Vec<f64>, f64) {
    let n = float(values.len().to_u64().into());
    let mean = values.iter().sum::<f64>() / n.max(1.0);
    (values.iter().map(|x| x - mean).collect(), n)
}

pub(super) fn products(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
