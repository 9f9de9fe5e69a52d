//! Counters: bytes under way, and ranks that wait.

use anyhow::{Context as _, Result};
use st_explain::analyse_each;
use st_model::num::saturate;

use crate::trace::Trace;

/// Values of a number from the times on at which it changes, by so much: these in any order.
pub(super) fn values(mut changes: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    changes.sort_unstable();
    let mut value = 0_i64;
    let mut all: Vec<(i64, i64)> = Vec::new();
    for (at, by) in changes {
        value = value.saturating_add(by);
        match all.last_mut().filter(|last| last.0 == at) {
            Some(last) => last.1 = value,
            None => all.push((at, value)),
        }
    }
    all
}

/// How many of the ranks that are written wait for others, as st-stat's wait states have it: times since the trace's zero, and
/// the number from then on.
///
/// *Cost:* a pass over all ranks; memory for each wait in the window.
pub(super) fn waiting(trace: &Trace) -> Result<Vec<(i64, i64)>> {
    let found = analyse_each(&trace.sections, &|_| ()).context("looking for waits")?;
    let (zero, window) = (trace.zero.unwrap_or(0), trace.window);
    let mut steps = Vec::new();
    for wait in found.each.iter().filter(|wait| trace.has(wait.rank)) {
        let enter = wait.enter.saturating_sub(zero);
        let until = enter.saturating_add(saturate(wait.ns));
        if window.has((enter, until)) {
            steps.push((enter.max(window.from), 1));
            steps.push((until.min(window.until), -1));
        }
    }
    Ok(values(steps))
}
