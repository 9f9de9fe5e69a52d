//! What the search for approximate matches asks of the open list: with which events its nodes begin and end, and how many
//! leaves lie between two of them.
//!
//! The answers lie beside each other, and nodes that begin or end alike are linked: going through the list itself would be a
//! cache miss for each node that is passed.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use foldhash::fast::FixedState;

use super::node::Sym;
use super::open::Open;

/// How a node of the list begins and ends.
#[derive(Debug, Clone, Copy)]
struct NodeEnds {
    head: Sym,
    tail: Sym,
    /// Distances to the node before it that begins alike, and to that which ends alike; 0: none.
    head_back: usize,
    tail_back: usize,
    /// Leaves of all nodes before it.
    before: usize,
}

/// The last position of each event.
type Latest = HashMap<Sym, usize, FixedState>;

/// The nodes of the list.
#[derive(Debug, Clone, Default)]
pub(super) struct Outline {
    lines: Vec<NodeEnds>,
    /// Position of the first one.
    base: usize,
    /// Leaves of all nodes.
    leaves: usize,
    heads: Latest,
    tails: Latest,
}

/// What is found on the way back through the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A node that may be the first of an iteration.
    First(usize),
    /// A node with which there are too many leaves, before one.
    TooMany(usize),
    /// Neither, down to this node.
    Nothing(usize),
}

impl Outline {
    /// Brings it up to date with the list, of which the nodes below `kept` are those it had.
    pub(super) fn follow(&mut self, open: &Open, kept: usize) {
        while self.end() > kept.max(self.base) {
            let Some(line) = self.lines.pop() else { break };
            let at = self.end();
            self.leaves = line.before;
            take_back(&mut self.heads, line.head, at, line.head_back);
            take_back(&mut self.tails, line.tail, at, line.tail_back);
        }
        let first = open.end() - open.len();
        if self.base < first {
            let gone = (first - self.base).min(self.lines.len());
            for line in self.lines.drain(..gone) {
                forget(&mut self.heads, line.head, first);
                forget(&mut self.tails, line.tail, first);
            }
            self.base = first;
        }
        for at in self.end()..open.end() {
            let Some(node) = open.at(at) else { break };
            let (head, tail) = (node.head(), node.tail());
            let back = |before: Option<usize>| before.filter(|b| *b >= self.base).map_or(0, |b| at - b);
            let (head_back, tail_back) =
                (back(self.heads.insert(head, at)), back(self.tails.insert(tail, at)));
            self.lines.push(NodeEnds { head, tail, head_back, tail_back, before: self.leaves });
            self.leaves += node.leaves();
        }
    }

    /// Position after the last node.
    fn end(&self) -> usize {
        self.base + self.lines.len()
    }

    fn line(&self, at: usize) -> Option<&NodeEnds> {
        self.lines.get(at.checked_sub(self.base)?)
    }

    /// First event of a node.
    pub(super) fn head(&self, at: usize) -> Option<Sym> {
        self.line(at).map(|line| line.head)
    }

    /// The node before one that ends with the same event.
    #[inline]
    pub(super) fn ends_alike(&self, at: usize) -> Option<usize> {
        let back = self.line(at)?.tail_back;
        (1..=at - self.base).contains(&back).then(|| at - back)
    }

    /// The node before one that begins with the same event.
    #[inline]
    fn begins_alike(&self, at: usize) -> Option<usize> {
        let back = self.line(at)?.head_back;
        (1..=at - self.base).contains(&back).then(|| at - back)
    }

    /// Leaves of the nodes `from..to`.
    #[inline]
    pub(super) fn leaves(&self, from: usize, to: usize) -> usize {
        let before = |at: usize| self.line(at).map_or(self.leaves, |line| line.before);
        before(to).saturating_sub(before(from))
    }

