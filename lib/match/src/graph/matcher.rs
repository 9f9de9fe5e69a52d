//! Finds the edges: n-th send and n-th receive of a channel, n-th collective operation of a communicator.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::barriers::Barriers;
use super::collective::Part;
use super::sharing::{Sharing, host, points};
use super::tags::PAIR;
use super::walk::{End, NEVER, Walked, Walker};
use super::{
    Call, ENTER, Example, Graph, Group, Instance, LEAVE, LIMIT, Message, Op, RECEIVE, RECEIVE_PAIR, SEND_FAR,
    SEND_NEAR, Shape, Stream,
};
use crate::Unknown;
use crate::channel::{Channel, NO_MESSAGE};
use crate::fifo::{Channels, Numbered};
use crate::standing::{Scope, Standing, standing};
use st_model::calls::roles::{Action, Role, Rule};
use st_model::columns::Column;
use st_model::num::{Exact as _, narrow, saturate};
use st_model::objects::Name;
use st_model::ranks::RankSeq;
use st_model::section::Section;
use st_model::steps::Budget;

/// An end that waits for its other end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) stream: u32,
    pub(super) point: u32,
    pub(super) other: u32,
    /// Which collective operation it belongs to; 0 for messages.
    pub(super) sequence: u64,
    pub(super) sync: bool,
}

impl Waiting {
    fn point(&self) -> Point {
        Point { stream: self.stream, at: self.point }
    }

    fn other(&self) -> Point {
        Point { stream: self.stream, at: self.other }
    }
}

/// An end of a message that has not met its other end.
#[derive(Clone, Copy, Debug)]
pub struct OpenEnd {
    /// The call that sends, or the one that posts a receive which has completed or whose request was freed.
    pub call: Call,
    /// Whether it receives.
    pub receives: bool,
    /// Whether its request was freed before it completed; said of receives only.
    pub freed: bool,
    /// The other end is of a process that is not in the trace: of another job, which is spawned or connected.
    pub outside: bool,
}

/// A point of a thread.
#[derive(Clone, Copy, Debug)]
struct Point {
    stream: u32,
    at: u32,
}

impl Numbered for Waiting {
    fn operation(&self) -> u64 {
        self.sequence
    }
}

/// A collective operation not all of whose members have been seen.
#[derive(Clone, Copy, Debug)]
struct Open {
    rule: Rule,
    root: Option<(u8, u32)>,
    /// Instances by sending side.
    directions: [Option<u32>; 2],
    seen: u32,
}

/// Steps, of some 32 bytes each, that a call with others stands for while its rank is read; an end that waits for its other end, and an
/// operation, for as long as there is the matcher.
const READ: u64 = 6;
const WAITS: u64 = 3;
const OPERATION: u64 = 6;

/// Builds a [`Graph`], section by section.
///
/// *Cost:* expected O(calls + edges) time; memory for what waits for its other end beside the graph itself, within a budget.
#[derive(Debug, Default)]
pub struct Matcher {
    barriers: Barriers,
    pub(super) graph: Graph,
    pub(super) names: HashMap<Name, u32>,
    hosts: HashMap<String, u32>,
    pub(super) node_of: HashMap<i64, u32, FixedState>,
    pub(super) channels: Channels<Waiting>,
    open: HashMap<(u32, u64), Open, FixedState>,
    pub(super) messages: u32,
    /// Messages since they were asked for, if they are.
    kept: Option<Vec<Message>>,
    budget: Budget,
    /// Ends that wait.
    waiting: u64,
    /// Receives whose requests were freed before they completed: their streams, and when they were posted.
    freed: HashSet<(u32, u32), FixedState>,
    /// What other processes have to do with it.
    pub(super) sharing: Option<Box<Sharing>>,
}

impl Matcher {
    /// A matcher without streams.
    #[must_use]
    pub fn new(barriers: Barriers) -> Self {
        Self::within(barriers, Budget::default())
    }

    /// A matcher that takes no more memory than so many steps stand for: a few bytes can be any number of operations.
    #[must_use]
    pub fn within(barriers: Barriers, budget: Budget) -> Self {
        Self { barriers, budget, ..Self::default() }
    }

