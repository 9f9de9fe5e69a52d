//! Exact online folding of a symbol sequence into a count-stream tree.
//!
//! The *open list* is a list of nodes, each an event or a body with one count per visit of its parent. A symbol is
//! appended, and then the end of the list is reduced until nothing applies:
//!
//! 1. *Run*: the event executed last is the same: its count grows. Two equal-shaped bodies in a row are one.
//! 2. *Spine*: what follows a body is one more iteration of it, or of the body that was executed last inside it. Found by
//!    one lookup: for every body the hash is kept that the list's prefix will have when one more iteration has
//!    been appended, also with one inner loop executed just once, as bare nodes.
//! 3. *Fold*: the last m nodes equal the m before: they become a body executed twice.
//!
//! Equal means equal in shape (structure without counts). Each step removes nodes, keeps the order of all counts and
//! therefore the decoded sequence, whatever hashes say: shapes are compared before anything is merged.
//!
//! Source: Wu, Mueller 2013, section 3.2, in the count-stream form; step 2 takes the place of their delayed merge of
//! trailing iterations.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::ints::{Ints, Sealed};
use crate::tree::{FlatTree, Item};

/// Symbols being folded.
pub type Sym = u32;

/// Nodes that folding looks back over.
pub const DEFAULT_WINDOW: usize = 131_072;

/// Earlier positions of the last shape that are tried as the end of a repeat.
const CANDIDATES: usize = 16;
/// Lengths of the n-grams that find repeats longer than those positions reach.
const NGRAMS: [usize; 2] = [12, 96];
/// Multiplier of the prefix hash.
const BASE: u64 = 0x9E37_79B9_7F4A_7C15;

type Map<V> = HashMap<u64, V, FixedState>;

#[derive(Debug, Clone)]
enum Kind {
    Leaf(Sym),
    Body(Vec<Node>),
}

/// A node; its counts are `past`, then `last`.
#[derive(Debug, Clone)]
struct Node {
    kind: Kind,
    shape: u64,
    past: Ints,
    last: i64,
}

/// Where one more iteration would be appended: the open node, how deep on its right spine the body lies, and which of the
/// body's children stands bare (that child's number plus one, 0 for none).
#[derive(Debug, Clone, Copy)]
struct Expected {
    at: usize,
    depth: usize,
    bare: usize,
}

/// Folds a sequence online. *Cost:* amortised O(1) table lookups per symbol; memory in the number of nodes.
#[derive(Debug)]
pub struct Folder {
    window: usize,
    open: Vec<Node>,
    /// `prefix[i]` hashes the shapes of `open[..i]`.
    prefix: Vec<u64>,
    powers: Vec<u64>,
    recent: Map<[u32; CANDIDATES]>,
    grams: Map<usize>,
    expected: Map<Expected>,
}

impl Folder {
    /// A folder that looks back over `window` nodes.
    #[must_use]
    pub fn new(window: usize) -> Self {
        Self {
            window,
            open: Vec::new(),
            prefix: vec![0],
            powers: vec![1],
            recent: Map::default(),
            grams: Map::default(),
            expected: Map::default(),
        }
    }

    /// Appends a symbol.
    pub fn push(&mut self, sym: Sym) {
        if let Some(leaf) = self.open.last_mut().and_then(last_leaf) {
            if matches!(leaf.kind, Kind::Leaf(s) if s == sym) {
                leaf.last += 1;
                return;
            }
        }
        self.append(Node { kind: Kind::Leaf(sym), shape: leaf_shape(sym), past: Ints::new(), last: 1 });
        while self.unite() || self.spine() || self.fold() {}
    }

    /// The tree.
    #[must_use]
    pub fn finish(self) -> Folded {
        Folded { open: self.open }
    }

    fn append(&mut self, node: Node) {
        let end = self.prefix.last().copied().unwrap_or(0);
        self.prefix.push(extend(end, node.shape));
        let at = self.open.len();
        let ring = self.recent.entry(node.shape).or_insert([u32::MAX; CANDIDATES]);
        ring.copy_within(..CANDIDATES - 1, 1);
        ring[0] = u32::try_from(at).unwrap_or(u32::MAX);
        let body = matches!(node.kind, Kind::Body(_));
        self.open.push(node);
        if self.powers.len() <= self.open.len() {
            let p = self.powers.last().copied().unwrap_or(1);
            self.powers.push(p.wrapping_mul(BASE));
        }
        if body {
            self.expect(at);
        }
    }

    fn truncate(&mut self, len: usize) -> Vec<Node> {
        self.prefix.truncate(len + 1);
        self.open.split_off(len)
    }

