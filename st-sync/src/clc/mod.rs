//! The controlled logical clock: times that respect every message, as close to the measured ones as can be.
//!
//! *Forward*, a receive that happens before its message can have arrived is moved to where it can; what follows on the
//! same rank is moved with it and drifts back to the measured time at a rate γ below one. *Backward*, the events before
//! such a jump are stretched towards it, as far as the sends among them allow.
//!
//! Source: Becker, Linford, Rabenseifner, Wolf 2008, section 4. Differences: the step δ is not added between events
//! that tie in the input, so that a trace without violation stays as it is; the bound of a collective operation is the
//! maximum over sums, not the sum over the maximum; the stretching follows the lower convex hull of what the sends
//! allow, which is what the paper's "sub-intervals" come to; and all arithmetic is in integers, γ in units of 1e-9.

mod backward;
mod correct;
mod exchange;
mod forward;
mod moves;
mod outside;
mod points;
mod streams;
mod waiting;
mod workers;

use st_match::graph::Latency;

pub use backward::{REACH, WORK};
pub use correct::correct;
pub use moves::{Iter, Moves};
pub use points::Points;

/// Units of [`Options::gamma`] in one.
pub const GAMMA_UNITS: i64 = 1_000_000_000;

/// Settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Least times of messages.
    pub latency: Latency,
    /// Least time between events that were apart, ns.
    pub delta: i64,
    /// Share of a gap that remains while a rank is ahead of its measured times, in units of 1e-9; `None` tries several.
    pub gamma: Option<i64>,
    /// Most values of γ that are tried.
    pub passes: u32,
    /// Threads.
    pub jobs: usize,
}

impl Default for Options {
    /// δ = 1 ns, at most four values of γ, one thread, messages that take no time.
    fn default() -> Self {
        Self { latency: Latency::default(), delta: 1, gamma: None, passes: 4, jobs: 1 }
    }
}

/// A place where a receive was moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Jump {
    /// The point.
    at: u32,
    /// By how much, beyond what the events before it were moved, ns.
    by: i64,
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Correction {
    /// The γ that was kept, in units of 1e-9.
    pub gamma: i64,
    /// Values of γ that were tried.
    pub passes: u32,
    /// Receives that had to be moved, in the pass that was kept.
    pub detected: u64,
    /// The largest displacement of a point in the forward pass, ns.
    pub largest: i64,
    /// Receives that were left alone because they wait for each other in a circle.
    pub circular: u64,
}

/// One pass forward.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    moves: Vec<Moves>,
    jumps: Vec<Vec<Jump>>,
    /// Jumps of all processes.
    detected: u64,
    largest: i64,
    /// All ranks end within a twentieth of their duration of their measured end.
    settled: bool,
    circular: u64,
}