    /// A matcher that keeps both ends of the messages that it matches, for [`Matcher::take_messages`].
    #[must_use]
    pub fn keeping_messages(barriers: Barriers) -> Self {
        Self { kept: Some(Vec::new()), ..Self::new(barriers) }
    }

    /// The messages that have been matched since this was asked before, in no particular order.
    pub fn take_messages(&mut self) -> Vec<Message> {
        self.kept.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Adds the ranks of a section; in several processes those that this one has. The graph's streams are in the order in
    /// which they are added: by rank, then thread.
    ///
    /// # Errors
    ///
    /// If a rank cannot be read back, or that takes more than the budget allows.
    pub fn add(&mut self, section: &Section) -> Result<(), Unknown> {
        let barriers = self.barriers;
        for rank in section.ranks.iter() {
            let first = match &self.sharing {
                None => self.streams(section, rank),
                Some(_) => match self.first_stream(rank) {
                    Some(first) => first,
                    None => continue,
                },
            };
            let held = with_others(section, rank).saturating_mul(READ);
            self.budget.take(held)?;
            let before = self.held();
            let mut walked = Vec::new();
            for (i, _) in section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank)) {
                let mut stand = |scope| self.standing(section, rank, scope);
                walked.push(Walker::walk(section, i, rank, barriers, &mut stand)?);
            }
            if walked.len() > 1 {
                self.claim(first, &walked);
            }
            self.enter_rank(section, rank, first, walked);
            self.budget.give_back(held.saturating_add(before.saturating_sub(self.held())));
            self.budget.take(self.held().saturating_sub(before))?;
        }
        Ok(())
    }

    /// What all that is kept until both ends are there stands for.
    fn held(&self) -> u64 {
        let operations = self.open.len().to_u64().saturating_mul(OPERATION);
        operations.saturating_add(self.waiting.saturating_mul(WAITS))
    }

    /// Adds the threads of a rank; returns the first.
    fn streams(&mut self, section: &Section, rank: u32) -> usize {
        let node = self.node(host(section, rank));
        self.node_of.insert(rank.into(), node);
        let first = self.graph.streams.len();
        for (i, t) in section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank)) {
            let thread = narrow(i);
            self.graph.streams.push(Stream { rank, thread, node, points: points(t, rank) });
            self.graph.ops.push(Vec::new());
        }
        first
    }

    /// Ends of messages that have not met their other ends, as far as these could be found, in no particular order.
    pub fn open_ends(&self) -> impl Iterator<Item = OpenEnd> + '_ {
        let channels = self.channels.waiting().filter(|(key, ..)| key.tag >= NO_MESSAGE);
        channels.flat_map(move |(key, receives, waiting)| {
            let [from, to] = ends(&self.graph.groups, key);
            let outside = !self.node_of.contains_key(if receives { &from } else { &to });
            let freed = move |w: &Waiting| receives && self.freed.contains(&(w.stream, w.other));
            let ends = waiting.map(move |w| (w.point == NEVER && freed(w), w));
            let ends = ends.filter(|(freed, w)| *freed || w.point != NEVER);
            ends.map(move |(freed, w)| {
                let call = self.call(w.stream, if receives { w.other } else { w.point });
                OpenEnd { call, receives, freed, outside }
            })
        })
    }

    fn call(&self, stream: u32, point: u32) -> Call {
        let Stream { rank, thread, .. } = self.graph.streams[stream as usize];
        Call { rank, thread, index: u64::from(point / 2) }
    }

    /// The graph of all streams added.
    #[must_use]
    pub fn finish(mut self) -> Graph {
        let issues = &mut self.graph.issues;
        let [sends, receives] = self.channels.lost();
        issues.sends += sends;
        issues.receives += receives;
        issues.ambiguous += self.channels.unordered();
        for (key, receives, waiting) in self.channels.waiting() {
            let n = waiting.filter(|w| w.point != NEVER).count() as u64;
            if n > 0 {
                *(if receives { &mut issues.receives } else { &mut issues.sends }) += n;
                issues.examples.push(example(&self.graph.groups, key, n, receives));
            }
        }
        issues.few();
        let groups = &self.graph.groups;
        let members = |g: &Group| saturate::<u32>(g.sides[0].len() + g.sides[1].len());
        let lacking = self.open.iter().filter(|((g, _), o)| o.seen < members(&groups[*g as usize]));
        issues.members = lacking.count() as u64;
        self.place();
        self.graph.ops.iter_mut().for_each(|ops| {
            ops.sort_unstable();
            ops.shrink_to_fit();
        });
        self.graph.senders.shrink_to_fit();
        self.graph
    }

    /// Puts the members of all groups on their nodes.
    pub(super) fn place(&mut self) {
        for group in &mut self.graph.groups {
            for (seq, nodes) in group.sides.iter().zip(&mut group.nodes) {
                *nodes = seq.iter().map(|r| self.node_of.get(&r).copied().unwrap_or(u32::MAX)).collect();
            }
        }
    }

    pub(super) fn node(&mut self, host: &str) -> u32 {
        if let Some(&n) = self.hosts.get(host) {
            return n;
        }
        let n = narrow(self.graph.nodes.len());
        self.graph.nodes.push(host.to_owned());
        self.hosts.insert(host.to_owned(), n);
        n
    }

    /// A rank's standing in a communicator, window or file of its tables.
    fn standing(&mut self, section: &Section, rank: u32, scope: Scope) -> Option<Standing> {
        standing(section, rank, scope, |met| Some(self.group(met.name, || met.sides.map(Clone::clone))))
    }

    /// The group with a name.
    pub(super) fn group(&mut self, name: Name, sides: impl FnOnce() -> [RankSeq; 2]) -> u32 {
        if let Some(&g) = self.names.get(&name) {
            return g;
        }
        let g = narrow(self.graph.groups.len());
        self.graph.groups.push(Group { sides: sides(), nodes: [Vec::new(), Vec::new()] });
        self.names.insert(name, g);
        g
    }

    /// Says which threads of a rank use which channels, before any end meets: of what two of them use at the same end, the
    /// order is not known.
    fn claim(&mut self, first: usize, walked: &[Walked]) {
        for (i, w) in walked.iter().enumerate() {
            let stream = narrow(first + i);
            w.sends.iter().for_each(|e| self.channels.claim(e.channel, false, stream));
            w.receives.iter().for_each(|e| self.channels.claim(e.channel, true, stream));
        }
    }

    fn enter_rank(&mut self, section: &Section, rank: u32, first: usize, walked: Vec<Walked>) {
        let mut parts: Vec<(u32, Part)> = Vec::new();
        let several = walked.len() > 1;
        let mut order: Vec<i64> = Vec::new();
        for (i, w) in walked.into_iter().enumerate() {
            let stream = narrow(first + i);
            self.graph.issues.add(&w.issues);
            self.freed.extend(w.freed.iter().map(|posted| (stream, *posted)));
            // Lists that grow by doubling would take twice as much.
            let pairs = w.parts.iter().filter_map(|p| p.pairs.as_ref()).flat_map(|p| p.iter()).map(Vec::len);
            let ends = w.sends.len() + w.receives.len() + 2 * w.parts.len() + pairs.sum::<usize>();
            self.graph.ops[first + i].reserve_exact(ends);
            w.sends.iter().for_each(|e| self.end(stream, e, false));
            w.receives.iter().for_each(|e| self.end(stream, e, true));
            if several {
                order.extend(enters(section, rank, self.graph.streams[first + i].thread, &w.parts));
            }
            parts.extend(w.parts.into_iter().map(|p| (stream, p)));
        }
        if several {
            // A program calls the collective operations of a communicator one after the other, on whatever threads.
            let mut timed: Vec<_> = order.into_iter().zip(parts).collect();
            timed.sort_by_key(|(t, _)| *t);
            parts = timed.into_iter().map(|(_, p)| p).collect();
        }
        let mut sequence: HashMap<u32, u64, FixedState> = HashMap::default();
        for (stream, part) in parts {
            let n = match part.persistent {
                Some((made, start)) => 1 << 63 | u64::from(made) << 32 | u64::from(start),
                None => {
                    let n = sequence.entry(part.group).or_default();
                    *n += 1;
                    *n - 1
                }
            };
            if let Some(pairs) = &part.pairs {
                self.pairs(stream, &part, pairs, n);
            }
            if !self.send_part(stream, &part, n) {
                self.part(stream, &part, n);
            }
        }
    }

    fn end(&mut self, stream: u32, end: &End, receives: bool) {
        if !end.is_known() {
            return;
        }
        let &End { channel: key, point, other, sync } = end;
        let mine = Waiting { stream, point, other, sequence: 0, sync };
        if receives || !self.send_end(key, mine) {
            self.meet(key, mine, receives);
        }
    }

    /// An end meets its other end, or waits.
    pub(super) fn meet(&mut self, key: Channel, mine: Waiting, receives: bool) {
        // On what threads a rank takes part in an operation does not matter to its pairs.
        let user = if key.tag == PAIR { 0 } else { mine.stream };
        let Some(theirs) = self.channels.enter(key, receives, user, mine) else {
            self.waiting += 1;
            return;
        };
        self.waiting = self.waiting.saturating_sub(1);
        let (send, receive) = if receives { (theirs, mine) } else { (mine, theirs) };
        if key.tag >= NO_MESSAGE && self.kept.is_some() {
            self.keep(key, send, receive);
        }
        let kind = if key.tag == PAIR { RECEIVE_PAIR } else { RECEIVE };
        self.edge(send.point(), receive.point(), kind);
        if send.sync {
            self.edge(receive.other(), send.other(), RECEIVE);
        }
    }

    fn keep(&mut self, channel: Channel, send: Waiting, receive: Waiting) {
        let message = Message {
            channel,
            sent: self.call(send.stream, send.point),
            sent_by: (send.other != NEVER).then(|| u64::from(send.other / 2)),
            posted: u64::from(receive.other / 2),
            received: self.call(receive.stream, receive.point),
        };
        self.kept.as_mut().into_iter().for_each(|kept| kept.push(message));
    }

    /// Adds an edge, if both points have times and it is not within a thread.
    fn edge(&mut self, from: Point, to: Point, receive: u32) {
        let (a, b) = (self.graph.streams[from.stream as usize], self.graph.streams[to.stream as usize]);
        if from.at >= a.points || to.at >= b.points {
            self.graph.issues.untimed += 1;
            return;
        }
        if from.stream == to.stream || self.messages as usize >= LIMIT {
            return;
        }
        let send = if a.node == b.node { SEND_NEAR } else { SEND_FAR };
        self.graph.ops[from.stream as usize].push(Op::new(from.at, send, self.messages));
        self.graph.ops[to.stream as usize].push(Op::new(to.at, receive, self.messages));
        let senders = &mut self.graph.senders;
        if senders.len() == senders.capacity() {
            senders.reserve_exact(senders.len() / 8 + 64);
        }
        senders.push(from.stream);
        self.messages += 1;
    }

    /// Adds a rank's part, without its pairs.
    pub(super) fn part(&mut self, stream: u32, part: &Part, sequence: u64) {
        let fresh = Open { rule: part.rule, root: part.root, directions: [None; 2], seen: 0 };
        let mut open = *self.open.entry((part.group, sequence)).or_insert(fresh);
        open.seen += 1;
        let disagrees = open.rule != part.rule || open.root.zip(part.root).is_some_and(|(a, b)| a != b);
        open.root = open.root.or(part.root);
        if disagrees {
            self.graph.issues.disagreements += 1;
        } else {
            let inter = !self.graph.groups[part.group as usize].sides[1].is_empty();
            if part.sends {
                self.enter_as(stream, part, &mut open, part.side, part.enter, ENTER);
            }
            if part.receives {
                let side = if inter { 1 - part.side } else { 0 };
                self.enter_as(stream, part, &mut open, side, part.exit, LEAVE);
            }
        }
        self.open.insert((part.group, sequence), open);
    }

    /// Adds a sender's or receiver's operation, in the direction from a side.
    fn enter_as(&mut self, stream: u32, part: &Part, open: &mut Open, side: u8, point: u32, kind: u32) {
        if point >= self.graph.streams[stream as usize].points {
            self.graph.issues.untimed += u64::from(point != u32::MAX);
            return;
        }
        let known = open.directions[usize::from(side)];
        let Some(id) = known.or_else(|| self.instance(part, open, side)) else { return };
        open.directions[usize::from(side)] = Some(id);
        let instance = &mut self.graph.instances[id as usize];
        *(if kind == ENTER { &mut instance.senders } else { &mut instance.receivers }) += 1;
        self.graph.ops[stream as usize].push(Op::new(point, kind, id));
    }

    fn instance(&mut self, part: &Part, open: &Open, side: u8) -> Option<u32> {
        let id = u32::try_from(self.graph.instances.len()).ok().filter(|n| (*n as usize) < LIMIT)?;
        let first = u32::try_from(self.graph.slots).ok()?;
        let root = open.root.or(part.root);
        let (mut from_root, mut to_root) = (None, None);
        match open.rule {
            Rule::Bcast | Rule::Scatter => from_root = root.filter(|r| r.0 == side).map(|r| r.1),
            Rule::Gather | Rule::Reduce => to_root = root.map(|r| r.1),
            _ => {}
        }
        let shape = if open.rule == Rule::Scan { Shape::Prefix } else { Shape::Full };
        let group = part.group;
        let i = Instance { group, first, shape, from_root, to_root, side, senders: 0, receivers: 0 };
        let sides = &self.graph.groups[group as usize].sides;
        let size = |s: u8| sides[usize::from(s)].len().to_usize();
        let to = if sides[1].is_empty() { side } else { 1 - side };
        let sending = if from_root.is_some() { 1 } else { size(side) };
        self.graph.slots += sending + if to_root.is_some() { 1 } else { size(to) };
        self.graph.instances.push(i);
        Some(id)
    }

    fn pairs(&mut self, stream: u32, part: &Part, pairs: &[Vec<u32>; 2], sequence: u64) {
        let inter = !self.graph.groups[part.group as usize].sides[1].is_empty();
        let Part { group, side, me, enter, exit, .. } = *part;
        for &to in &pairs[0] {
            let key = Channel { group, side, from: me, to, tag: PAIR };
            let mine = Waiting { stream, point: enter, other: exit, sequence, sync: false };
            if !self.send_end(key, mine) {
                self.meet(key, mine, false);
            }
        }
        for &from in &pairs[1] {
            let side = if inter { 1 - side } else { 0 };
            let key = Channel { group, side, from, to: me, tag: PAIR };
            self.meet(key, Waiting { stream, point: exit, other: enter, sequence, sync: false }, true);
        }
    }
}

