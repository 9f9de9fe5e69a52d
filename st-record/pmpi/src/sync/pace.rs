//! When clocks are compared next, counted in collective operations.

/// Never.
pub(super) const OFF: i64 = i64::MAX;

/// How many times as many operations the ranks let pass at most as since they met before.
const GROWTH: i64 = 2;

/// Rank 0's estimate. It guesses from how long the operations took so far; the ranks meet several times per interval, so
/// that a wrong guess costs no more than a part of one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// ns; 0: never.
    interval: i64,
    /// When clocks were last compared, ns.
    compared: i64,
    /// When the ranks met last, ns, and after how many operations.
    met: (i64, i64),
}

impl Pace {
    /// Clocks are being compared now, before all operations.
    pub(super) fn new(interval: Option<i64>, now: i64) -> Self {
        Self { interval: interval.unwrap_or(0), compared: now, met: (now, 0) }
    }

    /// The ranks meet after operation `count`: whether clocks are compared, and after which operation they meet again.
    pub(super) fn after(&mut self, count: i64, now: i64) -> (bool, i64) {
        if self.interval == 0 {
            return (false, OFF);
        }
        let due = now - self.compared >= self.interval;
        if due {
            self.compared = now;
        }
        let (took, passed) = ((now - self.met.0).max(1), (count - self.met.1).max(1));
        self.met = (now, count);
        // A quarter of what remains, so that a guess which has become wrong is noticed; not ever smaller parts of it.
        let remains = self.compared + self.interval - now;
        let wanted = (remains / 4).max(self.interval / 16);
        let step = i128::from(passed) * i128::from(wanted) / i128::from(took);
        let most = passed.saturating_mul(GROWTH);
        let step = i64::try_from(step).unwrap_or(most).clamp(1, most);
        (due, count.saturating_add(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations one after the other, each after a time; returns when clocks were compared, and how often ranks met.
    fn run(interval: i64, times: impl Iterator<Item = i64>) -> (Vec<i64>, usize) {
        let mut pace = Pace::new(Some(interval), 0);
        let (mut now, mut next, mut compared, mut met) = (0, 1, Vec::new(), 0);
        for (count, took) in (1..).zip(times) {
            now += took;
            if count < next {
                continue;
            }
            assert_eq!(count, next);
            met += 1;
            let (due, then) = pace.after(count, now);
            assert!(then > count);
            next = then;
            if due {
                compared.push(now);
            }
        }
        (compared, met)
    }

    #[test]
    fn comparisons_are_an_interval_apart_and_ranks_meet_seldom() {
        // A second, operations of 10 µs for 20 s.
        let (compared, met) = run(1_000_000_000, std::iter::repeat_n(10_000, 2_000_000));
        assert!((17..=20).contains(&compared.len()), "{compared:?}");
        assert!(compared.windows(2).all(|w| (1_000_000_000..1_200_000_000).contains(&(w[1] - w[0]))));
        assert!(met < 20 * 20, "{met}");
        // Operations that are longer apart than the interval: after each of them.
        let (compared, met) = run(1_000, std::iter::repeat_n(5_000, 50));
        assert_eq!((compared.len(), met), (50, 50));
    }

    #[test]
    fn a_program_that_becomes_slower_is_compared_late_once() {
        // After a second, operations take a thousand times as long.
        let times = std::iter::repeat_n(1_000, 1_000_000).chain(std::iter::repeat_n(1_000_000, 400_000));
        let (compared, _) = run(1_000_000_000, times);
        let late = compared.windows(2).map(|w| w[1] - w[0]).max();
        // What was guessed before the change took a quarter of an interval, and takes 250 s; after that all is well.
        assert!(late < Some(300_000_000_000), "{compared:?}");
        assert!(compared.windows(2).rev().take(50).all(|w| w[1] - w[0] < 1_200_000_000), "{compared:?}");
    }

    #[test]
    fn without_an_interval_never() {
        assert_eq!(Pace::new(None, 0).after(1, 5), (false, OFF));
    }
}
