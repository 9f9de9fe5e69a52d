//! Times of a thread's calls, by path: the symbol and the one before it.
//!
//! Where calls come in no order there are many paths, and each call is on another one than the call before it: what a call
//! touches then should be little. Its two times are put beside each other, and entered into the path's sketches with those
//! of other calls on it.

use std::collections::HashMap;
use std::mem;

use foldhash::fast::FixedState;

use crate::section::{NO_SYM, PathSketch, Sym};
use crate::sketch::{LiveSketch, Shape};

/// Calls of a path that wait at most.
const WAITING: usize = 32;

/// The sketches of a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Paths {
    waiting: Vec<Waiting>,
    /// Of each path: computation before the call, and the call.
    sketches: Vec<(Sym, Sym, LiveSketch, LiveSketch)>,
    by_path: HashMap<(Sym, Sym), usize, FixedState>,
    /// Per symbol the last predecessor and its path: the lookup of most calls.
    last: Vec<(Sym, usize)>,
    /// Times of one path while they are entered.
    gaps: Vec<u64>,
    durations: Vec<u64>,
}

/// Times of a path that are not in its sketches yet, ns: from the call before to the call, and in it. Those of seconds do not
/// wait.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    number: usize,
    times: [(u32, u32); WAITING],
}

impl Paths {
    /// The path of a symbol after another; a new one has sketches of a shape.
    #[inline]
    pub(super) fn find(&mut self, sym: Sym, before: Sym, shape: Shape) -> usize {
        let i = sym as usize;
        if self.last.len() <= i {
            self.last.resize(i + 1, (NO_SYM, usize::MAX));
        }
        let (latest, path) = self.last[i];
        if latest == before && path != usize::MAX {
            return path;
        }
        let path = match self.by_path.get(&(sym, before)) {
            Some(path) => *path,
            None => self.begin(sym, before, LiveSketch::new(shape), LiveSketch::new(shape)),
        };
        self.last[i] = (before, path);
        path
    }

    #[cold]
    fn begin(&mut self, sym: Sym, before: Sym, compute: LiveSketch, comm: LiveSketch) -> usize {
        self.by_path.insert((sym, before), self.sketches.len());
        self.waiting.push(Waiting { number: 0, times: [(0, 0); WAITING] });
        self.sketches.push((sym, before, compute, comm));
        self.sketches.len() - 1
    }

    /// Adds a call: the time since the call before it, and its own, ns.
    #[inline]
    pub(super) fn add(&mut self, path: usize, gap: u64, duration: u64) {
        let (Ok(short_gap), Ok(short)) = (u32::try_from(gap), u32::try_from(duration)) else {
            return self.add_all(path, std::iter::once((gap, duration)));
        };
        let Some(waiting) = self.waiting.get_mut(path) else { return };
        if let Some(place) = waiting.times.get_mut(waiting.number) {
            *place = (short_gap, short);
        }
        waiting.number += 1;
        if waiting.number >= WAITING {
            self.settle(path);
        }
    }

    #[inline(never)]
    fn settle(&mut self, path: usize) {
        let Waiting { number, times } = &mut self.waiting[path];
        let number = mem::take(number);
        let (gaps, durations) = (times.map(|t| t.0.into()), times.map(|t| t.1.into()));
        let (_, _, compute, comm) = &mut self.sketches[path];
        compute.add_all(&gaps[..number]);
        comm.add_all(&durations[..number]);
    }

    /// Adds calls as [`Paths::add`] does.
    pub(super) fn add_all(&mut self, path: usize, times: impl Iterator<Item = (u64, u64)>) {
        self.gaps.clear();
        self.durations.clear();
        for (gap, duration) in times {
            self.gaps.push(gap);
            self.durations.push(duration);
        }
        if let Some((_, _, compute, comm)) = self.sketches.get_mut(path) {
            compute.add_all(&self.gaps);
            comm.add_all(&self.durations);
        }
    }

    /// Goes on with sketches as they are stored.
    pub(super) fn resume(&mut self, sketches: &[PathSketch], shape: Shape) {
        for s in sketches {
            let (compute, comm) = (LiveSketch::resume(&s.compute, shape), LiveSketch::resume(&s.comm, shape));
            self.begin(s.sym, s.pred, compute, comm);
        }
    }

    /// The sketches of a rank, by path.
    pub(super) fn finish(mut self, rank: u32) -> Vec<PathSketch> {
        (0..self.sketches.len()).for_each(|path| self.settle(path));
        let sketch = |(sym, pred, compute, comm): (Sym, Sym, LiveSketch, LiveSketch)| PathSketch {
            sym,
            pred,
            compute: compute.finish(rank),
            comm: comm.finish(rank),
        };
        let mut sketches: Vec<PathSketch> = self.sketches.into_iter().map(sketch).collect();
        sketches.sort_by_key(|s| (s.sym, s.pred));
        sketches
    }
}
