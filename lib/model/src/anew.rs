//! A thread's time sketches made from its exact times, as its recorder makes them: where they are not stored because these are,
//! and when these have been corrected.
//!
//! Sketches hold what is between the program's calls. What the recorder itself took there, to compare clocks in between or
//! to reduce, it leaves out of them, but not out of the exact times. How much that was is known per path, from the
//! sketches' totals, and it has made gaps longer: so the longest gaps of such a path are cut down to one length, by as
//! much in all. Nothing is cut where nothing was left out.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::columns::{Column, duration};
use crate::num::narrow;
use crate::project::Error;
use crate::section::{NO_SYM, PathSketch, Predecessors, Section, Sym, Thread};
use crate::sketch::{LiveSketch, Shape, Sketch};
use crate::unite::{Summed, Times};

/// So many calls are put in order by path at a time.
const TOGETHER: usize = 1 << 18;

/// Fewer than so many of a path are added one by one: to set a sketch up to be filled takes as long as a path is wide.
const FEW: usize = 32;

/// To what gaps are cut, by path, ns. Paths that are not here are left alone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cuts(HashMap<(Sym, Sym), u64, FixedState>);

/// What the recorder left out of the sketches of a thread, seen from its exact times before they are corrected; nothing where
/// the thread has not [all of them](is_timed).
///
/// *Cost:* O(calls); where something was left out, twice that and sorting.
///
/// # Errors
///
/// If a rank cannot be read back.
pub fn left_out(section: &Section, thread: usize) -> Result<Cuts, Error> {
    let Some(t) = section.threads.get(thread).filter(|_| is_timed(section, thread)) else {
        return Ok(Cuts::default());
    };
    let kept: u128 = t.sketches.iter().map(|s| s.compute.sum).sum();
    let gaps = |column: &Column| {
        let mut last = column.start().unwrap_or(0);
        column.times().map(|(enter, exit)| u128::from(gap(&mut last, enter, exit))).sum::<u128>()
    };
    if t.columns.iter().map(|(_, column)| gaps(column)).sum::<u128>() <= kept {
        return Ok(Cuts::default());
    }
    let mut by_path: HashMap<(Sym, Sym), Vec<u64>, FixedState> = HashMap::default();
    for (rank, column) in &t.columns {
        let mut last = column.start().unwrap_or(0);
        each_timed(section, thread, *rank, column, |path, (enter, exit)| {
            by_path.entry(path).or_default().push(gap(&mut last, enter, exit));
        })?;
    }
    let cut = |s: &PathSketch| {
        let gaps = by_path.get_mut(&(s.sym, s.pred))?;
        Some(((s.sym, s.pred), level(gaps, s.compute.sum)?))
    };
    Ok(Cuts(t.sketches.iter().filter_map(cut).collect()))
}

/// Whether a thread has sketches, and exact times of every call of all of its ranks, as far as can be seen without
/// reading its calls.
#[must_use]
pub fn is_timed(section: &Section, thread: usize) -> bool {
    let timed = |t: &Thread| {
        let ranks = || t.ranks.iter().map(|rank| t.columns.iter().filter(|(r, _)| *r == rank).count());
        !t.sketches.is_empty() && t.columns.len() as u64 == t.ranks.len() && ranks().all(|n| n == 1)
    };
    section.threads.get(thread).is_some_and(timed)
}

/// The sketches and per-rank sums of a thread from its exact times, which have been corrected since it was recorded.
/// `None` if it has not those of every call of all of its ranks. Sketches keep the shape they have.
///
/// *Cost:* O(calls).
///
/// # Errors
///
/// If a rank cannot be read back.
pub fn sketched_anew(section: &Section, thread: usize, cuts: &Cuts) -> Result<Option<Summed>, Error> {
    let Some(t) = section.threads.get(thread).filter(|_| is_timed(section, thread)) else { return Ok(None) };
    let mut all = Times::default();
    let wanted = Wanted { shape: shape(&t.sketches).unwrap_or(Shape::Totals), most: usize::MAX, cuts };
    for (rank, column) in &t.columns {
        let Some(sketches) = of_rank(section, thread, *rank, column, wanted)? else { return Ok(None) };
        if t.ranks.len() == 1 {
            return Ok(Some((sketches, Vec::new())));
        }
        all.add_rank(*rank, &sketches, |sym| sym);
    }
    Ok(Some(all.finish(|sym| sym, &t.ranks)))
}

/// Which sketches are made.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// What they keep.
    pub shape: Shape,
    /// How many there may be.
    pub most: usize,
    /// To what gaps are cut.
    pub cuts: &'a Cuts,
}

/// The sketches of a rank of a thread from its exact times, which tell predecessors apart as far as those of the thread do; `None` if
/// these are not those of every call, or there are too many sketches.
///
/// *Cost:* O(calls), and for every 262,144 of them O(buckets) of each path on which many are. *Memory:* a constant, beside the sketches.
///
/// # Errors
///
/// If the rank cannot be read back.
pub fn of_rank(
    section: &Section,
    thread: usize,
    rank: u32,
    column: &Column,
    wanted: Wanted<'_>,
) -> Result<Option<Vec<PathSketch>>, Error> {
    let Wanted { shape, most, cuts: Cuts(cuts) } = wanted;
    let (mut gathered, mut last) =
        (Gathered { rank, shape, ..Gathered::default() }, column.start().unwrap_or(0));
    let all = each_timed(section, thread, rank, column, |path, (enter, exit)| {
        let mut gap = gap(&mut last, enter, exit);
        if !cuts.is_empty() {
            gap = gap.min(cuts.get(&path).copied().unwrap_or(u64::MAX));
        }
        if gathered.sketches.len() <= most {
            gathered.add(path.0, path.1, gap, duration(enter, exit));
        }
    })?;
    Ok((all && gathered.sketches.len() <= most).then(|| gathered.finish()))
}

