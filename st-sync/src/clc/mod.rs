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
mod outside;

use std::sync::Mutex;

use st_tool::transport::Gone;
use st_trace::graph::{Graph, Latency};

use crate::team::Team;

pub use backward::{REACH, WORK};

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
    jumps: Vec<Vec<Jump>>,
    /// Jumps of all processes.
    detected: u64,
    largest: i64,
    /// All ranks end within a twentieth of their duration of their measured end.
    settled: bool,
    circular: u64,
}

/// Corrects the points of every stream of a graph that this process has, in place. `measured` hands out a stream's points
/// again: they are needed for every further pass. Points of a stream must not decrease. In several processes all do the
/// same, each with its own streams' points; those of others' streams are empty.
///
/// The result depends neither on the number of threads nor on that of processes.
///
/// *Cost:* O(points + edges) per pass, beside sorting nothing; one word per message and two per member of a collective
/// operation.
///
/// # Errors
///
/// If another process is gone; alone never.
pub fn correct(
    graph: &Graph,
    times: Vec<Vec<i64>>,
    options: &Options,
    measured: impl Fn(usize) -> Vec<i64>,
    team: &mut Team<'_>,
) -> Result<(Vec<Vec<i64>>, Outcome), Gone> {
    let mut times: Vec<Mutex<Vec<i64>>> = times.into_iter().map(Mutex::new).collect();
    let again = |times: &mut Vec<Mutex<Vec<i64>>>| {
        for (i, t) in times.iter_mut().enumerate() {
            *unlocked(t) = measured(i);
        }
    };
    let exchange = exchange::Exchange::new(graph);
    let mut best: Option<(i64, i64)> = None;
    let mut last = None;
    let mut passes = 0;
    for gamma in schedule(options) {
        if passes > 0 {
            again(&mut times);
        }
        passes += 1;
        let pass = forward::forward(graph, &exchange, &mut times, options, gamma, team)?.of_all(team)?;
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
        again(&mut times);
        pass = forward::forward(graph, &exchange, &mut times, options, kept, team)?.of_all(team)?;
    }
    if pass.detected > 0 {
        backward::backward(graph, &exchange, &mut times, &pass.jumps, options, team)?;
    }
    let outcome = Outcome {
        gamma: kept,
        passes,
        detected: pass.detected,
        largest: pass.largest,
        circular: pass.circular,
    };
    Ok((times.into_iter().map(|t| t.into_inner().unwrap_or_else(|e| e.into_inner())).collect(), outcome))
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

fn unlocked<T>(m: &mut Mutex<T>) -> &mut T {
    m.get_mut().unwrap_or_else(|e| e.into_inner())
}
