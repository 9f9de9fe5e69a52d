//! Forward, stream by stream: each runs until it needs a time that no other has produced yet.

use st_model::num::{narrow, saturate};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use st_match::graph::{Graph, GraphStep, Links, NOBODY, Op, Positions, Shape, earliest};

use super::exchange::{EMPTY, Exchange, FREE};
use super::moves::Moves;
use super::points::Window;
use super::waiting::Waiting;
use super::{GAMMA_UNITS, Jump, Options};

/// Operations that a stream may do while another thread has nothing to do. Where each stream of a ring goes as far as its
/// neighbours allow, one thread after the other goes round; in short turns all do.
const TURN: usize = 6;

/// How far a stream has come.
pub(super) struct Progress<'a> {
    pub(super) points: Window<'a>,
    pub(super) op: usize,
    /// The next point; those before it are final.
    pub(super) at: usize,
    /// The last point: as measured, and corrected.
    pub(super) last: Option<(i64, i64)>,
    pub(super) first: i64,
    pub(super) limit: i64,
    pub(super) moves: Moves,
    pub(super) jumps: Vec<Jump>,
    pub(super) largest: i64,
    /// At its end, or another process's.
    pub(super) done: bool,
}

/// What lies between a thread and the others.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    /// Streams of this share that others have woken.
    pub(super) inbox: Mutex<Vec<u32>>,
    pub(super) filled: AtomicBool,
    /// Times for other processes: process, link, time.
    pub(super) out: Mutex<Vec<(u32, u32, i64)>>,
}

/// Threads that sleep.
#[derive(Debug, Default)]
pub(super) struct Sleep {
    pub(super) asleep: usize,
    pub(super) over: bool,
}

/// How a stream's run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ran {
    /// It waits for a time.
    Waits,
    /// It can go on, when others have had their turn.
    Paused,
    /// At its end.
    Done,
}

/// What a stream's run has led to.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Streams that waited for a time that is there now.
    pub(super) woken: Vec<u32>,
    /// Times for other processes: process, link, time.
    pub(super) out: Vec<(u32, u32, i64)>,
}

pub(super) struct Work<'a> {
    pub(super) graph: &'a Graph,
    pub(super) links: &'a Links,
    pub(super) exchange: &'a Exchange,
    pub(super) options: &'a Options,
    pub(super) gamma: i64,
    pub(super) streams: Vec<Mutex<Progress<'a>>>,
    /// Prefix operations: the next position.
    pub(super) prefixes: Mutex<HashMap<usize, usize>>,
    pub(super) mailboxes: Vec<Mailbox>,
    /// First stream of each share, and the end.
    pub(super) bounds: Vec<u32>,
    pub(super) unfinished: AtomicUsize,
    /// Threads that have nothing to do and are not at their end.
    pub(super) idle: AtomicUsize,
    pub(super) sleep: Mutex<Sleep>,
    /// Copy of [`Sleep::asleep`].
    pub(super) asleep: AtomicUsize,
    pub(super) woken: Condvar,
}

