//! Forward: a ready queue of streams, each running until it needs a time that no other has produced yet.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use st_trace::graph::{Graph, Op, Seats, Shape, Step, earliest};

use super::exchange::{EMPTY, Exchange, FREE};
use super::{GAMMA_UNITS, Jump, Options, Pass, unlocked};

/// How far a stream has come.
#[derive(Debug, Default)]
struct Progress {
    points: Vec<i64>,
    op: usize,
    /// The next point; those before it are final.
    at: usize,
    /// The last point: as measured, and corrected.
    last: Option<(i64, i64)>,
    first: i64,
    limit: i64,
    jumps: Vec<Jump>,
    largest: i64,
    /// The slot that it waits for.
    awaited: Option<usize>,
    done: bool,
}

#[derive(Debug, Default)]
struct Queue {
    ready: VecDeque<u32>,
    running: usize,
    unfinished: usize,
    circular: u64,
}

struct Work<'a> {
    graph: &'a Graph,
    exchange: &'a Exchange,
    options: &'a Options,
    gamma: i64,
    streams: Vec<Mutex<Progress>>,
    /// Prefix operations: the next position.
    prefixes: Mutex<HashMap<usize, usize>>,
    queue: Mutex<Queue>,
    woken: Condvar,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs all streams to their ends.
pub(super) fn forward(
    graph: &Graph,
    exchange: &Exchange,
    times: &mut [Mutex<Vec<i64>>],
    options: &Options,
    gamma: i64,
) -> Pass {
    exchange.reset(graph);
    let progress = |t: &mut Mutex<Vec<i64>>| {
        let points = std::mem::take(unlocked(t));
        let first = points.first().copied().unwrap_or(0);
        Mutex::new(Progress { points, first, limit: FREE, ..Progress::default() })
    };
    let streams: Vec<_> = times.iter_mut().map(progress).collect();
    let unfinished = streams.len();
    let ready = (0..u32::try_from(unfinished).unwrap_or(u32::MAX)).collect();
    let work = Work {
        graph,
        exchange,
        options,
        gamma,
        streams,
        prefixes: Mutex::default(),
        queue: Mutex::new(Queue { ready, running: 0, unfinished, circular: 0 }),
        woken: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 1..options.jobs.max(1) {
            scope.spawn(|| work.work());
        }
        work.work();
    });
    let mut pass = Pass { settled: true, circular: lock(&work.queue).circular, ..Pass::default() };
    for (t, p) in times.iter_mut().zip(work.streams) {
        let p = p.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (measured, corrected) = p.last.unwrap_or((p.first, p.first));
        let (late, duration) = (i128::from(corrected - measured), i128::from(measured - p.first));
        pass.settled &= duration == 0 || late * 20 <= duration;
        pass.largest = pass.largest.max(p.largest);
        pass.jumps.push(p.jumps);
        *unlocked(t) = p.points;
    }
    pass
}

