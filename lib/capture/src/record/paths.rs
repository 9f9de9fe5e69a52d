//! Times of a thread's calls, by path: the symbol and the one before it.
//!
//! Where calls come in no order there are many paths, and each call is on another one than the call before it: what a call
//! touches then should be little. Its two times are put beside each other, and entered into the path's sketches with those
//! of other calls on it.

use st_model::num::narrow;
use std::collections::HashMap;
use std::mem;

use foldhash::fast::FixedState;

use st_model::columns::duration;
use st_model::section::{PathSketch, Sym};
use st_model::sketch::{LiveSketch, Shape};

/// Calls of a path that wait at most.
const WAITING: usize = 32;
/// Paths between symbols below this one are found without hashing.
const FEW: usize = 256;

/// The sketches of a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Paths {
    /// Of each path how many calls wait, and their times. The numbers, which must be known before anything can go on, lie
    /// close together; times are only written, and nobody waits for that.
    waiting: Vec<u8>,
    times: Vec<Times>,
    sketches: Vec<(Sym, Sym, Option<Box<Live>>)>,
    shape: Shape,
    by_path: HashMap<(Sym, Sym), usize, FixedState>,
    /// The same where both symbols are among the first [`FEW`]: one more than the path, by symbol and the one before it.
    few: Vec<Vec<u32>>,
    /// Times of one path while they are entered.
    gaps: Vec<u64>,
    durations: Vec<u64>,
}

/// Computation before the calls of a path, and the calls. It is large, and of a path on which few calls are there is none: these wait.
#[derive(Debug, Clone)]
struct Live {
    compute: LiveSketch,
    comm: LiveSketch,
}

impl Live {
    fn new(shape: Shape) -> Self {
        Self { compute: LiveSketch::new(shape), comm: LiveSketch::new(shape) }
    }

    /// The sketches of a rank, to which calls that wait are added last.
    fn finish(self, sym: Sym, pred: Sym, waiting: &Waiting, rank: u32) -> PathSketch {
        let compute = self.compute.finish_with(waiting.gaps(), rank);
        PathSketch { sym, pred, compute, comm: self.comm.finish_with(waiting.durations(), rank) }
    }
}

/// Times of a path that are not in its sketches yet, ns: from the call before to the call, and in it. Those of seconds do not
/// wait.
type Times = [(u32, u32); WAITING];

impl Paths {
    /// The path of a symbol after another; a new one has sketches of a shape.
    #[inline]
    pub(super) fn find(&mut self, sym: Sym, before: Sym, shape: Shape) -> usize {
        let (i, j) = (sym as usize, before as usize);
        let known = if i < FEW && j < FEW {
            self.few.get(i).and_then(|row| row.get(j)).and_then(|path| (*path as usize).checked_sub(1))
        } else {
            self.by_path.get(&(sym, before)).copied()
        };
        known.unwrap_or_else(|| self.begin(sym, before, shape, None))
    }

    #[cold]
    fn begin(&mut self, sym: Sym, before: Sym, shape: Shape, live: Option<Box<Live>>) -> usize {
        let (i, j, path) = (sym as usize, before as usize, self.sketches.len());
        if i < FEW && j < FEW {
            if self.few.len() <= i {
                self.few.resize_with(i + 1, Vec::new);
            }
            let row = &mut self.few[i];
            if row.len() <= j {
                row.resize(j + 1, 0);
            }
            row[j] = narrow(path + 1);
        } else {
            self.by_path.insert((sym, before), path);
        }
        self.waiting.push(0);
        self.times.push([(0, 0); WAITING]);
        self.sketches.push((sym, before, live));
        self.shape = shape;
        path
    }

    /// The sketches of a path.
    #[inline]
    fn live(&mut self, path: usize) -> Option<&mut Live> {
        let shape = self.shape;
        let (.., live) = self.sketches.get_mut(path)?;
        Some(live.get_or_insert_with(|| Box::new(Live::new(shape))))
    }

