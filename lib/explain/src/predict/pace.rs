//! Ways to walk over the steps of a trace: as recorded, and with changes.

use st_model::num::{Exact as _, float, rounded, saturate};

use super::network::{Network, ns};
use super::scenario::Scenario;
use super::step::{Call, Does};
use super::together::{Bound, Met};
use super::walk::{Pace, Thread};

/// A call whose time is not its own: a poll that finds nothing, or the end.
const NONE: i64 = -1;

/// Finds what calls take beyond waiting: each thread is where it was recorded, and waits as the model says.
#[derive(Debug)]
pub(crate) struct Recorded<'a> {
    /// Of each call, in the order of the steps, ns.
    own: Vec<i64>,
    bound: &'a Bound,
}

impl<'a> Recorded<'a> {
    /// Calls that complete these ends wait for the others, too.
    pub(crate) fn new(bound: &'a Bound) -> Self {
        Self { own: Vec::new(), bound }
    }

    fn leave(&mut self, thread: &Thread<1>) {
        let own = thread.call.and_then(|call| self.own.get_mut(call)).filter(|own| **own != NONE);
        own.into_iter().for_each(|own| *own = thread.last.saturating_sub(thread.clock[0]).max(0));
    }

    /// What calls take beyond waiting, ns.
    pub(crate) fn own(mut self) -> Vec<i64> {
        self.own.iter_mut().for_each(|own| *own = (*own).max(0));
        self.own
    }
}

impl Pace<1> for Recorded<'_> {
    const TOGETHER: bool = true;

    fn enter(&mut self, thread: &mut Thread<1>, call: &Call) {
        self.leave(thread);
        self.own.push(if call.does == Does::Work { 0 } else { NONE });
        thread.clock = [call.enter];
    }

    fn end(&mut self, thread: &mut Thread<1>) {
        self.leave(thread);
    }

    fn met(&mut self, thread: &mut Thread<1>, met: &Met<1>) {
        if self.bound.has(met) {
            thread.no_sooner(0, met.at[0]);
        }
    }
}

/// Places that are looked at more closely, and how often each thread has come to them.
#[derive(Clone, Default, Debug)]
struct Visits {
    /// By place: its number among these.
    numbers: Vec<Option<u32>>,
    /// By number and thread.
    counts: Vec<Vec<u32>>,
}

impl Visits {
    fn of(places: impl IntoIterator<Item = u32>) -> Self {
        let mut visits = Self::default();
        for place in places {
            let place = place.to_usize();
            if visits.numbers.len() <= place {
                visits.numbers.resize(place + 1, None);
            }
            if visits.numbers[place].is_none() {
                visits.numbers[place] = Some(st_model::num::narrow(visits.counts.len()));
                visits.counts.push(Vec::new());
            }
        }
        visits
    }

    fn number(&self, place: u32) -> Option<usize> {
        self.numbers.get(place.to_usize()).copied().flatten().map(|n| n.to_usize())
    }

    /// A thread comes to a place: its number, and how often the thread has been there before.
    #[inline]
    fn next(&mut self, call: &Call) -> Option<(usize, usize)> {
        let number = self.number(call.place)?;
        let (counts, thread) = (&mut self.counts[number], call.thread.to_usize());
        if counts.len() <= thread {
            counts.resize(thread + 1, 0);
        }
        let visit = counts[thread];
        counts[thread] = visit.saturating_add(1);
        Some((number, visit.to_usize()))
    }
}

/// Adds up computation before the calls of some places, visit by visit.
#[derive(Debug)]
pub(crate) struct Summing {
    visits: Visits,
    sums: Vec<Vec<(i64, u32)>>,
}

impl Summing {
    pub(crate) fn of(places: impl IntoIterator<Item = u32>) -> Self {
        let visits = Visits::of(places);
        Self { sums: vec![Vec::new(); visits.counts.len()], visits }
    }

    /// Of each place the means over those that come to it so often, visit by visit, ns.
    pub(crate) fn means(self) -> Means {
        let mean = |(sum, n): (i64, u32)| sum / i64::from(n.max(1));
        let means = self.sums.into_iter().map(|sums| sums.into_iter().map(mean).collect()).collect();
        Means { visits: self.visits, means }
    }
}