    /// Two equal-shaped bodies in a row become one that is executed as often as both.
    fn unite(&mut self) -> bool {
        let [.., a, b] = &self.open[..] else { return false };
        if matches!(a.kind, Kind::Leaf(_)) || !same_shape(a, b) {
            return false;
        }
        let len = self.open.len() - 1;
        let tail = self.truncate(len);
        if let (Some(a), Some(b)) = (self.open.last_mut(), tail.into_iter().next()) {
            let (Kind::Body(into), Kind::Body(from)) = (&mut a.kind, b.kind) else { return false };
            into.iter_mut().zip(from).for_each(|(x, y)| x.absorb(y));
            a.last += b.last;
        }
        true
    }

    /// The tail is one more iteration of a body that the list would continue.
    fn spine(&mut self) -> bool {
        let len = self.open.len();
        let Some(&Expected { at, depth, bare }) = self.prefix.last().and_then(|h| self.expected.get(h))
        else {
            return false;
        };
        if at + 1 >= len || at < len.saturating_sub(self.window) {
            return false;
        }
        let (head, tail) = self.open.split_at_mut(at + 1);
        let Some(body) = head.last_mut().and_then(|n| on_spine(n, depth)) else { return false };
        let Kind::Body(children) = &body.kind else { return false };
        if !fits(children, tail, bare) {
            return false;
        }
        let tail = self.truncate(at + 1);
        let Some(body) = self.open.last_mut().and_then(|n| on_spine(n, depth)) else { return false };
        let Kind::Body(children) = &mut body.kind else { return false };
        let mut tail = tail.into_iter();
        for (i, child) in children.iter_mut().enumerate() {
            match &mut child.kind {
                Kind::Body(inner) if i + 1 == bare => {
                    inner.iter_mut().for_each(|x| {
                        if let Some(y) = tail.next() {
                            x.absorb(y);
                        }
                    });
                    child.past.push(child.last);
                    child.last = 1;
                }
                _ => {
                    if let Some(y) = tail.next() {
                        child.absorb(y);
                    }
                }
            }
        }
        body.last += 1;
        // A loop that ended bare now has its last iteration inside the spine again.
        self.expect(at);
        true
    }

    /// The last m nodes repeat the m before them.
    fn fold(&mut self) -> bool {
        let len = self.open.len();
        let Some(last) = self.open.last() else { return false };
        let floor = len.saturating_sub(self.window);
        let shape = last.shape;
        let mut found = None;
        if let Some(ring) = self.recent.get(&shape) {
            let ends = ring.iter().map(|&p| p as usize).filter(|&p| p + 1 < len && p >= floor);
            found = ends.map(|p| len - 1 - p).find(|&m| self.repeats(m, floor));
        }
        let sampled = shape % 8 == 0;
        for n in NGRAMS.into_iter().filter(|&n| sampled && n <= len) {
            let gram = self.hash(len - n, len) ^ n as u64;
            let before = self.grams.insert(gram, len - 1);
            if found.is_none() {
                found = before.filter(|&p| p + 1 < len && p >= floor).map(|p| len - 1 - p);
                found = found.filter(|&m| self.repeats(m, floor));
            }
        }
        let Some(m) = found else { return false };
        let second = self.truncate(len - m);
        let mut first = self.truncate(len - 2 * m);
        first.iter_mut().zip(second).for_each(|(x, y)| x.absorb(y));
        let shape = body_shape(&first);
        self.append(Node { kind: Kind::Body(first), shape, past: Ints::new(), last: 2 });
        true
    }

    fn repeats(&self, m: usize, floor: usize) -> bool {
        let len = self.open.len();
        m >= 2
            && 2 * m <= len - floor
            && self.hash(len - 2 * m, len - m) == self.hash(len - m, len)
            && (0..m).all(|i| same_shape(&self.open[len - 2 * m + i], &self.open[len - m + i]))
    }

    /// Hash of the shapes in `open[from..to]`.
    fn hash(&self, from: usize, to: usize) -> u64 {
        self.prefix[to].wrapping_sub(self.prefix[from].wrapping_mul(self.powers[to - from]))
    }

