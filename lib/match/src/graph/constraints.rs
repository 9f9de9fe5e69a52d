//! What a collective operation demands of each of its members, in time linear in their number.
//!
//! A receiver on node `n` may not leave before `max(C_q + l(q, r))` over all senders `q` but itself. The maximum over
//! the sum, not the sum over the maximum: a sender on the receiver's own node may be the latest and yet not bind
//! (Scalasca's reduction adds the latency of the latest). Per node the two best values are kept, and the two best
//! nodes; each member combines "own node without itself" and "best other node". The mirror image gives how late a
//! sender may be at most.

use st_model::num::narrow;
use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::{Group, Instance, Shape};

/// Least times of a message, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Latency {
    /// Between ranks on one node.
    pub near: i64,
    /// Between nodes.
    pub far: i64,
}

impl Latency {
    /// Of a message between two nodes.
    #[must_use]
    #[inline]
    pub fn between(&self, a: u32, b: u32) -> i64 {
        if a == b { self.near } else { self.far }
    }
}

/// A limit, and who sets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The time.
    pub time: i64,
    /// Position of the member that sets it; the lowest of several.
    pub by: u32,
}

/// Largest values of a set with their holders; the lowest holder of equal values.
#[derive(Clone, Copy, Debug)]
struct Top {
    node: u32,
    best: (i64, u32),
    second: Option<(i64, u32)>,
}

impl Top {
    fn without(&self, who: Option<u32>) -> Option<(i64, u32)> {
        if who == Some(self.best.1) { self.second } else { Some(self.best) }
    }
}

/// The two best values per node, and the two best nodes.
#[derive(Debug, Default)]
struct Tops {
    nodes: Vec<Top>,
    index: HashMap<u32, usize, FixedState>,
}

impl Tops {
    fn add(&mut self, node: u32, value: i64, who: u32) {
        // All on one node is the usual case: no table is needed.
        let known = match self.nodes.last() {
            Some(t) if t.node == node => Some(self.nodes.len() - 1),
            _ => self.index.get(&node).copied(),
        };
        let Some(i) = known else {
            self.index.insert(node, self.nodes.len());
            self.nodes.push(Top { node, best: (value, who), second: None });
            return;
        };
        let t = &mut self.nodes[i];
        if value > t.best.0 {
            t.second = Some(t.best);
            t.best = (value, who);
        } else if t.second.is_none_or(|s| value > s.0) {
            t.second = Some((value, who));
        }
    }

    fn best_nodes(&self) -> [Option<Top>; 2] {
        let mut best: [Option<Top>; 2] = [None, None];
        for t in &self.nodes {
            let above = |o: Option<Top>| {
                o.is_none_or(|o| (t.best.0, u32::MAX - t.best.1) > (o.best.0, u32::MAX - o.best.1))
            };
            if above(best[0]) {
                best = [Some(*t), best[0]];
            } else if above(best[1]) {
                best[1] = Some(*t);
            }
        }
        best
    }

    /// The binding value for a member.
    fn bound(&self, best: &[Option<Top>; 2], node: u32, who: Option<u32>, latency: Latency) -> Option<Bound> {
        let own = self.index.get(&node).and_then(|i| self.nodes[*i].without(who));
        let other = best.iter().flatten().find(|t| t.node != node).map(|t| t.best);
        let near = own.map(|(v, by)| Bound { time: v.saturating_add(latency.near), by });
        let far = other.map(|(v, by)| Bound { time: v.saturating_add(latency.far), by });
        match (near, far) {
            (Some(a), Some(b)) => Some(if (a.time, b.by) >= (b.time, a.by) { a } else { b }),
            (a, b) => a.or(b),
        }
    }
}

fn position(i: usize) -> u32 {
    narrow(i)
}

/// The earliest time at which each receiver may leave: `sent` gives when a sender entered (`None` for members that do
/// not send), `set` takes each receiver's position and bound (`None`: nobody binds it).
pub fn earliest(
    instance: &Instance,
    group: &Group,
    latency: Latency,
    sent: impl Fn(usize) -> Option<i64>,
    mut set: impl FnMut(usize, Option<Bound>),
) {
    let nodes = &group.nodes[usize::from(instance.side)];
    let to = &group.nodes[usize::from(instance.to_side(group))];
    let same = instance.side == instance.to_side(group);
    let mut tops = Tops::default();
    let senders = instance.sender_positions(group);
    let who = |p: usize| same.then(|| position(p));
    if instance.shape == Shape::Prefix {
        // Positions are passed in order: what is known at a receiver comes from lower ranks only.
        for p in senders {
            set(p, tops.bound(&tops.best_nodes(), to[p], None, latency));
            if let Some(t) = sent(p) {
                tops.add(nodes[p], t, position(p));
            }
        }
        return;
    }
    for p in senders {
        if let Some(t) = sent(p) {
            tops.add(nodes[p], t, position(p));
        }
    }
    let best = tops.best_nodes();
    for p in instance.receiver_positions(group) {
        set(p, tops.bound(&best, to[p], who(p), latency));
    }
}

/// The latest time at which each sender may enter, given when the receivers leave: the mirror image of [`earliest`].
pub fn latest(
    instance: &Instance,
    group: &Group,
    latency: Latency,
    left: impl Fn(usize) -> Option<i64>,
    mut set: impl FnMut(usize, Option<Bound>),
) {
    let nodes = &group.nodes[usize::from(instance.side)];
    let to = &group.nodes[usize::from(instance.to_side(group))];
    let same = instance.side == instance.to_side(group);
    let mut tops = Tops::default();
    let back = |b: Option<Bound>| b.map(|b| Bound { time: b.time.saturating_neg(), by: b.by });
    let receivers = instance.receiver_positions(group);
    if instance.shape == Shape::Prefix {
        for p in receivers.rev() {
            set(p, back(tops.bound(&tops.best_nodes(), nodes[p], None, latency)));
            if let Some(t) = left(p) {
                tops.add(to[p], t.saturating_neg(), position(p));
            }
        }
        return;
    }
    for p in receivers {
        if let Some(t) = left(p) {
            tops.add(to[p], t.saturating_neg(), position(p));
        }
    }
    let best = tops.best_nodes();
    for p in instance.sender_positions(group) {
        set(p, back(tops.bound(&best, nodes[p], same.then(|| position(p)), latency)));
    }
}
