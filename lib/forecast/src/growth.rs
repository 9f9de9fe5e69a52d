//! How bytes go on to grow that were so many after an eighth of the run, a quarter, a half, and nearly all of it.
//!
//! The numbers in here are what traces of the kernels showed, of runs that were four and sixteen times as long: see the table in
//! `tests/it/forecast.rs` of st-stat.

use super::again::{Points, SEEN};

/// Bytes: what is expected, and between what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bytes {
    /// At least.
    pub least: f64,
    /// As expected.
    pub likely: f64,
    /// At most.
    pub most: f64,
}

impl Bytes {
    pub(super) fn of(n: f64) -> Self {
        Self { least: n, likely: n, most: n }
    }

    /// So many times this: at least, as expected, and at most.
    pub(super) fn by(n: f64, [least, likely, most]: [f64; 3]) -> Self {
        Self { least: n * least, likely: n * likely, most: n * most }
    }
}

/// What a run becomes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Longer {
    /// How many times as long it takes.
    pub(super) times: f64,
    /// What the points are multiplied with: they are those of some ranks.
    pub(super) scale: f64,
}

impl Longer {
    pub(super) fn doublings(self) -> f64 {
        self.times.log2()
    }

    /// What is added to all, where so much was added from the half of what was seen to its end and each call adds as much.
    fn linear(self, last: f64) -> f64 {
        last.max(0.0) * (self.times - 1.0) / (SEEN / 2.0) * self.scale
    }
}

/// What was added between points.
fn steps([eighth, quarter, half, end]: Points) -> [f64; 3] {
    [quarter - eighth, half - quarter, end - half]
}

/// What the structure becomes: what repeats takes no more, whatever the run; what does not takes its bytes with each call, or the
/// fewer the better its patterns are known.
pub(super) fn structure(now: f64, points: Points, to: Longer) -> (Bytes, &'static str) {
    let [first, second, last] = steps(points);
    // What the last step would be by each of them, if calls add as much.
    let [by_first, by_second] = [4.0 * first, 2.0 * second];
    let least_of = by_first.min(by_second).min(last);
    let (end, slack) = (points[3], 8.0 + 0.02 * now);
    let noise = (0.035 * end).max(24.0);
    if last <= noise && second <= 2.0 * noise {
        let most = now + slack + 2.0 * to.doublings() + to.linear(least_of);
        return (Bytes { least: (now - slack).max(0.0), likely: now, most }, "it has stopped growing");
    }
    let slope = last.max(f64::midpoint(last, by_second.min(3.0 * last.max(noise))));
    let quickens = last > 1.15 * second && last > 1.15 * first && second > 0.0 && first > 0.0;
    if quickens {
        let part = if end > 1_000.0 { 0.85 } else { 0.65 };
        let least = now - slack + 0.38 * to.linear(least_of);
        let (likely, most) = (now + part * to.linear(slope), now + 1.15 * to.linear(slope) + slack);
        return (
            Bytes { least: least.clamp(0.0, likely), likely, most },
            "it grows with the number of calls",
        );
    }
    let (likely, most) = (now + 0.25 * to.linear(slope), now + 1.1 * to.linear(slope) + slack);
    (
        Bytes { least: (now - slack).max(0.0), likely, most },
        "the run is too short to tell whether it goes on to grow",
    )
}

/// What distributions become that are kept in buckets: each step of twice the time meets fewer new durations.
pub(super) fn sketches(now: f64, points: Points, to: Longer) -> (Bytes, &'static str) {
    let [_, second, last] = steps(points);
    let second = second.max(0.0);
    let most = if last > 2.0 * second { f64::midpoint(last, second) } else { last.max(second) };
    let least = last.clamp(0.0, second);
    let (each, end) = (to.doublings() * to.scale, points[3]);
    let bytes = Bytes {
        least: (0.98 * now - 16.0).max(0.0),
        likely: now + each * (0.6 * least + 0.01 * end),
        most: now + each * (1.2 * most + 0.06 * end) + 16.0,
    };
    (bytes, "new durations become rare")
}

/// What exact times become, of so many columns: what repeats in them is found, and coders come to know what is usual, so that calls
/// take less the more of them there are; a column takes some of its bytes only once.
pub(super) fn times(now: f64, points: Points, columns: f64, to: Longer) -> (Bytes, &'static str) {
    let [_, second, last] = steps(points);
    let learning = 1.0 / (1.0 + now / columns / 350.0);
    let part = (1.0 - 0.36 * learning - 0.012 * to.doublings()).max(0.3);
    let all = to.linear(last);
    let repeats = last <= 1.3 * second;
    let least = if repeats { 0.0 } else { (part - 0.22 * learning - 0.06).max(0.0) * all };
    let more = if repeats { to.linear(last.max(1.2 * second)) } else { all };
    let bytes = Bytes {
        least: (now + least - 8.0).max(0.0),
        likely: now + part * all,
        most: now + (part + 0.12 + 0.12 * learning) * 1.02 * more + 16.0,
    };
    (bytes, if repeats { "times repeat" } else { "each call takes its bytes" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EIGHT: Longer = Longer { times: 8.0, scale: 1.0 };

    #[test]
    fn what_has_stopped_growing_stays() {
        let (then, why) = structure(1_000.0, [990.0, 1_005.0, 998.0, 1_000.0], EIGHT);
        assert!((then.likely - 1_000.0).abs() < 1.0 && then.most < 1_050.0, "{then:?}");
        assert_eq!(why, "it has stopped growing");
    }

    #[test]
    fn what_grows_with_calls_goes_on_to() {
        // A constant part of 1,000 bytes, and 9,000 at 0.9 of the run.
        let points = [2_125.0, 3_250.0, 5_500.0, 10_000.0];
        for (then, _) in [structure(11_000.0, points, EIGHT), times(11_000.0, points, 1.0, EIGHT)] {
            assert!(then.least < 81_000.0 && 81_000.0 < then.most, "{then:?}");
            assert!(then.least < then.likely && then.likely < then.most && then.most < 100_000.0, "{then:?}");
        }
        // What was added at first only says little.
        let (then, why) = structure(1_000.0, [400.0, 800.0, 860.0, 930.0], EIGHT);
        assert!(then.least < 1_000.0 && then.most > 1_500.0 && why.contains("too short"), "{then:?} {why}");
    }

    #[test]
    fn times_that_repeat_do_not_grow_with_calls() {
        let (then, why) = times(300.0, [270.0, 280.0, 290.0, 300.0], 1.0, EIGHT);
        assert!(then.least < 301.0 && then.most < 700.0, "{then:?}");
        assert_eq!(why, "times repeat");
    }
}
