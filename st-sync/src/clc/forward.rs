//! Forward: ready queues of streams, each running until it needs a time that no other has produced yet.
//!
//! Every thread has a *lane*: streams one after the other, which no other thread runs, and a queue of those that can go on.
//! A stream of another lane that gets what it waited for is put into that lane's inbox. So threads meet only where
//! messages pass between their streams.
//!
//! In several processes each has lanes of its own streams. When none of them can go on, the times that others wait for
//! are sent, and those that come in are delivered: see [`super::outside`].

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use st_tool::transport::Gone;
use st_trace::graph::{Graph, Links, NOBODY, Op, Seats, Shape, Step, earliest};

use super::exchange::{EMPTY, Exchange, FREE};
use super::moves::Moves;
use super::outside::{Event, Outside, Waiting};
use super::points::{Points, Window};
use super::{GAMMA_UNITS, Jump, Options, Pass, Team};

/// How far a stream has come.
struct Progress<'a> {
    points: Window<'a>,
    op: usize,
    /// The next point; those before it are final.
    at: usize,
    /// The last point: as measured, and corrected.
    last: Option<(i64, i64)>,
    first: i64,
    limit: i64,
    moves: Moves,
    jumps: Vec<Jump>,
    largest: i64,
    /// At its end, or another process's.
    done: bool,
}

/// What lies between a thread and the others.
#[derive(Debug, Default)]
struct Lane {
    /// Streams of this lane that others have woken.
    inbox: Mutex<Vec<u32>>,
    filled: AtomicBool,
    /// Times for other processes: process, link, time.
    out: Mutex<Vec<(u32, u32, i64)>>,
}

/// Threads that sleep.
#[derive(Debug, Default)]
struct Sleep {
    asleep: usize,
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

/// Times for other processes that are sent before there is nothing else to do.
const ENOUGH: usize = 4096;
/// Looks into an empty inbox before a thread sleeps.
const LOOKS: usize = 200;

struct Work<'a> {
    graph: &'a Graph,
    links: &'a Links,
    exchange: &'a Exchange,
    options: &'a Options,
    gamma: i64,
    streams: Vec<Mutex<Progress<'a>>>,
    /// Prefix operations: the next position.
    prefixes: Mutex<HashMap<usize, usize>>,
    lanes: Vec<Lane>,
    /// First stream of each lane, and the end.
    bounds: Vec<u32>,
    unfinished: AtomicUsize,
    sleep: Mutex<Sleep>,
    /// Copy of [`Sleep::asleep`].
    asleep: AtomicUsize,
    woken: Condvar,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs all streams to their ends.
pub(super) fn forward(
    graph: &Graph,
    exchange: &Exchange,
    points: &(impl Points + ?Sized),
    options: &Options,
    gamma: i64,
    team: &mut Team<'_>,
) -> Result<Pass, Gone> {
    let Team { links, job } = team;
    exchange.reset(graph, links);
    let me = job.as_ref().map_or(0, |job| job.rank());
    let mine = |s: usize| links.owners.get(s).is_none_or(|p| *p as usize == me);
    let n = graph.streams.len();
    let progress = |s: usize| {
        let mut points = Window::new(points.of(s));
        let first = points.from(0).first().copied().unwrap_or(0);
        let (moves, jumps) = (Moves::default(), Vec::new());
        let done = !mine(s);
        Progress { points, op: 0, at: 0, last: None, first, limit: FREE, moves, jumps, largest: 0, done }
    };
    let bounds = bounds(graph, options.jobs.max(1), mine);
    let work = Work {
        graph,
        links,
        exchange,
        options,
        gamma,
        streams: (0..n).map(|s| Mutex::new(progress(s))).collect(),
        prefixes: Mutex::default(),
        lanes: bounds.iter().skip(1).map(|_| Lane::default()).collect(),
        bounds,
        unfinished: AtomicUsize::new((0..n).filter(|s| mine(*s)).count()),
        sleep: Mutex::default(),
        asleep: AtomicUsize::new(0),
        woken: Condvar::new(),
    };
    let circular = std::thread::scope(|scope| {
        for lane in 1..work.lanes.len() {
            let work = &work;
            scope.spawn(move || work.follow(lane));
        }
        let done = match job {
            Some(job) => work.lead(Some(&mut Outside::new(*job, links))),
            None => work.lead(None),
        };
        lock(&work.sleep).over = true;
        work.woken.notify_all();
        done
    })?;
    let mut pass = Pass { settled: true, circular, ..Pass::default() };
    for p in work.streams {
        let mut p = p.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (measured, corrected) = p.last.unwrap_or((p.first, p.first));
        let (late, duration) = (i128::from(corrected - measured), i128::from(measured - p.first));
        pass.settled &= duration == 0 || late * 20 <= duration;
        pass.largest = pass.largest.max(p.largest);
        pass.jumps.push(p.jumps);
        p.moves.close();
        pass.moves.push(p.moves);
    }
    Ok(pass)
}

/// Shares streams out to lanes: neighbours, who often talk to each other, to the same one, and as many points to each.
fn bounds(graph: &Graph, jobs: usize, mine: impl Fn(usize) -> bool) -> Vec<u32> {
    let weights = graph
        .streams
        .iter()
        .enumerate()
        .map(|(s, stream)| if mine(s) { u64::from(stream.points) + 1 } else { 0 });
    let all: u64 = weights.clone().sum();
    let lanes = (jobs as u64).clamp(1, graph.streams.len().max(1) as u64);
    let (mut bounds, mut before) = (vec![0u32], 0u64);
    for (s, weight) in (0u32..).zip(weights) {
        if bounds.len() as u64 <= before * lanes / all.max(1) {
            bounds.push(s);
        }
        before += weight;
    }
    bounds.push(u32::try_from(graph.streams.len()).unwrap_or(u32::MAX));
    bounds
}

impl Work<'_> {
    fn lane_of(&self, stream: u32) -> usize {
        self.bounds.partition_point(|b| *b <= stream).clamp(1, self.lanes.len()) - 1
    }

