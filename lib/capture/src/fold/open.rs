//! The open list: the nodes that may still be folded, with the tables that find repeats in it.
//!
//! Everything here is a function of the list's shapes: removing a node undoes what adding it did. The same program
//! state therefore always meets the same tables, and equal loops fold equally wherever they stand.

use st_model::num::{Exact, narrow};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::FixedState;

use super::node::{BASE, Node, NodeKind, Sym, append};
use super::recent::{Occurrence, PLACES, Recent};

/// Suffixes of a body that may become a body of their own reach back so far.
const WRAP: usize = 64;
/// Nodes before an event that tell its places apart: a few, and more for those further back. Where calls are made by chance
/// the few are often the same.
const NEAR: usize = 3;
const FAR: usize = 12;
/// Lengths of the n-grams that find repeats further back than the positions of one shape reach.
const GRAMS: [usize; 2] = [12, 96];
type Map<V> = HashMap<u64, V, FixedState>;

/// What a list continues if its prefix hash has the value under which this is found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// Position of the node whose right spine the body lies on.
    pub(super) at: usize,
    /// How deep on that spine.
    pub(super) level: u32,
    /// How many of the body's last children the nodes after `at` repeat; 0: all.
    pub(super) suffix: u32,
}

/// What is compared of a node; apart from the nodes, so that the search for repeats stays in the cache.
#[derive(Debug, Clone, Copy)]
struct Mark {
    shape: u64,
    /// Hash of the list up to and including this node.
    prefix: u64,
    /// Distance to the previous node of the same shape; 0: none.
    back: u32,
    /// Entries in the undo lists.
    expected: u32,
}

/// Positions count from the beginning of the sequence, frozen nodes included.
#[derive(Debug, Clone)]
pub(super) struct Open {
    nodes: Vec<Node>,
    marks: Vec<Mark>,
    /// Number of nodes at all levels.
    size: usize,
    /// Nodes frozen so far: position of the first node here.
    base: usize,
    /// Prefix hash before the first node.
    base_prefix: u64,
    powers: Vec<u64>,
    /// Where each shape stands last, but for events of which more is known.
    latest: Map<usize>,
    recent: Recent,
    expected: Map<Expected>,
    expected_undo: Vec<(u64, Option<Expected>)>,
    grams: Map<usize>,
    /// Position of the node entered, key, and what the key had meant before.
    grams_undo: Vec<(usize, u64, Option<usize>)>,
    /// The lowest end since [`Open::mark`].
    fell_to: usize,
    /// The lowest end since [`Open::take_lowest`].
    lowest: usize,
    scratch: Vec<(usize, u64, Expected)>,
}