impl Pace<0> for Summing {
    fn enter(&mut self, thread: &mut Thread<0>, call: &Call) {
        let Some((number, visit)) = self.visits.next(call) else { return };
        let sums = &mut self.sums[number];
        if sums.len() <= visit {
            sums.resize(visit + 1, (0, 0));
        }
        sums[visit].0 = sums[visit].0.saturating_add(thread.gap(call));
        sums[visit].1 += 1;
    }

    fn end(&mut self, _: &mut Thread<0>) {}
}

/// Mean computation before the calls of some places.
#[derive(Debug)]
pub(crate) struct Means {
    visits: Visits,
    means: Vec<Vec<i64>>,
}

impl Means {
    fn get(&self, place: u32, visit: usize) -> Option<i64> {
        self.means.get(self.visits.number(place)?)?.get(visit).copied()
    }
}

/// What is known of calls.
#[derive(Debug)]
pub(crate) struct Calls {
    /// What they take beyond waiting, ns.
    pub(crate) own: Vec<i64>,
    /// The ends of what they complete that wait for the others.
    pub(crate) bound: Bound,
}

/// What becomes of the computation before the calls of a place.
#[derive(Clone, Copy, Debug)]
struct Change {
    balanced: bool,
    faster: f64,
}

/// Threads compute, and calls take, what they do under each of several scenarios.
#[derive(Debug)]
pub(crate) struct Changed<'a, const K: usize> {
    /// What calls take beyond waiting, ns.
    own: &'a [i64],
    bound: &'a Bound,
    means: &'a Means,
    /// Whether they take it.
    takes: [bool; K],
    /// How much more each end of a message takes a rank than when it was recorded, ns.
    overhead: [f64; K],
    visits: Visits,
    /// By number of the place.
    changes: Vec<[Change; K]>,
}

impl<'a, const K: usize> Changed<'a, K> {
    pub(crate) fn new(
        recorded: &Network,
        calls: &'a Calls,
        means: &'a Means,
        scenarios: &[&Scenario; K],
    ) -> Self {
        let places = scenarios.iter().flat_map(|s| s.faster.keys().chain(&s.balanced));
        let mut places: Vec<u32> = places.copied().collect();
        places.sort_unstable();
        places.dedup();
        let change = |place: &u32| {
            scenarios.map(|s| Change {
                balanced: s.balanced.contains(place),
                faster: s.faster.get(place).copied().unwrap_or(1.0),
            })
        };
        Self {
            own: &calls.own,
            bound: &calls.bound,
            means,
            takes: scenarios.map(|s| s.calls),
            overhead: scenarios.map(|s| s.network.overhead - recorded.overhead),
            changes: places.iter().map(change).collect(),
            visits: Visits::of(places),
        }
    }

    fn leave(&self, thread: &mut Thread<K>) {
        let Some(own) = thread.call.and_then(|call| self.own.get(call)).copied() else { return };
        for k in (0..K).filter(|k| self.takes[*k]) {
            let more = f64::from(thread.ends) * self.overhead[k];
            let more = if more < 0.0 { -ns(-more) } else { ns(more) };
            thread.clock[k] = thread.clock[k].saturating_add(own.saturating_add(more).max(0));
        }
    }
}

impl<const K: usize> Pace<K> for Changed<'_, K> {
    const TOGETHER: bool = true;

    fn enter(&mut self, thread: &mut Thread<K>, call: &Call) {
        self.leave(thread);
        let gap = thread.gap(call);
        let Some((number, visit)) = self.visits.next(call) else {
            thread.clock.iter_mut().for_each(|clock| *clock = clock.saturating_add(gap));
            return;
        };
        for (k, Change { balanced, faster }) in self.changes[number].iter().enumerate() {
            let mean = self.means.get(call.place, visit).filter(|_| *balanced);
            let gap = shorter(mean.unwrap_or(gap), *faster);
            thread.clock[k] = thread.clock[k].saturating_add(gap);
        }
    }

    fn end(&mut self, thread: &mut Thread<K>) {
        self.leave(thread);
    }

    fn met(&mut self, thread: &mut Thread<K>, met: &Met<K>) {
        if self.bound.has(met) {
            (0..K).filter(|k| self.takes[*k]).for_each(|k| thread.no_sooner(k, met.at[k]));
        }
    }
}

/// A time so many times as fast, ns.
fn shorter(ns: i64, faster: f64) -> i64 {
    let whole = float(saturate::<u64>(ns).into()) / faster;
    saturate(rounded(whole))
}
