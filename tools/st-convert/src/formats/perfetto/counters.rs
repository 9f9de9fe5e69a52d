//! Counters: bytes under way, and ranks that wait.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anyhow::{Context as _, Result};
use st_explain::analyse_each;
use st_model::num::saturate;

use crate::trace::Trace;

/// A number that changes at times which may be told before they come.
#[derive(Debug, Default)]
pub(super) struct Counter {
    value: i64,
    changes: BinaryHeap<Reverse<(i64, i64)>>,
}

impl Counter {
    /// It changes by so much at a time.
    pub(super) fn change(&mut self, at: i64, by: i64) {
        self.changes.push(Reverse((at, by)));
    }

    /// The next time up to `until` at which it has changed, and its value then.
    pub(super) fn next(&mut self, until: i64) -> Option<(i64, i64)> {
        let Reverse((at, _)) = *self.changes.peek().filter(|Reverse((at, _))| *at <= until)?;
        while let Some(Reverse((_, by))) = self.changes.pop_if_at(at) {
            self.value = self.value.saturating_add(by);
        }
        Some((at, self.value))
    }
}

trait PopIfAt {
    fn pop_if_at(&mut self, at: i64) -> Option<Reverse<(i64, i64)>>;
}

impl PopIfAt for BinaryHeap<Reverse<(i64, i64)>> {
    fn pop_if_at(&mut self, at: i64) -> Option<Reverse<(i64, i64)>> {
        let first = self.peek().is_some_and(|Reverse((time, _))| *time == at);
        if first { self.pop() } else { None }
    }
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
    steps.sort_unstable();
    let mut value = 0;
    let mut all: Vec<(i64, i64)> = Vec::new();
    for (at, by) in steps {
        value += by;
        match all.last_mut().filter(|last| last.0 == at) {
            Some(last) => last.1 = value,
            None => all.push((at, value)),
        }
    }
    Ok(all)
}