    /// Adds a call: the time since the call before it, and its own, ns.
    #[inline]
    pub(super) fn add(&mut self, path: usize, gap: u64, duration: u64) {
        let (Ok(short_gap), Ok(short)) = (u32::try_from(gap), u32::try_from(duration)) else {
            return self.add_long(path, gap, duration);
        };
        let (Some(number), Some(times)) = (self.waiting.get_mut(path), self.times.get_mut(path)) else {
            return;
        };
        if let Some(place) = times.get_mut(usize::from(*number)) {
            *place = (short_gap, short);
        }
        *number += 1;
        if usize::from(*number) >= WAITING {
            self.settle(path);
        }
    }

    /// Adds a call that took seconds, or came after them.
    #[cold]
    fn add_long(&mut self, path: usize, gap: u64, duration: u64) {
        self.settle_waiting(path);
        if let Some(live) = self.live(path) {
            live.compute.add(gap);
            live.comm.add(duration);
        }
    }

    /// Enters what waits before what does not: the bins of a histogram depend on the order.
    #[inline]
    fn settle_waiting(&mut self, path: usize) {
        if self.waiting.get(path).is_some_and(|number| *number > 0) {
            self.settle(path);
        }
    }

    #[inline(never)]
    fn settle(&mut self, path: usize) {
        let waiting = self.waiting(path);
        self.waiting[path] = 0;
        if let Some(live) = self.live(path) {
            live.compute.add_all(waiting.gaps());
            live.comm.add_all(waiting.durations());
        }
    }

    /// Adds the first of some calls and every `stride`-th after it, as [`Paths::add`] does. `times` are enter and exit of each, after
    /// those of the call before the first.
    pub(super) fn add_every(&mut self, path: usize, times: &[(i64, i64)], stride: usize) {
        if times.len() > WAITING * stride {
            return self.add_many(path, times, stride);
        }
        // Few are better off among those that wait: entering them costs more than they do.
        let mut rest = times;
        while let [before, call, ..] = rest {
            self.add(path, duration(before.1, call.0), duration(call.0, call.1));
            rest = rest.get(stride..).unwrap_or_default();
        }
    }

    /// As [`Paths::add_every`], of so many calls that they need not wait.
    fn add_many(&mut self, path: usize, times: &[(i64, i64)], stride: usize) {
        self.settle_waiting(path);
        let (mut gaps, mut durations) = (mem::take(&mut self.gaps), mem::take(&mut self.durations));
        gaps.clear();
        durations.clear();
        let mut rest = times;
        while let [before, call, ..] = rest {
            gaps.push(duration(before.1, call.0));
            durations.push(duration(call.0, call.1));
            rest = rest.get(stride..).unwrap_or_default();
        }
        if let Some(live) = self.live(path) {
            live.compute.add_all(&gaps);
            live.comm.add_all(&durations);
        }
        (self.gaps, self.durations) = (gaps, durations);
    }

    /// Goes on with sketches as they are stored.
    pub(super) fn resume(&mut self, sketches: &[PathSketch], shape: Shape) {
        for s in sketches {
            let (compute, comm) = (LiveSketch::resume(&s.compute, shape), LiveSketch::resume(&s.comm, shape));
            self.begin(s.sym, s.pred, shape, Some(Box::new(Live { compute, comm })));
        }
    }

    /// Number of paths.
    pub(super) fn len(&self) -> usize {
        self.sketches.len()
    }

    /// The sketches of a rank, by path.
    pub(super) fn finish(mut self, rank: u32) -> Vec<PathSketch> {
        let order = self.order();
        let sketch = |path: usize| {
            let (sym, pred, live) = mem::take(&mut self.sketches[path]);
            let live = live.map_or_else(|| Live::new(self.shape), |live| *live);
            live.finish(sym, pred, &self.waiting(path), rank)
        };
        order.into_iter().map(sketch).collect()
    }

    /// As [`Paths::finish`], of a rank that goes on.
    pub(super) fn so_far(&self, rank: u32) -> Vec<PathSketch> {
        let sketch = |path: usize| {
            let (sym, pred, live) = &self.sketches[path];
            let live = live.as_ref().map_or_else(|| Live::new(self.shape), |live| Live::clone(live));
            live.finish(*sym, *pred, &self.waiting(path), rank)
        };
        self.order().into_iter().map(sketch).collect()
    }