pub(super) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Work<'_> {
    /// A time from another process.
    pub(super) fn arrive(&self, place: usize, time: i64, effects: &mut Effects) {
        match place.checked_sub(self.graph.senders.len()) {
            None => effects.woken.extend(self.exchange.deliver(place, time)),
            Some(slot) => {
                // Instances have their slots one after the other.
                let i = self.graph.instances.partition_point(|i| i.first as usize <= slot);
                self.enter(i.saturating_sub(1), slot, time, effects);
            }
        }
    }

    /// Streams that wait, when nothing runs, and for whom.
    pub(super) fn waiting(&self) -> Vec<Waiting> {
        let unfinished = (0u32..).zip(&self.streams).filter(|(_, p)| !lock(p).done);
        unfinished.map(|(stream, _)| Waiting { stream, sender: self.awaited(stream).0 }).collect()
    }

    /// The lowest stream that a waiting stream waits for at its point, and the places of what that one is to send. It does
    /// not depend on how messages are numbered.
    fn awaited(&self, stream: u32) -> (u32, Vec<usize>) {
        let next = lock(&self.streams[stream as usize]).op;
        let ops = self.graph.ops[stream as usize].get(next..).unwrap_or(&[]);
        let mut positions = Positions::new(self.graph, self.graph.streams[stream as usize].rank);
        let (mut lowest, mut places) = (NOBODY, Vec::new());
        for op in ops.iter().take_while(|op| op.at == ops[0].at) {
            let Some(place) = self.place(*op, &mut positions).filter(|p| self.exchange.get(*p) < FREE) else {
                continue;
            };
            let sender = self.graph.senders.get(place).copied().unwrap_or(NOBODY);
            if sender < lowest {
                places.clear();
                lowest = sender;
            }
            if sender == lowest {
                places.push(place);
            }
        }
        (lowest, places)
    }

    /// Frees a stream of a circle of streams that wait for each other: what it waits for has no limit any more. When
    /// nothing runs, the state does not depend on the order in which it came about, so neither does the choice.
    pub(super) fn free(&self, stream: u32) {
        self.awaited(stream).1.into_iter().for_each(|place| self.exchange.set(place, FREE));
    }

    /// Where the time arrives that an operation needs, if it needs one.
    #[inline]
    fn place(&self, op: Op, positions: &mut Positions<'_>) -> Option<usize> {
        match op.step() {
            GraphStep::Receive(m) => Some(m),
            GraphStep::Leave(i) if self.graph.instances[i].senders > 0 => {
                Some(self.exchange.member(positions.receiver(i)))
            }
            _ => None,
        }
    }

    /// Runs a stream until it waits or ends, or has had its turn while another thread has nothing to do.
    pub(super) fn run(&self, stream: u32, effects: &mut Effects) -> Ran {
        let mut guard = lock(&self.streams[stream as usize]);
        let p = &mut *guard;
        let ops = &self.graph.ops[stream as usize];
        let mut positions = Positions::new(self.graph, self.graph.streams[stream as usize].rank);
        let turn = p.op + TURN;
        while let Some(op) = ops.get(p.op) {
            if p.op >= turn && self.idle.load(Ordering::Relaxed) > 0 {
                return Ran::Paused;
            }
            let at = op.at as usize;
            if p.at <= at && !self.advance(p, at) {
                break;
            }
            if let Some(place) = self.place(*op, &mut positions) {
                match self.exchange.take(place, stream) {
                    Some(limit) => p.limit = p.limit.max(limit),
                    None => return Ran::Waits,
                }
            }
            p.op += 1;
            let receives = matches!(op.step(), GraphStep::Receive(_) | GraphStep::Leave(_));
            if receives && ops.get(p.op).is_some_and(|next| next.at == op.at) {
                continue;
            }
            if p.at == at
                && let Some(&t) = p.points.from(at).first()
            {
                self.step(p, t);
            }
            self.publish(*op, p, &mut positions, effects);
        }
        self.advance(p, usize::MAX);
        p.done = true;
        Ran::Done
    }

    /// Corrects the points before `to`, none of which is a receive. Whether there is such a point.
    fn advance(&self, p: &mut Progress<'_>, to: usize) -> bool {
        loop {
            let on_time = p.last.is_some_and(|(measured, corrected)| measured == corrected);
            let window = p.points.from(p.at);
            let n = window.len().min(to - p.at);
            if n == 0 {
                return !window.is_empty();
            }
            if on_time {
                // Nothing moves until the next receive.
                let t = window[n - 1];
                p.at += n;
                p.moves.stay(n);
                p.last = Some((t, t));
            } else {
                let t = window[0];
                self.step(p, t);
            }
        }
    }

    /// Corrects the next point.
    #[inline]
    fn step(&self, p: &mut Progress<'_>, t: i64) {
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
            p.jumps.push(Jump { at: narrow(p.at), by: corrected - base });
        }
        p.limit = FREE;
        p.moves.push(corrected.wrapping_sub(t));
        p.last = Some((t, corrected));
        p.largest = p.largest.max(corrected.saturating_sub(t));
        p.at += 1;
    }

    /// Hands the time of a point to who waits for it.
    #[inline]
    fn publish(&self, op: Op, p: &Progress<'_>, positions: &mut Positions<'_>, effects: &mut Effects) {
        let Some((_, time)) = p.last else { return };
        match op.step() {
            GraphStep::Send { message, far } => {
                let latency = self.options.latency;
                let arrival = time.saturating_add(if far { latency.far } else { latency.near });
                self.hand(message, arrival, effects);
            }
            GraphStep::Tell(message) => self.hand(message, time, effects),
            GraphStep::Enter(i) => self.enter(i, positions.sender(i), time, effects),
            GraphStep::Receive(_) | GraphStep::Leave(_) => {}
        }
    }

    /// Hands a time to whoever waits, or will wait, at a place.
    #[inline]
    fn hand(&self, place: usize, time: i64, effects: &mut Effects) {
        match self.links.route(place) {
            Some((process, link)) => {
                effects.out.push((process, link, time));
                self.exchange.set(place, time);
            }
            None => effects.woken.extend(self.exchange.deliver(place, time)),
        }
    }

    fn enter(&self, i: usize, slot: usize, time: i64, effects: &mut Effects) {
        let (x, instance) = (self.exchange, &self.graph.instances[i]);
        if instance.receivers == 0 {
            return;
        }
        x.set(x.member(slot), time);
        if instance.shape == Shape::Prefix {
            return self.advance_prefix(i, effects);
        }
        if x.missing[i].fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let group = &self.graph.groups[instance.group as usize];
        let sent = |p| Exchange::known(x.get(x.member(instance.sender_slot(p))));
        earliest(instance, group, self.options.latency, sent, |p, bound| {
            let limit = bound.map_or(FREE, |b| b.time);
            self.hand(x.member(instance.receiver_slot(group, p)), limit, effects);
        });
    }

    /// Delivers to the members of a prefix operation whose predecessors have all entered.
    fn advance_prefix(&self, i: usize, effects: &mut Effects) {
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
                    self.hand(slot, bound.map_or(FREE, |b| b.time), effects);
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
        Ok(g) if g < 1 << 33 => saturate(g * gamma.unsigned_abs() / GAMMA_UNITS.unsigned_abs()),
        _ => saturate((i128::from(gap) * i128::from(gamma)).div_euclid(i128::from(GAMMA_UNITS))),
    }
}
