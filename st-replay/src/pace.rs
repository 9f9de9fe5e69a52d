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

#[cfg(test)]
mod tests {
    use super::*;
    use st_trace::calls::CallId;
    use st_trace::columns::Column;
    use st_trace::record::{Options, RankRecorder};

    /// Three events of two symbols; exact times for the first `exact`.
    fn thread(exact: bool) -> Thread {
        let mut recorder = RankRecorder::new(0, Options::default());
        let thread = recorder.open_thread(0);
        let site = recorder.sites.stack(Vec::new());
        let (a, b) = (recorder.symbol(CallId(1), site, 0), recorder.symbol(CallId(100), site, 0));
        for (sym, enter, exit) in [(a, 10, 20), (b, 50, 60), (b, 65, 80)] {
            recorder.record(thread, sym, &[0], enter, exit);
        }
        let mut column = Column::default();
        column.chunks.extend(recorder.flush_columns().into_iter().map(|(_, chunk)| chunk));
        let mut section = recorder.finish("host");
        let mut thread = section.threads.remove(0);
        if exact {
            thread.columns.push((0, column));
        }
        thread
    }

    fn steps(thread: &Thread, syms: &[Sym]) -> Vec<(u64, u64)> {
        let mut pace = Pace::new(thread, 0);
        syms.iter().map(|&s| pace.step(s)).map(|s| (s.gap, s.duration)).collect()
    }

    #[test]
    fn exact_times_go_first_and_means_follow() {
        let with = thread(true);
        assert_eq!(steps(&with, &[0, 1, 1, 1]), [(0, 10), (30, 10), (5, 15), (5, 15)]);
        let without = thread(false);
        assert_eq!(steps(&without, &[0, 1, 1]), [(0, 10), (30, 10), (5, 15)]);
        assert!(Pace::is_known(&without));
    }

    #[test]
    fn unknown_pairs_take_no_time() {
        assert_eq!(steps(&thread(false), &[1, 0]), [(0, 0), (0, 0)]);
    }
}
