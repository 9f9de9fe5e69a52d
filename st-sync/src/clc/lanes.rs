//! The threads of the forward pass: what each runs, and how they wait for each other.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use st_tool::transport::Gone;
use st_trace::graph::Graph;

use super::forward::{Lane, Led, Work, in_circle, lock};
use super::outside::{Event, Outside};

/// Times for other processes that are sent before there is nothing else to do.
const ENOUGH: usize = 4096;
/// Looks into an empty inbox before a thread sleeps.
const LOOKS: usize = 200;

/// Shares streams out to lanes: neighbours, who often talk to each other, to the same one, and as many points to each.
pub(super) fn bounds(graph: &Graph, jobs: usize, mine: impl Fn(usize) -> bool) -> Vec<u32> {
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
    pub(super) fn follow(&self, lane: usize) {
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
    pub(super) fn lead(&self, mut outside: Option<&mut Outside<'_>>) -> Result<u64, Gone> {
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
}
