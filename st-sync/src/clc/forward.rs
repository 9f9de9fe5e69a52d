//! Forward: a ready queue of streams, each running until it needs a time that no other has produced yet.
//!
//! In several processes each has a queue of its own streams. When none of them can go on, the times that others wait for
//! are sent, and those that come in are delivered: see [`super::outside`].

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use st_trace::graph::{Graph, Links, NOBODY, Op, Seats, Shape, Step, earliest};

use st_tool::transport::Gone;

use super::exchange::{EMPTY, Exchange, FREE};
use super::outside::{Event, Outside, Waiting};
use super::{GAMMA_UNITS, Jump, Options, Pass, Team, unlocked};

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
    /// At its end, or another process's.
    done: bool,
}

#[derive(Debug, Default)]
struct Queue {
    ready: VecDeque<u32>,
    running: usize,
    unfinished: usize,
    circular: u64,
    /// Times for other processes: process, link, time.
    out: Vec<(u32, u32, i64)>,
    over: bool,
}

/// What a stream's run has led to.
#[derive(Debug, Default)]
struct Led {
    /// Streams that waited for a time that is there now.
    woken: Vec<u32>,
    /// Times for other processes: process, link, time.
    out: Vec<(u32, u32, i64)>,
}

/// Times for other processes that are sent before the queue is empty.
const ENOUGH: usize = 4096;

struct Work<'a> {
    graph: &'a Graph,
    links: &'a Links,
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
    team: &mut Team<'_>,
) -> Result<Pass, Gone> {
    let Team { links, job } = team;
    exchange.reset(graph, links);
    let me = job.as_ref().map_or(0, |job| job.rank());
    let mine = |s: usize| links.owners.get(s).is_none_or(|p| *p as usize == me);
    let progress = |(s, t): (usize, &mut Mutex<Vec<i64>>)| {
        let points = std::mem::take(unlocked(t));
        let first = points.first().copied().unwrap_or(0);
        Mutex::new(Progress { points, first, limit: FREE, done: !mine(s), ..Progress::default() })
    };
    let streams: Vec<_> = times.iter_mut().enumerate().map(progress).collect();
    let ready: VecDeque<u32> =
        (0u32..).zip(0..streams.len()).filter(|(_, s)| mine(*s)).map(|(s, _)| s).collect();
    let unfinished = ready.len();
    let work = Work {
        graph,
        links,
        exchange,
        options,
        gamma,
        streams,
        prefixes: Mutex::default(),
        queue: Mutex::new(Queue { ready, unfinished, ..Queue::default() }),
        woken: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 1..options.jobs.max(1) {
            scope.spawn(|| work.work());
        }
        let done = match job {
            Some(job) => work.lead(&mut Outside::new(*job, links)),
            None => work.lead_alone(),
        };
        lock(&work.queue).over = true;
        work.woken.notify_all();
        done
    })?;
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
    Ok(pass)
}

