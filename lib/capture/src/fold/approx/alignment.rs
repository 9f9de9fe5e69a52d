//! Two lists of nodes as one: their longest common subsequence, weighted by events.

use super::super::node::{Node, Sym};

/// What an alignment compares of a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) body: bool,
    pub(super) head: Sym,
    pub(super) tail: Sym,
    pub(super) leaves: usize,
}

impl Key {
    pub(super) fn of(node: &Node) -> Self {
        Self { body: node.as_body().is_some(), head: node.head(), tail: node.tail(), leaves: node.leaves() }
    }

    pub(super) fn like(self, other: Self) -> bool {
        self.body == other.body && self.head == other.head && self.tail == other.tail
    }

    /// Any order in which those that are alike follow each other.
    fn order(&self) -> (Sym, Sym, bool) {
        (self.head, self.tail, self.body)
    }
}

/// A place of the united list: which of the two lists have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aligned {
    Both,
    First,
    Second,
}

/// How two lists become one: runs of nodes in each that are bodies in the other, and the alignment after that.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) first_runs: Vec<(usize, usize)>,
    pub(super) second_runs: Vec<(usize, usize)>,
    pub(super) steps: Vec<Aligned>,
    /// Events that both lists have, and that any of them has.
    pub(super) common: usize,
    pub(super) union: usize,
}

/// Keys of a list in which runs have become bodies.
pub(super) fn keys(list: &[Node], runs: &[(usize, usize)]) -> Vec<Key> {
    let (mut keys, mut at) = (Vec::with_capacity(list.len()), 0);
    for &(start, end) in runs {
        keys.extend(list[at..start].iter().map(Key::of));
        let leaves = list[start..end].iter().map(Node::leaves).sum();
        keys.push(Key { body: true, head: list[start].head(), tail: list[end - 1].tail(), leaves });
        at = end;
    }
    keys.extend(list[at..].iter().map(Key::of));
    keys
}

/// Events that two lists have in common at most, in whatever order these are. *Cost:* that of sorting them.
pub(super) fn most_common(x: &[Key], y: &[Key]) -> usize {
    let sorted = |keys: &[Key]| -> Vec<Key> {
        let mut keys = keys.to_vec();
        keys.sort_unstable_by_key(Key::order);
        keys
    };
    let (x, y) = (sorted(x), sorted(y));
    let leaves = |keys: &[Key]| keys.iter().map(|key| key.leaves).sum::<usize>();
    let (mut theirs, mut most) = (y.chunk_by(|a, b| a.like(*b)).peekable(), 0);
    for own in x.chunk_by(|a, b| a.like(*b)) {
        while theirs.next_if(|y| y[0].order() < own[0].order()).is_some() {}
        most += theirs.next_if(|y| y[0].like(own[0])).map_or(0, |y| leaves(own).min(leaves(y)));
    }
    most
}

/// The leftmost longest alignment: in gaps the first list's nodes go before the second's.
pub(super) fn align(x: &[Key], y: &[Key], steps: &mut Vec<Aligned>) {
    let width = y.len() + 1;
    let mut best = vec![0_usize; (x.len() + 1) * width];
    for i in (0..x.len()).rev() {
        for j in (0..y.len()).rev() {
            // Lengths are counted in events, so that a loop is not given up for two calls beside it. From behind, so that the way
            // forward below finds the leftmost of the longest.
            let skip = best[(i + 1) * width + j].max(best[i * width + j + 1]);
            let both = if x[i].like(y[j]) {
                best[(i + 1) * width + j + 1] + x[i].leaves.min(y[j].leaves)
            } else {
                0
            };
            best[i * width + j] = skip.max(both);
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < x.len() && j < y.len() {
        let here = best[i * width + j];
        let both = x[i].like(y[j]) && here == best[(i + 1) * width + j + 1] + x[i].leaves.min(y[j].leaves);
        if both {
            steps.push(Aligned::Both);
            (i, j) = (i + 1, j + 1);
        } else if best[(i + 1) * width + j] == here {
            steps.push(Aligned::First);
            i += 1;
        } else {
            steps.push(Aligned::Second);
            j += 1;
        }
    }
    steps.extend(std::iter::repeat_n(Aligned::First, x.len() - i));
    steps.extend(std::iter::repeat_n(Aligned::Second, y.len() - j));
}

/// Events that both lists have, and that any of them has.
pub(super) fn weigh(x: &[Key], y: &[Key], steps: &[Aligned]) -> (usize, usize) {
    let (mut x, mut y) = (x.iter().map(|key| key.leaves), y.iter().map(|key| key.leaves));
    let (mut common, mut union) = (0, 0);
    for step in steps {
        let (a, b) = match step {
            Aligned::Both => (x.next(), y.next()),
            Aligned::First => (x.next(), None),
            Aligned::Second => (None, y.next()),
        };
        let (a, b) = (a.unwrap_or(0), b.unwrap_or(0));
        common += a.min(b);
        union += a.max(b);
    }
    (common, union)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys() -> impl Strategy<Value = Vec<Key>> {
        let key = (0..3_u32, 0..2_u32, any::<bool>(), 1..4_usize);
        let key = key.prop_map(|(head, tail, body, leaves)| match body {
            true => Key { body, head, tail, leaves },
            false => Key { body, head, tail: head, leaves: 1 },
        });
        proptest::collection::vec(key, 0..12)
    }

    proptest! {
        #[test]
        fn no_alignment_has_more_in_common(x in keys(), y in keys()) {
            let mut steps = Vec::new();
            align(&x, &y, &mut steps);
            prop_assert!(weigh(&x, &y, &steps).0 <= most_common(&x, &y));
        }

        #[test]
        fn a_list_has_all_in_common_with_itself_in_another_order(x in keys()) {
            let y: Vec<Key> = x.iter().rev().copied().collect();
            prop_assert_eq!(most_common(&x, &y), x.iter().map(|key| key.leaves).sum::<usize>());
        }
    }
}
