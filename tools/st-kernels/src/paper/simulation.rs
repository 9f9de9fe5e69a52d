//! Who waits for slow ranks on paper, and how long.
//!
//! A rank on paper knows nothing of the others, and takes as long as it would if they were in time. Where one is late, all are
//! made twice: the first time to see who meets whom, and what each takes by itself; from that follows when everyone would be
//! where, and the second time each call takes so much longer as it waits. A receive waits until its message has been sent, a
//! collective operation until all whose data it needs have come; a test that finds a message waits for it, too. Clocks agree,
//! so that waits are no longer than calls.

use st_capture::fold::Fold;
use st_match::graph::{Barriers, Graph, GraphStep, Latency, Matcher, Positions, earliest};
use st_model::columns::{Column, Points};
use st_model::num::{Exact as _, narrow};

use super::plan::{Plan, Waits};
use super::{Planned, each};
use crate::args::Slow;
use crate::{Kernel, Options, Unfit};

impl Plan {
    /// Ranks that are slow, and how long others wait for them. *Cost:* that of making all ranks, in so many threads, and memory
    /// for their times and messages, unless none is slow and there is no noise.
    ///
    /// # Errors
    ///
    /// If the kernel does not run on so many ranks or with these options, or if it cannot be said who waits for whom.
    pub fn new(
        slow: &[Slow],
        kernel: Kernel,
        options: &Options,
        ranks: u32,
        jobs: usize,
    ) -> Result<Self, Unfit> {
        if slow.is_empty() && options.noise == 0.0 {
            return Ok(Self::default());
        }
        if let Some(slow) = slow.iter().find(|slow| slow.rank >= ranks) {
            return Err(Unfit::Slow { rank: slow.rank, ranks });
        }
        let mut plan = Self { noise: options.noise / 100.0, waits: Some(Vec::new()), ..Self::default() };
        slow.iter().for_each(|slow| *plan.slow.entry(slow.rank).or_insert(1.0) *= slow.factor);
        let mut matcher = Matcher::new(Barriers::default());
        let mut columns = Vec::new();
        let circle = || Unfit::Circle { kernel: kernel.name() };
        each(
            Fold::Exact,
            Planned { kernel, options, plan: &plan, ranks },
            jobs,
            |section| section,
            |section| {
                let mut section = section?;
                matcher.add(&section).map_err(|_| circle())?;
                let mut of_threads = section.threads.iter_mut().flat_map(|t| std::mem::take(&mut t.columns));
                match (of_threads.next(), of_threads.next()) {
                    (Some((_, column)), None) => columns.push(column),
                    _ => return Err(Unfit::Threads { kernel: kernel.name() }),
                }
                Ok(())
            },
        )?;
        plan.waits = Some(Simulation::new(&matcher.finish(), &columns).run().ok_or_else(circle)?);
        Ok(plan)
    }
}

/// When something is that has not been yet.
const NEVER: i64 = i64::MIN;

/// A rank on its way.
struct Walk<'a> {
    points: Points<'a>,
    positions: Positions<'a>,
    /// The last point by itself, and as it is with all waits.
    alone: i64,
    now: i64,
    call: u32,
    entered: bool,
    /// Operations that are over.
    ops: usize,
    waits: Waits,
    done: bool,
}

/// All ranks, each as far as it can go.
struct Simulation<'a> {
    graph: &'a Graph,
    walks: Vec<Walk<'a>>,
    /// When each message is sent, and the rank that waits for it.
    sent: Vec<i64>,
    awaited: Vec<Option<u32>>,
    /// When members of collective operations enter, and how soon they may leave.
    slots: Vec<i64>,
    /// Of each operation: members that have not entered yet, and those that wait for them.
    lacking: Vec<u32>,
    waiting: Vec<Vec<u32>>,
    /// Ranks that can go on.
    ready: Vec<u32>,
}