    /// Backwards from a node: the nearest one before it that begins alike, if the leaves from there `to` another node are as many
    /// as `near` says. No more than `most` nodes are passed. *Cost:* that of the nodes that begin alike.
    pub(super) fn first_before(
        &self,
        from: usize,
        to: usize,
        near: &RangeInclusive<usize>,
        most: usize,
    ) -> Found {
        let farthest = from.saturating_sub(most).max(self.base);
        let alike = std::iter::successors(self.begins_alike(from), |at| self.begins_alike(*at));
        for at in alike.take_while(|at| *at >= farthest) {
            let leaves = self.leaves(at, to);
            if leaves > *near.end() {
                break;
            }
            if leaves >= *near.start() {
                return Found::First(at);
            }
        }
        let passed = self.lines.get(farthest - self.base..from - self.base).unwrap_or_default();
        let until = self.line(to).map_or(self.leaves, |line| line.before);
        match passed.partition_point(|line| until.saturating_sub(line.before) > *near.end()) {
            0 => Found::Nothing(farthest),
            n => Found::TooMany(farthest + n - 1),
        }
    }
}

/// The last position of an event is not `at` any longer, but so many before it.
fn take_back(latest: &mut Latest, sym: Sym, at: usize, back: usize) {
    match back {
        0 => latest.remove(&sym),
        back => latest.insert(sym, at - back),
    };
}

/// Forgets where an event was last, if that is before a position.
fn forget(latest: &mut Latest, sym: Sym, first: usize) {
    if latest.get(&sym).is_some_and(|at| *at < first) {
        latest.remove(&sym);
    }
}

#[cfg(test)]
mod tests {
    use super::super::node::Node;
    use super::*;
    use proptest::prelude::*;

    /// As [`Outline::first_before`], through the list.
    fn step_by_step(open: &Open, from: usize, to: usize, near: &RangeInclusive<usize>, most: usize) -> Found {
        let base = open.end() - open.len();
        let head = open.at(from).unwrap().head();
        for at in (base..from).rev().take(most) {
            let leaves: usize = (at..to).map(|i| open.at(i).unwrap().leaves()).sum();
            if leaves > *near.end() {
                return Found::TooMany(at);
            }
            if open.at(at).unwrap().head() == head && near.contains(&leaves) {
                return Found::First(at);
            }
        }
        Found::Nothing(from.saturating_sub(most).max(base))
    }

    fn node(first: Sym, more: Sym) -> Node {
        let children = (0..more).map(|i| Node::leaf(first.wrapping_add(i) % 4, 1)).collect();
        if more == 0 { Node::leaf(first, 1) } else { Node::body(children, 2) }
    }

    proptest! {
        /// Nodes come, some go again, the oldest are frozen.
        #[test]
        fn what_the_outline_says_is_so_in_the_list(
            moves in proptest::collection::vec((0..6_u8, 0..4_u32, 0..4_u32), 1..150),
            range in (0..12_usize, 0..40_usize),
            most in prop_oneof![0..8_usize, Just(usize::MAX)],
        ) {
            let (mut open, mut outline) = (Open::new(), Outline::default());
            for (what, first, more) in moves {
                match what {
                    0 => drop(open.pop_many(more as usize)),
                    1 if more == 0 && open.len() > 1 => open.freeze(8).for_each(drop),
                    _ => open.push(node(first, more)),
                }
                if what == 2 {
                    continue;
                }
                let kept = open.take_lowest();
                outline.follow(&open, kept);
                let base = open.end() - open.len();
                let near = range.0..=range.0 + range.1;
                for at in base..open.end() {
                    let this = open.at(at).unwrap();
                    prop_assert_eq!(outline.head(at), Some(this.head()));
                    let before = (base..at).rev().find(|i| open.at(*i).unwrap().tail() == this.tail());
                    prop_assert_eq!(outline.ends_alike(at), before);
                    let leaves: usize = open.from(at).iter().map(Node::leaves).sum();
                    prop_assert_eq!(outline.leaves(at, open.end()), leaves);
                    let slow = step_by_step(&open, at, open.end(), &near, most);
                    prop_assert_eq!(outline.first_before(at, open.end(), &near, most), slow);
                }
            }
        }
    }
}
