//! The open list: the nodes that may still be folded, with the tables that find repeats in it.
//!
//! Everything here is a function of the list's shapes: removing a node undoes what adding it did. The same program
//! state therefore always meets the same tables, and equal loops fold equally wherever they stand.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::node::{BASE, Node, append};

/// Suffixes of a body that may become a body of their own reach back so far.
const WRAP: usize = 64;
/// Lengths of the n-grams that find repeats further back than the positions of one shape reach.
const GRAMS: [usize; 2] = [12, 96];
/// Earlier positions of the last shape that are tried as the end of a repeat.
const POSITIONS: usize = 16;

type Map<V> = HashMap<u64, V, FixedState>;

/// What a list continues if its prefix hash has the value under which this is found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// Position of the node whose right spine the body lies on.
    pub(super) at: usize,
    /// How deep on that spine.
    pub(super) level: usize,
    /// How many of the body's last children the nodes after `at` repeat; `None`: all.
    pub(super) suffix: Option<usize>,
}

#[derive(Debug)]
struct Entry {
    node: Node,
    /// Hash of the list up to and including this node.
    prefix: u64,
    /// Previous position of the same shape.
    before: Option<usize>,
    /// Lengths of the undo lists before this node.
    undo: [usize; 2],
    /// Earlier ends of the same n-grams.
    grams: [Option<usize>; 2],
}

/// Positions count from the beginning of the sequence, frozen nodes included.
#[derive(Debug)]
pub(super) struct Open {
    entries: Vec<Entry>,
    /// Nodes frozen so far: position of the first entry.
    base: usize,
    /// Prefix hash before the first entry.
    base_prefix: u64,
    powers: Vec<u64>,
    latest: Map<usize>,
    expected: Map<Expected>,
    expected_undo: Vec<(u64, Option<Expected>)>,
    grams: Map<usize>,
    grams_undo: Vec<(u64, Option<usize>)>,
    /// The lowest end since [`Open::mark`].
    fell_to: usize,
}

