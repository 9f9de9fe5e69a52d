//! How long a rank computes before each call, and how long the call took when it was recorded.
//!
//! Exact times are used as far as they reach. After them (a spent time budget, a merged trace), durations are drawn from
//! the sketch of the (event, predecessor) pair ([`crate::drawn`]) and scaled so that the totals are the rank's own: those
//! of each pair if the trace is of one rank, those of each event in a merged trace. So imbalance between ranks comes back;
//! that which varies from step to step by the order of draws ([`crate::order`]), as far as ranks waited for each other
//! ([`crate::coupling`]), or by what merging has kept of exact times ([`st_model::slow`]).

use st_model::num::saturate;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use st_model::columns::Column;
use st_model::ints::Sealed;
use st_model::project::Error;
use st_model::rank_times::totals;
use st_model::section::{NO_SYM, PathSketch, Predecessors, RankSums, Section, Sym, Thread};
use st_model::sketch::representative;
use st_model::slow::How;

use crate::classes::{ByClass, Classes};
use crate::coupling::{self, Coupling, Gaps, Member};
use crate::drawn::{Drawn, Scale};
use crate::order::Order;

/// Recorded times of one event, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EventTimes {
    /// From the end of the previous event to the start of this one.
    pub gap: u64,
    /// From its start to its end.
    pub duration: u64,
}

/// Durations of an event after a predecessor, and the totals that they are parts of.
#[derive(Clone, Debug)]
struct Pair {
    gaps: Drawn,
    durations: Drawn,
    order: Order,
    /// Draws by class, where it is told which call is of which.
    classes: Option<ByClass>,
    /// How many have been drawn.
    next: u64,
    totals: usize,
}

/// Scales of gaps and of durations.
type Scales = (Scale, Scale);

/// Recorded times of a rank's events in order.
pub struct Pace<'a> {
    rank: u32,
    exact: Box<dyn Iterator<Item = (i64, i64)> + Send + 'a>,
    last_exit: Option<i64>,
    pairs: HashMap<(Sym, Sym), Pair>,
    totals: Vec<Scales>,
    paths: Predecessors,
    pred: Sym,
    classes: Classes,
}

impl fmt::Debug for Pace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace").field("pred", &self.pred).finish_non_exhaustive()
    }
}

impl<'a> Pace<'a> {
    /// The times of a rank of a section's thread.
    /// *Cost:* one pass over the rank's calls.
    ///
    /// # Errors
    ///
    /// If the section is malformed.
    pub fn new(section: &'a Section, thread: usize, rank: u32) -> Result<Self, Error> {
        let mut pace = Self {
            rank,
            exact: Box::new(std::iter::empty()),
            last_exit: None,
            pairs: HashMap::new(),
            totals: Vec::new(),
            paths: Predecessors::Each,
            pred: NO_SYM,
            classes: Classes::default(),
        };
        let Some(t) = section.threads.get(thread) else { return Ok(pace) };
        pace.paths = Predecessors::of(&t.sketches);
        let column = t.column(rank);
        pace.classes = Classes::new(t, rank);
        pace.draw(t, rank, &remaining(section, thread, rank, column)?);
        if column.is_none() {
            pace.couple(section, thread)?;
        }
        pace.exact = Box::new(column.into_iter().flat_map(Column::times));
        Ok(pace)
    }

