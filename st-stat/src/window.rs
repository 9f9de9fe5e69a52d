//! Parts of the time of a run, as people ask for them.

use anyhow::{Result, bail};
use st_model::num::{float, rounded, saturate};

use crate::explain::Explained;
use crate::levels;
use crate::untimed::{NO_TIMES, without};

/// Windows that are asked for, from the beginning of the run, and when that is by the times that people give.
///
/// # Errors
///
/// If there are no exact times, or one is not of the run.
pub(crate) fn asked(explained: &Explained, windows: &[(f64, f64)]) -> Result<(i64, Vec<(i64, i64)>)> {
    let Some(analysis) = &explained.analysis else {
        if let Some(exceeded) = explained.too_long.filter(|_| !windows.is_empty()) {
            bail!("--window: {exceeded}");
        }
        if !windows.is_empty() {
            bail!("--window: {}", without(NO_TIMES, &explained.whole.header));
        }
        return Ok((0, Vec::new()));
    };
    let (from, run) = (levels::origin(analysis, &explained.sections)?, saturate(analysis.run()));
    let ns = |seconds: f64| saturate::<i64>(rounded(seconds * 1e9)).saturating_sub(from);
    let windows: Vec<_> = windows.iter().map(|(a, b)| (ns(*a).max(0), ns(*b).min(run))).collect();
    if windows.iter().any(|(a, b)| a >= b) {
        let [a, b] = [from, from.saturating_add(run)].map(|ns| float(saturate::<u64>(ns).into()) / 1e9);
        bail!("--window: the run is from {a:.9} to {b:.9} s");
    }
    Ok((from, windows))
}