impl Work<'_> {
    fn work(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(stream) = queue.ready.pop_front() {
                queue.running += 1;
                drop(queue);
                let mut woken = Vec::new();
                let done = self.run(stream, &mut woken);
                queue = lock(&self.queue);
                queue.running -= 1;
                queue.unfinished -= usize::from(done);
                queue.ready.extend(woken);
                self.woken.notify_all();
            } else if queue.unfinished == 0 {
                return;
            } else if queue.running > 0 {
                queue = self.woken.wait(queue).unwrap_or_else(PoisonError::into_inner);
            } else {
                let stuck = self.break_circle();
                queue.circular += 1;
                queue.ready.push_back(stuck);
            }
        }
    }

    /// Frees a stream of a circle of streams that wait for each other: its receive has no limit any more. When nothing
    /// runs, the state does not depend on the order in which it came about, so neither does the choice.
    fn break_circle(&self) -> u32 {
        let unfinished = |s: &Mutex<Progress>| !lock(s).done;
        let mut stream = self.streams.iter().position(unfinished).unwrap_or(0);
        let mut seen = vec![false; self.streams.len()];
        let slot = loop {
            let slot = lock(&self.streams[stream]).awaited.unwrap_or(0);
            let sender = self.graph.senders.get(slot).map(|s| *s as usize);
            seen[stream] = true;
            match sender {
                Some(s) if !seen[s] && !lock(&self.streams[s]).done => stream = s,
                _ => break slot,
            }
        };
        self.exchange.set(slot, FREE);
        u32::try_from(stream).unwrap_or(u32::MAX)
    }

    /// Runs a stream until it waits (false) or ends (true).
    fn run(&self, stream: u32, woken: &mut Vec<u32>) -> bool {
        let mut guard = lock(&self.streams[stream as usize]);
        let p = &mut *guard;
        let ops = &self.graph.ops[stream as usize];
        let mut seats = Seats::new(self.graph, self.graph.streams[stream as usize].rank);
        while let Some(op) = ops.get(p.op).filter(|op| (op.at as usize) < p.points.len()) {
            let at = op.at as usize;
            self.advance(p, at);
            let slot = match op.step() {
                Step::Receive(m) => Some(m),
                Step::Leave(i) if self.graph.instances[i].senders > 0 => {
                    Some(self.exchange.member(seats.receiver(i)))
                }
                _ => None,
            };
            if let Some(slot) = slot {
                match self.exchange.take(slot, stream) {
                    Some(limit) => p.limit = p.limit.max(limit),
                    None => {
                        p.awaited = Some(slot);
                        return false;
                    }
                }
            }
            p.op += 1;
            let receives = matches!(op.step(), Step::Receive(_) | Step::Leave(_));
            if receives && ops.get(p.op).is_some_and(|next| next.at == op.at) {
                continue;
            }
            if p.at == at {
                self.step(p);
            }
            self.publish(*op, p, &mut seats, woken);
        }
        let end = p.points.len();
        self.advance(p, end);
        p.done = true;
        true
    }

    /// Corrects the points before `to`, none of which is a receive.
    fn advance(&self, p: &mut Progress, to: usize) {
        while p.at < to {
            if p.last.is_some_and(|(measured, corrected)| measured == corrected) {
                // On time: nothing moves until the next receive.
                p.at = to;
                let t = p.points[to - 1];
                p.last = Some((t, t));
                return;
            }
            self.step(p);
        }
    }

    /// Corrects the next point.
    #[inline]
    fn step(&self, p: &mut Progress) {
        let t = p.points[p.at];
        let base = match p.last {
            None => t,
            Some((measured, corrected)) => {
                let gap = t.saturating_sub(measured);
                let least = shrunk(gap, self.gamma).max(self.options.delta.min(gap));
                t.max(corrected.saturating_add(least))
            }
        };
        let corrected = base.max(p.limit);
        if corrected > base {
            p.jumps.push(Jump { at: u32::try_from(p.at).unwrap_or(u32::MAX), by: corrected - base });
        }
        p.limit = FREE;
        p.points[p.at] = corrected;
        p.last = Some((t, corrected));
        p.largest = p.largest.max(corrected.saturating_sub(t));
        p.at += 1;
    }

    /// Hands the time of a point to who waits for it.
    #[inline]
    fn publish(&self, op: Op, p: &Progress, seats: &mut Seats<'_>, woken: &mut Vec<u32>) {
        let Some((_, time)) = p.last else { return };
        match op.step() {
            Step::Send { message, far } => {
                let latency = self.options.latency;
                let arrival = time.saturating_add(if far { latency.far } else { latency.near });
                woken.extend(self.exchange.deliver(message, arrival));
            }
            Step::Enter(i) => self.enter(i, seats.sender(i), time, woken),
            Step::Receive(_) | Step::Leave(_) => {}
        }
    }

    fn enter(&self, i: usize, slot: usize, time: i64, woken: &mut Vec<u32>) {
        let (x, instance) = (self.exchange, &self.graph.instances[i]);
        if instance.receivers == 0 {
            return;
        }
        x.set(x.member(slot), time);
        if instance.shape == Shape::Prefix {
            return self.advance_prefix(i, woken);
        }
        if x.missing[i].fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let group = &self.graph.groups[instance.group as usize];
        let sent = |p| Exchange::known(x.get(x.member(instance.sender_slot(p))));
        earliest(instance, group, self.options.latency, sent, |p, bound| {
            let limit = bound.map_or(FREE, |b| b.time);
            woken.extend(x.deliver(x.member(instance.receiver_slot(group, p)), limit));
        });
    }

    /// Delivers to the members of a prefix operation whose predecessors have all entered.
    fn advance_prefix(&self, i: usize, woken: &mut Vec<u32>) {
        let mut prefixes = lock(&self.prefixes);
        let (x, instance) = (self.exchange, &self.graph.instances[i]);
        let group = &self.graph.groups[instance.group as usize];
        let members = instance.sending(group);
        let next = prefixes.entry(i).or_default();
        let entered = |p: usize| x.get(x.member(instance.sender_slot(p)));
        let from = *next;
        while *next < members && entered(*next) != EMPTY {
            *next += 1;
        }
        // Everyone up to the first who has not entered knows its predecessors.
        let to = *next;
        if to == members {
            prefixes.remove(&i);
        }
        if to == from && from > 0 {
            return;
        }
        let sent = |p: usize| if p < to { Exchange::known(entered(p)) } else { None };
        earliest(instance, group, self.options.latency, sent, |p, bound| {
            if (from..=to).contains(&p) {
                let slot = x.member(instance.receiver_slot(group, p));
                if x.get(slot) < FREE {
                    woken.extend(x.deliver(slot, bound.map_or(FREE, |b| b.time)));
                }
            }
        });
    }
}

/// γ times a gap, rounded down.
#[inline]
fn shrunk(gap: i64, gamma: i64) -> i64 {
    match u64::try_from(gap) {
        // Below 2^33 ns the product fits 64 bits.
        Ok(g) if g < 1 << 33 => {
            (g * gamma.unsigned_abs() / GAMMA_UNITS.unsigned_abs()).try_into().unwrap_or(gap)
        }
        _ => i64::try_from((i128::from(gap) * i128::from(gamma)).div_euclid(i128::from(GAMMA_UNITS)))
            .unwrap_or(gap),
    }
}