    /// Prepares the durations that have no exact times.
    fn draw(&mut self, t: &Thread, rank: u32, rest: &Remaining) {
        if rest.calls.is_empty() {
            return;
        }
        let own = own_sums(t, rank);
        // What is scaled together: an event in a merged trace, a pair in one of a single rank.
        let mut groups: HashMap<(Sym, Sym), usize> = HashMap::new();
        let mut sums: Vec<[u128; 4]> = Vec::new();
        for sketch in &t.sketches {
            let Some(&n) = rest.calls.get(&(sketch.sym, sketch.pred)) else { continue };
            let (gaps, durations) = (Drawn::new(&sketch.compute, n), Drawn::new(&sketch.comm, n));
            let merged = own.get(&sketch.sym);
            let key = if merged.is_some() { (sketch.sym, NO_SYM) } else { (sketch.sym, sketch.pred) };
            let totals = *groups.entry(key).or_insert_with(|| {
                let (gaps, durations) = merged.copied().unwrap_or_else(|| whole(sketch, t, rank));
                let spent = match merged {
                    Some(_) => rest.spent_by(|sym, _| sym == sketch.sym),
                    None => rest.spent_by(|sym, pred| (sym, pred) == key),
                };
                sums.push([gaps.saturating_sub(spent.0), durations.saturating_sub(spent.1), 0, 0]);
                sums.len() - 1
            });
            // The gap before the first event is not replayed.
            let mut pair = Pair::new(of(sketch.sym, sketch.pred), rank, gaps, durations, totals);
            pair.tell(sketch, t, rank, rest);
            let (before, within) = pair.total(rank);
            sums[totals][2] += if sketch.pred == NO_SYM { 0 } else { before };
            sums[totals][3] += within;
            self.pairs.insert((sketch.sym, sketch.pred), pair);
        }
        self.totals = sums
            .into_iter()
            .map(|[gaps, durations, drawn_gaps, drawn]| {
                (Scale::new(gaps, drawn_gaps), Scale::new(durations, drawn))
            })
            .collect();
    }

    /// Couples the order of draws to that of other ranks, as far as they are known to have been slow together or in turns. All
    /// ranks try the calls of the section's first rank, so that all come to the same couplings.
    fn couple(&mut self, section: &Section, thread: usize) -> Result<(), Error> {
        let Some(t) = section.threads.get(thread).filter(|t| !t.sums.is_empty()) else { return Ok(()) };
        let Some(first) = t.ranks.iter().next() else { return Ok(()) };
        let calls = remaining(section, thread, first, None)?.calls;
        let sketches = t.sketches.iter().filter(|sketch| sketch.pred != NO_SYM);
        let drawn = |s: &PathSketch| {
            let n = *calls.get(&(s.sym, s.pred))?;
            Some(((s.sym, s.pred), Drawn::new(&s.compute, n)))
        };
        let drawn: BTreeMap<(Sym, Sym), Drawn> = sketches.filter_map(drawn).collect();
        let scale = |sums: &RankSums| {
            let those = || drawn.range((sums.sym, 0)..=(sums.sym, NO_SYM)).map(|(_, drawn)| drawn);
            let of = t.ranks.iter().map(|rank| those().map(|drawn| drawn.total(rank)).sum());
            (sums.sym, kept(&sums.compute, t).zip(of).collect())
        };
        let scales: HashMap<Sym, Vec<(u128, u128)>> = t.sums.iter().map(scale).collect();
        let gaps = drawn.iter().map(|(&(sym, pred), drawn)| {
            let scales = scales.get(&sym).map_or(&[][..], Vec::as_slice);
            ((sym, pred), Gaps { drawn, of: of(sym, pred), scales })
        });
        let couplings = coupling::find(section, thread, first, &gaps.collect())?;
        if couplings.is_empty() {
            return Ok(());
        }
        let place = t.ranks.position(self.rank).unwrap_or(0);
        let of = Member { rank: self.rank, place, ranks: t.ranks.len() };
        for (pair, operation) in coupling::operations_after(section, thread, self.rank)? {
            if let (Some(pair), Some(coupling)) = (self.pairs.get_mut(&pair), couplings.get(&operation))
                && pair.classes.is_none()
            {
                pair.order = coupling::coupled(pair.order, *coupling, of);
            }
        }
        Ok(())
    }

    /// Whether the trace has any times for the thread.
    #[must_use]
    pub fn is_known(thread: &Thread) -> bool {
        !(thread.sketches.is_empty() && thread.columns.is_empty())
    }

    /// The times of the next event, which is `sym`. The gap before the first event is not known.
    pub fn step(&mut self, sym: Sym) -> EventTimes {
        let pred = self.paths.pred(std::mem::replace(&mut self.pred, sym));
        if let Some((enter, exit)) = self.exact.next() {
            let gap = self.last_exit.map_or(0, |last| nanos(last, enter));
            self.last_exit = Some(exit);
            return EventTimes { gap, duration: nanos(enter, exit) };
        }
        let class = self.classes.next(sym);
        let Some(pair) = self.pairs.get_mut(&(sym, pred)) else { return EventTimes::default() };
        let Some((gaps, durations)) = self.totals.get_mut(pair.totals) else { return EventTimes::default() };
        let at = pair.position(class);
        let duration = durations.share(pair.durations.at(pair.mirrored(at), self.rank));
        let gap = if pred == NO_SYM { 0 } else { gaps.share(pair.gaps.at(at, self.rank)) };
        EventTimes { gap, duration }
    }
}

