//! The shortest line through gates: how a clock went that was seen now and then, more or less exactly.
//!
//! Source: the taut string, or funnel, algorithm (Lee & Preparata 1984; Davies & Kovac 2001, section 2), here between
//! points instead of along a polygon.

/// What a line must pass through: at `at`, somewhere from `low` to `high`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gate {
    pub(crate) at: i64,
    pub(crate) low: i64,
    pub(crate) high: i64,
}

/// A point of a line.
pub(crate) type Point = (i64, i64);

/// Largest magnitude of a gate's position, and of its ends: differences can then be multiplied in 128 bits.
pub(crate) const FARTHEST: i64 = 1 << 62;

/// The bends of the shortest line from `start` through the gates to `end`, with these two; it is straight in between.
/// Positions ascend strictly, and magnitudes are at most [`FARTHEST`].
///
/// *Cost:* O(gates).
pub(crate) fn line(start: Point, gates: &[Gate], end: Point) -> Vec<Point> {
    let mut bends = vec![start];
    let mut apex = start;
    // From the apex on: the line passes below the first chain, which turns up, and above the second, which turns down.
    let (mut above, mut below) = (Chain::new(true), Chain::new(false));
    let last = Gate { at: end.0, low: end.1, high: end.1 };
    for gate in gates.iter().chain([&last]) {
        above.reach(apex, (gate.at, gate.high));
        below.reach(apex, (gate.at, gate.low));
        // At most one of them is bent where they cross: the one that the new point did not straighten.
        while let (Some(&over), Some(&under)) = (above.first(), below.first())
            && rises_more(apex, under, over)
        {
            let (bent, straight, target) = if over.0 < under.0 {
                (&mut above, &mut below, gate.low)
            } else {
                (&mut below, &mut above, gate.high)
            };
            apex = bent.leave();
            bends.push(apex);
            straight.restart((gate.at, target));
        }
    }
    // Both chains are the straight way to the end now.
    bends.push(end);
    bends
}

/// Whether the way from a point to `a` rises more steeply than the way to `b`; both are later.
fn rises_more(from: Point, a: Point, b: Point) -> bool {
    let rise = |to: Point| i128::from(to.1) - i128::from(from.1);
    let run = |to: Point| i128::from(to.0) - i128::from(from.0);
    rise(a) * run(b) > rise(b) * run(a)
}

/// A string held at the apex that turns one way only.
struct Chain {
    /// From `begun` on.
    points: Vec<Point>,
    begun: usize,
    turns_up: bool,
}

impl Chain {
    const fn new(turns_up: bool) -> Self {
        Self { points: Vec::new(), begun: 0, turns_up }
    }

    fn points(&self) -> &[Point] {
        &self.points[self.begun..]
    }

    fn first(&self) -> Option<&Point> {
        self.points().first()
    }

    /// Goes on to a later point; what it need not go round any more is left out.
    fn reach(&mut self, apex: Point, to: Point) {
        while let Some(&last) = self.points().last() {
            let before = self.points().iter().rev().nth(1).copied().unwrap_or(apex);
            let turns =
                if self.turns_up { rises_more(before, to, last) } else { rises_more(before, last, to) };
            if turns {
                break;
            }
            self.points.pop();
        }
        self.points.push(to);
    }

    /// Takes the first point away: it is the apex now.
    fn leave(&mut self) -> Point {
        self.begun += 1;
        self.points[self.begun - 1]
    }

    fn restart(&mut self, at: Point) {
        self.points.truncate(self.begun);
        self.points.push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Where the line is at a position, as a fraction: numerator and denominator.
    fn height(bends: &[Point], at: i64) -> (i128, i128) {
        let i = bends.iter().filter(|b| b.0 <= at).count().clamp(1, bends.len() - 1);
        let (a, b) = (bends[i - 1], bends[i]);
        let run = i128::from(b.0 - a.0);
        (i128::from(a.1) * run + i128::from(b.1 - a.1) * i128::from(at - a.0), run)
    }

    #[test]
    fn straight_where_it_can_be() {
        let gate = |at, low, high| Gate { at, low, high };
        assert_eq!(line((0, 0), &[gate(1, -1, 3), gate(2, 2, 5)], (3, 3)), [(0, 0), (3, 3)]);
        // Up over one, and under another.
        let gates = [gate(10, 7, 9), gate(20, -100, 100), gate(30, -4, -2)];
        assert_eq!(line((0, 0), &gates, (40, 0)), [(0, 0), (10, 7), (30, -2), (40, 0)]);
        // Round a corner in several steps.
        let gates = [gate(1, 10, 20), gate(2, 15, 20), gate(3, 18, 20)];
        assert_eq!(line((0, 0), &gates, (4, 0)), [(0, 0), (1, 10), (2, 15), (3, 18), (4, 0)]);
    }

    proptest! {
        #[test]
        fn through_all_gates_and_nowhere_bent_without_need(
            gates in proptest::collection::vec((1i64..50, -1_000i64..1_000, 0i64..500), 0..60),
            (start, end) in (-1_000i64..1_000, -1_000i64..1_000),
        ) {
            let mut at = 0;
            let gates: Vec<Gate> =
                gates.iter().map(|&(step, low, wide)| { at += step; Gate { at, low, high: low + wide } }).collect();
            let bends = line((0, start), &gates, (at + 1, end));
            prop_assert_eq!((bends[0], bends[bends.len() - 1]), ((0, start), (at + 1, end)));
            prop_assert!(bends.windows(2).all(|w| w[0].0 < w[1].0));
            for g in &gates {
                let (y, run) = height(&bends, g.at);
                prop_assert!(i128::from(g.low) * run <= y && y <= i128::from(g.high) * run, "{:?} in {:?}", g, bends);
            }
            // A line that is bent where a gate holds it, and only towards the gate's end, is the shortest one.
            for w in bends.windows(3) {
                let gate = gates.iter().find(|g| g.at == w[1].0).unwrap();
                let held = if rises_more(w[0], w[2], w[1]) { gate.high } else { gate.low };
                prop_assert_eq!(w[1].1, held, "{:?}", bends);
            }
        }

        #[test]
        fn gates_at_the_limits_are_no_trouble(
            gates in proptest::collection::vec((-FARTHEST..FARTHEST, -FARTHEST..=FARTHEST, -FARTHEST..=FARTHEST), 0..20),
        ) {
            let mut gates: Vec<Gate> =
                gates.iter().map(|&(at, a, b)| Gate { at, low: a.min(b), high: a.max(b) }).collect();
            gates.sort_by_key(|g| g.at);
            gates.dedup_by_key(|g| g.at);
            gates.retain(|g| g.at > -FARTHEST);
            let bends = line((-FARTHEST, FARTHEST), &gates, (FARTHEST, -FARTHEST));
            prop_assert!(bends.len() <= gates.len() + 2);
        }
    }
}
