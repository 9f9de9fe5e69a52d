//! Goes over all messages of a graph, and counts those that arrive before they were sent ([`Survey`]).

use st_model::num::Exact;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};

use foldhash::fast::FixedState;

use super::binding::{Seen, binding, rank_at};
use super::tally::{Edge, Span, Survey, Tally};
use super::times::{NEVER, get, set};
use super::{Graph, GraphStep, Instance, Latency, Links, NOBODY, Op, Shape, earliest};

/// Surveys the messages of a graph. `points` gives the points of a stream.
///
/// *Cost:* O(points + edges' ends · log ranks); two words per message and member.
pub fn survey<I: IntoIterator<Item = i64>>(
    graph: &Graph,
    points: impl Fn(usize) -> I,
    latency: Latency,
) -> Survey {
    let ends = Ends::new(graph, &Links::default(), &points);
    ends.tally(graph, points, latency, ends.span.unwrap_or_default())
}

/// When messages are sent, and collective operations entered and left: the first half of a survey. Where several processes
/// share a graph, each hands the others [`Ends::out`], takes what comes by [`Ends::take_in`], and counts the messages
/// that it has matched; together these are all.
///
/// [`Ends::new`] and [`Ends::tally`] do it in one go. Who has several threads reads the streams, and counts, in parts.
#[derive(Debug)]
pub struct Ends {
    sent: Vec<AtomicI64>,
    /// [`NEVER`] for a member that is not there.
    members: Vec<AtomicI64>,
    /// First and last point; `None` if there are no points.
    pub span: Option<Span>,
    /// Times of links to each process, by number.
    pub out: Vec<Vec<(u32, i64)>>,
}

/// What reading a stream says, beside when it sends and enters.
#[derive(Clone, Debug, Default)]
pub struct StreamEnds {
    span: Option<Span>,
    out: Vec<(u32, u32, i64)>,
}

impl Ends {
    /// Reads all points once.
    pub fn new<I: IntoIterator<Item = i64>>(
        graph: &Graph,
        links: &Links,
        points: impl Fn(usize) -> I,
    ) -> Self {
        let mut ends = Self::unread(graph);
        let read = (0..graph.streams.len()).map(|s| ends.read(graph, links, s, points(s))).collect();
        ends.close(links, read);
        ends
    }

    /// Nothing has been read yet.
    #[must_use]
    pub fn unread(graph: &Graph) -> Self {
        let room = |n: usize, t: i64| (0..n).map(|_| AtomicI64::new(t)).collect();
        Self {
            sent: room(graph.senders.len(), 0),
            members: room(graph.slots, NEVER),
            span: None,
            out: Vec::new(),
        }
    }

    /// Reads the points of a stream: of each once, on any thread.
    pub fn read(
        &self,
        graph: &Graph,
        links: &Links,
        stream: usize,
        points: impl IntoIterator<Item = i64>,
    ) -> StreamEnds {
        let mut positions = Positions::new(graph, graph.streams[stream].rank);
        let mut read = StreamEnds::default();
        let span = &mut read.span;
        let mut all = points
            .into_iter()
            .inspect(|t| *span = Some(Span { first: span.map_or(*t, |s| s.first), last: *t }));
        at_ops(&graph.ops[stream], &mut all, |op, t| {
            let place = match op.step() {
                GraphStep::Send { message, .. } => {
                    set(&self.sent, message, t);
                    message
                }
                GraphStep::Tell(message) => message,
                // It stands for leaving a collective operation of another process.
                GraphStep::Receive(m) if graph.senders[m] == NOBODY => m,
                GraphStep::Receive(_) => return,
                GraphStep::Enter(i) => return set(&self.members, positions.sender(i), t),
                GraphStep::Leave(i) => return set(&self.members, positions.receiver(i), t),
            };
            if let Some((process, link)) = links.route(place) {
                read.out.push((process, link, t));
            }
        });
        all.for_each(drop);
        read
    }

    /// Takes what reading each stream has said, in order.
    pub fn close(&mut self, links: &Links, streams: Vec<StreamEnds>) {
        self.out = vec![Vec::new(); links.places.len()];
        for StreamEnds { span, out } in streams {
            let both = self.span.zip(span).map(|(a, b)| a.and(b));
            self.span = both.or(self.span).or(span);
            out.into_iter().for_each(|(process, link, t)| self.out[process as usize].push((link, t)));
        }
    }

