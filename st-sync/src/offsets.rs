//! Interpolation between measured offsets.
//!
//! Source: Becker et al. 2008, section 2 (linear offset interpolation); Scalasca and OTF2 extend the last segment as is
//! done here. They have two measurements. Of more, each says where the clock was give or take its error, which is large
//! where a rank had to wait for a processor; the map is the shortest line that agrees with all of them, so that exact ones
//! hold it, others bend it only as far as they must, and none has to be thrown away.

use crate::taut_string::{FARTHEST, Gate, line};
use st_model::columns::{Comparison, Offset};
use st_model::num::saturate;

/// How far beyond its ends a further correction is known to stay as it is there, ns: what is rounded to ns within that is still
/// right in minutes.
const SOME: i64 = 10_000_000;
/// A comparison whose error is so many times that of the most exact one holds the line no more than its error says, at the ends of
/// the run, too.
const MUCH: u64 = 4;
/// Steps to the reading of a clock at a time: each makes what is wrong smaller by the clock's drift.
const TRIES: usize = 8;

/// A rank's clock as a piecewise linear function onto that of rank 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Map {
    points: Vec<Offset>,
}

impl Map {
    /// The shortest line from the first comparison that is exact to the last through what the others allow: each is kept within
    /// its error; and on from there. Of two at one time the more exact one counts; a bend after which time would stand still or run backwards is
    /// left out, and so are comparisons beyond 73 years.
    #[must_use]
    pub fn linear(clock: &Comparison) -> Self {
        Self::through(Self::bends(clock))
    }

    /// The ends and bends of the shortest line, whether or not time runs forward along it.
    fn bends(clock: &Comparison) -> Vec<Offset> {
        let near = |t: i64| t.unsigned_abs() <= FARTHEST.unsigned_abs() / 2;
        let sound = |p: &&Offset| near(p.local) && near(p.offset) && near(p.error);
        let mut sorted: Vec<Offset> = clock.points.iter().filter(sound).copied().collect();
        sorted.sort_by_key(|p| (p.local, p.error));
        sorted.dedup_by_key(|p| p.local);
        if let [first, between @ .., last] = &*sorted {
            let held = held(&sorted);
            let gate = |p: &Offset| {
                let error = if held.contains(p) { 0 } else { p.error.abs() };
                Gate { at: p.local, low: p.offset - error, high: p.offset + error }
            };
            let gates: Vec<Gate> = between.iter().map(gate).collect();
            let along = Self { points: held.into() };
            let end = |p: &Offset| {
                let (there, gate) = (along.apply(p.local).saturating_sub(p.local), gate(p));
                (p.local, there.clamp(gate.low, gate.high))
            };
            let bends = line(end(first), &gates, end(last));
            // A clock may have been at the gate's other end.
            let bent = |&(local, offset): &(i64, i64)| {
                let p = sorted[sorted.partition_point(|p| p.local < local)];
                Offset { local, offset, error: p.error.abs() + (offset - p.offset).abs() }
            };
            sorted = bends.iter().map(bent).collect();
        }
        sorted
    }

    /// The line through points in order, but for those after which time would stand still or run backwards.
    fn through(sorted: Vec<Offset>) -> Self {
        let mut points: Vec<Offset> = Vec::with_capacity(sorted.len());
        for p in sorted {
            let forward = points.last().is_none_or(|b| {
                b.local < p.local
                    && i128::from(p.offset) - i128::from(b.offset) > i128::from(b.local) - i128::from(p.local)
            });
            if forward {
                points.push(p);
            }
        }
        Self { points }
    }

