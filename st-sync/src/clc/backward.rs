//! Backward: the events before a jump are stretched towards it.

use st_model::num::saturate;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use st_cli::transport::Gone;
use st_match::graph::{Graph, GraphStep, Op, Positions, at_ops, latest};

use super::exchange::{EMPTY, Exchange};
use super::moves::Moves;
use super::points::Points;
use super::{Jump, Options};
use crate::team::Team;

/// A jump is spread over this many times its height: a slope of 0.01 (Scalasca's).
pub const REACH: i64 = 100;

/// Events that may be visited on average per event of a stream. Only traces whose jumps overlap more than that many
/// times are spread over less than [`REACH`]; it makes the cost linear whatever the trace.
pub const WORK: usize = 256;

/// Even without credit a jump is spread over this many events.
const LEAST: usize = 16;

/// Spreads all jumps. `moves` are those of the forward pass. Between processes times go the way back: those of receives
/// to the senders, and by way of collective operations.
pub(super) fn backward(
    graph: &Graph,
    exchange: &Exchange,
    points: &(impl Points + ?Sized),
    moves: &mut [Moves],
    jumps: &[Vec<Jump>],
    options: &Options,
    team: &mut Team<'_>,
) -> Result<(), Gone> {
    exchange.reset(graph, &team.links);
    let told = |s: usize, moves: &mut Moves| tell(graph, exchange, s, moves.apply(points.of(s)));
    each(moves, options.jobs, told);
    // Receives whose sends are elsewhere; those that stand for leaving a collective operation are among them.
    let received = |step| match step {
        GraphStep::Receive(m) => Some(m),
        _ => None,
    };
    if !team.links.is_alone() {
        let mut out = vec![Vec::new(); team.links.places.len()];
        for place in graph.ops.iter().flatten().filter_map(|op| received(op.step())) {
            if let Some((process, link)) = team.links.route(place)
                && let Some(time) = Exchange::known(exchange.get(place))
            {
                out[process as usize].push((link, time));
            }
        }
        come(exchange, team, out)?;
    }
    let instances = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let bound = || {
            while let Some(i) = graph.instances.get(instances.fetch_add(1, Ordering::Relaxed)) {
                let group = &graph.groups[i.group as usize];
                let slot = |p| exchange.member(i.receiver_slot(group, p));
                latest(
                    i,
                    group,
                    options.latency,
                    |p| Exchange::known(exchange.get(slot(p))),
                    |p, bound| {
                        exchange.set(exchange.member(i.sender_slot(p)), bound.map_or(i64::MAX, |b| b.time));
                    },
                );
            }
        };
        for _ in 1..options.jobs.max(1) {
            scope.spawn(bound);
        }
        bound();
    });
    if !team.links.is_alone() {
        let mut out = vec![Vec::new(); team.links.places.len()];
        for (process, places) in team.links.places.iter().enumerate() {
            for (link, place) in (0u32..).zip(places) {
                let slot = (*place as usize).checked_sub(graph.senders.len());
                if slot.is_some_and(|slot| is_sender(graph, slot)) {
                    out[process].push((link, exchange.get(*place as usize)));
                }
            }
        }
        come(exchange, team, out)?;
    }
    each(moves, options.jobs, |s, moves| {
        if jumps.get(s).is_some_and(|j| !j.is_empty()) {
            let mut times: Vec<i64> = moves.apply(points.of(s)).collect();
            Stretch::new(graph, exchange, s, options).all(&mut times, &jumps[s]);
            *moves = Moves::between(points.of(s), &times);
        }
    });
    Ok(())
}

/// Whether a slot of a collective operation is that of a member that enters it.
fn is_sender(graph: &Graph, slot: usize) -> bool {
    let i = graph.instances.partition_point(|i| i.first as usize <= slot).saturating_sub(1);
    graph
        .instances
        .get(i)
        .is_some_and(|i| slot < i.first as usize + i.sending(&graph.groups[i.group as usize]))
}

/// Swaps times with the other processes, and puts those that come in their places.
fn come(exchange: &Exchange, team: &mut Team<'_>, out: Vec<Vec<(u32, i64)>>) -> Result<(), Gone> {
    let came = team.swap_times(out)?;
    for (places, times) in team.links.places.iter().zip(came) {
        for (link, time) in times {
            if let Some(place) = places.get(link as usize) {
                exchange.set(*place as usize, time);
            }
        }
    }
    Ok(())
}

/// Calls `act` for every stream, on several threads.
fn each(moves: &mut [Moves], jobs: usize, act: impl Fn(usize, &mut Moves) + Sync) {
    if jobs <= 1 {
        moves.iter_mut().enumerate().for_each(|(s, m)| act(s, m));
        return;
    }
    let left = Mutex::new(moves.iter_mut().enumerate());
    let work = || {
        loop {
            let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((s, moves)) = next else { return };
            act(s, moves);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(work);
        }
        work();
    });
}

/// A stream tells its receives' times to their senders.
fn tell(graph: &Graph, exchange: &Exchange, stream: usize, mut times: impl Iterator<Item = i64>) {
    let mut positions = Positions::new(graph, graph.streams[stream].rank);
    at_ops(&graph.ops[stream], &mut times, |op, time| match op.step() {
        GraphStep::Receive(m) => exchange.set(m, time),
        GraphStep::Leave(i) => exchange.set(exchange.member(positions.receiver(i)), time),
        GraphStep::Send { .. } | GraphStep::Enter(_) | GraphStep::Tell(_) => {}
    });
}

