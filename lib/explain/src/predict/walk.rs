//! A walk over the steps of a trace: when each thread is where, under several conditions at a time.
//!
//! Steps come in the order of recorded times. All that a call waits for was entered before the call ended, so it is known
//! by the time that its thread goes on: one pass is enough, whatever the conditions, and memory is for what is under way.

use st_model::num::{Exact as _, narrow};

use super::network::Network;
use super::step::{Call, RunStep, Sending};
use super::together::{Met, Together};

/// A thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread<const K: usize> {
    pub(crate) number: u32,
    /// Where it is, under each condition: when it entered its call, or what that waited for has come, ns.
    pub(crate) clock: [i64; K],
    /// When it entered its call.
    entered: [i64; K],
    /// The same as recorded.
    enter: i64,
    /// The recorded end of its last call.
    pub(crate) last: i64,
    /// The call that it is in, by its number among all.
    pub(crate) call: Option<usize>,
    /// Messages that the call sends or receives.
    pub(crate) ends: u32,
    node: u32,
    begun: bool,
}

impl<const K: usize> Thread<K> {
    /// It computes from the end of its last call to the next, as recorded, ns.
    pub(crate) fn gap(&self, call: &Call) -> i64 {
        call.enter.saturating_sub(self.last).max(0)
    }

    pub(crate) fn no_sooner(&mut self, k: usize, time: i64) {
        self.clock[k] = self.clock[k].max(time);
    }
}

/// How long threads compute, and what calls take beyond waiting.
pub(crate) trait Pace<const K: usize> {
    /// Whether it asks for what moves only while all are in MPI.
    const TOGETHER: bool = false;

    /// A thread leaves its last call, if there is one, and enters the next.
    fn enter(&mut self, thread: &mut Thread<K>, call: &Call);
    /// A thread leaves its last call.
    fn end(&mut self, thread: &mut Thread<K>);
    /// A call sends.
    fn sends(&mut self, _what: &Sending) {}
    /// A thread completes the receive of a message.
    fn received(&mut self, _thread: u32, _message: &Sent<K>, _far: bool) {}
    /// The sender of a message completes it, whose receive is posted at these times.
    fn sent(&mut self, _message: &Sent<K>, _posted: &[i64; K]) {}
    /// A thread completes its part in a collective operation.
    fn left(&mut self, _thread: &Thread<K>, _part: &PredictedPart<K>) {}
    /// A thread is about to leave a call that completes its end of something.
    fn met(&mut self, _thread: &mut Thread<K>, _met: &Met<K>) {}
}

/// Threads compute as recorded; calls take nothing beyond waiting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Computing;

impl<const K: usize> Pace<K> for Computing {
    fn enter(&mut self, thread: &mut Thread<K>, call: &Call) {
        let gap = thread.gap(call);
        thread.clock.iter_mut().for_each(|clock| *clock = clock.saturating_add(gap));
    }

    fn end(&mut self, _: &mut Thread<K>) {}
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent<const K: usize> {
    pub(crate) what: Sending,
    /// When the call that sends it is entered.
    pub(crate) at: [i64; K],
    /// The recorded end of that call.
    pub(crate) exit: i64,
}

/// A receive.
#[derive(Clone, Copy, Debug)]
struct Posted<const K: usize> {
    thread: u32,
    at: [i64; K],
}

/// A part in a collective operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PredictedPart<const K: usize> {
    pub(crate) thread: u32,
    /// The call that begins it.
    pub(crate) call: Option<usize>,
    pub(crate) bytes: u64,
    at: [i64; K],
    /// When it can be complete; the least there is if it waits for nobody.
    pub(crate) ready: [i64; K],
    /// Members of the operation: 0 until it is known whom this one waits for.
    pub(crate) of: u32,
    /// Members are on several nodes.
    pub(crate) far: bool,
}

/// Members that are waited for.
#[derive(Clone, Copy, Debug)]
struct Gathered<const K: usize> {
    /// When the last of them has come.
    at: [i64; K],
    /// The node of one of them.
    node: Option<u32>,
    /// They are on several nodes.
    mixed: bool,
}

impl<const K: usize> Gathered<K> {
    const NONE: Self = Self { at: [i64::MIN; K], node: None, mixed: false };
}

/// The walk, under `K` conditions.
#[derive(Debug)]
pub(crate) struct Walk<const K: usize, P> {
    networks: [Network; K],
    pub(crate) pace: P,
    threads: Vec<Thread<K>>,
    sends: Vec<Option<Sent<K>>>,
    receives: Vec<Option<Posted<K>>>,
    members: Vec<Option<PredictedPart<K>>>,
    gathered: Gathered<K>,
    together: Together<K>,
    calls: usize,
}

/// Keeps something under a number.
fn set<T: Copy>(list: &mut Vec<Option<T>>, n: u32, item: T) {
    let n = n.to_usize();
    if list.len() <= n {
        list.resize(n + 1, None);
    }
    list[n] = Some(item);
}

fn get<T: Copy>(list: &[Option<T>], n: u32) -> Option<T> {
    list.get(n.to_usize()).copied().flatten()
}

impl<const K: usize, P: Pace<K>> Walk<K, P> {
    /// A walk of threads on nodes with these numbers.
    pub(crate) fn new(networks: [Network; K], pace: P, nodes: Vec<u32>) -> Self {
        let mut walk = Self {
            networks,
            pace,
            threads: Vec::new(),
            sends: Vec::new(),
            receives: Vec::new(),
            members: Vec::new(),
            gathered: Gathered::NONE,
            together: Together::default(),
            calls: 0,
        };
        nodes.into_iter().for_each(|node| walk.add_thread(node));
        walk
    }

