//! Which messages of a collective operation say the most about the clocks of its members.

use st_model::num::{Exact, narrow};
use std::sync::atomic::AtomicI64;

use super::times::get;
use super::{Graph, Group, Instance, Latency, Shape, earliest, latest};

/// Takes messages: ranks of sender and receiver, when it was sent and when it arrived.
pub type Seen<'a> = dyn FnMut([u32; 2], [i64; 2]) + 'a;

/// The edges of an operation that bind a receiver or a sender, and in an operation of all with all those from and to rank 0.
pub(super) fn binding(graph: &Graph, i: &Instance, members: &[AtomicI64], seen: &mut Seen<'_>) {
    let group = &graph.groups[i.group as usize];
    let (from, to) = (usize::from(i.side), usize::from(i.to_side(group)));
    let sent = |p: usize| get(members, i.sender_slot(p));
    let left = |p: usize| get(members, i.receiver_slot(group, p));
    let mut tell = |a: usize, b: usize| {
        let ranks = [rank_at(group, from, a), rank_at(group, to, b)];
        if let (Some(sent), Some(left)) = (sent(a), left(b))
            && ranks[0] != ranks[1]
        {
            seen(ranks, [sent, left]);
        }
    };
    if i.senders == 0 || i.receivers == 0 {
        return;
    }
    let mut pairs = Vec::new();
    earliest(i, group, Latency::default(), sent, |p, bound| pairs.extend(bound.map(|b| (b.by as usize, p))));
    latest(i, group, Latency::default(), left, |p, bound| pairs.extend(bound.map(|b| (p, b.by as usize))));
    if i.shape == Shape::Full {
        let zero = |side: usize| group.sides[side].position(0).and_then(|p| usize::try_from(p).ok());
        if let Some(hub) = zero(to).filter(|p| i.receiver_positions(group).contains(p)) {
            pairs.extend(i.sender_positions(group).map(|p| (p, hub)));
        }
        if let Some(hub) = zero(from).filter(|p| i.sender_positions(group).contains(p)) {
            pairs.extend(i.receiver_positions(group).map(|p| (hub, p)));
        }
    }
    pairs.into_iter().for_each(|(a, b)| tell(a, b));
}

/// World rank of a member.
pub(super) fn rank_at(group: &Group, side: usize, position: usize) -> u32 {
    let rank = group.sides[side].get(position.to_u64());
    rank.map_or(u32::MAX, narrow)
}