    /// This map and then another one: what is to be added at some moments of its times, straight in between, and as much before
    /// and after.
    #[must_use]
    pub(crate) fn then(&self, way: &[(i64, i64)]) -> Self {
        let (Some(first), Some(last)) = (way.first(), way.last()) else { return self.clone() };
        let added = |t: i64| {
            let i = way.partition_point(|w| w.0 <= t).clamp(1, way.len().max(2) - 1);
            let (Some(a), Some(b)) = (way.get(i - 1), way.get(i)) else { return first.1 };
            let (run, rise) = (i128::from(b.0) - i128::from(a.0), i128::from(b.1) - i128::from(a.1));
            let since = i128::from(t.clamp(first.0, last.0)) - i128::from(a.0);
            a.1.saturating_add(saturate(rise * since / run.max(1)))
        };
        let beyond = [first.0.saturating_sub(SOME), last.0.saturating_add(SOME)].map(|t| self.reading_at(t));
        let mut locals: Vec<i64> = way.iter().map(|w| self.reading_at(w.0)).chain(beyond).collect();
        // Between points that are close together what is rounded is steep, and would go on for ever.
        let apart = |local: &i64| beyond.iter().all(|end| local.abs_diff(*end) > SOME.unsigned_abs() / 2);
        locals.extend(self.points.iter().map(|p| p.local).filter(apart));
        locals.sort_unstable();
        locals.dedup();
        let point = |local: i64| {
            let t = self.apply(local);
            Offset { local, offset: t.saturating_add(added(t)).saturating_sub(local), error: 0 }
        };
        Self::through(locals.into_iter().map(point).collect())
    }

    /// About when a clock shows a time on rank 0's: offsets change little in the time that they are.
    fn reading_at(&self, t: i64) -> i64 {
        (0..TRIES).fold(t, |local, _| local.saturating_add(t.saturating_sub(self.apply(local))))
    }

    /// The map that has these [`Map::points`].
    pub(crate) fn of(points: Vec<Offset>) -> Self {
        Self { points }
    }

    /// The first offset, for all times.
    #[must_use]
    pub fn constant(clock: &Comparison) -> Self {
        Self { points: clock.points.first().copied().into_iter().collect() }
    }

    /// Whether times stay as they are.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.points.iter().all(|p| p.offset == 0)
    }

    /// Where the line is bent, and its ends.
    #[must_use]
    pub fn points(&self) -> &[Offset] {
        &self.points
    }

    /// The time on rank 0's clock, rounded down. Times outside the comparisons continue the first or last segment.
    #[must_use]
    pub fn apply(&self, t: i64) -> i64 {
        self.reader().apply(t)
    }

    /// The map for many times one after the other.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader { points: &self.points, from: 0, until: 0, offset: 0 }
    }

    /// Drift against rank 0 between the first and the last comparison, ns per 1000 s (1e-12); `None` with fewer than two.
    #[must_use]
    pub fn drift(&self) -> Option<i64> {
        let (a, b) = (self.points.first()?, self.points.last()?);
        let run = i128::from(b.local) - i128::from(a.local);
        let rise = i128::from(b.offset) - i128::from(a.offset);
        i64::try_from((rise * 1_000_000_000_000).checked_div(run)?).ok()
    }
}

/// The comparisons that the line is held by, of some in order: the first and the last that are not much less exact than the most
/// exact one, or as little less exact as leaves half of the time between them.
fn held(sorted: &[Offset]) -> [Offset; 2] {
    let error = |p: &Offset| p.error.unsigned_abs();
    let span = |[a, b]: [Offset; 2]| b.local.abs_diff(a.local);
    let of = |exact: u64| {
        let among = || sorted.iter().filter(|p| error(p) <= exact).copied();
        [among().next(), among().next_back()].map(Option::unwrap_or_default)
    };
    let all = of(u64::MAX);
    let mut exact = sorted.iter().map(error).min().unwrap_or(0).saturating_mul(MUCH).max(1);
    while span(of(exact)) < span(all) / 2 {
        exact = exact.saturating_mul(2);
    }
    of(exact)
}

/// A map that remembers where its offset, which is rounded, changes next: clocks drift by some ns in a ms, and events
/// are closer together than that.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    points: &'a [Offset],
    /// The offset holds from here, inclusive, to there, exclusive.
    from: i64,
    until: i64,
    offset: i64,
}