impl Open {
    pub(super) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            marks: Vec::new(),
            size: 0,
            base: 0,
            base_prefix: 0,
            powers: vec![1],
            latest: Map::default(),
            recent: Recent::default(),
            expected: Map::default(),
            expected_undo: Vec::new(),
            grams: Map::default(),
            grams_undo: Vec::new(),
            fell_to: 0,
            lowest: 0,
            scratch: Vec::new(),
        }
    }

    /// Position after the last node.
    pub(super) fn end(&self) -> usize {
        self.base + self.nodes.len()
    }

    /// Begins to watch which nodes stay: those below [`Open::fell_to`] did.
    pub(super) fn mark(&mut self) {
        self.fell_to = self.end();
    }

    /// The lowest end since the mark.
    pub(super) fn fell_to(&self) -> usize {
        self.fell_to
    }

    /// Number of nodes at all levels.
    pub(super) fn nodes(&self) -> usize {
        self.size
    }

    /// The lowest end since this was asked last: nodes below it stayed.
    pub(super) fn take_lowest(&mut self) -> usize {
        let end = self.end();
        std::mem::replace(&mut self.lowest, end)
    }

    /// Number of nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn last(&self) -> Option<&Node> {
        self.nodes.last()
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut Node> {
        self.nodes.last_mut()
    }

    /// The node at a position, unless it is frozen.
    pub(super) fn at(&self, position: usize) -> Option<&Node> {
        self.nodes.get(position.checked_sub(self.base)?)
    }

    /// The nodes from a position on.
    pub(super) fn from(&self, position: usize) -> &[Node] {
        self.nodes.get(position.saturating_sub(self.base)..).unwrap_or_default()
    }

    pub(super) fn push(&mut self, node: Node) {
        let position = self.end();
        let shape = node.shape;
        let prefix = append(self.prefix_before(self.marks.len()), shape);
        let before = match kept(&node) {
            Some(sym) => {
                self.recent.push(sym, Occurrence { at: position, before: self.hash_before(self.marks.len()) })
            }
            None => self.latest.insert(shape, position),
        };
        // What is frozen cannot be compared any more: to the list it is not there.
        let back = before.filter(|&at| at >= self.base).map_or(0, |at| narrow(position - at));
        let after_body = self.nodes.last().is_some_and(|node| node.as_body().is_some());
        self.size += node.size();
        self.nodes.push(node);
        self.marks.push(Mark { shape, prefix, back, expected: 0 });
        // One more than there are nodes: a hash of all of them needs it.
        if self.powers.len() <= self.marks.len() {
            let power = self.powers.last().copied().unwrap_or(1);
            self.powers.push(power.wrapping_mul(BASE));
        }
        if shape.is_multiple_of(8) {
            self.enter_grams(position);
        }
        // Only a body can be continued.
        if after_body {
            self.expect_more();
        }
    }

    pub(super) fn pop(&mut self) -> Option<Node> {
        let (node, mark) = (self.nodes.pop()?, self.marks.pop()?);
        self.size -= node.size();
        let end = self.end();
        self.fell_to = self.fell_to.min(end);
        self.lowest = self.lowest.min(end);
        let back = mark.back.to_usize();
        match kept(&node) {
            Some(sym) => {
                // Taken out while it asks the list what stood before.
                let mut recent = std::mem::take(&mut self.recent);
                recent.pop(sym, |at| self.earlier(at));
                self.recent = recent;
            }
            None if back == 0 => drop(self.latest.remove(&mark.shape)),
            None => drop(self.latest.insert(mark.shape, end - back)),
        }
        // Backwards, as one key may have been entered more than once.
        for _ in 0..mark.expected {
            let Some((key, old)) = self.expected_undo.pop() else { break };
            restore(&mut self.expected, key, old);
        }
        while let Some((_, key, old)) = self.grams_undo.pop_if(|&mut (at, ..)| at == end) {
            restore(&mut self.grams, key, old);
        }
        Some(node)
    }

    /// Removes the last `n` nodes and returns them in order.
    pub(super) fn pop_many(&mut self, n: usize) -> Vec<Node> {
        let mut nodes: Vec<Node> = (0..n).map_while(|_| self.pop()).collect();
        nodes.reverse();
        nodes
    }

    /// Whether the list ends with nodes of these shapes.
    pub(super) fn ends_with(&self, nodes: &[Node]) -> bool {
        let Some(start) = self.nodes.len().checked_sub(nodes.len()) else { return false };
        self.nodes[start..].iter().zip(nodes).all(|(node, other)| node.same_shape(other))
    }

    /// What the list as it stands would continue.
    pub(super) fn continued(&self) -> Option<Expected> {
        let mark = self.marks.last()?;
        self.expected
            .get(&mark.prefix)
            .copied()
            .filter(|found| found.at >= self.base && found.at + 1 < self.end())
    }

    /// The shortest `n ≥ 2` found for which the last `n` nodes equal the `n` before.
    pub(super) fn repeat(&self) -> Option<usize> {
        let len = self.marks.len();
        let end = self.end().checked_sub(1)?;
        // Nearest first: the shortest period is the innermost loop. Positions of the last shape reach back over so many
        // of its places, n-grams over any distance, but only from some shapes.
        let tried = match self.nodes.last().and_then(kept) {
            Some(sym) => self.at_a_glance(sym, end).unwrap_or_else(|| self.place_by_place(sym, end)),
            None => {
                let places = std::iter::successors(Some(end), |at| self.before(*at)).take(PLACES).skip(1);
                self.first_repeat(places.map(|at| (end - at, 0)))
            }
        };
        if let Err(found) = tried {
            return found;
        }
        // What an n-gram meant until now is where it stood before.
        let grams = self.grams_undo.iter().rev().take(GRAMS.len()).filter(|&&(position, ..)| position == end);
        grams
            .filter_map(|&(.., at)| at.filter(|&at| at >= self.base))
            .map(|at| end - at)
            .find(|&n| 2 * n <= len && self.repeats(n))
    }

    /// What [`Open::place_by_place`] finds, if that is nothing and can be told from all places together: mostly.
    #[inline]
    fn at_a_glance(&self, sym: Sym, end: usize) -> Option<Result<(), Option<usize>>> {
        let len = self.marks.len();
        // Their hashes do not tell.
        let near = (2..PLACES).map_while(|n| self.recent.place(sym, n)).map(|place| end - place.at);
        let may =
            |n: usize| n > 1 && 2 * n <= len && self.marks[len - 2].shape == self.marks[len - 2 - n].shape;
        if near.take_while(|n| *n <= NEAR).any(may) {
            return None;
        }
        let oldest = self.recent.unlike(sym).filter(|at| *at >= self.base)?;
        Some(if 2 * (end - oldest) > self.marks.len() { Err(None) } else { Ok(()) })
    }

    /// [`Open::first_repeat`] of the distances to the open places of an event, which is the last.
    fn place_by_place(&self, sym: Sym, end: usize) -> Result<(), Option<usize>> {
        // The first place is that of the last node itself.
        let before = self.recent.place(sym, 1).map_or(0, |place| place.before);
        let places = (2..=PLACES).map_while(|n| self.recent.place(sym, n));
        let open = places.take_while(|place| place.at >= self.base);
        self.first_repeat(open.map(|place| (end - place.at, place.before ^ before)))
    }

    /// The first of these distances, ascending, at which the list repeats, or nothing if it is too short for one; `Ok` if
    /// there are no more. Beside each stands in which bits the hash in its [`Occurrence`] differs from that of the last node.
    #[inline]
    fn first_repeat(&self, distances: impl Iterator<Item = (usize, u32)>) -> Result<(), Option<usize>> {
        for (n, differs) in distances {
            if 2 * n > self.marks.len() {
                return Err(None);
            }
            // Up to NEAR the hashed nodes reach out of what would repeat, so that a difference says nothing.
            let may = match n {
                0..=NEAR => true,
                _ if n <= FAR => differs >> 16 == 0,
                _ => differs == 0,
            };
            if may && self.repeats(n) {
                return Err(Some(n));
            }
        }
        Ok(())
    }

    /// The position of the previous node of the shape of the one at a position, unless that is frozen.
    fn before(&self, at: usize) -> Option<usize> {
        let index = at.checked_sub(self.base)?;
        let back = usize::try_from(self.marks.get(index)?.back).ok()?;
        (1..=index).contains(&back).then(|| at - back)
    }

    /// Hash of the nodes before one, of the few in its upper half and of all in the other; only their number counts where
    /// there are fewer.
    #[inline]
    fn hash_before(&self, index: usize) -> u32 {
        let until = self.prefix_before(index);
        let upper = |n: usize| {
            let hash = index
                .checked_sub(n)
                .map_or(0, |from| until.wrapping_sub(self.prefix_before(from).wrapping_mul(self.powers[n])));
            hash >> 48
        };
        narrow(upper(NEAR) << 16 | upper(FAR))
    }

    /// The place before the one at a position, as long as neither is frozen.
    fn earlier(&self, at: usize) -> Option<Occurrence> {
        let before = self.before(at)?;
        Some(Occurrence { at: before, before: self.hash_before(before - self.base) })
    }

    fn repeats(&self, n: usize) -> bool {
        let len = self.marks.len();
        // From cheap to certain: hashes may collide, and a wrong fold would be another sequence.
        n >= 2
            && self.marks[len - 2].shape == self.marks[len - 2 - n].shape
            && self.hash(len - 2 * n, len - n) == self.hash(len - n, len)
            && (len - n..len).all(|i| self.nodes[i].same_shape(&self.nodes[i - n]))
    }

    /// Gives up the oldest nodes, so that at most `keep` are left at all levels, or the last one with what is below it.
    pub(super) fn freeze(&mut self, keep: usize) -> impl Iterator<Item = Node> {
        let mut n = 0;
        // The last one may still go on.
        for node in &self.nodes[..self.nodes.len().saturating_sub(1)] {
            if self.size <= keep {
                break;
            }
            self.size -= node.size();
            n += 1;
        }
        self.base_prefix = self.prefix_before(n);
        self.base += n;
        let mut gone = 0;
        for (mark, node) in self.marks.drain(..n).zip(&self.nodes) {
            // What tables know of frozen nodes goes with the entries that would have taken it back.
            if kept(node).is_none() && self.latest.get(&mark.shape).is_some_and(|&at| at < self.base) {
                self.latest.remove(&mark.shape);
            }
            gone += mark.expected.to_usize();
        }
        for (key, _) in self.expected_undo.drain(..gone) {
            if self.expected.get(&key).is_some_and(|found| found.at < self.base) {
                self.expected.remove(&key);
            }
        }
        let gone = self.grams_undo.partition_point(|&(at, ..)| at < self.base);
        for (_, key, _) in self.grams_undo.drain(..gone) {
            if self.grams.get(&key).is_some_and(|&at| at < self.base) {
                self.grams.remove(&key);
            }
        }
        self.nodes.drain(..n)
    }

    pub(super) fn into_nodes(self) -> impl Iterator<Item = Node> {
        self.nodes.into_iter()
    }

    /// Memory behind the list, in words of 8 bytes; table sizes estimated from their capacity.
    pub(super) fn heap_words(&self) -> usize {
        let nodes: usize = self.nodes.iter().map(Node::heap_words).sum();
        nodes
            + self.nodes.capacity() * (size_of::<Node>() / 8)
            + 3 * self.marks.capacity()
            + self.powers.capacity()
            + self.recent.heap_words()
            + 3 * (self.latest.capacity() + self.grams.capacity() + self.grams_undo.capacity())
            + 6 * (self.expected.capacity() + self.expected_undo.capacity())
    }

    fn prefix_before(&self, index: usize) -> u64 {
        index.checked_sub(1).map_or(self.base_prefix, |before| self.marks[before].prefix)
    }

    /// Hash of the shapes of nodes `from..to`.
    fn hash(&self, from: usize, to: usize) -> u64 {
        let before = self.prefix_before(from).wrapping_mul(self.powers[to - from]);
        self.prefix_before(to).wrapping_sub(before)
    }

    /// Enters the n-grams that end at the last node. Only one shape in eight is entered: at every node this would
    /// cost several times all the rest, and a long period contains many such shapes.
    fn enter_grams(&mut self, position: usize) {
        let len = self.marks.len();
        for n in GRAMS {
            let Some(from) = len.checked_sub(n) else { continue };
            let key = self.hash(from, len) ^ u64::from(n == GRAMS[0]);
            let old = self.grams.insert(key, position);
            self.grams_undo.push((position, key, old));
        }
    }

    /// Enters the prefix hashes that the list will have when one more iteration of a body on the right spine of the last
    /// node but one, or of a suffix of such a body, has been appended: of those that begin with the last node. Most begin
    /// with another one and need no entry, which would be a cache miss or two, and another one when it is taken back.
    fn expect_more(&mut self) {
        let [.., before, last] = &self.nodes[..] else { return };
        let (next, at, mut level) = (last.shape, self.end() - 2, 0);
        let mut found = std::mem::take(&mut self.scratch);
        let mut node = before;
        while let Some(body) = node.as_body() {
            let len = body.children.len();
            if body.children.first().is_some_and(|child| child.shape == next) {
                found.push((len, body.hash, Expected { at, level, suffix: 0 }));
            }
            let mut hash = 0_u64;
            let mut power = 1_u64;
            // A body may hold a smaller loop at its end that was taken for part of it: its suffixes may go on, too.
            for n in 1..len.min(WRAP + 1) {
                let shape = body.children[len - n].shape;
                hash = hash.wrapping_add(shape.wrapping_mul(power));
                power = power.wrapping_mul(BASE);
                if n >= 2 && shape == next {
                    found.push((n, hash, Expected { at, level, suffix: narrow(n) }));
                }
            }
            let Some(last) = body.children.last() else { break };
            node = last;
            level += 1;
        }
        let (prefix, mut entered) = (self.prefix_before(self.marks.len() - 1), 0);
        for (len, hash, expected) in found.drain(..) {
            while self.powers.len() <= len {
                let power = self.powers.last().copied().unwrap_or(1);
                self.powers.push(power.wrapping_mul(BASE));
            }
            let key = prefix.wrapping_mul(self.powers[len]).wrapping_add(hash);
            entered += u32::from(self.expect(key, expected));
        }
        self.scratch = found;
        if let Some(mark) = self.marks.last_mut() {
            mark.expected = entered;
        }
    }

    /// Enters one expectation; whole bodies go before suffixes, and later ones before earlier ones of their kind.
    /// Returns whether it was entered.
    fn expect(&mut self, key: u64, expected: Expected) -> bool {
        let mut old = None;
        match self.expected.entry(key) {
            Entry::Vacant(place) => drop(place.insert(expected)),
            Entry::Occupied(place) => {
                let known = *place.get();
                if expected.suffix > 0 && known.suffix == 0 && known.at >= self.base {
                    return false;
                }
                old = Some(std::mem::replace(place.into_mut(), expected));
            }
        }
        self.expected_undo.push((key, old));
        true
    }
}

/// The symbol of an event whose places are kept together.
fn kept(node: &Node) -> Option<Sym> {
    match node.kind {
        NodeKind::Leaf(sym) if Recent::keeps(sym) => Some(sym),
        _ => None,
    }
}

/// Takes back an insertion into a table.
fn restore<V>(table: &mut Map<V>, key: u64, old: Option<V>) {
    match old {
        Some(old) => table.insert(key, old),
        None => table.remove(&key),
    };
}

#[cfg(test)]
mod tests;
