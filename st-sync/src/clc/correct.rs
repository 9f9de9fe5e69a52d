//! Passes forward with one γ after the other, then one backward.

use st_cli::transport::Gone;
use st_match::graph::Graph;
use st_model::num::narrow;

use super::exchange::Exchange;
use super::{Correction, GAMMA_UNITS, Moves, Options, Pass, Points};
use super::{backward, forward};
use crate::team::Team;

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
) -> Result<(Vec<Moves>, Correction), Gone> {
    let exchange = Exchange::new(graph);
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
    let outcome = Correction {
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
        let mine = [narrow(detected), self.largest, i64::from(self.settled)];
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