    pub(crate) fn add_thread(&mut self, node: u32) {
        let number = narrow(self.threads.len());
        let (clock, entered) = ([0; K], [0; K]);
        let thread =
            Thread { number, clock, entered, enter: 0, last: 0, call: None, ends: 0, node, begun: false };
        self.threads.push(thread);
    }

    /// The next step.
    #[inline]
    pub(crate) fn step(&mut self, step: &RunStep) {
        match *step {
            RunStep::Begin(thread, at) => {
                let thread = &mut self.threads[thread as usize];
                (thread.clock, thread.last, thread.begun) = ([at; K], at, true);
            }
            RunStep::Call(call) => {
                let thread = &mut self.threads[call.thread as usize];
                let Self { together, pace, .. } = self;
                together.leave(thread.number, thread.last, |met| pace.met(thread, met));
                self.pace.enter(thread, &call);
                (thread.entered, thread.enter) = (thread.clock, call.enter);
                (thread.last, thread.ends, thread.call) = (call.exit, 0, Some(self.calls));
                self.calls += 1;
            }
            RunStep::Send(send, what) => {
                let thread = &mut self.threads[what.thread as usize];
                thread.ends += u32::from(what.message);
                self.pace.sends(&what);
                set(&mut self.sends, send, Sent { what, at: thread.clock, exit: thread.last });
            }
            RunStep::Post { thread, receive } => {
                let at = self.threads[thread as usize].clock;
                set(&mut self.receives, receive, Posted { thread, at });
            }
            RunStep::Receive { send, receive } => self.receive(send, receive),
            RunStep::Sent { send, receive } => self.sent(send, receive),
            RunStep::Join { thread, member, bytes } => {
                let Thread { clock: at, call, .. } = self.threads[thread as usize];
                let ready = [i64::MIN; K];
                set(
                    &mut self.members,
                    member,
                    PredictedPart { thread, call, bytes, at, ready, of: 0, far: false },
                );
            }
            RunStep::Clear => self.gathered = Gathered::NONE,
            RunStep::From(member) => self.gather(member),
            RunStep::To { member, of } => self.reach(member, of),
            RunStep::Leave(member) => {
                let Some(part) = get(&self.members, member) else { return };
                let thread = &mut self.threads[part.thread as usize];
                (0..K).for_each(|k| thread.no_sooner(k, part.ready[k]));
                self.pace.left(thread, &part);
            }
            RunStep::Reach(what) => {
                let thread = &self.threads[what.thread as usize];
                // A call that was over before the other one came did not need it.
                if P::TOGETHER && thread.last == what.exit {
                    self.together.reach(&what, thread.enter, thread.entered);
                }
            }
        }
    }

    /// Both ends of a message, and whether these are on different nodes.
    fn ends(&self, send: u32, receive: u32) -> Option<(Sent<K>, Posted<K>, bool)> {
        let (sent, posted) = (get(&self.sends, send)?, get(&self.receives, receive)?);
        let [a, b] = [sent.what.thread, posted.thread].map(|t| self.threads[t as usize].node);
        Some((sent, posted, a != b))
    }

    fn receive(&mut self, send: u32, receive: u32) {
        let Some((sent, posted, far)) = self.ends(send, receive) else { return };
        let Sent { what, at, .. } = sent;
        self.pace.received(posted.thread, &sent, far);
        let thread = &mut self.threads[posted.thread as usize];
        thread.ends += u32::from(what.message);
        for (k, network) in self.networks.iter().enumerate() {
            let left = if network.waits(what.bytes, what.sync) { at[k].max(posted.at[k]) } else { at[k] };
            thread.no_sooner(k, left.saturating_add(network.message(what.bytes, far)));
        }
    }

    fn sent(&mut self, send: u32, receive: u32) {
        let Some((sent, posted, far)) = self.ends(send, receive) else { return };
        let Sent { what, at, .. } = sent;
        self.pace.sent(&sent, &posted.at);
        let thread = &mut self.threads[what.thread as usize];
        for (k, network) in self.networks.iter().enumerate() {
            if network.waits(what.bytes, what.sync) {
                let left = at[k].max(posted.at[k]);
                thread.no_sooner(k, left.saturating_add(network.leaving(what.bytes, far)));
            }
        }
    }

    fn gather(&mut self, member: u32) {
        let Some(part) = get(&self.members, member) else { return };
        let (gathered, node) = (&mut self.gathered, self.threads[part.thread as usize].node);
        gathered.mixed |= *gathered.node.get_or_insert(node) != node;
        (0..K).for_each(|k| gathered.at[k] = gathered.at[k].max(part.at[k]));
    }

    fn reach(&mut self, member: u32, of: u32) {
        let (Gathered { at, node: Some(node), mixed }, Some(mut part)) =
            (self.gathered, get(&self.members, member))
        else {
            return;
        };
        let far = mixed || node != self.threads[part.thread as usize].node;
        (part.of, part.far) = (of, far);
        for (k, network) in self.networks.iter().enumerate() {
            part.ready[k] = at[k].saturating_add(network.operation(of, part.bytes, far));
        }
        set(&mut self.members, member, part);
    }

    /// Nothing comes any more: when the last thread is at its end, under each condition, ns.
    pub(crate) fn finish(&mut self) -> [i64; K] {
        let Self { threads, pace, together, .. } = self;
        let mut last: Option<[i64; K]> = None;
        for thread in threads.iter_mut().filter(|t| t.begun) {
            together.leave(thread.number, thread.last, |met| pace.met(thread, met));
            pace.end(thread);
            let last = last.get_or_insert(thread.clock);
            (0..K).for_each(|k| last[k] = last[k].max(thread.clock[k]));
        }
        last.unwrap_or([0; K])
    }
}
