//! By when calls end it is seen that they have waited for others to be in MPI.

use super::step::Call;
use super::together::{Bound, Met};
use super::walk::{Pace, Thread};

/// No wait that is seen is shorter: 0.1 ms, ns.
const LEAST: i64 = 100_000;

/// Finds which calls have waited beyond what they must: each thread is where it was recorded.
#[derive(Default, Debug)]
pub(crate) struct Seeing {
    pub(crate) bound: Bound,
    /// When the last other call was entered that completes what the call does that is left.
    until: Option<i64>,
    /// Ends that wait if it has waited.
    ends: Vec<Met<1>>,
}

impl Seeing {
    /// As in the search for waits, it has if it ends soon after the last other one was entered.
    fn leave(&mut self, thread: &Thread<1>) {
        let (ends, until) = (self.ends.drain(..), self.until.take());
        let [since] = thread.clock;
        let seen = |until: &i64| {
            let more = until.saturating_sub(since);
            more >= LEAST && (0..=more / 4).contains(&thread.last.saturating_sub(*until))
        };
        if until.is_some_and(|until| seen(&until)) {
            ends.for_each(|end| self.bound.add(&end));
        }
    }
}

impl Pace<1> for Seeing {
    const TOGETHER: bool = true;

    fn enter(&mut self, thread: &mut Thread<1>, call: &Call) {
        self.leave(thread);
        thread.clock = [call.enter];
    }

    fn end(&mut self, thread: &mut Thread<1>) {
        self.leave(thread);
    }

    fn met(&mut self, _: &mut Thread<1>, met: &Met<1>) {
        self.until = self.until.max(Some(met.at[0]));
        self.ends.push(*met);
    }
}