/// How many calls a rank makes that have to do with others.
fn with_others(section: &Section, rank: u32) -> u64 {
    let others = |sym: usize| {
        section.symbols.get(sym).is_some_and(|s| Role::of_call(s.call).action != Action::Internal)
    };
    let threads = section.threads.iter().filter(|t| t.ranks.contains(rank));
    let calls = threads.flat_map(|t| section.calls_of(t, rank).into_iter().enumerate());
    calls.filter(|(sym, _)| others(*sym)).fold(0, |sum, (_, n)| sum.saturating_add(n))
}

/// Enter times of a thread's parts.
fn enters(section: &Section, rank: u32, thread: u32, parts: &[Part]) -> Vec<i64> {
    let column = section.threads.get(thread as usize).and_then(|t| t.column(rank));
    let mut times = column.into_iter().flat_map(Column::times).zip(0u32..).peekable();
    let mut of = |p: &Part| {
        while times.next_if(|(_, i)| i.saturating_mul(2) < p.enter).is_some() {}
        times.peek().map_or(i64::MAX, |((enter, _), _)| *enter)
    };
    parts.iter().map(&mut of).collect()
}

fn example(groups: &[Group], key: &Channel, n: u64, receives: bool) -> Example {
    let [from, to] = ends(groups, key);
    Example { from, to, tag: key.tag, n, receives }
}

/// World ranks of a channel's sender and receiver.
fn ends(groups: &[Group], key: &Channel) -> [i64; 2] {
    let group = &groups[key.group as usize];
    let world = |side: u8, position: u32| group.sides[usize::from(side)].get(position.into()).unwrap_or(-1);
    let to = if group.sides[1].is_empty() { 0 } else { 1 - key.side };
    [world(key.side, key.from), world(to, key.to)]
}
