//! The worker threads of the forward pass: what each runs, and how they wait for each other.

use st_model::num::narrow;
use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use st_cli::transport::Gone;
use st_match::graph::Graph;

use super::outside::{Event, Outside};
use super::streams::{Effects, Mailbox, Ran, Sleep, Work, lock};
use super::waiting::in_circle;

/// Times for other processes that are sent before there is nothing else to do.
const ENOUGH: usize = 4096;
/// Looks into an empty inbox before a thread leaves the processor to others between two looks: some microseconds, as long as
/// four ranks of a ring take to come round.
const LOOKS: usize = 500;
/// Looks before a thread sleeps. To be woken takes many times as long as what another thread mostly does until it has
/// something to hand over.
const PATIENCE: usize = LOOKS + 100;

/// Deals streams out in shares: neighbours, who often talk to each other, to the same one, and as many points to each.
pub(super) fn bounds(graph: &Graph, jobs: usize, mine: impl Fn(usize) -> bool) -> Vec<u32> {
    let weights = graph
        .streams
        .iter()
        .enumerate()
        .map(|(s, stream)| if mine(s) { u64::from(stream.points) + 1 } else { 0 });
    let all: u64 = weights.clone().sum();
    let shares = (jobs as u64).clamp(1, graph.streams.len().max(1) as u64);
    let (mut bounds, mut before) = (vec![0u32], 0u64);
    for (s, weight) in (0u32..).zip(weights) {
        if bounds.len() as u64 <= before * shares / all.max(1) {
            bounds.push(s);
        }
        before += weight;
    }
    bounds.push(narrow(graph.streams.len()));
    bounds
}

/// A thread of the forward pass, which runs the streams of its share.
pub(super) struct Worker<'w, 'a> {
    work: &'w Work<'a>,
    share: usize,
    /// Streams of the share that can go on.
    ready: VecDeque<u32>,
    /// Streams of the share that are not at their ends.
    left: usize,
    effects: Effects,
}

impl<'w, 'a> Worker<'w, 'a> {
    /// Of a share: all its streams that this process has can go on.
    pub(super) fn new(work: &'w Work<'a>, share: usize) -> Self {
        let ready: VecDeque<u32> = (work.bounds[share]..work.bounds[share + 1])
            .filter(|s| !lock(&work.streams[*s as usize]).done)
            .collect();
        Self { work, share, left: ready.len(), ready, effects: Effects::default() }
    }

    /// Runs the streams as far as they go; the first share's no farther than times for other processes should wait.
    fn go(&mut self) {
        loop {
            while let Some(stream) = self.ready.pop_front() {
                let ran = self.work.run(stream, &mut self.effects);
                self.settle();
                match ran {
                    Ran::Waits => {}
                    Ran::Paused => self.ready.push_back(stream),
                    Ran::Done => {
                        self.left -= 1;
                        self.work.unfinished.fetch_sub(1, Ordering::AcqRel);
                    }
                }
                if self.share == 0 && self.effects.out.len() >= ENOUGH {
                    return;
                }
            }
            if !self.idle(Self::look) {
                return;
            }
            self.empty();
        }
    }

    /// Waits in some way while the others know that this thread does.
    fn idle<T>(&self, wait: impl FnOnce(&Self) -> T) -> T {
        let idle = usize::from(self.left > 0);
        self.work.idle.fetch_add(idle, Ordering::Relaxed);
        let waited = wait(self);
        self.work.idle.fetch_sub(idle, Ordering::Relaxed);
        waited
    }