impl Pair {
    fn new(of: u64, rank: u32, gaps: Drawn, durations: Drawn, totals: usize) -> Self {
        Self { gaps, durations, order: Order::new(of, rank), classes: None, next: 0, totals }
    }

    /// Takes what is kept of the order in which ranks were slow.
    fn tell(&mut self, sketch: &PathSketch, t: &Thread, rank: u32, rest: &Remaining) {
        match t.slow.iter().find(|slow| slow.sym == sketch.sym).map(|slow| &slow.how) {
            Some(How::Steps(steps)) => {
                let counts = rest.classes.get(&(sketch.sym, sketch.pred));
                self.classes = counts.map(|counts| ByClass::new(steps, counts, &self.gaps));
            }
            Some(How::Chance(together)) => {
                let place = t.ranks.position(rank).unwrap_or(0);
                let of = Member { rank, place, ranks: t.ranks.len() };
                self.order = coupling::coupled(self.order, Coupling::kept(*together), of);
            }
            None => {}
        }
    }

    /// Sums of all draws of a rank.
    fn total(&self, rank: u32) -> (u128, u128) {
        let Some(classes) = &self.classes else { return (self.gaps.total(rank), self.durations.total(rank)) };
        let one = |at: u64| (self.gaps.at(at, rank), self.durations.at(self.mirrored(at), rank));
        classes
            .positions()
            .map(one)
            .fold((0, 0), |sum, of| (sum.0 + u128::from(of.0), sum.1 + u128::from(of.1)))
    }

    /// Where the next draw is in the distribution of gaps.
    fn position(&mut self, class: Option<u8>) -> u64 {
        if let (Some(class), Some(classes)) = (class, &mut self.classes) {
            return classes.position(class, &self.order);
        }
        self.next += 1;
        self.order.position(self.next - 1, self.gaps.len())
    }

    /// Who comes late does not wait for others: the longest gap goes with the shortest duration.
    fn mirrored(&self, at: u64) -> u64 {
        self.durations.len().saturating_sub(at + 1)
    }
}

/// What exact times leave open.
#[derive(Debug, Default)]
struct Remaining {
    /// Number of events without exact times, by event and predecessor, as far as sketches tell that apart.
    calls: HashMap<(Sym, Sym), u64>,
    /// The same by class, of events of which that is told.
    classes: HashMap<(Sym, Sym), Vec<u64>>,
    /// Gaps and durations of those that have them, ns.
    spent: HashMap<(Sym, Sym), (u128, u128)>,
}

impl Remaining {
    fn spent_by(&self, of: impl Fn(Sym, Sym) -> bool) -> (u128, u128) {
        let those = self.spent.iter().filter(|((sym, pred), _)| of(*sym, *pred));
        those.fold((0, 0), |sum, (_, ns)| (sum.0 + ns.0, sum.1 + ns.1))
    }
}

fn remaining(
    section: &Section,
    thread: usize,
    rank: u32,
    exact: Option<&Column>,
) -> Result<Remaining, Error> {
    let mut rest = Remaining::default();
    let Some(mut calls) = section.project(thread, rank) else { return Ok(rest) };
    let paths = section.threads.get(thread).map_or(Predecessors::Each, |t| Predecessors::of(&t.sketches));
    let mut times = exact.into_iter().flat_map(Column::times);
    let mut classes = section.threads.get(thread).map(|t| Classes::new(t, rank)).unwrap_or_default();
    let (mut pred, mut last, mut words) = (NO_SYM, None, Vec::new());
    while let Some(sym) = calls.next_call(&mut words)? {
        match times.next() {
            Some((enter, exit)) => {
                let spent = rest.spent.entry((sym, pred)).or_default();
                spent.0 += u128::from(last.map_or(0, |last| nanos(last, enter)));
                spent.1 += u128::from(nanos(enter, exit));
                last = Some(exit);
            }
            None => {
                *rest.calls.entry((sym, pred)).or_default() += 1;
                if let Some(class) = classes.next(sym).map(usize::from) {
                    let counts = rest.classes.entry((sym, pred)).or_default();
                    counts.resize(counts.len().max(class + 1), 0);
                    counts[class] += 1;
                }
            }
        }
        pred = paths.pred(sym);
    }
    Ok(rest)
}