    /// Notes which prefix hashes would complete one more iteration of the bodies on a node's right spine.
    fn expect(&mut self, at: usize) {
        if self.expected.len() > 8 * self.open.len() + 4096 {
            self.expected.clear();
        }
        let start = self.prefix[at + 1];
        let mut node = &self.open[at];
        let mut depth = 0;
        while let Kind::Body(children) = &node.kind {
            let whole = children.iter().fold(start, |h, c| extend(h, c.shape));
            self.expected.insert(whole, Expected { at, depth, bare: 0 });
            for (i, child) in children.iter().enumerate() {
                let Kind::Body(inner) = &child.kind else { continue };
                let before = children[..i].iter().fold(start, |h, c| extend(h, c.shape));
                let through = inner.iter().fold(before, |h, c| extend(h, c.shape));
                let hash = children[i + 1..].iter().fold(through, |h, c| extend(h, c.shape));
                self.expected.entry(hash).or_insert(Expected { at, depth, bare: i + 1 });
            }
            let Some(last) = children.last() else { break };
            node = last;
            depth += 1;
        }
    }
}

impl Node {
    /// Takes over the counts of a node of equal shape that was executed after it.
    fn absorb(&mut self, later: Node) {
        self.past.push(self.last);
        self.past.extend_from(&later.past);
        self.last = later.last;
        if let (Kind::Body(into), Kind::Body(from)) = (&mut self.kind, later.kind) {
            into.iter_mut().zip(from).for_each(|(x, y)| x.absorb(y));
        }
    }
}

/// The event that was executed last.
fn last_leaf(node: &mut Node) -> Option<&mut Node> {
    if matches!(node.kind, Kind::Leaf(_)) {
        return Some(node);
    }
    let Kind::Body(children) = &mut node.kind else { return None };
    last_leaf(children.last_mut()?)
}

/// The body `depth` levels down a node's right spine.
fn on_spine(mut node: &mut Node, depth: usize) -> Option<&mut Node> {
    for _ in 0..depth {
        let Kind::Body(children) = &mut node.kind else { return None };
        node = children.last_mut()?;
    }
    Some(node)
}

/// Whether nodes are an iteration of a body with these children, child `bare - 1` (if any) executed once, bare.
fn fits(children: &[Node], nodes: &[Node], bare: usize) -> bool {
    let mut rest = nodes.iter();
    for (i, child) in children.iter().enumerate() {
        match &child.kind {
            Kind::Body(inner) if i + 1 == bare => {
                if !inner.iter().all(|c| rest.next().is_some_and(|n| same_shape(c, n))) {
                    return false;
                }
            }
            _ => {
                if !rest.next().is_some_and(|n| same_shape(child, n)) {
                    return false;
                }
            }
        }
    }
    rest.next().is_none()
}

fn same_shape(a: &Node, b: &Node) -> bool {
    a.shape == b.shape
        && match (&a.kind, &b.kind) {
            (Kind::Leaf(x), Kind::Leaf(y)) => x == y,
            (Kind::Body(x), Kind::Body(y)) => {
                x.len() == y.len() && x.iter().zip(y).all(|(p, q)| same_shape(p, q))
            }
            _ => false,
        }
}

fn extend(hash: u64, shape: u64) -> u64 {
    hash.wrapping_mul(BASE).wrapping_add(shape)
}

fn leaf_shape(sym: Sym) -> u64 {
    mix(u64::from(sym) + 1)
}