    /// Looks into the inbox for a while. Whether there is something.
    fn look(&self) -> bool {
        for look in 0..PATIENCE {
            if self.is_filled() {
                return true;
            }
            // Those who sleep have nothing for this share.
            if self.work.asleep.load(Ordering::SeqCst) + 1 == self.work.mailboxes.len() {
                return self.is_filled();
            }
            if look < LOOKS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        false
    }

    fn is_filled(&self) -> bool {
        self.work.mailboxes[self.share].filled.load(Ordering::SeqCst)
    }

    /// Takes what is in the inbox.
    fn empty(&mut self) {
        let mut inbox = lock(&self.work.mailboxes[self.share].inbox);
        self.work.mailboxes[self.share].filled.store(false, Ordering::Release);
        self.ready.extend(inbox.drain(..));
    }

    /// Puts woken streams where they run.
    fn settle(&mut self) {
        let (work, mut others) = (self.work, false);
        for stream in self.effects.woken.drain(..) {
            let to = work.share_of(stream);
            if to == self.share {
                self.ready.push_back(stream);
                continue;
            }
            lock(&work.mailboxes[to].inbox).push(stream);
            work.mailboxes[to].filled.store(true, Ordering::SeqCst);
            others = true;
        }
        // Whoever goes to sleep says so before it looks into its inbox for the last time.
        if others && work.asleep.load(Ordering::SeqCst) > 0 {
            drop(lock(&work.sleep));
            work.woken.notify_all();
        }
    }

    /// Runs the share until all is over.
    pub(super) fn follow(mut self) {
        loop {
            self.go();
            lock(&self.work.mailboxes[self.share].out).append(&mut self.effects.out);
            if self.idle(Self::sleep) {
                return;
            }
            self.empty();
        }
    }

    /// Sleeps until there is something in the inbox, or all is over (true).
    fn sleep(&self) -> bool {
        self.sleep_until(|sleep| (sleep.over || self.is_filled()).then_some(sleep.over))
    }

    /// Sleeps until there is something in the inbox (false), or no thread runs (true).
    fn quiet(&self) -> bool {
        let mailboxes = &self.work.mailboxes;
        let filled = |mailbox: &Mailbox| mailbox.filled.load(Ordering::SeqCst);
        self.sleep_until(|sleep| match self.is_filled() {
            true => Some(false),
            false => (sleep.asleep == mailboxes.len() && !mailboxes.iter().any(filled)).then_some(true),
        })
    }

    /// Sleeps until there is an answer; whoever wakes this thread lets it ask again.
    fn sleep_until<T>(&self, answer: impl Fn(&Sleep) -> Option<T>) -> T {
        let work = self.work;
        let mut sleep = lock(&work.sleep);
        sleep.asleep += 1;
        work.asleep.store(sleep.asleep, Ordering::SeqCst);
        work.woken.notify_all();
        let answer = loop {
            if let Some(answer) = answer(&sleep) {
                break answer;
            }
            sleep = work.woken.wait(sleep).unwrap_or_else(PoisonError::into_inner);
        };
        sleep.asleep -= 1;
        work.asleep.store(sleep.asleep, Ordering::SeqCst);
        answer
    }

    /// The first thread: runs its share, and when all threads wait, frees streams of circles or talks to the other
    /// processes. Returns how many streams had to be freed.
    pub(super) fn lead(mut self, mut outside: Option<&mut Outside<'_>>) -> Result<u64, Gone> {
        let (work, mut circular) = (self.work, 0);
        loop {
            self.go();
            if let Some(outside) = &mut outside {
                for mailbox in &work.mailboxes[1..] {
                    self.effects.out.append(&mut lock(&mailbox.out));
                }
                outside.send(&std::mem::take(&mut self.effects.out))?;
            }
            if !self.ready.is_empty() {
                continue;
            }
            if work.mailboxes.len() > 1 && !self.idle(Self::quiet) {
                self.empty();
                continue;
            }
            // The others may have left something before they went to sleep.
            if outside.is_some() && work.mailboxes[1..].iter().any(|mailbox| !lock(&mailbox.out).is_empty()) {
                continue;
            }
            let unfinished = work.unfinished.load(Ordering::Acquire);
            let event = match &mut outside {
                Some(outside) => outside.wait(unfinished, || work.waiting())?,
                None if unfinished == 0 => return Ok(circular),
                None => {
                    circular += 1;
                    Event::Free(in_circle(&work.waiting()))
                }
            };
            match event {
                Event::Times(times) => {
                    times.iter().for_each(|(place, time)| work.arrive(*place, *time, &mut self.effects));
                }
                Event::Free(stream) => {
                    work.free(stream);
                    self.effects.woken.push(stream);
                }
                Event::Over(circular) => return Ok(circular),
            }
            self.settle();
        }
    }
}

impl Work<'_> {
    fn share_of(&self, stream: u32) -> usize {
        match self.mailboxes.len() {
            1 => 0,
            n => self.bounds.partition_point(|b| *b <= stream).clamp(1, n) - 1,
        }
    }
}