    /// Runs the streams of a lane as far as they go; the first lane's no farther than times for other processes should wait.
    fn go(&self, lane: usize, ready: &mut VecDeque<u32>, led: &mut Led) {
        loop {
            while let Some(stream) = ready.pop_front() {
                let done = self.run(stream, led);
                self.settle(lane, ready, led);
                if done {
                    self.unfinished.fetch_sub(1, Ordering::AcqRel);
                }
                if lane == 0 && led.out.len() >= ENOUGH {
                    return;
                }
            }
            let mut looks = 0;
            while !self.lanes[lane].filled.load(Ordering::Acquire) {
                if looks == LOOKS || self.lanes.len() == 1 {
                    return;
                }
                looks += 1;
                std::hint::spin_loop();
            }
            self.empty(lane, ready);
        }
    }

    /// Takes what is in a lane's inbox.
    fn empty(&self, lane: usize, ready: &mut VecDeque<u32>) {
        let mut inbox = lock(&self.lanes[lane].inbox);
        self.lanes[lane].filled.store(false, Ordering::Release);
        ready.extend(inbox.drain(..));
    }

    /// Puts woken streams where they run.
    fn settle(&self, lane: usize, ready: &mut VecDeque<u32>, led: &mut Led) {
        let mut others = false;
        for stream in led.woken.drain(..) {
            let to = if self.lanes.len() == 1 { lane } else { self.lane_of(stream) };
            if to == lane {
                ready.push_back(stream);
                continue;
            }
            lock(&self.lanes[to].inbox).push(stream);
            self.lanes[to].filled.store(true, Ordering::SeqCst);
            others = true;
        }
        // Whoever goes to sleep says so before it looks into its inbox for the last time.
        if others && self.asleep.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.sleep));
            self.woken.notify_all();
        }
    }

    /// The streams of a lane that this process has.
    fn own(&self, lane: usize) -> VecDeque<u32> {
        (self.bounds[lane]..self.bounds[lane + 1])
            .filter(|s| !lock(&self.streams[*s as usize]).done)
            .collect()
    }

    /// A thread that runs its lane until all is over.
    fn follow(&self, lane: usize) {
        let (mut ready, mut led) = (self.own(lane), Led::default());
        loop {
            self.go(lane, &mut ready, &mut led);
            lock(&self.lanes[lane].out).append(&mut led.out);
            let mut sleep = lock(&self.sleep);
            sleep.asleep += 1;
            self.asleep.store(sleep.asleep, Ordering::SeqCst);
            self.woken.notify_all();
            while !sleep.over && !self.lanes[lane].filled.load(Ordering::SeqCst) {
                sleep = self.woken.wait(sleep).unwrap_or_else(PoisonError::into_inner);
            }
            sleep.asleep -= 1;
            self.asleep.store(sleep.asleep, Ordering::SeqCst);
            if sleep.over {
                return;
            }
            drop(sleep);
            self.empty(lane, &mut ready);
        }
    }

    /// The first thread: runs its lane, and when all threads wait, frees streams of circles or talks to the other
    /// processes. Returns how many streams had to be freed.
    fn lead(&self, mut outside: Option<&mut Outside<'_>>) -> Result<u64, Gone> {
        let (mut ready, mut led) = (self.own(0), Led::default());
        let mut circular = 0;
        loop {
            self.go(0, &mut ready, &mut led);
            if let Some(outside) = &mut outside {
                for lane in &self.lanes[1..] {
                    led.out.append(&mut lock(&lane.out));
                }
                outside.send(&std::mem::take(&mut led.out))?;
            }
            if !ready.is_empty() || self.others_run(&mut ready) {
                continue;
            }
            // The others may have left something before they went to sleep.
            if outside.is_some() && self.lanes[1..].iter().any(|lane| !lock(&lane.out).is_empty()) {
                continue;
            }
            let unfinished = self.unfinished.load(Ordering::Acquire);
            let event = match &mut outside {
                Some(outside) => outside.wait(unfinished, || self.waiting())?,
                None if unfinished == 0 => return Ok(circular),
                None => {
                    circular += 1;
                    Event::Free(in_circle(&self.waiting()))
                }
            };
            match event {
                Event::Times(times) => {
                    times.iter().for_each(|(place, time)| self.arrive(*place, *time, &mut led));
                }
                Event::Free(stream) => {
                    self.free(stream);
                    led.woken.push(stream);
                }
                Event::Over(circular) => return Ok(circular),
            }
            self.settle(0, &mut ready, &mut led);
        }
    }

    /// Waits until the first lane has something to do (true), or no thread runs (false).
    fn others_run(&self, ready: &mut VecDeque<u32>) -> bool {
        if self.lanes.len() == 1 {
            return false;
        }
        let mut sleep = lock(&self.sleep);
        sleep.asleep += 1;
        self.asleep.store(sleep.asleep, Ordering::SeqCst);
        let filled = |lane: &Lane| lane.filled.load(Ordering::SeqCst);
        let quiet = loop {
            if filled(&self.lanes[0]) {
                break false;
            }
            if sleep.asleep == self.lanes.len() && !self.lanes.iter().any(filled) {
                break true;
            }
            sleep = self.woken.wait(sleep).unwrap_or_else(PoisonError::into_inner);
        };
        sleep.asleep -= 1;
        self.asleep.store(sleep.asleep, Ordering::SeqCst);
        drop(sleep);
        self.empty(0, ready);
        !quiet
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
        while let Some(op) = ops.get(p.op) {
            let at = op.at as usize;
            if p.at <= at && !self.advance(p, at) {
                break;
            }
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
            if p.at == at
                && let Some(&t) = p.points.from(at).first()
            {
                self.step(p, t);
            }
            self.publish(*op, p, &mut seats, led);
        }
        self.advance(p, usize::MAX);
        p.done = true;
        true
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
            p.jumps.push(Jump { at: u32::try_from(p.at).unwrap_or(u32::MAX), by: corrected - base });
        }
        p.limit = FREE;
        p.moves.push(corrected.wrapping_sub(t));
        p.last = Some((t, corrected));
        p.largest = p.largest.max(corrected.saturating_sub(t));
        p.at += 1;
    }

    /// Hands the time of a point to who waits for it.
    #[inline]
    fn publish(&self, op: Op, p: &Progress<'_>, seats: &mut Seats<'_>, led: &mut Led) {
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