impl Work<'_> {
    /// Runs ready streams until all is over.
    fn work(&self) {
        let mut queue = lock(&self.queue);
        while !queue.over {
            queue = match self.next(queue) {
                Ok(queue) => queue,
                Err(queue) => self.woken.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Runs the next ready stream; an error if there is none.
    fn next<'q>(
        &'q self,
        mut queue: MutexGuard<'q, Queue>,
    ) -> Result<MutexGuard<'q, Queue>, MutexGuard<'q, Queue>> {
        let Some(stream) = queue.ready.pop_front() else { return Err(queue) };
        queue.running += 1;
        drop(queue);
        let mut led = Led::default();
        let done = self.run(stream, &mut led);
        queue = lock(&self.queue);
        queue.running -= 1;
        queue.unfinished -= usize::from(done);
        queue.ready.extend(led.woken);
        queue.out.append(&mut led.out);
        if self.options.jobs > 1 {
            self.woken.notify_all();
        }
        Ok(queue)
    }

    /// As [`Work::work`], and frees streams of circles.
    fn lead_alone(&self) -> Result<(), Gone> {
        let mut queue = lock(&self.queue);
        loop {
            queue = match self.next(queue) {
                Ok(queue) => queue,
                Err(queue) if queue.unfinished == 0 => return Ok(()),
                Err(queue) if queue.running > 0 => {
                    self.woken.wait(queue).unwrap_or_else(PoisonError::into_inner)
                }
                Err(mut queue) => {
                    let stuck = in_circle(&self.waiting());
                    self.free(stuck);
                    queue.circular += 1;
                    queue.ready.push_back(stuck);
                    queue
                }
            };
        }
    }

    /// As [`Work::work`], and talks to the other processes.
    fn lead(&self, outside: &mut Outside<'_>) -> Result<(), Gone> {
        let mut queue = lock(&self.queue);
        loop {
            queue = match self.next(queue) {
                Ok(queue) if queue.out.len() < ENOUGH => queue,
                Ok(mut queue) => {
                    let out = std::mem::take(&mut queue.out);
                    drop(queue);
                    outside.send(&out)?;
                    lock(&self.queue)
                }
                Err(queue) if queue.running > 0 => {
                    self.woken.wait(queue).unwrap_or_else(PoisonError::into_inner)
                }
                Err(mut queue) => {
                    let (out, unfinished) = (std::mem::take(&mut queue.out), queue.unfinished);
                    drop(queue);
                    outside.send(&out)?;
                    let event = outside.wait(unfinished, || self.waiting())?;
                    let mut led = Led::default();
                    let mut queue = lock(&self.queue);
                    match event {
                        Event::Times(times) => {
                            times.iter().for_each(|(place, time)| self.arrive(*place, *time, &mut led));
                        }
                        Event::Free(stream) => {
                            self.free(stream);
                            led.woken.push(stream);
                        }
                        Event::Over(circular) => {
                            queue.circular = circular;
                            return Ok(());
                        }
                    }
                    queue.ready.extend(led.woken);
                    queue.out.append(&mut led.out);
                    self.woken.notify_all();
                    queue
                }
            };
        }
    }

    /// A time from another process.
    fn arrive(&self, place: usize, time: i64, led: &mut Led) {
        match place.checked_sub(self.graph.senders.len()) {
            None => led.woken.extend(self.exchange.deliver(place, time)),
            Some(slot) => {
                // Instances have their slots one after the other.
                let i = self.graph.instances.partition_point(|i| i.first as usize <= slot);
                self.enter(i.saturating_sub(1), slot, time, led);
            }
        }
    }

    /// Streams that wait, when nothing runs, and for whom.
    fn waiting(&self) -> Vec<Waiting> {
        let unfinished = (0u32..).zip(&self.streams).filter(|(_, p)| !lock(p).done);
        unfinished.map(|(stream, _)| Waiting { stream, sender: self.awaited(stream).0 }).collect()
    }

    /// The lowest stream that a waiting stream waits for at its point, and the places of what that one is to send. It does
    /// not depend on how messages are numbered.
    fn awaited(&self, stream: u32) -> (u32, Vec<usize>) {
        let next = lock(&self.streams[stream as usize]).op;
        let ops = self.graph.ops[stream as usize].get(next..).unwrap_or(&[]);
        let mut seats = Seats::new(self.graph, self.graph.streams[stream as usize].rank);
        let (mut lowest, mut places) = (NOBODY, Vec::new());
        for op in ops.iter().take_while(|op| op.at == ops[0].at) {
            let Some(place) = self.place(*op, &mut seats).filter(|p| self.exchange.get(*p) < FREE) else {
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
    fn free(&self, stream: u32) {
        self.awaited(stream).1.into_iter().for_each(|place| self.exchange.set(place, FREE));
    }

    /// Where the time arrives that an operation needs, if it needs one.
    #[inline]
    fn place(&self, op: Op, seats: &mut Seats<'_>) -> Option<usize> {
        match op.step() {
            Step::Receive(m) => Some(m),
            Step::Leave(i) if self.graph.instances[i].senders > 0 => {
                Some(self.exchange.member(seats.receiver(i)))
            }
            _ => None,
        }
    }

    /// Runs a stream until it waits (false) or ends (true).
    fn run(&self, stream: u32, led: &mut Led) -> bool {
        let mut guard = lock(&self.streams[stream as usize]);
        let p = &mut *guard;
        let ops = &self.graph.ops[stream as usize];
        let mut seats = Seats::new(self.graph, self.graph.streams[stream as usize].rank);
        while let Some(op) = ops.get(p.op).filter(|op| (op.at as usize) < p.points.len()) {
            let at = op.at as usize;
            self.advance(p, at);
            if let Some(place) = self.place(*op, &mut seats) {
                match self.exchange.take(place, stream) {
                    Some(limit) => p.limit = p.limit.max(limit),
                    None => return false,
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
            self.publish(*op, p, &mut seats, led);
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
    fn publish(&self, op: Op, p: &Progress, seats: &mut Seats<'_>, led: &mut Led) {
        let Some((_, time)) = p.last else { return };
        match op.step() {
            Step::Send { message, far } => {
                let latency = self.options.latency;
                let arrival = time.saturating_add(if far { latency.far } else { latency.near });
                self.hand(message, arrival, led);
            }
            Step::Tell(message) => self.hand(message, time, led),
            Step::Enter(i) => self.enter(i, seats.sender(i), time, led),
            Step::Receive(_) | Step::Leave(_) => {}
        }
    }

    /// Hands a time to whoever waits, or will wait, at a place.
    #[inline]
    fn hand(&self, place: usize, time: i64, led: &mut Led) {
        match self.links.route(place) {
            Some((process, link)) => {
                led.out.push((process, link, time));
                self.exchange.set(place, time);
            }
            None => led.woken.extend(self.exchange.deliver(place, time)),
        }
    }

    fn enter(&self, i: usize, slot: usize, time: i64, led: &mut Led) {
        let (x, instance) = (self.exchange, &self.graph.instances[i]);
        if instance.receivers == 0 {
            return;
        }
        x.set(x.member(slot), time);
        if instance.shape == Shape::Prefix {
            return self.advance_prefix(i, led);
        }
        if x.missing[i].fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let group = &self.graph.groups[instance.group as usize];
        let sent = |p| Exchange::known(x.get(x.member(instance.sender_slot(p))));
        earliest(instance, group, self.options.latency, sent, |p, bound| {
            let limit = bound.map_or(FREE, |b| b.time);
            self.hand(x.member(instance.receiver_slot(group, p)), limit, led);
        });
    }

    /// Delivers to the members of a prefix operation whose predecessors have all entered.
    fn advance_prefix(&self, i: usize, led: &mut Led) {
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
                    self.hand(slot, bound.map_or(FREE, |b| b.time), led);
                }
            }
        });
    }
}

/// The stream that is freed of those that wait: the first that is met twice or waits for nobody in particular on the way
/// from the first stream to whom it waits for.
pub(super) fn in_circle(waiting: &[Waiting]) -> u32 {
    let place = |stream: u32| waiting.binary_search_by_key(&stream, |w| w.stream).ok();
    let mut seen = vec![false; waiting.len()];
    let mut at = 0;
    while let Some(w) = waiting.get(at) {
        seen[at] = true;
        match place(w.sender) {
            Some(next) if !seen[next] => at = next,
            _ => return w.stream,
        }
    }
    0
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