/// Sketches of a rank that are made from its calls in the order of time. While they are made, only one is as large as it is then:
/// of many paths these would take a thousand times what they take once they are made.
#[derive(Debug, Default)]
struct Gathered {
    rank: u32,
    shape: Shape,
    places: HashMap<(Sym, Sym), u32, FixedState>,
    sketches: Vec<PathSketch>,
    /// Of calls that are in no sketch yet.
    calls: Vec<Timed>,
}

/// A call's path, by its place among the sketches, the time before it, and its own, ns.
#[derive(Clone, Copy, Debug)]
struct Timed {
    path: u32,
    gap: u64,
    duration: u64,
}

impl Gathered {
    fn add(&mut self, sym: Sym, pred: Sym, gap: u64, duration: u64) {
        let sketches = &mut self.sketches;
        let path = *self.places.entry((sym, pred)).or_insert_with(|| {
            let (compute, comm) = Default::default();
            sketches.push(PathSketch { sym, pred, compute, comm });
            narrow(sketches.len() - 1)
        });
        self.calls.push(Timed { path, gap, duration });
        if self.calls.len() >= TOGETHER {
            self.settle();
        }
    }

    fn settle(&mut self) {
        // Those of a path keep their order: the bins of a histogram depend on it.
        self.calls.sort_by_key(|call| call.path);
        let (rank, shape) = (self.rank, self.shape);
        for calls in self.calls.chunk_by(|a, b| a.path == b.path) {
            let Some(of) = calls.first().and_then(|call| self.sketches.get_mut(call.path as usize)) else {
                continue;
            };
            let more = |sketch: &mut Sketch, durations: Vec<u64>| {
                if shape == Shape::Buckets && durations.len() < FEW {
                    return durations.iter().for_each(|ns| sketch.add(*ns, rank));
                }
                let mut live = LiveSketch::resume(sketch, shape);
                live.add_all(&durations);
                *sketch = live.finish(rank);
            };
            more(&mut of.compute, calls.iter().map(|call| call.gap).collect());
            more(&mut of.comm, calls.iter().map(|call| call.duration).collect());
        }
        self.calls.clear();
    }

    /// In the order of paths.
    fn finish(mut self) -> Vec<PathSketch> {
        self.settle();
        self.sketches.sort_unstable_by_key(|s| (s.sym, s.pred));
        self.sketches
    }
}

/// Calls `take` for each call of a rank's thread that has a time, with its symbol and the one before, as far as the thread's
/// sketches tell that apart. Whether all have.
fn each_timed(
    section: &Section,
    thread: usize,
    rank: u32,
    column: &Column,
    mut take: impl FnMut((Sym, Sym), (i64, i64)),
) -> Result<bool, Error> {
    let Some(mut symbols) = section.symbols_of(thread, rank) else { return Ok(false) };
    let kept = Predecessors::of(&section.threads[thread].sketches);
    let (mut times, mut pred) = (column.times(), NO_SYM);
    loop {
        let sym = symbols.next_symbol().map_err(|source| Error::Tree { rank, source })?;
        match (sym, times.next()) {
            (Some(sym), Some(time)) => take((sym, kept.pred(std::mem::replace(&mut pred, sym))), time),
            (sym, time) => return Ok(sym.is_none() && time.is_none()),
        }
    }
}

/// From the end of the event before to the next one's start, ns.
fn gap(last: &mut i64, enter: i64, exit: i64) -> u64 {
    duration(std::mem::replace(last, exit), enter)
}

/// What all of these sketches keep, beside their totals.
#[must_use]
pub fn shape(sketches: &[PathSketch]) -> Option<Shape> {
    let sketches = sketches.iter().flat_map(|s| [&s.compute, &s.comm]).filter(|s| s.count > 0);
    let mut shapes = sketches.map(Sketch::shape);
    let first = shapes.next().unwrap_or_default();
    shapes.try_fold(first, Shape::with)
}

/// The length to which numbers must be cut so that they add up to `sum`, rounded up; `None` if they do not exceed it.
fn level(numbers: &mut [u64], sum: u128) -> Option<u64> {
    if numbers.iter().copied().map(u128::from).sum::<u128>() <= sum {
        return None;
    }
    numbers.sort_unstable();
    let (mut rest, mut left) = (sum, numbers.len() as u128);
    for n in numbers.iter() {
        // All that are left get as much as this one.
        if u128::from(*n) * left > rest {
            return u64::try_from(rest.div_ceil(left)).ok();
        }
        rest -= u128::from(*n);
        left -= 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_cut() {
        assert_eq!(level(&mut [5, 1, 90, 3], 99), None);
        assert_eq!(level(&mut [5, 1, 90, 3], 15), Some(6));
        assert_eq!(level(&mut [5, 1, 90, 80], 27), Some(11));
        assert_eq!(level(&mut [5, 5], 0), Some(0));
        assert_eq!(level(&mut [], 0), None);
    }
}