fn body_shape(children: &[Node]) -> u64 {
    mix(children.iter().fold(0x5851_F42D_4C95_7F2D, |h, c| extend(h, c.shape)))
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A folded sequence.
#[derive(Debug)]
pub struct Folded {
    open: Vec<Node>,
}

impl Folded {
    /// The tree in preorder, with the counts of each node.
    #[must_use]
    pub fn flatten(self) -> (FlatTree, Vec<Sealed>) {
        let (mut items, mut counts) = (Vec::new(), Vec::new());
        for node in self.open {
            write(node, &mut items, &mut counts);
        }
        (FlatTree::new(items), counts)
    }
}

fn write(mut node: Node, items: &mut Vec<Item>, counts: &mut Vec<Sealed>) {
    node.past.push(node.last);
    counts.push(std::mem::take(&mut node.past).seal());
    match node.kind {
        Kind::Leaf(sym) => items.push(Item::Leaf { sym }),
        Kind::Body(children) => {
            let at = items.len();
            items.push(Item::Body { below: 0 });
            for c in children {
                write(c, items, counts);
            }
            items[at] = Item::Body { below: u32::try_from(items.len() - at - 1).unwrap_or(u32::MAX) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Walk;
    use proptest::prelude::*;

    fn fold(v: &[Sym]) -> (FlatTree, Vec<Sealed>) {
        let mut f = Folder::new(DEFAULT_WINDOW);
        v.iter().for_each(|&s| f.push(s));
        f.finish().flatten()
    }

    fn unfold((tree, counts): &(FlatTree, Vec<Sealed>)) -> Vec<Sym> {
        let mut walk = Walk::new(tree, counts.iter().map(Sealed::cursor).collect::<Vec<_>>());
        std::iter::from_fn(|| walk.next_symbol().unwrap()).collect()
    }

    /// `A(2 5 1 4)`-like text: bodies in braces, counts where they are not all 1.
    fn text((tree, counts): &(FlatTree, Vec<Sealed>), values: usize) -> String {
        fn list(items: &[Item], counts: &[Sealed], values: usize, out: &mut String) {
            let mut at = 0;
            while at < items.len() {
                let mut c = counts[at].cursor();
                let v: Vec<i64> = (0..values).map(|_| c.next()).collect();
                match items[at] {
                    Item::Leaf { sym } => out.push(char::from(b'A' + u8::try_from(sym).unwrap())),
                    Item::Body { below } => {
                        let end = at + 1 + below as usize;
                        out.push('{');
                        list(&items[at + 1..end], &counts[at + 1..end], values, out);
                        out.push('}');
                        at = end - 1;
                    }
                }
                if v.iter().any(|&x| x != 1) {
                    out.push_str(&format!("{v:?}"));
                }
                at += 1;
            }
        }
        let mut out = String::new();
        list(tree.items(), counts, values, &mut out);
        out
    }

    fn letters(s: &str) -> Vec<Sym> {
        s.bytes().map(|b| u32::from(b - b'A')).collect()
    }

    #[test]
    fn loops_of_the_papers() {
        // algorithms: figure 2 with n = 3,3,3 and with other trip counts; an inner loop growing; a leading run.
        let inner = |n: &[usize]| n.iter().map(|&k| format!("A{}", "BCD".repeat(k))).collect::<String>();
        assert_eq!(text(&fold(&letters(&inner(&[3, 3, 3]))), 1), "{A{BCD}[3]}[3]");
        assert_eq!(text(&fold(&letters(&inner(&[2, 5, 1, 4]))), 4), "{A{BCD}[2, 5, 1, 4]}[4, 4, 4, 4]");
        let grow = "ABCDCDABCDCDCDABCDCDCDCD";
        assert_eq!(text(&fold(&letters(grow)), 3), "{AB{CD}[2, 3, 4]}[3, 3, 3]");
    }

    #[test]
    fn nested_loops_take_constant_size() {
        let program = |n: usize| {
            let inner: Vec<Sym> = [1, 2].repeat(7);
            let step: Vec<Sym> = [&[0][..], &inner, &[3, 3, 3, 4]].concat();
            step.repeat(n)
        };
        let (a, b) = (fold(&program(10)), fold(&program(1000)));
        assert_eq!(a.0, b.0);
        assert!(b.0.items().len() <= 7, "{:?}", b.0);
        assert_eq!(unfold(&b), program(1000));
    }

    #[test]
    fn a_long_period_folds() {
        let mut x = 1u64;
        let period: Vec<Sym> = (0..5000)
            .map(|_| {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                u32::try_from(x >> 58).unwrap()
            })
            .collect();
        let f = fold(&period.repeat(20));
        assert!(f.0.items().len() < 11_000, "{}", f.0.items().len());
        assert_eq!(unfold(&f), period.repeat(20));
    }

    #[derive(Clone, Debug)]
    enum Code {
        Do(Sym),
        Loop(Vec<Code>, Vec<u8>),
    }

    fn run(code: &[Code], step: &mut usize, out: &mut Vec<Sym>) {
        for c in code {
            match c {
                Code::Do(s) => out.push(*s),
                Code::Loop(inner, trips) => {
                    *step += 1;
                    (0..trips[*step % trips.len()]).for_each(|_| run(inner, step, out));
                }
            }
        }
    }

    fn code() -> impl Strategy<Value = Vec<Code>> {
        let leaf = (0u32..4).prop_map(Code::Do);
        let node = leaf.prop_recursive(4, 32, 5, |inner| {
            (proptest::collection::vec(inner, 1..5), proptest::collection::vec(0u8..5, 1..4))
                .prop_map(|(c, t)| Code::Loop(c, t))
        });
        proptest::collection::vec(node, 0..8)
    }

    proptest! {
        #[test]
        fn any_sequence_comes_back(v in proptest::collection::vec(0u32..4, 0..300)) {
            prop_assert_eq!(unfold(&fold(&v)), v);
        }

        #[test]
        fn any_program_comes_back(code in code()) {
            let mut v = Vec::new();
            run(&code, &mut 0, &mut v);
            v.truncate(20_000);
            prop_assert_eq!(unfold(&fold(&v)), v);
        }
    }
}