    /// Times of a path that wait. They are mostly few: no more than these are touched.
    #[inline]
    fn waiting(&self, path: usize) -> Waiting {
        let number = usize::from(self.waiting[path]).min(WAITING);
        let mut waiting = Waiting { gaps: [0; WAITING], durations: [0; WAITING], number };
        for (i, (gap, duration)) in self.times[path][..number].iter().enumerate() {
            (waiting.gaps[i], waiting.durations[i]) = ((*gap).into(), (*duration).into());
        }
        waiting
    }

    /// The paths in the order of their symbols. Sketches are large: they are not moved more than once.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.sketches.len()).collect();
        order.sort_unstable_by_key(|path| {
            let (sym, pred, ..) = &self.sketches[*path];
            (*sym, *pred)
        });
        order
    }
}

/// Times of a path that wait, before calls and in them.
struct Waiting {
    gaps: [u64; WAITING],
    durations: [u64; WAITING],
    number: usize,
}

impl Waiting {
    fn gaps(&self) -> &[u64] {
        &self.gaps[..self.number]
    }

    fn durations(&self) -> &[u64] {
        &self.durations[..self.number]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use st_model::section::NO_SYM;

    proptest! {
        #[test]
        fn a_path_is_found_again(calls in proptest::collection::vec(prop_oneof![0..3_u32, 254..258_u32, Just(NO_SYM - 1)], 2..200)) {
            let (mut paths, mut known) = (Paths::default(), HashMap::new());
            for w in calls.windows(2) {
                // Symbols are dense: the largest one comes as a predecessor only.
                let (before, sym) = (w[0], w[1].min(300));
                let new = known.len();
                prop_assert_eq!(paths.find(sym, before, Shape::Totals), *known.entry((sym, before)).or_insert(new));
            }
        }

        /// So many calls of a round that they wait, or that they do not.
        #[test]
        fn calls_added_together_are_those_added_one_by_one(
            calls in proptest::collection::vec((0..1_000_i64, prop_oneof![0..5_000_i64, Just(1 << 40)]), 2..200),
            (before, stride) in (0..40_u64, 1..4_usize),
        ) {
            let mut at = 0;
            let times: Vec<(i64, i64)> = calls
                .iter()
                .map(|(gap, takes)| {
                    let enter = at + gap;
                    at = enter + takes;
                    (enter, at)
                })
                .collect();
            for shape in [Shape::Buckets, Shape::BINS, Shape::Quantiles, Shape::Totals] {
                let (mut together, mut apart) = (Paths::default(), Paths::default());
                for paths in [&mut together, &mut apart] {
                    paths.find(1, 0, shape);
                    (0..before).for_each(|ns| paths.add(0, ns, 7));
                }
                together.add_every(0, &times, stride);
                for pair in times.windows(2).step_by(stride) {
                    apart.add(0, duration(pair[0].1, pair[1].0), duration(pair[1].0, pair[1].1));
                }
                prop_assert_eq!(together.finish(2), apart.finish(2));
            }
        }

        /// Some calls wait, some take seconds.
        #[test]
        fn sketches_so_far_are_those_at_the_end(
            calls in proptest::collection::vec((0..5_u32, 0..5_u32, prop_oneof![0..5_000_u64, Just(1 << 40)]), 0..300),
        ) {
            for shape in [Shape::Buckets, Shape::BINS, Shape::Quantiles, Shape::Totals] {
                let mut paths = Paths::default();
                for (sym, before, ns) in &calls {
                    let path = paths.find(*sym, *before, shape);
                    paths.add(path, *ns, ns / 2);
                }
                let so_far = paths.so_far(2);
                prop_assert!(so_far.is_sorted_by_key(|s| (s.sym, s.pred)));
                prop_assert_eq!(so_far, paths.finish(2));
            }
        }
    }
}