impl<'a> Simulation<'a> {
    fn new(graph: &'a Graph, columns: &'a [Column]) -> Self {
        let walk = |(stream, column): (&st_match::graph::Stream, &'a Column)| Walk {
            points: column.points(),
            positions: Positions::new(graph, stream.rank),
            alone: 0,
            now: 0,
            call: 0,
            entered: false,
            ops: 0,
            waits: Vec::new(),
            done: false,
        };
        Self {
            graph,
            walks: graph.streams.iter().zip(columns).map(walk).collect(),
            sent: vec![NEVER; graph.senders.len()],
            awaited: vec![None; graph.senders.len()],
            slots: vec![NEVER; graph.slots],
            lacking: graph.instances.iter().map(|i| i.senders).collect(),
            waiting: vec![Vec::new(); graph.instances.len()],
            ready: (0..narrow(columns.len())).rev().collect(),
        }
    }

    /// Waits by rank; `None` if some wait for each other in a circle.
    fn run(mut self) -> Option<Vec<Waits>> {
        while let Some(rank) = self.ready.pop() {
            while self.enter(rank) && self.leave(rank) {}
        }
        self.walks.iter().all(|w| w.done).then(|| self.walks.into_iter().map(|w| w.waits).collect())
    }

    /// Enters the next call, unless that has been done; `false` if there is none.
    fn enter(&mut self, rank: u32) -> bool {
        let at = rank.to_usize();
        let graph = self.graph;
        let walk = &mut self.walks[at];
        if walk.entered {
            return true;
        }
        let Some(enter) = walk.points.next() else {
            walk.done = true;
            return false;
        };
        walk.now += enter - walk.alone;
        (walk.alone, walk.entered) = (enter, true);
        let now = walk.now;
        while let Some(op) =
            graph.ops[at].get(self.walks[at].ops).filter(|op| op.at == 2 * self.walks[at].call)
        {
            self.walks[at].ops += 1;
            match op.step() {
                GraphStep::Send { message, .. } => {
                    self.sent[message] = now;
                    self.ready.extend(self.awaited[message].take());
                }
                GraphStep::Enter(i) => {
                    let slot = self.walks[at].positions.sender(i);
                    self.slots[slot] = now;
                    self.lacking[i] -= 1;
                    if self.lacking[i] == 0 {
                        self.resolve(i);
                    }
                }
                GraphStep::Receive(_) | GraphStep::Leave(_) | GraphStep::Tell(_) => {}
            }
        }
        true
    }

    /// All who are waited for in an operation have entered it.
    fn resolve(&mut self, i: usize) {
        let instance = &self.graph.instances[i];
        let group = &self.graph.groups[instance.group.to_usize()];
        let mut bounds = Vec::new();
        let entered = |p| Some(self.slots[instance.sender_slot(p)]).filter(|t| *t != NEVER);
        earliest(instance, group, Latency::default(), entered, |p, bound| {
            bounds.extend(bound.map(|b| (instance.receiver_slot(group, p), b.time)));
        });
        bounds.into_iter().for_each(|(slot, time)| self.slots[slot] = time);
        self.ready.append(&mut self.waiting[i]);
    }

    /// Leaves the call; `false` if it waits for what has not been yet.
    fn leave(&mut self, rank: u32) -> bool {
        let at = rank.to_usize();
        let walk = &mut self.walks[at];
        let (mut until, mut ops) = (walk.now, walk.ops);
        while let Some(op) = self.graph.ops[at].get(ops).filter(|op| op.at == 2 * walk.call + 1) {
            ops += 1;
            let bound = match op.step() {
                GraphStep::Receive(message) if self.sent[message] == NEVER => {
                    self.awaited[message] = Some(rank);
                    return false;
                }
                GraphStep::Leave(i) if self.lacking[i] > 0 => {
                    self.waiting[i].push(rank);
                    return false;
                }
                GraphStep::Receive(message) => self.sent[message],
                GraphStep::Leave(i) => self.slots[walk.positions.receiver(i)],
                GraphStep::Send { .. } | GraphStep::Enter(_) | GraphStep::Tell(_) => NEVER,
            };
            until = until.max(bound);
        }
        let exit = walk.points.next().unwrap_or(walk.alone);
        walk.call += 1;
        if until > walk.now {
            walk.waits.push((walk.call.into(), until - walk.now));
        }
        walk.now = until + (exit - walk.alone);
        (walk.alone, walk.entered, walk.ops) = (exit, false, ops);
        true
    }
}