/// A corner of how far points may be moved.
#[derive(Clone, Copy)]
struct Corner {
    time: i64,
    /// The displacement that is allowed then.
    height: i64,
}

/// The stretching of one stream.
struct Stretch<'a> {
    graph: &'a Graph,
    exchange: &'a Exchange,
    options: &'a Options,
    ops: &'a [Op],
    positions: Positions<'a>,
    /// Corners of what is allowed, right to left.
    hull: Vec<Corner>,
}

impl<'a> Stretch<'a> {
    fn new(graph: &'a Graph, exchange: &'a Exchange, stream: usize, options: &'a Options) -> Self {
        let positions = Positions::new(graph, graph.streams[stream].rank);
        Self { graph, exchange, options, ops: &graph.ops[stream], positions, hull: Vec::new() }
    }

    fn all(&mut self, times: &mut [i64], jumps: &[Jump]) {
        let (mut credit, mut before) = (0usize, 0usize);
        for jump in jumps {
            let at = jump.at as usize;
            credit += WORK * (at - before);
            before = at;
            let visited = self.one(times, at, jump.by, credit.max(LEAST));
            credit = credit.saturating_sub(visited);
        }
    }

    /// How far a send may move: to where its earliest receive allows.
    fn slack(&mut self, op: Op, time: i64) -> Option<i64> {
        let latency = self.options.latency;
        let limit = match op.step() {
            GraphStep::Send { message, far } => {
                let l = if far { latency.far } else { latency.near };
                let received = self.exchange.get(message);
                if received == EMPTY { i64::MAX } else { received.saturating_sub(l) }
            }
            GraphStep::Enter(i) => {
                if self.graph.instances[i].receivers == 0 {
                    return None;
                }
                self.exchange.get(self.exchange.member(self.positions.sender(i)))
            }
            // Its bound was found by the process that has the operation.
            GraphStep::Tell(message) => match self.exchange.get(message) {
                EMPTY => i64::MAX,
                limit => limit,
            },
            GraphStep::Receive(_) | GraphStep::Leave(_) => return None,
        };
        // Only a receive that was left alone (in a circle) can be before its send.
        Some(limit.saturating_sub(time).max(0))
    }

    /// Spreads a jump by `by` at the point `at` over the points before it; returns how many were looked at.
    fn one(&mut self, times: &mut [i64], at: usize, by: i64, work: usize) -> usize {
        let base = times[at] - by;
        let mut from = base.saturating_sub(by.saturating_mul(REACH)).max(times[0]);
        let mut first = times[..at].partition_point(|t| *t <= from);
        if at - first > work {
            first = at - work;
            from = times[first];
        }
        if from >= base {
            return 0;
        }
        // What the sends in between allow. Those that allow the whole jump are above any chain.
        self.hull.clear();
        self.hull.push(Corner { time: base, height: by });
        let end = self.ops.partition_point(|op| (op.at as usize) < at);
        for k in (0..end).rev() {
            let op = self.ops[k];
            let time = times[op.at as usize];
            if time <= from {
                break;
            }
            if time < base
                && let Some(slack) = self.slack(op, time).filter(|s| *s < by)
            {
                self.corner(time, slack);
            }
        }
        self.corner(from, 0);

        let (mut cap, mut corner, mut k) = (by, 0, end);
        let mut e = at;
        while e > 0 && times[e - 1] > from {
            e -= 1;
            let time = times[e];
            while k > 0 && self.ops[k - 1].at as usize >= e {
                k -= 1;
                if let Some(slack) = self.slack(self.ops[k], time) {
                    cap = cap.min(slack);
                }
            }
            while corner + 2 < self.hull.len() && self.hull[corner + 1].time >= time {
                corner += 1;
            }
            let height = between(self.hull[corner + 1], self.hull[corner], time);
            times[e] = time + height.min(cap);
        }
        at - e
    }

    /// Adds a corner to the left and keeps the chain below all corners and convex.
    fn corner(&mut self, time: i64, height: i64) {
        let new = Corner { time, height };
        while let [.., a, b] = self.hull[..] {
            // b lies on or above the line from the new corner to a.
            let (dx, dy) = new.to(a);
            let (ex, ey) = new.to(b);
            if ey * dx < dy * ex {
                break;
            }
            self.hull.pop();
        }
        match self.hull[..] {
            // Of several at one time the lowest counts; the first corner stays.
            [.., b] if b.time == time && self.hull.len() > 1 => {
                if height < b.height {
                    self.hull.pop();
                    self.hull.push(new);
                }
            }
            _ => self.hull.push(new),
        }
    }
}

impl Corner {
    /// How much later another one is, and how much higher.
    fn to(self, other: Self) -> (i128, i128) {
        let difference = |a: i64, b: i64| i128::from(b) - i128::from(a);
        (difference(self.time, other.time), difference(self.height, other.height))
    }
}

/// Height at a time on the line between two corners, rounded down.
fn between(left: Corner, right: Corner, time: i64) -> i64 {
    let (width, rise) = left.to(right);
    if width <= 0 {
        return left.height.min(right.height);
    }
    let part = rise * (i128::from(time.min(right.time)) - i128::from(left.time));
    left.height.saturating_add(saturate(part.div_euclid(width)))
}