    /// Takes times of links from each process, by number.
    pub fn take_in(&mut self, links: &Links, came: &[Vec<(u32, i64)>]) {
        for (places, came) in links.places.iter().zip(came) {
            for (link, t) in came {
                let place = places.get(*link as usize).map_or(usize::MAX, |p| *p as usize);
                if let Some(sent) = self.sent.get_mut(place) {
                    *sent.get_mut() = *t;
                } else if let Some(member) = self.members.get_mut(place.wrapping_sub(self.sent.len())) {
                    *member.get_mut() = *t;
                }
            }
        }
    }

    /// Counts messages, with the same points; `span` has the first and last point of all processes.
    pub fn tally<I: IntoIterator<Item = i64>>(
        &self,
        graph: &Graph,
        points: impl Fn(usize) -> I,
        latency: Latency,
        span: Span,
    ) -> Survey {
        let mut found = Survey::none(span);
        for s in 0..graph.streams.len() {
            self.received(graph, s, points(s), latency, &mut found, None);
        }
        self.collective(graph, 0..graph.instances.len(), latency, &mut found, None);
        found
    }

    /// Counts the messages that a stream receives; `seen` is told of each.
    pub fn received(
        &self,
        graph: &Graph,
        stream: usize,
        points: impl IntoIterator<Item = i64>,
        latency: Latency,
        found: &mut Survey,
        mut seen: Option<&mut Seen<'_>>,
    ) {
        let to = graph.streams[stream];
        // Of the pairs of a collective operation the one that binds, and the point at which they are received.
        let mut binding: Option<(u32, Edge)> = None;
        at_ops(&graph.ops[stream], &mut points.into_iter(), |op, t| {
            let GraphStep::Receive(m) = op.step() else { return };
            let Some(from) = graph.streams.get(graph.senders[m] as usize) else { return };
            let (sent, latency) = (self.sent[m].load(Ordering::Relaxed), latency.between(from.node, to.node));
            let edge = Edge { from: from.rank, to: to.rank, sent, received: t, latency };
            found.shortest.add(from.node == to.node, sent, t);
            if op.is_collective() {
                found.pairs.count(edge);
                match &mut binding {
                    Some((at, best)) if *at == op.at => *best = best.later(edge),
                    open => {
                        open.replace((op.at, edge)).into_iter().for_each(|(_, edge)| found.collective(edge))
                    }
                }
            } else {
                found.messages.add(edge);
                found.violation(edge);
            }
            if let Some(seen) = &mut seen {
                seen([from.rank, to.rank], [sent, t]);
            }
        });
        binding.into_iter().for_each(|(_, edge)| found.collective(edge));
    }

    /// Counts the messages of some collective operations, by their numbers in the graph; `seen` is told of those that bind a receiver or
    /// a sender, and of those from and to rank 0.
    pub fn collective(
        &self,
        graph: &Graph,
        instances: Range<usize>,
        latency: Latency,
        found: &mut Survey,
        mut seen: Option<&mut Seen<'_>>,
    ) {
        for instance in &graph.instances[instances] {
            collective(graph, instance, &self.members, latency, found);
            if let Some(seen) = &mut seen {
                binding(graph, instance, &self.members, *seen);
            }
        }
    }
}

/// Calls `act` for every operation of a stream with the time of its point, in order. Points after the last one are left.
pub fn at_ops(ops: &[Op], points: &mut impl Iterator<Item = i64>, mut act: impl FnMut(Op, i64)) {
    let (mut next, mut now) = (0, 0);
    for op in ops {
        while next <= op.at {
            let Some(t) = points.next() else { return };
            (next, now) = (next + 1, t);
        }
        act(*op, now);
    }
}

fn collective(graph: &Graph, i: &Instance, members: &[AtomicI64], latency: Latency, found: &mut Survey) {
    if i.senders == 0 || i.receivers == 0 {
        return;
    }
    let group = &graph.groups[i.group as usize];
    let (from, to) = (usize::from(i.side), usize::from(i.to_side(group)));
    let sent = |p: usize| get(members, i.sender_slot(p));
    let rank = |side: usize, p: usize| rank_at(group, side, p);
    earliest(i, group, latency, sent, |p, bound| {
        let (Some(bound), Some(t)) = (bound, get(members, i.receiver_slot(group, p))) else { return };
        let by = bound.by as usize;
        let latency = latency.between(group.nodes[from][by], group.nodes[to][p]);
        let sent = bound.time.saturating_sub(latency);
        found.collective(Edge { from: rank(from, by), to: rank(to, p), sent, received: t, latency });
    });
    // The latest sender of each kind, whatever the latencies are.
    for (near, only) in [(true, Latency { near: 0, far: NOT }), (false, Latency { near: NOT, far: 0 })] {
        earliest(i, group, only, sent, |p, bound| {
            let (Some(bound), Some(t)) = (bound, get(members, i.receiver_slot(group, p))) else { return };
            if (group.nodes[from][bound.by as usize] == group.nodes[to][p]) == near {
                found.shortest.add(near, bound.time, t);
            }
        });
    }
    if i.shape == Shape::Full {
        pairs(i, graph, members, latency, &mut found.pairs);
    } else {
        prefix_pairs(i, graph, members, latency, &mut found.pairs);
    }
}

