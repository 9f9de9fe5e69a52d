//! The part of the run that is written.

use anyhow::{Result, bail};
use st_cli::UsageError;
use st_model::num::rounded;

/// Calls that overlap this are written, ns since the trace's zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    pub(crate) from: i64,
    pub(crate) until: i64,
}

impl Window {
    /// All calls.
    pub(crate) const ALL: Self = Self { from: i64::MIN, until: i64::MAX };

    /// What lies between two times in seconds.
    pub(crate) fn between(from: Option<f64>, until: Option<f64>) -> Result<Self> {
        let ns = |seconds: f64| i64::try_from(rounded(seconds * 1e9)).ok();
        let from = from.and_then(ns).unwrap_or(Self::ALL.from);
        let until = until.and_then(ns).unwrap_or(Self::ALL.until);
        if from >= until {
            bail!(UsageError("--from is not before --until".into()));
        }
        Ok(Self { from, until })
    }

    pub(crate) fn has(&self, (enter, exit): (i64, i64)) -> bool {
        enter < self.until && exit > self.from
    }
}
