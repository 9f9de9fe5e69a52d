//! Simulated time: what calls cost on a plausible cluster.
//!
//! A message costs a latency and its bytes over a bandwidth, both better within a node; a collective operation costs
//! the same once per level of a binary tree. A call's own cost varies a little, by a number that follows from seed,
//! rank and position. Waiting for others is modelled only where a kernel says so.

use crate::chance::mix;

/// Ranks per node.
pub(super) const NODE: i64 = 8;

/// Nanoseconds from one call to the next, and of any call by itself.
const GAP: i64 = 60;
const LOCAL: i64 = 40;
/// Latency in ns, and bytes per ns, within a node and between nodes.
const NEAR: (i64, i64) = (400, 8);
const FAR: (i64, i64) = (1_800, 3);
/// Start and end of MPI.
const LAUNCH: i64 = 20_000_000;

/// What a call has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cost {
    /// Start or end MPI.
    Launch,
    /// Nothing that others are needed for.
    Local,
    /// Wait for a message of so many bytes from a rank of the world.
    Message { peer: i64, bytes: i64 },
    /// Take part in an operation of so many ranks, each with so many bytes.
    Collective { ranks: i64, bytes: i64 },
}

/// A rank's clock, in ns from its start.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    rank: i64,
    key: u64,
    now: i64,
    calls: u64,
    /// What the next wait takes beyond its own cost.
    late: i64,
}

impl Clock {
    pub(super) fn new(seed: u64, rank: i64) -> Self {
        Self { rank, key: mix(seed ^ mix(rank.cast_unsigned())), now: 0, calls: 0, late: 0 }
    }

    /// Now, in ns.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// The clock of a thread that begins now.
    pub(super) fn thread(&self, thread: usize) -> Self {
        let key = mix(self.key ^ u64::try_from(thread).unwrap_or(0));
        Self { key, calls: 0, late: 0, ..self.clone() }
    }

    pub(super) fn wait_until(&mut self, then: i64) {
        self.now = self.now.max(then);
    }

    pub(super) fn compute(&mut self, seconds: f64) {
        self.now += nanoseconds(seconds);
    }

    pub(super) fn expect_wait(&mut self, seconds: f64) {
        self.late = nanoseconds(seconds);
    }

    /// Seconds, as `MPI_Wtime` tells them.
    pub(super) fn seconds(&self) -> f64 {
        std::time::Duration::from_nanos(self.now.unsigned_abs()).as_secs_f64()
    }

    /// Enter and exit of the next call.
    pub(super) fn call(&mut self, cost: Cost) -> (i64, i64) {
        self.calls += 1;
        let enter = self.now + GAP;
        let own = match cost {
            Cost::Launch => LAUNCH,
            Cost::Local => 0,
            Cost::Message { peer, bytes } => {
                let (latency, bandwidth) = if peer / NODE == self.rank / NODE { NEAR } else { FAR };
                latency + bytes / bandwidth
            }
            Cost::Collective { ranks, bytes } => {
                let levels = i64::from(64 - (ranks.max(1) - 1).leading_zeros());
                let (latency, bandwidth) = if ranks <= NODE { NEAR } else { FAR };
                levels * (latency + bytes / bandwidth)
            }
        };
        let vary = i64::try_from(mix(self.key ^ self.calls) % 32).unwrap_or(0);
        let late = if cost == Cost::Local { 0 } else { std::mem::take(&mut self.late) };
        self.now = enter + LOCAL + own + own * vary / 256 + late;
        (enter, self.now)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "saturates; options are bounded far below")]
fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn farther_and_longer_costs_more() {
        let cost = |c| {
            let (enter, exit) = Clock::new(1, 0).call(c);
            exit - enter
        };
        let near = cost(Cost::Message { peer: 7, bytes: 100 });
        assert!(cost(Cost::Local) < near);
        assert!(near < cost(Cost::Message { peer: 8, bytes: 100 }));
        assert!(near < cost(Cost::Message { peer: 7, bytes: 10_000 }));
        let tree = |ranks| cost(Cost::Collective { ranks, bytes: 8 });
        assert!(tree(1) < tree(2) && tree(16) < tree(1000));
    }

    #[test]
    fn lateness_is_spent_once_and_not_on_local_calls() {
        let mut c = Clock::new(1, 0);
        c.expect_wait(1.0);
        c.call(Cost::Local);
        let (enter, exit) = c.call(Cost::Message { peer: 1, bytes: 0 });
        assert!(exit - enter > 1_000_000_000);
        let (enter, exit) = c.call(Cost::Message { peer: 1, bytes: 0 });
        assert!(exit - enter < 1_000_000);
        c.compute(0.5);
        assert!(c.call(Cost::Local).0 - exit > 500_000_000);
    }
}