/// A latency of edges that are not asked for: so little that any other one binds.
const NOT: i64 = -(1 << 62);

/// Counts the pairs of an operation in O(members · log members).
fn pairs(i: &Instance, graph: &Graph, members: &[AtomicI64], latency: Latency, tally: &mut Tally) {
    let group = &graph.groups[i.group as usize];
    let (from, to) = (&group.nodes[usize::from(i.side)], &group.nodes[usize::from(i.to_side(group))]);
    let same = i.side == i.to_side(group);
    let mut all: Vec<i64> = Vec::new();
    let mut by_node: HashMap<u32, Vec<i64>, FixedState> = HashMap::default();
    for p in i.sender_positions(group) {
        if let Some(t) = get(members, i.sender_slot(p)) {
            all.push(t);
            by_node.entry(from[p]).or_default().push(t);
        }
    }
    all.sort_unstable();
    by_node.values_mut().for_each(|v| v.sort_unstable());
    let later = |v: &[i64], t: i64| (v.len() - v.partition_point(|s| *s <= t)) as u64;
    for p in i.receiver_positions(group) {
        let Some(t) = get(members, i.receiver_slot(group, p)) else { continue };
        let near = by_node.get(&to[p]).map_or(&[][..], |v| v);
        let (mut n, mut reversed) = (all.len() as u64, later(&all, t));
        let (near_at, far_at) = (t.saturating_sub(latency.near), t.saturating_sub(latency.far));
        let mut violated = later(&all, far_at) - later(near, far_at) + later(near, near_at);
        let own = i.sender_positions(group).contains(&p).then(|| get(members, i.sender_slot(p))).flatten();
        if let (true, Some(own)) = (same, own) {
            n -= 1;
            reversed -= u64::from(own > t);
            violated -= u64::from(own > near_at);
        }
        tally.messages += n;
        tally.reversed += reversed;
        tally.violated += violated;
    }
}

/// Counts the pairs of a prefix operation one by one: such operations are rare.
fn prefix_pairs(i: &Instance, graph: &Graph, members: &[AtomicI64], latency: Latency, tally: &mut Tally) {
    let group = &graph.groups[i.group as usize];
    let nodes = &group.nodes[usize::from(i.side)];
    for r in i.receiver_positions(group) {
        let Some(t) = get(members, i.receiver_slot(group, r)) else { continue };
        for q in 0..r {
            let Some(s) = get(members, i.sender_slot(q)) else { continue };
            tally.messages += 1;
            tally.reversed += u64::from(s > t);
            tally.violated += u64::from(s.saturating_add(latency.between(nodes[q], nodes[r])) > t);
        }
    }
}

/// Where a rank sits in the operations it takes part in; the last communicator is remembered.
#[derive(Debug)]
pub struct Positions<'a> {
    graph: &'a Graph,
    rank: i64,
    last: Option<(u32, u8, usize)>,
}

impl<'a> Positions<'a> {
    /// Of a rank.
    #[must_use]
    pub fn new(graph: &'a Graph, rank: u32) -> Self {
        Self { graph, rank: rank.into(), last: None }
    }
    fn position(&mut self, group: u32, side: u8) -> usize {
        if let Some((g, s, p)) = self.last
            && (g, s) == (group, side)
        {
            return p;
        }
        let p = self.graph.groups[group as usize].sides[usize::from(side)].position(self.rank);
        let p = p.map_or(0, |p| p.to_usize());
        self.last = Some((group, side, p));
        p
    }
    /// Slot of the rank as a sender.
    pub fn sender(&mut self, instance: usize) -> usize {
        let i = &self.graph.instances[instance];
        i.sender_slot(self.position(i.group, i.side))
    }
    /// Slot of the rank as a receiver.
    pub fn receiver(&mut self, instance: usize) -> usize {
        let i = &self.graph.instances[instance];
        let group = &self.graph.groups[i.group as usize];
        i.receiver_slot(group, self.position(i.group, i.to_side(group)))
    }
}
