//! Nodes of a tree that still grows.

use st_model::ints::{Ints, Sealed};
use st_model::num::{Exact, narrow};
use st_model::tree::Item;

/// A symbol: which call, from where, with which outcome. Dense numbers fold fastest.
pub type Sym = u32;

/// Bodies inside one another at most; it bounds every recursion over a tree.
pub const DEEPEST: u32 = 64;

/// Multiplier of the polynomial hashes over shapes.
pub(super) const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// A node: its counts are `past`, then `last`, one per visit of the body around it.
///
/// `last` stands apart because it may still grow.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    /// Hash of the structure without counts.
    pub(super) shape: u64,
    pub(super) past: Ints,
    pub(super) last: u64,
}

#[derive(Debug, Clone)]
pub(super) enum NodeKind {
    Leaf(Sym),
    Body(Box<Body>),
}

#[derive(Debug, Clone)]
pub(super) struct Body {
    pub(super) children: Vec<Node>,
    /// Polynomial hash of the children's shapes.
    pub(super) hash: u64,
    /// Levels of bodies from here down, itself included.
    pub(super) depth: u32,
    /// Leaves at all levels, and nodes below this one.
    pub(super) leaves: usize,
    pub(super) below: usize,
}

impl Node {
    pub(super) fn leaf(sym: Sym, count: u64) -> Self {
        let shape = mix(u64::from(sym) + 1);
        Self { kind: NodeKind::Leaf(sym), shape, past: Ints::new(), last: count }
    }

    /// A body visited once so far.
    pub(super) fn body(children: Vec<Self>, count: u64) -> Self {
        let body = Box::new(Body { children, hash: 0, depth: 1, leaves: 0, below: 0 });
        let mut node = Self { kind: NodeKind::Body(body), shape: 0, past: Ints::new(), last: count };
        node.rehash();
        node
    }

    /// Brings hash, depth and shape up to date after a change among the children.
    pub(super) fn rehash(&mut self) {
        if let NodeKind::Body(body) = &mut self.kind {
            body.hash = body.children.iter().fold(0, |hash, child| append(hash, child.shape));
            body.depth = 1 + body.children.iter().map(Self::depth).max().unwrap_or(0);
            body.leaves = body.children.iter().map(Self::leaves).sum();
            body.below = body.children.iter().map(Self::size).sum();
            self.shape = mix(body.hash ^ mix(body.children.len().to_u64()));
        }
    }

    pub(super) fn as_body(&self) -> Option<&Body> {
        match &self.kind {
            NodeKind::Leaf(_) => None,
            NodeKind::Body(body) => Some(body),
        }
    }

    pub(super) fn as_body_mut(&mut self) -> Option<&mut Body> {
        match &mut self.kind {
            NodeKind::Leaf(_) => None,
            NodeKind::Body(body) => Some(body),
        }
    }

    pub(super) fn into_body(self) -> Option<Box<Body>> {
        match self.kind {
            NodeKind::Leaf(_) => None,
            NodeKind::Body(body) => Some(body),
        }
    }

    /// Number of leaves at all levels.
    pub(super) fn leaves(&self) -> usize {
        self.as_body().map_or(1, |body| body.leaves)
    }

    /// The first leaf's symbol, whether or not it ran.
    pub(super) fn head(&self) -> Sym {
        match &self.kind {
            NodeKind::Leaf(sym) => *sym,
            NodeKind::Body(body) => body.children.first().map_or(0, Self::head),
        }
    }

    /// The last leaf's symbol, whether or not it ran.
    pub(super) fn tail(&self) -> Sym {
        match &self.kind {
            NodeKind::Leaf(sym) => *sym,
            NodeKind::Body(body) => body.children.last().map_or(0, Self::tail),
        }
    }

    /// Levels of bodies; 0 for a leaf.
    pub(super) fn depth(&self) -> u32 {
        self.as_body().map_or(0, |body| body.depth)
    }

    /// Whether the structure is the same. Hashes only decide quickly that it is not.
    pub(super) fn same_shape(&self, other: &Self) -> bool {
        self.shape == other.shape
            && match (&self.kind, &other.kind) {
                (NodeKind::Leaf(a), NodeKind::Leaf(b)) => a == b,
                (NodeKind::Body(a), NodeKind::Body(b)) => same_shapes(&a.children, &b.children),
                _ => false,
            }
    }

