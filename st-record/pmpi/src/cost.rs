//! What recording costs a rank: processor time of the recorder's own work, estimated so that it does not depend on what else
//! the machine does.
//!
//! Calls are many and cheap: of each [`CallPath`] one in some sixty, at distances drawn at random, is timed by the clock that
//! its own times come from, without the program's part of it, and stands for the others. One that takes longer than such calls
//! do has lost its processor, and is thrown away. What is rare is measured each time: a stack that is walked by the clock, and what
//! is dear (a chunk of exact times, a snapshot, begin and end) by the thread's processor time, which calls and stacks are too
//! short for: reading it takes as long. What the program loses to caches that it finds changed cannot be told apart from its own
//! work.

use crate::clock::processor_time;
use st_model::num::{narrow, saturate};

/// Longest time that a sample may take, ns: far above what calls need that do nothing rare, far below a scheduler's slice.
const LONGEST: i64 = 100_000;

/// Distances between samples: at least this many calls, and a random number below [`SPREAD`] more.
const CLOSEST: u32 = 32;
const SPREAD: u32 = 64;

/// What a call has to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallPath {
    /// Read its inputs, and enter them.
    Read,
    /// Be compared with the one of the loop in progress.
    Expected,
}

/// A call that is timed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    kind: CallPath,
    /// When it came, ns.
    arrived: i64,
    /// [`Cost::dear`] at that time.
    dear: i64,
}

/// Calls of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    /// To come until the next sample.
    left: u32,
    /// All so far, and those.
    planned: u64,
    /// Samples that count, and the sum of their times, ns.
    samples: i64,
    ns: i64,
}

/// The cost so far.
#[derive(Debug)]
pub(crate) struct Cost {
    calls: [Calls; 2],
    /// State of the generator of distances.
    random: u64,
    /// What was measured each time: processor time, ns, and time on the clock for what is done within calls.
    measured: i64,
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
        Self { calls: Default::default(), random: 0x9E37_79B9_7F4A_7C15, measured: 0, dear: 0 }
    }
}

impl Cost {
    /// A call has come: whether it is timed. `now` reads the clock.
    #[inline]
    pub(crate) fn arrives(&mut self, kind: CallPath, now: impl FnOnce() -> i64) -> Option<Sample> {
        let calls = &mut self.calls[kind as usize];
        if calls.left > 0 {
            calls.left -= 1;
            return None;
        }
        self.plan(kind);
        Some(Sample { kind, arrived: now(), dear: self.dear })
    }

    /// Draws the distance to the next sample.
    #[cold]
    fn plan(&mut self, kind: CallPath) {
        // Xorshift (Marsaglia 2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let calls = &mut self.calls[kind as usize];
        calls.left = CLOSEST + narrow::<u32>(self.random % u64::from(SPREAD));
        calls.planned += u64::from(calls.left) + 1;
    }

    /// A call that is timed has been recorded at `now`; the program's part of it took `real` ns.
    pub(crate) fn leaves(&mut self, sample: Sample, now: i64, real: i64) {
        let took = now - sample.arrived - real - (self.dear - sample.dear);
        if took <= LONGEST {
            let calls = &mut self.calls[sample.kind as usize];
            calls.samples += 1;
            calls.ns += took.max(0);
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

    /// Processor time of all that was done, ns.
    pub(crate) fn total(&self) -> i64 {
        let of = |c: &Calls| {
            let made = i128::from(c.planned.saturating_sub(u64::from(c.left)));
            saturate(made * i128::from(c.ns) / i128::from(c.samples.max(1)))
        };
        self.calls.iter().map(of).fold(self.measured, i64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes calls whose own work takes `ns(i)`, and that lose their processor for 3 ms where `lost(i)`.
    fn run(calls: i64, ns: impl Fn(i64) -> i64, lost: impl Fn(i64) -> bool) -> Cost {
        let mut cost = Cost::default();
        let mut clock = 0;
        for i in 0..calls {
            let sample = cost.arrives(CallPath::Read, || clock);
            let real = 10_000 + i % 7;
            clock += real + ns(i) + if lost(i) { 3_000_000 } else { 0 };
            if let Some(sample) = sample {
                cost.leaves(sample, clock, real);
            }
        }
        cost
    }

    #[test]
    fn samples_stand_for_all_calls() {
        // A loop of 64 calls, one of which is dearer: samples at equal distances would always see the same one.
        let of = |i: i64| if i % 64 == 5 { 7_400 } else { 1_000 };
        let found = run(1_000_000, of, |_| false).total();
        assert!((1_000_000_000..1_200_000_000).contains(&found), "{found}");
    }

    #[test]
    fn who_loses_the_processor_does_not_count() {
        let found = run(1_000_000, |_| 1_000, |i| i % 997 == 0).total();
        assert!((999_000_000..=1_000_000_000).contains(&found), "{found}");
    }

    #[test]
    fn what_is_dear_is_not_sampled_too() {
        let mut cost = Cost::default();
        let sample = cost.arrives(CallPath::Expected, || 5).unwrap();
        let before = Cost::before(100);
        cost.after(before, 90_000_100);
        cost.leaves(sample, 90_000_505, 300);
        let measured = cost.measured;
        assert!((0..10_000_000).contains(&measured), "{measured}");
        assert_eq!(cost.total() - measured, 200);
    }

    #[test]
    fn what_is_brief_counts_once_and_no_longer_than_it_can_take() {
        let mut cost = Cost::default();
        let sample = cost.arrives(CallPath::Read, || 0).unwrap();
        cost.brief(4_000);
        cost.leaves(sample, 5_000, 300);
        assert_eq!((cost.measured, cost.total()), (4_000, 4_700));
        cost.brief(3_000_000);
        assert_eq!(cost.measured, 4_000 + LONGEST);
        cost.brief(-5);
        assert_eq!(cost.measured, 4_000 + LONGEST);
    }
}
