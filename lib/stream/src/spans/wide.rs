//! A tree of questions as one of places that have up to sixteen ways.

use st_model::num::narrow;

use super::super::placed::tree::{LEAF, Leaf, Tree};
use super::chances::{ALL, Row, WAYS};

/// Questions between a place and the next one at most: what is behind so many has one chance of all.
const DEEPEST: u32 = 15;

/// Some questions together.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The least number behind each way.
    least: [i64; WAYS],
    /// Where ways lead to: a place, or a leaf from [`LEAF`] on. Those that are none lead where the last one does.
    pub(super) ways: [u32; WAYS],
    /// Chances before anything is known: questions have halved the numbers.
    pub(super) begin: Row,
}

impl Place {
    /// The way to a number.
    #[inline(always)]
    pub(super) fn way(&self, number: i64) -> usize {
        self.least[1..].partition_point(|least| *least <= number)
    }
}

/// Places, of which the first is where numbers begin, and the leaves.
#[derive(Clone, Debug)]
pub(super) struct Wide {
    pub(super) places: Vec<Place>,
    pub(super) leaves: Vec<Leaf>,
}

impl Wide {
    pub(super) fn new(tree: Tree) -> Self {
        let mut roots = if tree.root < LEAF { vec![tree.root] } else { Vec::new() };
        let mut places = Vec::new();
        while let Some(root) = roots.get(places.len()) {
            let ways = ways(&tree, *root);
            places.push(place(&tree, &ways, &mut roots));
        }
        Self { places, leaves: tree.leaves }
    }
}

/// Where sixteen ways from a node lead to, if there are so many, and how many questions are on each: those behind the fewest are put in
/// the place of what they are behind, the first of these first.
fn ways(tree: &Tree, root: usize) -> Vec<(usize, u32)> {
    let mut ways = vec![(root, 0)];
    while ways.len() < WAYS {
        let inner = ways.iter().enumerate().filter(|(_, (to, depth))| *to < LEAF && *depth < DEEPEST);
        let Some((at, (node, depth))) = inner.min_by_key(|(_, (_, depth))| *depth) else { break };
        let sides = tree.nodes[*node].next.map(|side| (side, depth + 1));
        ways.splice(at..=at, sides);
    }
    ways
}

/// The place of some ways; nodes that they lead to become places after those that are known.
fn place(tree: &Tree, ways: &[(usize, u32)], roots: &mut Vec<usize>) -> Place {
    let mut from = [ALL; WAYS + 1];
    let (mut least, mut to, mut before) = ([i64::MAX; WAYS], [0; WAYS], 0u32);
    for (i, (node, depth)) in ways.iter().enumerate() {
        from[i] = narrow(before);
        before += 1 << (DEEPEST - depth);
        least[i] = tree.leaves[first(tree, *node)].first;
        to[i] = narrow(if *node < LEAF { roots.len() } else { *node });
        if *node < LEAF {
            roots.push(*node);
        }
    }
    let last = to[ways.len() - 1];
    to[ways.len()..].fill(last);
    Place { least, ways: to, begin: Row::new(from) }
}

/// The first leaf behind a node.
fn first(tree: &Tree, mut at: usize) -> usize {
    while at < LEAF {
        at = tree.nodes[at].next[0];
    }
    at - LEAF
}

#[cfg(test)]
mod tests {
    use super::super::super::placed::tree;
    use super::*;
    use proptest::prelude::*;
    use st_model::num::Exact as _;

    proptest! {
        #[test]
        fn every_number_has_its_leaf_eight_ways_away_at_most(
            few in prop::collection::vec(prop_oneof![0i64..9, 90i64..95, 900i64..2_000, any::<i64>()], 1..200),
            times in 1usize..60,
        ) {
            let mut numbers: Vec<i64> = few.iter().copied().cycle().take(few.len() * times).collect();
            numbers.sort_unstable();
            let wide = Wide::new(Tree::decode(&mut &tree::encode(&numbers)[..]).unwrap());
            for number in numbers {
                let (mut at, mut gone) = (if wide.places.is_empty() { LEAF } else { 0 }, 0);
                while at < LEAF {
                    at = wide.places[at].ways[wide.places[at].way(number)].to_usize();
                    gone += 1;
                }
                let leaf = wide.leaves[at - LEAF];
                prop_assert!(gone <= 8 && leaf.first <= number && leaf.first.abs_diff(number) <= leaf.most);
            }
        }
    }
}