    /// Takes over the counts of a node of equal shape that was visited after it.
    pub(super) fn absorb(&mut self, later: Self) {
        self.next(later.last, |past| past.extend_from(&later.past));
        self.absorb_below(later);
    }

    /// Takes over what was counted below a node of equal shape; its own counts are the caller's concern.
    pub(super) fn absorb_below(&mut self, later: Self) {
        if let (NodeKind::Body(body), NodeKind::Body(other)) = (&mut self.kind, later.kind) {
            for (child, other) in body.children.iter_mut().zip(other.children) {
                child.absorb(other);
            }
        }
    }

    /// Closes the latest count, lets `between` append further ones, and begins with `last`.
    pub(super) fn next(&mut self, last: u64, between: impl FnOnce(&mut Ints)) {
        self.past.push(signed(self.last));
        between(&mut self.past);
        self.last = last;
    }

    /// The body `level` levels down the right spine.
    pub(super) fn spine(&self, level: usize) -> Option<&Self> {
        (0..level).try_fold(self, |node, _| node.as_body()?.children.last())
    }

    /// As [`Node::spine`].
    pub(super) fn spine_mut(&mut self, level: usize) -> Option<&mut Self> {
        (0..level).try_fold(self, |node, _| node.as_body_mut()?.children.last_mut())
    }

    pub(super) fn is(&self, sym: Sym) -> bool {
        matches!(self.kind, NodeKind::Leaf(found) if found == sym)
    }

    /// Whether the bodies above `level` on the right spine ran at their last visit, so that what is appended to the
    /// body at `level` comes after everything else.
    pub(super) fn runs_to(&self, level: usize) -> bool {
        (0..level).all(|above| self.spine(above).is_some_and(|node| node.last > 0))
    }

    /// Number of levels of the right spine at which an iteration may be appended; 0 if none of these bodies can
    /// begin with the symbol.
    pub(super) fn live_levels(&self, sym: Sym) -> usize {
        let (mut levels, mut fits) = (0, false);
        let mut node = Some(self);
        while let Some((count, body)) = node.and_then(|node| Some((node.last, node.as_body()?))) {
            levels += 1;
            fits |= body.children.first().is_some_and(|child| child.as_body().is_some() || child.is(sym));
            node = if count == 0 { None } else { body.children.last() };
        }
        if fits { levels } else { 0 }
    }

    /// The leaf executed last, if the right spine was executed to its end.
    pub(super) fn last_leaf(&mut self) -> Option<&mut Self> {
        let mut node = self;
        while matches!(node.kind, NodeKind::Body(_)) {
            if node.last == 0 {
                return None;
            }
            node = node.as_body_mut()?.children.last_mut()?;
        }
        Some(node)
    }

    /// Number of nodes, itself included.
    pub(super) fn size(&self) -> usize {
        1 + self.as_body().map_or(0, |body| body.below)
    }

    /// Appends the node in preorder with its counts.
    pub(super) fn write(&self, items: &mut Vec<Item>, counts: &mut Vec<Sealed>) {
        let mut all = self.past.clone();
        all.push(signed(self.last));
        counts.push(all.seal());
        match &self.kind {
            NodeKind::Leaf(sym) => items.push(Item::Leaf { sym: *sym }),
            NodeKind::Body(body) => {
                let at = items.len();
                items.push(Item::Body { below: 0 });
                for child in &body.children {
                    child.write(items, counts);
                }
                let below = narrow(items.len() - at - 1);
                items[at] = Item::Body { below };
            }
        }
    }

    /// Memory behind the node, in words of 8 bytes.
    pub(super) fn heap_words(&self) -> usize {
        let below = self.as_body().map_or(0, |body| {
            let children: usize = body.children.iter().map(Self::heap_words).sum();
            (size_of::<Body>() + body.children.capacity() * size_of::<Self>()) / 8 + children
        });
        self.past.heap_words() + below
    }
}

pub(super) fn same_shapes(a: &[Node], b: &[Node]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_shape(b))
}

/// The hash of a list one node longer.
pub(super) fn append(hash: u64, shape: u64) -> u64 {
    hash.wrapping_mul(BASE).wrapping_add(shape)
}

/// A count as stream value; no program makes 2^63 calls.
pub(super) fn signed(count: u64) -> i64 {
    narrow(count)
}

/// Spreads a value over 64 bits (the finaliser of splitmix64).
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
