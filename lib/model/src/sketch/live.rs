//! The sketch of one rank while it is being filled.

use super::buckets::bucket;
use super::histogram::Histogram;
use super::{Detail, Shape, Sketch};
use crate::num::{Exact, narrow};

/// A sketch that is being filled by one rank: buckets in a dense window, so that adding is a few instructions.
#[derive(Clone, Debug, Default)]
pub struct LiveSketch {
    sum: u128,
    squares: u128,
    /// The shortest, as its distance from the longest possible.
    inverse_min: u64,
    max: u64,
    low: usize,
    window: Vec<u64>,
    shape: Shape,
    /// Number of durations, and the bins, if there are no buckets.
    count: u64,
    bins: Histogram,
}

/// The squares of [`MANY`] durations shorter than this, ns, are less than 2^64.
const SHORT: u64 = 1 << 27;
const MANY: usize = 1 << 10;
/// Durations whose buckets are put in order without a window.
const FEW: usize = 64;

impl LiveSketch {
    /// An empty sketch.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self { shape, ..Self::default() }
    }
    /// Adds a duration.
    pub fn add(&mut self, ns: u64) {
        self.add_all(&[ns]);
    }
    /// Adds durations: many at once cost half.
    #[inline(never)]
    pub fn add_all(&mut self, durations: &[u64]) {
        self.add_totals(durations);
        self.add_buckets(durations);
    }
    #[inline]
    fn add_totals(&mut self, durations: &[u64]) {
        let (mut bits, mut sum, mut squares) = (0, 0u64, 0u64);
        let (mut inverse_min, mut max) = (self.inverse_min, self.max);
        for &ns in durations {
            bits |= ns;
            sum = sum.wrapping_add(ns);
            squares = squares.wrapping_add(ns.wrapping_mul(ns));
            inverse_min = inverse_min.max(!ns);
            max = max.max(ns);
        }
        (self.inverse_min, self.max) = (inverse_min, max);
        if bits < SHORT && durations.len() <= MANY {
            // Neither sum can have overflowed.
            self.sum += u128::from(sum);
            self.squares = self.squares.saturating_add(squares.into());
        } else {
            for wide in durations.iter().copied().map(u128::from) {
                self.sum += wide;
                self.squares = self.squares.saturating_add(wide * wide);
            }
        }
    }
    #[inline]
    fn add_buckets(&mut self, durations: &[u64]) {
        let mut counted = 0;
        let (low, window) = (self.low, self.window.as_mut_slice());
        for &ns in durations {
            match window.get_mut(usize::from(bucket(ns)).wrapping_sub(low)) {
                Some(n) => *n += 1,
                None => break,
            }
            counted += 1;
        }
        let rest = &durations[counted..];
        if rest.len() > 1 && matches!(self.shape, Shape::Buckets | Shape::Quantiles) {
            self.make_room(rest);
        }
        for &ns in rest {
            let b = usize::from(bucket(ns));
            match self.window.get_mut(b.wrapping_sub(self.low)) {
                Some(n) => *n += 1,
                None => self.outside(b, ns),
            }
        }
    }
    /// Adds a duration for which there is no bucket in the window: there never is one in other shapes.
    #[inline(never)]
    fn outside(&mut self, b: usize, ns: u64) {
        match self.shape {
            // What is kept of them is chosen when all are there.
            Shape::Buckets | Shape::Quantiles => return self.widen(b),
            Shape::Bins(how) => self.bins.add(ns, how),
            Shape::Totals => {}
        }
        self.count += 1;
    }
    #[cold]
    fn widen(&mut self, b: usize) {
        self.reach(b, b);
        self.window[b - self.low] += 1;
    }
    /// Widens the window once, for many durations.
    #[cold]
    fn make_room(&mut self, durations: &[u64]) {
        let buckets = || durations.iter().map(|ns| usize::from(bucket(*ns)));
        if let (Some(first), Some(last)) = (buckets().min(), buckets().max()) {
            self.reach(first, last);
        }
    }
    /// Lets the window reach from a bucket to another at least.
    fn reach(&mut self, first: usize, last: usize) {
        if self.window.is_empty() {
            self.low = first;
            self.window.reserve(last - first + 1);
        } else if first < self.low {
            self.window.splice(0..0, std::iter::repeat_n(0, self.low - first));
            self.low = first;
        }
        if self.window.len() <= last - self.low {
            self.window.resize(last - self.low + 1, 0);
        }
    }
    /// Goes on with the sketch of a rank, in its shape; in `shape` if there is nothing in it.
    #[must_use]
    pub fn resume(sketch: &Sketch, shape: Shape) -> Self {
        if sketch.count == 0 {
            return Self::new(shape);
        }
        let shape = match (sketch.shape(), shape) {
            // How even bins are kept is not told by them.
            (Shape::Bins(_), Shape::Bins(how)) => Shape::Bins(how),
            (own, _) => own,
        };
        let low = sketch.buckets().next().map_or(0, |(first, _)| usize::from(first));
        let mut window = Vec::new();
        for (b, n) in sketch.buckets() {
            window.resize(usize::from(b) - low, 0);
            window.push(n);
        }
        let Sketch { sum, squares, min, max, .. } = sketch;
        let count = if matches!(shape, Shape::Buckets | Shape::Quantiles) { 0 } else { sketch.count };
        let bins = Histogram::from_bins(sketch.bins().to_vec());
        let (sum, squares) = (*sum, *squares);
        Self { sum, squares, inverse_min: !min.0, max: max.0, low, window, shape, count, bins }
    }
    /// The sketch of a rank, to which these durations are added last.
    #[must_use]
    pub fn finish_with(mut self, durations: &[u64], rank: u32) -> Sketch {
        let mut few = [0; FEW];
        let listed = matches!(self.shape, Shape::Buckets | Shape::Quantiles) && self.window.is_empty();
        let Some(few) = few.get_mut(..durations.len()).filter(|few| listed && !few.is_empty()) else {
            self.add_all(durations);
            return self.finish(rank);
        };
        // Of these alone, a window would be made for nothing.
        self.add_totals(durations);
        few.iter_mut().zip(durations).for_each(|(at, ns)| *at = bucket(*ns));
        few.sort_unstable();
        let mut buckets = Vec::with_capacity(1 + few.windows(2).filter(|pair| pair[0] != pair[1]).count());
        buckets.extend(few.chunk_by(|a, b| a == b).map(|same| (same[0], same.len().to_u64())));
        Sketch { detail: Detail::Buckets(buckets), ..self.totals(durations.len().to_u64(), rank) }
    }
    /// What is known of so many durations beside where they lie.
    fn totals(&self, count: u64, rank: u32) -> Sketch {
        let (min, max) = ((!self.inverse_min, rank), (self.max, rank));
        Sketch { count, sum: self.sum, squares: self.squares, min, max, ..Sketch::default() }
    }
    /// The sketch of a rank.
    #[must_use]
    pub fn finish(self, rank: u32) -> Sketch {
        let count = self.count + self.window.iter().sum::<u64>();
        if count == 0 {
            return Sketch::default();
        }
        let totals = self.totals(count, rank);
        let Self { low, window, shape, bins, .. } = self;
        match shape {
            Shape::Buckets | Shape::Quantiles => {}
            Shape::Bins(_) => return Sketch { detail: Detail::Bins(bins), ..totals },
            Shape::Totals => return Sketch::from_totals(totals),
        }
        // There are many sketches of few durations each: the list is made in one piece, as long as it will be.
        let used = window.iter().filter(|n| **n > 0).count();
        let mut buckets = Vec::with_capacity(used);
        buckets.extend((low..).zip(window).filter(|(_, n)| *n > 0).map(|(b, n)| (narrow(b), n)));
        Sketch { detail: Detail::Buckets(buckets), ..totals }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn durations_added_together_are_those_added_one_by_one(
            lots in proptest::collection::vec(
                proptest::collection::vec(prop_oneof![0..100_u64, 0..1_u64 << 20, any::<u64>()], 0..40),
                1..6,
            ),
        ) {
            for shape in [Shape::Buckets, Shape::BINS, Shape::Quantiles, Shape::Totals] {
                let (mut together, mut apart) = (LiveSketch::new(shape), LiveSketch::new(shape));
                for lot in &lots {
                    together.add_all(lot);
                    lot.iter().for_each(|ns| apart.add(*ns));
                }
                let none = together.clone().finish_with(&[], 3);
                let last = lots.last().map_or(&[][..], Vec::as_slice);
                let at_last = [together.clone().finish_with(last, 3), LiveSketch::new(shape).finish_with(last, 3)];
                let mut alone = LiveSketch::new(shape);
                for sketch in [&mut together, &mut alone] {
                    sketch.add_all(last);
                }
                prop_assert_eq!(at_last, [together.finish(3), alone.finish(3)]);
                prop_assert_eq!(none, apart.finish(3));
            }
        }
    }
}