/// The total times before and in each event on one of several ranks; nothing in a trace of one.
fn own_sums(t: &Thread, rank: u32) -> HashMap<Sym, (u128, u128)> {
    let place = t.ranks.position(rank).filter(|_| !t.sums.is_empty());
    let Some(place) = place.and_then(|p| usize::try_from(p).ok()) else { return HashMap::new() };
    totals(t).map(|sums| (sums.sym, (sums.compute[place], sums.comm[place]))).collect()
}

/// The totals of a thread's ranks as they are kept, in their order, ns: what ranks have in common does not depend on what all took.
fn kept<'a>(stream: &'a Sealed, t: &Thread) -> impl Iterator<Item = u128> + use<'a> {
    let mut cursor = stream.cursor();
    let next = move |_| representative(saturate(cursor.next())).into();
    (0..t.ranks.len()).map(next)
}

/// What tells a pair's distribution from others.
fn of(sym: Sym, pred: Sym) -> u64 {
    u64::from(sym) << 32 | u64::from(pred)
}

/// The totals of a pair's sketch, as far as they are this rank's: those of one of several ranks are not known.
fn whole(sketch: &PathSketch, t: &Thread, rank: u32) -> (u128, u128) {
    let (ranks, known) = (u128::from(t.ranks.len().max(1)), t.ranks.contains(rank));
    if known { (sketch.compute.sum / ranks, sketch.comm.sum / ranks) } else { (0, 0) }
}

/// ns from `a` to `b`; 0 if a corrected clock went back.
fn nanos(a: i64, b: i64) -> u64 {
    saturate(b.saturating_sub(a))
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_capture::record::{Options, RankRecorder};
    use st_model::calls::CallId;
    use st_model::columns::Column;
    use st_model::sketch::bucket;

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
    fn exact_times_and_sketches_give_what_was_recorded() {
        assert_eq!(steps(&section(true), &[0, 1, 1]), [(0, 10), (30, 10), (5, 15)]);
        let without = section(false);
        assert_eq!(steps(&without, &[0, 1, 1]), [(0, 10), (30, 10), (5, 15)]);
        assert!(Pace::is_known(&without.threads[0]));
    }

    #[test]
    fn where_no_paths_are_told_apart_an_event_takes_what_all_of_its_paths_took() {
        let mut one = section(false);
        let sketches = &mut one.threads[0].sketches;
        *sketches = st_model::unite::one_path(std::mem::take(sketches));
        assert_eq!(sketches.len(), 2);
        let got = steps(&one, &[0, 1, 1]);
        assert_eq!((got[0], got[1].0 + got[2].0, got[1].1 + got[2].1), ((0, 10), 35, 25));
        assert!(got[1] != got[2], "the distribution's, not its mean: {got:?}");
        // What exact times leave over is that of all paths, too.
        let timed = section(true).threads[0].columns.clone();
        one.threads[0].columns = timed;
        assert_eq!(steps(&one, &[0, 1, 1]), [(0, 10), (30, 10), (5, 15)]);
    }

    #[test]
    fn unknown_pairs_take_no_time() {
        assert_eq!(steps(&section(false), &[1, 0]), [(0, 0), (0, 0)]);
    }

    #[test]
    fn a_rank_s_own_totals_scale_the_means_of_all() {
        let mut merged = section(false);
        let thread = &mut merged.threads[0];
        // Symbol 1 computed 30 + 5 ns and communicated 10 + 15 on each of two ranks in the mean: on this one it was 70 and 0.
        for s in &mut thread.sketches {
            let (compute, comm) = (s.compute.clone(), s.comm.clone());
            s.compute.merge(&compute);
            s.comm.merge(&comm);
        }
        thread.ranks = (0..2).collect();
        let stream = |of: [u64; 2]| Sealed::from(of.map(|ns| i64::from(bucket(ns))).to_vec());
        thread.sums.push(RankSums { sym: 1, compute: stream([70, 0]), comm: stream([0, 50]) });
        let got = steps(&merged, &[0, 1, 1]);
        assert_eq!((got[0], got[1].1, got[2].1), ((0, 10), 0, 0));
        assert!((59..=61).contains(&got[1].0) && (9..=11).contains(&got[2].0), "{got:?}");
    }
}
