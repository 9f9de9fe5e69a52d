//! How long a rank computes before each call, and how long the call took when it was recorded.
//!
//! Exact times are used as far as they reach. After them (a spent time budget, a merged trace), durations are the
//! means of the sketch of the (event, predecessor) pair, so that totals per pair come out as recorded.

use std::collections::HashMap;
use std::fmt;

use st_trace::section::{NO_SYM, Sym, Thread};

/// Recorded times of one event, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// From the end of the previous event to the start of this one.
    pub gap: u64,
    /// From its start to its end.
    pub duration: u64,
}

/// Recorded times of a rank's events in order.
pub struct Pace<'a> {
    exact: Box<dyn Iterator<Item = (i64, i64)> + 'a>,
    last_exit: Option<i64>,
    means: HashMap<(Sym, Sym), Step>,
    pred: Sym,
}

impl fmt::Debug for Pace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace").field("pred", &self.pred).finish_non_exhaustive()
    }
}

impl<'a> Pace<'a> {
    /// The times of a rank of the thread.
    #[must_use]
    pub fn new(thread: &'a Thread, rank: u32) -> Self {
        let column = thread.columns.iter().find(|(r, _)| *r == rank).map(|(_, c)| c);
        let means = thread
            .sketches
            .iter()
            .map(|s| ((s.sym, s.pred), Step { gap: s.compute.mean(), duration: s.comm.mean() }))
            .collect();
        Self {
            exact: Box::new(column.into_iter().flat_map(|c| c.times())),
            last_exit: None,
            means,
            pred: NO_SYM,
        }
    }

    /// Whether the trace has any times for the thread.
    #[must_use]
    pub fn is_known(thread: &Thread) -> bool {
        !(thread.sketches.is_empty() && thread.columns.is_empty())
    }

    /// The times of the next event, which is `sym`. The gap before the first event is not known.
    pub fn step(&mut self, sym: Sym) -> Step {
        let pred = std::mem::replace(&mut self.pred, sym);
        if let Some((enter, exit)) = self.exact.next() {
            let gap = self.last_exit.map_or(0, |last| nanos(last, enter));
            self.last_exit = Some(exit);
            return Step { gap, duration: nanos(enter, exit) };
        }
        let mean = self.means.get(&(sym, pred)).copied().unwrap_or_default();
        if pred == NO_SYM { Step { gap: 0, ..mean } } else { mean }
    }
}

/// ns from `a` to `b`; 0 if a corrected clock went back.
fn nanos(a: i64, b: i64) -> u64 {
    u64::try_from(b.saturating_sub(a)).unwrap_or(0)
}
