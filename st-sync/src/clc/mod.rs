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
mod exchange;
mod forward;
mod lanes;
mod moves;
mod outside;
mod points;

use st_tool::transport::Gone;
use st_trace::graph::{Graph, Latency};

use crate::team::Team;

pub use backward::{REACH, WORK};
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
pub struct Outcome {
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

/// Finds by how much the points of every stream of a graph are to be moved. In several processes all do the same, each
/// for its own streams; those of others have no points.
///
/// The result depends neither on the number of threads nor on that of processes.
///
/// *Cost:* O(points + edges) per pass, beside sorting nothing. Memory: one word per message, two per member of a collective
/// operation, what [`Moves`] take; where something is moved, the points of one stream per thread.
///
/// # Errors
///
/// If another process is gone; alone never.
pub fn correct(
    graph: &Graph,
    points: &(impl Points + ?Sized),
    options: &Options,
    team: &mut Team<'_>,
) -> Result<(Vec<Moves>, Outcome), Gone> {
    let exchange = exchange::Exchange::new(graph);
    let mut best: Option<(i64, i64)> = None;
    let mut last = None;
    let mut passes = 0;
    for gamma in schedule(options) {
        passes += 1;
        drop(last.take());
        let pass = forward::forward(graph, &exchange, points, options, gamma, team)?.of_all(team)?;
        let (largest, settled) = (pass.largest, pass.settled);
        last = Some((gamma, pass));
        if best.is_some_and(|(_, b)| largest >= b) {
            break;
        }
        best = Some((gamma, largest));
        if settled || largest == 0 {
            break;
        }
    }
    let (gamma, mut pass) = last.unwrap_or((GAMMA_UNITS, Pass::default()));
    let kept = best.map_or(gamma, |(g, _)| g);
    if kept != gamma {
        drop(pass);
        pass = forward::forward(graph, &exchange, points, options, kept, team)?.of_all(team)?;
    }
    let mut moves = std::mem::take(&mut pass.moves);
    if pass.detected > 0 {
        backward::backward(graph, &exchange, points, &mut moves, &pass.jumps, options, team)?;
    }
    let outcome = Outcome {
        gamma: kept,
        passes,
        detected: pass.detected,
        largest: pass.largest,
        circular: pass.circular,
    };
    Ok((moves, outcome))
}

impl Pass {
    /// With what the other processes found.
    fn of_all(mut self, team: &mut Team<'_>) -> Result<Self, Gone> {
        let detected: usize = self.jumps.iter().map(Vec::len).sum();
        let mine = [i64::try_from(detected).unwrap_or(i64::MAX), self.largest, i64::from(self.settled)];
        for words in team.all(&mine)? {
            let [detected, largest, settled] = words[..] else { return Err(Gone) };
            self.detected += detected.unsigned_abs();
            self.largest = self.largest.max(largest);
            self.settled &= settled != 0;
        }
        Ok(self)
    }
}

/// 0.99999, 0.9999, 0.999, then nine tenths of the one before (Scalasca's schedule).
fn schedule(options: &Options) -> Vec<i64> {
    if let Some(gamma) = options.gamma {
        return vec![gamma];
    }
    let mut all = vec![999_990_000, 999_900_000, 999_000_000];
    while all.len() < options.passes as usize {
        let next = all.last().map_or(0, |g| g / 10 * 9);
        all.push(next);
    }
    all.truncate(options.passes.max(1) as usize);
    all
}