impl Reader<'_> {
    /// What [`Map::apply`] gives.
    #[inline]
    pub fn apply(&mut self, t: i64) -> i64 {
        if !(self.from..self.until).contains(&t) {
            return self.find(t);
        }
        t.saturating_add(self.offset)
    }

    fn find(&mut self, t: i64) -> i64 {
        let (a, b, end) = match self.points {
            [] => return self.keep(t, 0, t..i64::MAX),
            [only] => return self.keep(t, only.offset.into(), t..i64::MAX),
            many => {
                let i = many.partition_point(|p| p.local <= t).clamp(1, many.len() - 1);
                // The last segment goes on, the first one began earlier.
                (many[i - 1], many[i], if i + 1 < many.len() { many[i].local } else { i64::MAX })
            }
        };
        let run = i128::from(b.local) - i128::from(a.local);
        let rise = i128::from(b.offset) - i128::from(a.offset);
        let product = rise * (i128::from(t) - i128::from(a.local));
        let (part, rest) = (product.div_euclid(run), product.rem_euclid(run));
        // So many ns later the rounded part is another.
        let stays = match rise {
            0 => i128::MAX,
            1.. => (run - rest - 1) / rise + 1,
            _ => rest / -rise + 1,
        };
        let until = saturate::<i64>(i128::from(t).saturating_add(stays));
        self.keep(t, i128::from(a.offset) + part, t..until.min(end))
    }

    fn keep(&mut self, t: i64, offset: i128, range: std::ops::Range<i64>) -> i64 {
        if let Ok(offset) = i64::try_from(offset) {
            (self.from, self.until, self.offset) = (range.start, range.end, offset);
        }
        saturate(i128::from(t) + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clock(points: &[(i64, i64)]) -> Comparison {
        let points = points.iter().map(|&(local, offset)| Offset { local, offset, error: 0 }).collect();
        Comparison { points, ..Comparison::default() }
    }

    /// The interpolation as it is written down.
    fn plain(map: &Map, t: i64) -> i64 {
        let wide = |t: i64| i128::from(t);
        let offset = match map.points() {
            [] => 0,
            [only] => wide(only.offset),
            many => {
                let i = many.iter().filter(|p| p.local <= t).count().clamp(1, many.len() - 1);
                let (a, b) = (many[i - 1], many[i]);
                let (run, rise) = (wide(b.local) - wide(a.local), wide(b.offset) - wide(a.offset));
                wide(a.offset) + (rise * (wide(t) - wide(a.local))).div_euclid(run)
            }
        };
        i64::try_from((wide(t) + offset).clamp(wide(i64::MIN), wide(i64::MAX))).unwrap()
    }

    #[test]
    fn between_and_beyond_the_points() {
        let m = Map::linear(&clock(&[(0, 100), (1000, 200)]));
        assert_eq!([m.apply(500), m.apply(1500), m.apply(-1000)], [650, 1750, -1000]);
        assert_eq!(m.drift(), Some(100_000_000_000));
        assert_eq!(Map::constant(&clock(&[(0, 100), (1000, 200)])).apply(1500), 1600);
        assert_eq!(Map::linear(&clock(&[])).apply(7), 7);
    }

    #[test]
    fn a_rough_comparison_bends_the_line_as_far_as_it_must() {
        let point = |local, offset, error| Offset { local, offset, error };
        let points = vec![point(0, 0, 1), point(1_000, 300, 100), point(2_000, 100, 500), point(4_000, 0, 1)];
        let m = Map::linear(&Comparison { points, ..Comparison::default() });
        assert_eq!(m.points(), [point(0, 0, 1), point(1_000, 200, 200), point(4_000, 0, 1)]);
    }

    #[test]
    fn the_line_is_held_by_comparisons_that_are_exact_at_its_ends_too() {
        let point = |local, offset, error| Offset { local, offset, error };
        // The clock drifts by a tenth; what is said of it at the ends may be anything up to 5000.
        let exact = [point(1_000, 100, 2), point(9_000, 900, 3)];
        let all = [vec![point(0, -4_000, 5_000)], exact.into(), vec![point(10_000, 5_500, 5_000)]].concat();
        let m = Map::linear(&Comparison { points: all.clone(), ..Comparison::default() });
        assert_eq!([0, 5_000, 10_000].map(|t| m.apply(t) - t), [0, 500, 1_000]);
        // One exact one does not say how the clock drifts.
        assert_eq!(held(&all[..2]), [all[0], all[1]]);
        assert_eq!(held(&all), exact);
    }

    #[test]
    fn the_ends_stay_as_steep_as_they_are_after_corrections_that_are_rounded() {
        // A clock that drifts by half a part in a thousand, corrected three times by next to nothing from before its first comparison.
        let mut map = Map::linear(&clock(&[(0, 7), (1_000_000_007, 500_010)]));
        let long_before = |map: &Map| map.apply(-600_000_000);
        let before = long_before(&map);
        for by in [7, -5, 3] {
            map = map.then(&[(-100_000_003, by), (500_000_001, -by), (1_100_000_001, 0)]);
        }
        assert!(long_before(&map).abs_diff(before) < 1_000, "{} {before}", long_before(&map));
    }

    #[test]
    fn comparisons_at_the_limits_are_no_trouble() {
        let wild = [i64::MIN, i64::MIN / 2, -1, 0, 1, i64::MAX / 2, i64::MAX];
        let all = wild.iter().flat_map(|&local| wild.iter().map(move |&offset| (local, offset)));
        let points =
            all.flat_map(|(local, offset)| wild.map(|error| Offset { local, offset, error })).collect();
        let m = Map::linear(&Comparison { points, ..Comparison::default() });
        assert!(wild.windows(2).all(|w| m.apply(w[0]) <= m.apply(w[1])));
    }

    #[test]
    fn a_segment_in_which_time_runs_backwards_is_left_out() {
        let m = Map::linear(&clock(&[(0, 0), (10, -10), (20, 0)]));
        assert_eq!(m.points().len(), 2);
    }

    proptest! {
        #[test]
        fn a_reader_forgets_nothing_in_between(
            points in proptest::collection::vec((-100_000i64..100_000, -3_000i64..3_000), 0..5),
            times in proptest::collection::vec(prop_oneof![-150_000i64..150_000, any::<i64>()], 1..60),
            steps in proptest::collection::vec(0i64..300, 0..200),
        ) {
            let m = Map::linear(&clock(&points));
            let mut reader = m.reader();
            let walk = steps.iter().scan(-110_000i64, |t, step| { *t += step; Some(*t) });
            for t in times.iter().copied().chain(walk) {
                prop_assert_eq!(reader.apply(t), plain(&m, t), "at {}", t);
            }
        }

        #[test]
        fn the_truth_is_as_near_as_the_comparisons_say(
            steps in proptest::collection::vec((1_000i64..100_000, -900i64..900, 0i64..400, -100i64..=100), 2..50),
        ) {
            // A clock whose drift changes all the time, compared with errors of which the bounds are known.
            let (mut local, mut truth, mut seen) = (0, 0, Vec::new());
            for &(step, drift, error, percent) in &steps {
                (local, truth) = (local + step, truth + step * drift / 1_000);
                seen.push((truth, Offset { local, offset: truth + error * percent / 100, error }));
            }
            let points = seen.iter().map(|s| s.1).collect();
            let clock = Comparison { points, ..Comparison::default() };
            let m = Map::linear(&clock);
            // Where a bend is left out so that time runs forward, nothing is promised.
            prop_assume!(m.points() == Map::bends(&clock));
            for (truth, p) in seen {
                let found = m.apply(p.local) - p.local;
                prop_assert!((found - truth).abs() <= 2 * p.error + 1, "{} instead of {}: {:?}", found, truth, p);
            }
        }

        #[test]
        fn a_linear_clock_comes_back_exactly(offset in -1_000_000i64..1_000_000, drift in -500i64..500,
                                             t in 0i64..10_000_000_000) {
            // The rank's clock reads (truth − offset) slowed by `drift` per 1e6, exact at multiples of 1e6.
            let local = |k: i64| k * 1_000_000;
            let truth = |k: i64| k * (1_000_000 + drift) + offset;
            let m = Map::linear(&clock(&[(local(0), truth(0) - local(0)), (local(9_000), truth(9_000) - local(9_000))]));
            let k = t / 1_000_000;
            prop_assert_eq!(m.apply(local(k)), truth(k));
            prop_assert!(m.apply(t) <= m.apply(t + 1));
        }
    }
}
