//! How long a rank computes before each call, and how long the call took when it was recorded.
//!
//! Exact times are used as far as they reach. After them (a spent time budget, a merged trace), durations are the
//! means of the sketch of the (event, predecessor) pair. In a merged trace these are means over all ranks: they are
//! scaled so that each event's total on the rank is the rank's own, and imbalance between ranks comes back.

use std::collections::HashMap;
use std::fmt;

use st_trace::project::Error;
use st_trace::section::{NO_SYM, Section, Sym, Thread};
use st_trace::sketch::representative;

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
    /// The times of a rank of a section's thread.
    /// *Cost:* one pass over the rank's calls if there are per-rank sums and no exact times, else nothing.
    ///
    /// # Errors
    ///
    /// If the section is malformed.
    pub fn new(section: &'a Section, thread: usize, rank: u32) -> Result<Self, Error> {
        let (mut exact, mut means) = (None, HashMap::new());
        if let Some(t) = section.threads.get(thread) {
            exact = t.columns.iter().find(|(r, _)| *r == rank).map(|(_, c)| c);
            means = means_of(t);
            if exact.is_none() && !t.sums.is_empty() {
                scale(&mut means, section, thread, rank)?;
            }
        }
        Ok(Self {
            exact: Box::new(exact.into_iter().flat_map(|c| c.times())),
            last_exit: None,
            means,
            pred: NO_SYM,
        })
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

/// Means over all ranks.
fn means_of(thread: &Thread) -> HashMap<(Sym, Sym), Step> {
    let step = |s: &st_trace::section::PathSketch| Step { gap: s.compute.mean(), duration: s.comm.mean() };
    thread.sketches.iter().map(|s| ((s.sym, s.pred), step(s))).collect()
}

/// Scales means over all ranks so that each event's totals are those of one rank.
fn scale(
    means: &mut HashMap<(Sym, Sym), Step>,
    section: &Section,
    thread: usize,
    rank: u32,
) -> Result<(), Error> {
    let (Some(t), Some(mut calls)) = (section.threads.get(thread), section.project(thread, rank)) else {
        return Ok(());
    };
    let Some(place) = t.ranks.position(rank) else { return Ok(()) };
    let mut pred = NO_SYM;
    let mut expected: HashMap<Sym, (u128, u128)> = HashMap::new();
    let mut words = Vec::new();
    while let Some(sym) = calls.next_call(&mut words)? {
        let mean = means.get(&(sym, pred)).copied().unwrap_or_default();
        let total = expected.entry(sym).or_default();
        *total = (total.0 + u128::from(mean.gap), total.1 + u128::from(mean.duration));
        pred = sym;
    }
    let mut own: HashMap<Sym, (u64, u64)> = HashMap::new();
    for sums in &t.sums {
        let at = |stream: &st_trace::ints::Sealed| {
            let mut cursor = stream.cursor();
            let mut bucket = 0;
            for _ in 0..=place {
                bucket = cursor.next();
            }
            u16::try_from(bucket).map_or(0, representative)
        };
        own.insert(sums.sym, (at(&sums.compute), at(&sums.comm)));
    }
    for ((sym, _), step) in means.iter_mut() {
        if let (Some(own), Some(expected)) = (own.get(sym), expected.get(sym)) {
            step.gap = share(step.gap, own.0, expected.0);
            step.duration = share(step.duration, own.1, expected.1);
        }
    }
    Ok(())
}

/// `part` of a total that is `own` here instead of `expected`.
fn share(part: u64, own: u64, expected: u128) -> u64 {
    let scaled = (u128::from(part) * u128::from(own)).checked_div(expected);
    scaled.map_or(0, |ns| u64::try_from(ns).unwrap_or(u64::MAX))
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
    use st_trace::ints::Ints;
    use st_trace::record::{Options, RankRecorder};
    use st_trace::section::RankSums;
    use st_trace::sketch::bucket;

    /// Three events of two symbols; exact times for all, if wanted.
    fn section(exact: bool) -> Section {
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
        if exact {
            section.threads[0].columns.push((0, column));
        }
        section
    }

    fn steps(section: &Section, syms: &[Sym]) -> Vec<(u64, u64)> {
        let mut pace = Pace::new(section, 0, 0).unwrap();
        syms.iter().map(|&s| pace.step(s)).map(|s| (s.gap, s.duration)).collect()
    }

    #[test]
    fn exact_times_go_first_and_means_follow() {
        assert_eq!(steps(&section(true), &[0, 1, 1, 1]), [(0, 10), (30, 10), (5, 15), (5, 15)]);
        let without = section(false);
        assert_eq!(steps(&without, &[0, 1, 1]), [(0, 10), (30, 10), (5, 15)]);
        assert!(Pace::is_known(&without.threads[0]));
    }

    #[test]
    fn unknown_pairs_take_no_time() {
        assert_eq!(steps(&section(false), &[1, 0]), [(0, 0), (0, 0)]);
    }

    #[test]
    fn a_rank_s_own_totals_scale_the_means_of_all() {
        let mut merged = section(false);
        let stream = |ns: u64| {
            let mut ints = Ints::new();
            ints.push(i64::from(bucket(ns)));
            ints.seal()
        };
        // Symbol 1 computed 30 + 5 ns and communicated 10 + 15: on this rank it was 70 and 0.
        merged.threads[0].sums.push(RankSums { sym: 1, compute: stream(70), comm: stream(0) });
        let got = steps(&merged, &[0, 1, 1]);
        assert_eq!((got[0], got[1].1, got[2].1), ((0, 10), 0, 0));
        assert!((59..=61).contains(&got[1].0) && (9..=11).contains(&got[2].0), "{got:?}");
    }
}
