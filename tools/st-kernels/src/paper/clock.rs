//! Simulated time: what calls cost on a plausible cluster.
//!
//! A message costs a latency and its bytes over a bandwidth, both better within a node; a collective operation costs
//! the same once per level of a binary tree. A call's own cost varies a little, by a number that follows from seed,
//! rank and position. Waiting for others is modelled only where a kernel says so, unless it is planned ([`super::Plan`]).
//!
//! What is recorded are times of the node's clock, which is ahead of the first node's or behind it and gains or loses a
//! little; a comparison with rank 0 tells by how much, not exactly (Becker et al. 2008, section 1: about 1 ms).

use st_model::columns::{Comparison, Offset};
use st_model::num::{Exact, narrow, saturate};

use super::Plan;
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

/// The clocks of nodes are at most so many ns ahead of the first one's or behind it when the program starts, and gain or lose
/// at most so many in a second.
const APART: i64 = 1_000_000;
const DRIFT: i64 = 5_000;
/// A comparison is wrong by at most so many ns.
const WRONG: i64 = 200;

/// The clock of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeClock {
    key: u64,
    ahead: i64,
    /// ns per second.
    drift: i64,
}

impl NodeClock {
    pub(super) fn new(seed: u64, rank: i64) -> Self {
        let key = mix(mix(seed ^ 0x6e6f_6465) ^ (rank / NODE).cast_unsigned());
        if rank < NODE {
            return Self { key, ahead: 0, drift: 0 };
        }
        Self { key, ahead: within(key, APART), drift: within(mix(key), DRIFT) }
    }

    /// What it shows when so many ns have passed.
    pub(super) fn shows(self, now: i64) -> i64 {
        // Wide division takes long, and is needed after some hundred hours.
        let gained = match now.checked_mul(self.drift) {
            Some(product) => product / 1_000_000_000,
            None => saturate(i128::from(now) * i128::from(self.drift) / 1_000_000_000),
        };
        now.saturating_add(self.ahead).saturating_add(gained)
    }

    /// What comparing it with rank 0's clock tells at some moments; nothing on rank 0's node, where it is the same clock.
    pub(super) fn compared(self, moments: &[i64]) -> Comparison {
        if self.ahead == 0 && self.drift == 0 {
            return Comparison::default();
        }
        let point = |(n, now): (u64, &i64)| {
            let local = self.shows(*now);
            Offset { local, offset: now - local + within(mix(self.key ^ n), WRONG), error: WRONG }
        };
        Comparison { points: (1..).zip(moments).map(point).collect(), near: NEAR.0, far: FAR.0 }
    }
}

/// A number of at most this size, with either sign.
fn within(key: u64, most: i64) -> i64 {
    narrow::<i64>(key % (2 * most).unsigned_abs()) - most
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
    /// How many times as long computing takes.
    pace: f64,
    /// Standard deviation of what it takes each time, as a part of it.
    noise: f64,
    /// Computations so far.
    computed: u64,
    /// Calls that wait, the last first, and for how long, if that is planned: then nothing else is waited for.
    planned: Option<Vec<(u64, i64)>>,
}

impl Clock {
    pub(super) fn new(seed: u64, rank: i64) -> Self {
        let key = mix(seed ^ mix(rank.cast_unsigned()));
        Self { rank, key, now: 0, calls: 0, late: 0, pace: 1.0, noise: 0.0, computed: 0, planned: None }
    }

    /// The clock of a rank that computes as a plan says, and waits as it says.
    pub(super) fn planned(self, plan: &Plan, rank: u32) -> Self {
        let planned = plan.waits(rank).map(|waits| waits.iter().rev().copied().collect());
        let pace = plan.pace(rank) * plan.noise.mul_add(deviations(mix(self.key ^ NOISE)), 1.0);
        Self { pace, noise: plan.noise, planned, ..self }
    }

    /// Now, in ns.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// The clock of a thread that begins now.
    pub(super) fn thread(&self, thread: usize) -> Self {
        let key = mix(self.key ^ thread.to_u64());
        Self { key, calls: 0, late: 0, ..self.clone() }
    }

    pub(super) fn wait_until(&mut self, then: i64) {
        self.now = self.now.max(then);
    }

    pub(super) fn compute(&mut self, seconds: f64) {
        self.computed += 1;
        let noise = self.noise * deviations(mix(self.key ^ NOISE ^ self.computed.rotate_left(32)));
        self.now += nanoseconds(seconds * self.pace * (1.0 + noise));
    }

    pub(super) fn expect_wait(&mut self, seconds: f64) {
        self.late = if self.planned.is_none() { nanoseconds(seconds) } else { 0 };
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
        let vary = narrow::<i64>(mix(self.key ^ self.calls) % 32);
        let late = if cost == Cost::Local { 0 } else { std::mem::take(&mut self.late) };
        let planned = self.planned.as_mut().and_then(|p| p.pop_if(|(call, _)| *call == self.calls));
        let late = late + planned.map_or(0, |(_, wait)| wait);
        self.now = enter + LOCAL + own + own * vary / 256 + late;
        (enter, self.now)
    }
}

/// Makes numbers of noise others than those by which calls vary.
const NOISE: u64 = 0x6e6f_6973_6500_0000;

/// How many standard deviations from its mean something is: a sum of four numbers that are evenly spread, which is normal but for
/// its ends (at most 2·√3), and the same on every machine.
fn deviations(key: u64) -> f64 {
    let quarters = [0, 16, 32, 48].map(|shift| narrow::<u32>((key >> shift) & 0xffff));
    let sum: f64 = quarters.into_iter().map(f64::from).sum();
    (sum / 65_535.0 - 2.0) * 3.0f64.sqrt()
}

#[expect(clippy::cast_possible_truncation, reason = "saturates; options are bounded far below")]
fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_clocks_of_their_own() {
        for node in 1..50 {
            let clock = NodeClock::new(7, node * NODE + 3);
            assert_eq!(clock.shows(99), NodeClock::new(7, node * NODE).shows(99));
            let moments = [2_000, 5_000_000_000];
            let found = clock.compared(&moments).points;
            for (p, now) in found.iter().zip(moments) {
                assert!((p.local + p.offset - now).abs() <= p.error && p.offset.abs() <= APART + 6 * DRIFT);
            }
            assert!(found[0].local < found[1].local);
        }
        assert_eq!(NodeClock::new(7, 5).shows(99), 99);
        assert!(NodeClock::new(7, 5).compared(&[99]).is_empty());
    }

    #[test]
    fn noise_has_the_deviation_that_is_asked_for() {
        let plan = Plan { noise: 0.05, ..Plan::default() };
        let took = |rank: u32| {
            let mut clock = Clock::new(3, rank.into()).planned(&plan, rank);
            (0..100).map(|_| clock.compute(1e-3)).for_each(drop);
            st_model::num::float(clock.now().unsigned_abs().into()) / 1e8
        };
        let all: Vec<f64> = (0..1000).map(took).collect();
        let mean = all.iter().sum::<f64>() / 1e3;
        let deviation = (all.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / 1e3).sqrt();
        // A hundred computations of a rank take away nine tenths of what each of them varies by.
        assert!((mean - 1.0).abs() < 0.01 && (0.045..0.056).contains(&deviation), "{mean} {deviation}");
        let mut clock = Clock::new(3, 5).planned(&plan, 5);
        let each: Vec<i64> = (0..1000)
            .map(|_| (clock.now(), clock.compute(1e-3), clock.now()))
            .map(|(a, (), b)| b - a)
            .collect();
        assert!(each.iter().max() > each.iter().min().map(|least| least + least / 5).as_ref());
    }

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
