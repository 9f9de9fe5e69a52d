//! What recording costs a rank: processor time of the recorder's own work, estimated so that it does not depend on what else
//! the machine does.
//!
//! Calls are many and cheap: one in some sixty, at distances drawn at random, is timed by the clock that its own times come from, from
//! where it enters the recorder to where it leaves it ([`crate::inside`]), without the program's part of it, and stands for those since
//! the one before. A rank's first calls are timed more often: they differ. One that takes longer than such
//! calls do has lost its processor, and is thrown away. What is rare is measured each time: a stack that is walked by the clock, and what
//! is dear (a chunk of exact times, a snapshot, begin and end) by the thread's processor time, which calls and stacks are too
//! short for: reading it takes as long. What the program loses to caches that it finds changed cannot be told apart from its own
//! work.

use crate::clock::processor_time;
use st_model::num::{narrow, saturate};

/// Longest time that a sample may take, ns: far above what calls need that do nothing rare, far below a scheduler's slice.
const LONGEST: i64 = 100_000;

/// Distances between samples: at least this many calls, and a random number below [`SPREAD`] more; at first no more than an eighth of the
/// calls so far.
const CLOSEST: u64 = 32;
const SPREAD: u64 = 64;
const FIRST: u64 = 8;

/// The cost so far.
#[derive(Debug)]
pub(crate) struct Cost {
    /// State of the generator of distances.
    random: u64,
    /// Calls up to the last one that was timed; of these, those that samples stand for which count; and what the samples have taken, each
    /// as often as there are calls that it stands for, ns.
    calls: u64,
    known: i64,
    ns: i64,
    /// What was measured each time: processor time, ns, and time on the clock for what is done within calls.
    measured: i64,
    dear: i64,
}

/// A call that is timed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// Calls of its thread since the sample before, itself included; 0 if none is being timed.
    calls: u32,
    /// When it came, ns.
    arrived: i64,
    /// [`Cost::dear`] at that time.
    dear: i64,
}

/// Readings before something dear.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    processor: i64,
    clock: i64,
}

impl Default for Cost {
    fn default() -> Self {
        Self { random: 0x9E37_79B9_7F4A_7C15, calls: 0, known: 0, ns: 0, measured: 0, dear: 0 }
    }
}

impl Cost {
    /// A call has come at `now` that is timed, so many after the last one of its thread.
    pub(crate) fn arrives(&mut self, calls: u32, now: i64) -> Sample {
        self.calls += u64::from(calls);
        Sample { calls, arrived: now, dear: self.dear }
    }

    /// How many calls it is to the next that is timed.
    pub(crate) fn distance(&mut self) -> u32 {
        // Xorshift (Marsaglia 2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        narrow((CLOSEST + self.random % SPREAD).min(1 + self.calls / FIRST))
    }

    /// A call that is timed has been recorded at `now`; of its time `other` is not the recorder's, ns.
    pub(crate) fn leaves(&mut self, sample: Sample, now: i64, other: i64) {
        let took = now - sample.arrived - other - (self.dear - sample.dear);
        if took <= LONGEST {
            self.known += i64::from(sample.calls);
            self.ns += took.max(0) * i64::from(sample.calls);
        }
    }

    /// Something dear begins within a call; `now` is the clock's reading.
    pub(crate) fn before(now: i64) -> Before {
        Before { processor: processor_time(), clock: now }
    }

    /// And has ended.
    pub(crate) fn after(&mut self, before: Before, now: i64) {
        self.measured += processor_time() - before.processor;
        self.dear += now - before.clock;
    }

    /// Something that is rare, but not dear, has taken so long on the clock within a call, ns. If that is longer than it can take,
    /// the thread has lost its processor.
    pub(crate) fn brief(&mut self, ns: i64) {
        self.measured += ns.clamp(0, LONGEST);
        self.dear += ns;
    }

    /// Adds what was measured outside of calls, ns of processor time.
    pub(crate) fn add(&mut self, ns: i64) {
        self.measured += ns;
    }

    /// Processor time of all that was done, ns; `calls` are those of the calling thread since its last sample.
    pub(crate) fn total(&self, calls: u32) -> i64 {
        let all = i128::from(self.calls) + i128::from(calls);
        let of_calls = saturate(all * i128::from(self.ns) / i128::from(self.known.max(1)));
        self.measured.saturating_add(of_calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes calls whose own work takes `ns(i)`, and that lose their processor for 3 ms where `lost(i)`.
    fn run(calls: i64, ns: impl Fn(i64) -> i64, lost: impl Fn(i64) -> bool) -> i64 {
        let mut cost = Cost::default();
        let (mut clock, mut since, mut left) = (0, 0, 0);
        for i in 0..calls {
            since += 1;
            let sample = (left == 0).then(|| {
                let sample = cost.arrives(std::mem::take(&mut since), clock);
                left = cost.distance();
                sample
            });
            left -= 1;
            let real = 10_000 + i % 7;
            clock += real + ns(i) + if lost(i) { 3_000_000 } else { 0 };
            if let Some(sample) = sample {
                cost.leaves(sample, clock, real);
            }
        }
        cost.total(since)
    }

    #[test]
    fn samples_stand_for_all_calls() {
        // A loop of 64 calls, one of which is dearer: samples at equal distances would always see the same one.
        let of = |i: i64| if i % 64 == 5 { 7_400 } else { 1_000 };
        let found = run(1_000_000, of, |_| false);
        assert!((1_000_000_000..1_200_000_000).contains(&found), "{found}");
    }

    #[test]
    fn first_calls_do_not_stand_for_later_ones() {
        // 1,000 calls that take long, and many that do not.
        let found = run(1_000_000, |i| if i < 1_000 { 50_000 } else { 100 }, |_| false);
        assert!((140_000_000..160_000_000).contains(&found), "{found}");
        assert_eq!(run(3, |_| 700, |_| false), 2_100);
    }

    #[test]
    fn who_loses_the_processor_does_not_count() {
        let found = run(1_000_000, |_| 1_000, |i| i % 997 == 0);
        assert!((999_000_000..=1_000_000_000).contains(&found), "{found}");
    }

    #[test]
    fn what_is_dear_is_not_sampled_too() {
        let mut cost = Cost::default();
        let sample = cost.arrives(1, 5);
        let before = Cost::before(100);
        cost.after(before, 90_000_100);
        cost.leaves(sample, 90_000_505, 300);
        let measured = cost.measured;
        assert!((0..10_000_000).contains(&measured), "{measured}");
        assert_eq!(cost.total(0) - measured, 200);
    }

    #[test]
    fn what_is_brief_counts_once_and_no_longer_than_it_can_take() {
        let mut cost = Cost::default();
        let sample = cost.arrives(1, 0);
        cost.brief(4_000);
        cost.leaves(sample, 5_000, 300);
        assert_eq!((cost.measured, cost.total(0)), (4_000, 4_700));
        cost.brief(3_000_000);
        assert_eq!(cost.measured, 4_000 + LONGEST);
        cost.brief(-5);
        assert_eq!(cost.measured, 4_000 + LONGEST);
    }
}