impl Open {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            base: 0,
            base_prefix: 0,
            powers: vec![1],
            latest: Map::default(),
            expected: Map::default(),
            expected_undo: Vec::new(),
            grams: Map::default(),
            grams_undo: Vec::new(),
            fell_to: 0,
        }
    }

    /// Position after the last node.
    pub(super) fn end(&self) -> usize {
        self.base + self.entries.len()
    }

    /// Begins to watch which nodes stay: those below [`Open::fell_to`] did.
    pub(super) fn mark(&mut self) {
        self.fell_to = self.end();
    }

    /// The lowest end since the mark.
    pub(super) fn fell_to(&self) -> usize {
        self.fell_to
    }

    /// Number of nodes.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn last(&self) -> Option<&Node> {
        self.entries.last().map(|entry| &entry.node)
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut Node> {
        self.entries.last_mut().map(|entry| &mut entry.node)
    }

    /// The node at a position, unless it is frozen.
    pub(super) fn at(&self, position: usize) -> Option<&Node> {
        self.entries.get(position.checked_sub(self.base)?).map(|entry| &entry.node)
    }

    pub(super) fn push(&mut self, node: Node) {
        let position = self.end();
        let prefix = append(self.prefix_before(self.entries.len()), node.shape);
        let before = self.latest.insert(node.shape, position);
        let undo = [self.expected_undo.len(), self.grams_undo.len()];
        let sampled = node.shape.is_multiple_of(8);
        let is_body = node.as_body().is_some();
        self.entries.push(Entry { node, prefix, before, undo, grams: [None; 2] });
        if self.powers.len() <= self.entries.len() {
            let power = self.powers.last().copied().unwrap_or(1);
            self.powers.push(power.wrapping_mul(BASE));
        }
        if sampled {
            self.enter_grams(position);
        }
        if is_body {
            self.expect_more(position);
        }
    }

    pub(super) fn pop(&mut self) -> Option<Node> {
        let entry = self.entries.pop()?;
        self.fell_to = self.fell_to.min(self.end());
        match entry.before.filter(|&before| before >= self.base) {
            Some(before) => self.latest.insert(entry.node.shape, before),
            None => self.latest.remove(&entry.node.shape),
        };
        undo(&mut self.expected, &mut self.expected_undo, entry.undo[0]);
        undo(&mut self.grams, &mut self.grams_undo, entry.undo[1]);
        Some(entry.node)
    }

    /// Removes the last `n` nodes and returns them in order.
    pub(super) fn pop_many(&mut self, n: usize) -> Vec<Node> {
        let mut nodes: Vec<Node> = (0..n).map_while(|_| self.pop()).collect();
        nodes.reverse();
        nodes
    }

    /// Whether the list ends with nodes of these shapes.
    pub(super) fn ends_with(&self, nodes: &[Node]) -> bool {
        let Some(start) = self.entries.len().checked_sub(nodes.len()) else { return false };
        self.entries[start..].iter().zip(nodes).all(|(entry, node)| entry.node.same_shape(node))
    }

    /// What the list as it stands would continue.
    pub(super) fn continued(&self) -> Option<Expected> {
        let entry = self.entries.last()?;
        self.expected
            .get(&entry.prefix)
            .copied()
            .filter(|found| found.at >= self.base && found.at + 1 < self.end())
    }

    /// The shortest `n ≥ 2` found for which the last `n` nodes equal the `n` before.
    pub(super) fn repeat(&self) -> Option<usize> {
        let last = self.entries.last()?;
        let end = self.end() - 1;
        let mut position = last.before;
        for _ in 0..POSITIONS {
            let Some(at) = position.filter(|&at| at >= self.base) else { break };
            let n = end - at;
            if 2 * n > self.entries.len() {
                return None;
            }
            if self.repeats(n) {
                return Some(n);
            }
            position = self.entries[at - self.base].before;
        }
        last.grams
            .iter()
            .flatten()
            .map(|&at| end - at)
            .find(|&n| 2 * n <= self.entries.len() && self.repeats(n))
    }

    fn repeats(&self, n: usize) -> bool {
        let len = self.entries.len();
        n >= 2
            && self.hash(len - 2 * n, len - n) == self.hash(len - n, len)
            && (len - n..len).all(|i| self.entries[i].node.same_shape(&self.entries[i - n].node))
    }

    /// Gives up the oldest `n` nodes.
    pub(super) fn freeze(&mut self, n: usize) -> Vec<Node> {
        let n = n.min(self.entries.len());
        self.base_prefix = self.prefix_before(n);
        self.base += n;
        let drop =
            self.entries.get(n).map_or([self.expected_undo.len(), self.grams_undo.len()], |entry| entry.undo);
        for (key, _) in self.expected_undo.drain(..drop[0]) {
            if self.expected.get(&key).is_some_and(|found| found.at < self.base) {
                self.expected.remove(&key);
            }
        }
        for (key, _) in self.grams_undo.drain(..drop[1]) {
            if self.grams.get(&key).is_some_and(|&at| at < self.base) {
                self.grams.remove(&key);
            }
        }
        let frozen: Vec<Node> = self.entries.drain(..n).map(|entry| entry.node).collect();
        for node in &frozen {
            if self.latest.get(&node.shape).is_some_and(|&at| at < self.base) {
                self.latest.remove(&node.shape);
            }
        }
        for entry in &mut self.entries {
            entry.undo[0] -= drop[0];
            entry.undo[1] -= drop[1];
            for gram in &mut entry.grams {
                *gram = gram.filter(|&at| at >= self.base);
            }
        }
        frozen
    }

    pub(super) fn into_nodes(self) -> impl Iterator<Item = Node> {
        self.entries.into_iter().map(|entry| entry.node)
    }

    /// Memory behind the list, in words of 8 bytes; table sizes estimated from their capacity.
    pub(super) fn heap_words(&self) -> usize {
        let nodes: usize = self.entries.iter().map(|entry| entry.node.heap_words()).sum();
        nodes
            + self.entries.capacity() * (size_of::<Entry>() / 8)
            + self.powers.capacity()
            + 3 * (self.latest.capacity() + self.grams.capacity() + self.grams_undo.capacity())
            + 6 * (self.expected.capacity() + self.expected_undo.capacity())
    }

    fn prefix_before(&self, index: usize) -> u64 {
        index.checked_sub(1).map_or(self.base_prefix, |before| self.entries[before].prefix)
    }

    /// Hash of the shapes of entries `from..to`.
    fn hash(&self, from: usize, to: usize) -> u64 {
        let before = self.prefix_before(from).wrapping_mul(self.powers[to - from]);
        self.prefix_before(to).wrapping_sub(before)
    }

    /// Enters the n-grams that end at the last node. Only one shape in eight is entered: at every node this would
    /// cost several times all the rest, and a long period contains many such shapes.
    fn enter_grams(&mut self, position: usize) {
        let len = self.entries.len();
        let mut found = [None; 2];
        for (found, n) in found.iter_mut().zip(GRAMS) {
            let Some(from) = len.checked_sub(n) else { continue };
            let key = self.hash(from, len) ^ u64::from(n == GRAMS[0]);
            *found = self.grams.insert(key, position);
            self.grams_undo.push((key, *found));
        }
        if let Some(entry) = self.entries.last_mut() {
            entry.grams = found.map(|at| at.filter(|&at| at >= self.base));
        }
    }

    /// Enters the prefix hashes that the list will have when one more iteration of a body on the right spine of the
    /// last node, or of a suffix of such a body, has been appended.
    fn expect_more(&mut self, at: usize) {
        let Some(entry) = self.entries.last() else { return };
        let prefix = entry.prefix;
        let mut found = Vec::new();
        let mut node = &entry.node;
        let mut level = 0;
        while let Some(body) = node.as_body() {
            let len = body.children.len();
            found.push((len, body.hash, Expected { at, level, suffix: None }));
            let mut hash = 0_u64;
            let mut power = 1_u64;
            for n in 1..len.min(WRAP + 1) {
                hash = hash.wrapping_add(body.children[len - n].shape.wrapping_mul(power));
                power = power.wrapping_mul(BASE);
                if n >= 2 {
                    found.push((n, hash, Expected { at, level, suffix: Some(n) }));
                }
            }
            let Some(last) = body.children.last() else { break };
            node = last;
            level += 1;
        }
        for (len, hash, expected) in found {
            while self.powers.len() <= len {
                let power = self.powers.last().copied().unwrap_or(1);
                self.powers.push(power.wrapping_mul(BASE));
            }
            let key = prefix.wrapping_mul(self.powers[len]).wrapping_add(hash);
            self.expect(key, expected);
        }
    }

    /// Enters one expectation; whole bodies go before suffixes, and later ones before earlier ones of their kind.
    fn expect(&mut self, key: u64, expected: Expected) {
        let old = self.expected.get(&key).copied();
        if expected.suffix.is_some() && old.is_some_and(|old| old.suffix.is_none() && old.at >= self.base) {
            return;
        }
        self.expected.insert(key, expected);
        self.expected_undo.push((key, old));
    }
}

/// Takes back the latest insertions into a table.
fn undo<V>(table: &mut Map<V>, done: &mut Vec<(u64, Option<V>)>, len: usize) {
    for (key, old) in done.drain(len..).rev() {
        match old {
            Some(old) => table.insert(key, old),
            None => table.remove(&key),
        };
    }
}
