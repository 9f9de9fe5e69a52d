//! When what all ranks do at intervals is due next, counted in collective operations.

use st_model::num::saturate;

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
    /// How many operations the ranks let pass at most.
    most: i64,
    /// When it was last done, ns.
    last: i64,
    /// When the ranks met last, ns, and after how many operations.
    met: (i64, i64),
}

impl Pace {
    /// It counts as done now, before all operations.
    pub(super) fn new(interval: Option<i64>, most: i64, now: i64) -> Self {
        Self { interval: interval.unwrap_or(0), most, last: now, met: (now, 0) }
    }

    /// The ranks meet after operation `count`: whether it is due, and after which operation they meet again.
    pub(super) fn after(&mut self, count: i64, now: i64) -> (bool, i64) {
        if self.interval == 0 {
            return (false, OFF);
        }
        let due = now - self.last >= self.interval;
        if due {
            self.last = now;
        }
        let (took, passed) = ((now - self.met.0).max(1), (count - self.met.1).max(1));
        self.met = (now, count);
        // A quarter of what remains, so that a guess which has become wrong is noticed; not ever smaller parts of it.
        let remains = self.last + self.interval - now;
        let wanted = (remains / 4).max(self.interval / 16);
        let step = i128::from(passed) * i128::from(wanted) / i128::from(took);
        let most = passed.saturating_mul(GROWTH).min(self.most);
        let step = saturate::<i64>(step).clamp(1, most);
        (due, count.saturating_add(step))
    }

    /// It took until now: the next one is due an interval later.
    pub(super) fn done(&mut self, now: i64) {
        (self.last, self.met.0) = (now, now);
    }

    /// Whether the last one was two intervals ago or longer.
    pub(super) fn is_overdue(&self, now: i64) -> bool {
        self.interval > 0 && now - self.last >= 2 * self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations one after the other, each after a time; returns when clocks were compared, and how often ranks met.
    fn run(interval: i64, most: i64, times: impl Iterator<Item = i64>) -> (Vec<i64>, usize) {
        let mut pace = Pace::new(Some(interval), most, 0);
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
        let (compared, met) = run(1_000_000_000, OFF, std::iter::repeat_n(10_000, 2_000_000));
        assert!((17..=20).contains(&compared.len()), "{compared:?}");
        assert!(compared.windows(2).all(|w| (1_000_000_000..1_200_000_000).contains(&(w[1] - w[0]))));
        assert!(met < 20 * 20, "{met}");
        // Operations that are longer apart than the interval: after each of them.
        let (compared, met) = run(1_000, OFF, std::iter::repeat_n(5_000, 50));
        assert_eq!((compared.len(), met), (50, 50));
    }

    #[test]
    fn a_program_that_becomes_slower_is_compared_late_once() {
        // After a second, operations take a thousand times as long.
        let times = || std::iter::repeat_n(1_000, 1_000_000).chain(std::iter::repeat_n(1_000_000, 400_000));
        let (compared, _) = run(1_000_000_000, OFF, times());
        let late = compared.windows(2).map(|w| w[1] - w[0]).max();
        // What was guessed before the change took a quarter of an interval, and takes 250 s; after that all is well.
        assert!(late < Some(300_000_000_000), "{compared:?}");
        assert!(compared.windows(2).rev().take(50).all(|w| w[1] - w[0] < 1_200_000_000), "{compared:?}");
        // Or only as many operations later as are let pass at most.
        let (compared, met) = run(1_000_000_000, 1_000, times());
        assert!(compared.windows(2).all(|w| w[1] - w[0] < 2_300_000_000), "{compared:?}");
        assert!(met < 10_000, "{met}");
    }

    #[test]
    fn without_an_interval_never() {
        let mut pace = Pace::new(None, OFF, 0);
        assert_eq!(pace.after(1, 5), (false, OFF));
        assert!(!pace.is_overdue(i64::MAX));
    }

    #[test]
    fn what_takes_longer_than_the_interval_is_not_due_at_once_again() {
        let mut pace = Pace::new(Some(100), OFF, 0);
        assert!(pace.after(1, 150).0);
        pace.done(900);
        assert_eq!((pace.after(2, 950).0, pace.is_overdue(1_099)), (false, false));
        assert!(pace.is_overdue(1_100) && pace.after(3, 1_000).0);
    }
}
