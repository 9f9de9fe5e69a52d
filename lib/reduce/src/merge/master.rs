//! The elastic master tree: one tree in which every rank's own tree can be found by its counts.
//!
//! A node that a rank does not have counts 0 for it. A run of nodes that one rank executes bare and another inside a
//! loop becomes a loop that the first executes once (a pseudo-loop), so that the two agree.
//!
//! Trees of equal shape (structure without counts) are aligned once: the mapping from tree positions to master nodes is
//! kept by shape. *Cost:* per distinct shape the alignment, per rank one hash per node.

use st_model::num::narrow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;
use st_model::ints::Sealed;
use st_model::ranklist::RankList;
use st_model::section::{Elastic, Form, Partition, Sym};
use st_model::tree::{FlatTree, Item};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::merge::align::align;
use crate::merge::siblings::{Leaves, LeavesOfEach, Shapes};
use st_model::unite::{Classes, Partitions};

type Id = usize;

/// A tree with its counts.
pub(super) type Control = (FlatTree, Vec<Elastic>);

/// How loops of different ranks are united. Source: Wu, Mueller 2013, section 3.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Loops {
    /// By the calls in them, whatever the loops that ranks have around them (as ScalaTrace II does)
    #[default]
    Agnostic,
    /// Only where their structure is equal, apart from numbers of iterations (as the first ScalaTrace did)
    Structural,
}

/// The master under construction, over symbols of the merged trace.
#[derive(Clone, Debug, Default)]
pub struct Master {
    loops: Loops,
    nodes: Vec<Node>,
    top: Vec<Id>,
    known: HashMap<u128, Arc<Mapping>, FixedState>,
    depth: usize,
}

#[derive(Clone, Debug)]
struct Node {
    kind: NodeContent,
    counts: Classes,
    /// Count of ranks that do not have the node: 1 for a pseudo-loop put around nodes they have, else 0.
    absent: i64,
}

#[derive(Debug, Clone)]
enum NodeContent {
    Leaf(Sym),
    Body(Vec<Id>),
}

/// Where an incoming tree's nodes are in the master.
#[derive(Debug, Clone, Default)]
struct Mapping {
    /// Master node per preorder position.
    nodes: Vec<Id>,
    /// Master loops that the incoming tree executes once, as bare nodes.
    once: Vec<Id>,
}

/// An incoming tree with what alignment asks of it.
struct Incoming<'a> {
    items: &'a [Item],
    shapes: Vec<u64>,
}

/// One item of an incoming list: a node, or a bare run that a master loop has as its body.
enum Piece {
    Node(usize),
    Bare(Vec<usize>),
}

impl Master {
    /// A master that unites loops so.
    #[must_use]
    pub fn new(loops: Loops) -> Self {
        Self { loops, ..Self::default() }
    }

    /// Adds the tree of some ranks: `tree` over merged symbols, with one elastic count per node, over `partitions`.
    pub fn add(&mut self, tree: &FlatTree, counts: &[Elastic], partitions: &[Partition], ranks: &RankList) {
        let items = tree.items();
        let key = shape_of_all(items);
        // Where nodes are depends on shapes alone, and stays: the master only grows. A loop that is put around nodes later counts
        // 1 for the ranks that have come before (`absent`).
        let mapping = match self.known.get(&key) {
            Some(m) => Arc::clone(m),
            None => {
                let incoming = Incoming { items, shapes: shapes(items) };
                let mut mapping = Mapping { nodes: vec![Id::MAX; items.len()], once: Vec::new() };
                let roots = children(items, 0, items.len());
                let top = std::mem::take(&mut self.top);
                self.top = self.merge_lists(top, &roots, &incoming, &mut mapping);
                self.depth = self.deepest();
                let mapping = Arc::new(mapping);
                self.known.insert(key, Arc::clone(&mapping));
                mapping
            }
        };
        for (elastic, &id) in counts.iter().zip(&mapping.nodes) {
            let classes = partitions.get(elastic.partition as usize).map_or(&[][..], |p| &p.classes[..]);
            for (stream, class) in elastic.streams.iter().zip(classes) {
                self.nodes[id].counts.add_all(stream.clone(), class);
            }
        }
        for &id in &mapping.once {
            self.nodes[id].counts.add_all(Sealed::from_constant(1), ranks);
        }
    }

    /// Depth of the deepest node, as [`FlatTree::depth`] counts it.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    fn deepest(&self) -> usize {
        let (mut level, mut depth) = (self.top.clone(), 0);
        while !level.is_empty() {
            depth += 1;
            let below =
                |id: Id| if let NodeContent::Body(inner) = &self.nodes[id].kind { &inner[..] } else { &[] };
            level = level.into_iter().flat_map(below).copied().collect();
        }
        depth
    }

    /// The merged tree and its counts; `ranks` are all ranks that were added.
    #[must_use]
    pub fn finish(self, ranks: &RankList, partitions: &mut Partitions) -> Control {
        let mut out = (Vec::new(), Vec::new());
        let mut nodes: Vec<Option<Node>> = self.nodes.into_iter().map(Some).collect();
        for id in self.top {
            emit(&mut nodes, id, ranks, partitions, &mut out);
        }
        (FlatTree::new(out.0), out.1)
    }

    /// Aligns an incoming list with a master list; returns the master list with what was missing put in.
    fn merge_lists(
        &mut self,
        mut list: Vec<Id>,
        incoming: &[usize],
        tree: &Incoming<'_>,
        map: &mut Mapping,
    ) -> Vec<Id> {
        let agnostic = self.loops == Loops::Agnostic;
        // Both change the master's list, so they go before its shapes are taken. The exact one goes first: what it wraps needs no guess.
        if agnostic {
            self.wrap_bare_runs(&mut list, incoming, tree);
            self.wrap_covering_runs(&mut list, incoming, tree);
        }
        let pieces = self.pieces(&list, incoming, tree);
        let shapes: Vec<u64> = list.iter().map(|&id| self.shape(id)).collect();
        let leaves: Vec<Leaves> = list.iter().map(|&id| self.leaf_set(id)).collect();
        let piece_shapes: Vec<u64> = pieces.iter().map(|p| tree.piece_shape(p)).collect();
        let piece_leaves: Vec<Leaves> = pieces.iter().map(|p| tree.leaf_set(p)).collect();
        let body = |i: usize| matches!(self.nodes[list[i]].kind, NodeContent::Body(_));
        let weight = |i: usize, j: usize| {
            if shapes[i] == piece_shapes[j] {
                return weight_of(leaves[i].len());
            }
            // Two loops that differ become one if they share half of the smaller one's calls. A leaf has no place to take anything in.
            if !agnostic || !body(i) || tree.is_leaf(&pieces[j]) {
                return 0;
            }
            let common = leaves[i].intersection(&piece_leaves[j]).count();
            let smaller = leaves[i].len().min(piece_leaves[j].len());
            if common * 2 >= smaller { weight_of(common) } else { 0 }
        };
        let pairs = align(list.len(), pieces.len(), weight, |i, j| shapes[i] == piece_shapes[j]);
        self.interleave(&list, &pieces, &pairs, tree, map)
    }

    /// The merged list: in each gap the master's items first, then the incoming ones.
    fn interleave(
        &mut self,
        list: &[Id],
        pieces: &[Piece],
        pairs: &[(usize, usize)],
        tree: &Incoming<'_>,
        map: &mut Mapping,
    ) -> Vec<Id> {
        let mut out = Vec::with_capacity(list.len());
        let (mut i, mut j) = (0, 0);
        // The pair behind the last one is both ends: what is left of the lists is one more gap.
        for &(a, b) in pairs.iter().chain([&(list.len(), pieces.len())]) {
            out.extend_from_slice(&list[i..a]);
            for piece in &pieces[j..b] {
                for root in piece.roots() {
                    out.push(self.adopt(root, tree, map));
                }
            }
            if a < list.len() {
                self.unite(list[a], &pieces[b], tree, map);
                out.push(list[a]);
            }
            (i, j) = (a + 1, b + 1);
        }
        out
    }

    /// Maps a matched piece onto a master node.
    fn unite(&mut self, id: Id, piece: &Piece, tree: &Incoming<'_>, map: &mut Mapping) {
        let inner = match piece {
            Piece::Node(at) => {
                map.nodes[*at] = id;
                tree.children(*at)
            }
            Piece::Bare(run) => {
                // The rank has no such loop: its tree has no position for it, but it goes through it once.
                map.once.push(id);
                run.clone()
            }
        };
        if let NodeContent::Body(list) = &mut self.nodes[id].kind {
            // Taken out, since the whole master takes part in merging what is inside.
            let list = std::mem::take(list);
            let list = self.merge_lists(list, &inner, tree, map);
            self.nodes[id].kind = NodeContent::Body(list);
        }
    }

    /// Adds an incoming node with all below it as new master nodes.
    fn adopt(&mut self, at: usize, tree: &Incoming<'_>, map: &mut Mapping) -> Id {
        let kind = match tree.items[at] {
            Item::Leaf { sym } => NodeContent::Leaf(sym),
            Item::Body { .. } => {
                let inner = tree.children(at);
                NodeContent::Body(inner.into_iter().map(|c| self.adopt(c, tree, map)).collect())
            }
        };
        let id = self.push(kind, 0);
        map.nodes[at] = id;
        id
    }

    fn push(&mut self, kind: NodeContent, absent: i64) -> Id {
        self.nodes.push(Node { kind, counts: Classes::default(), absent });
        self.nodes.len() - 1
    }

    /// Puts a pseudo-loop around master nodes that an incoming loop has as its body.
    fn wrap_bare_runs(&mut self, list: &mut Vec<Id>, incoming: &[usize], tree: &Incoming<'_>) {
        let mut shapes = self.shapes(list);
        for &at in incoming {
            let body = tree.children(at);
            // A leaf, or a loop of one node, which folding does not make: that is the node with a larger count.
            if body.len() < 2 {
                continue;
            }
            // The master has that loop, and will be aligned with it.
            if shapes.has(tree.shapes[at]) {
                continue;
            }
            let wanted: Vec<u64> = body.iter().map(|&c| tree.shapes[c]).collect();
            if let Some(run) = shapes.run(&wanted) {
                self.wrap(list, run);
                shapes = self.shapes(list);
            }
        }
    }

    /// Puts a pseudo-loop around master nodes that together, and no one of them alone, have all that is in an incoming loop.
    fn wrap_covering_runs(&mut self, list: &mut Vec<Id>, incoming: &[usize], tree: &Incoming<'_>) {
        let all = tree.leaves(incoming);
        let (mut shapes, mut leaves) = (self.shapes(list), self.leaves(list));
        for (j, &at) in incoming.iter().enumerate() {
            let leaf = matches!(tree.items[at], Item::Leaf { .. });
            // As for bare runs: what the master has needs nothing around it.
            if leaf || shapes.has(tree.shapes[at]) {
                continue;
            }
            if let Some(run) = leaves.covering(&all, j) {
                self.wrap(list, run);
                (shapes, leaves) = (self.shapes(list), self.leaves(list));
            }
        }
    }

    /// Puts a pseudo-loop around nodes of a list.
    fn wrap(&mut self, list: &mut Vec<Id>, run: Range<usize>) {
        let id = self.push(NodeContent::Body(list[run.clone()].to_vec()), 1);
        list.splice(run, [id]);
    }

    fn shapes(&self, list: &[Id]) -> Shapes {
        Shapes::new(list.iter().map(|&id| self.shape(id)).collect())
    }

    fn leaves(&self, list: &[Id]) -> LeavesOfEach {
        LeavesOfEach::new(list.iter().map(|&id| self.leaf_set(id)).collect())
    }

    /// The incoming list with bare runs taken together that a master loop has as its body, or that have all that is in it.
    fn pieces(&self, list: &[Id], incoming: &[usize], tree: &Incoming<'_>) -> Vec<Piece> {
        if self.loops == Loops::Structural {
            return incoming.iter().map(|&at| Piece::Node(at)).collect();
        }
        let present: HashSet<u64> = incoming.iter().map(|&at| tree.shapes[at]).collect();
        let (theirs, ours) = (tree.leaves(incoming), self.leaves(list));
        let mut bodies: HashMap<u64, Vec<Vec<u64>>> = HashMap::new();
        let mut runs: HashMap<usize, usize> = HashMap::new();
        for (k, &id) in list.iter().enumerate() {
            if let NodeContent::Body(inner) = &self.nodes[id].kind
                // A loop that the incoming list has itself is aligned with that one.
                && !present.contains(&self.shape(id))
            {
                let s: Vec<u64> = inner.iter().map(|&c| self.shape(c)).collect();
                if s.len() >= 2 {
                    bodies.entry(s[0]).or_default().push(s);
                }
                if let Some(run) = theirs.covering(&ours, k) {
                    runs.insert(run.start, run.end);
                }
            }
        }
        let mut out = Vec::new();
        let mut i = 0;
        while i < incoming.len() {
            let exact = bodies.get(&tree.shapes[incoming[i]]).into_iter().flatten().find(|s| {
                i + s.len() <= incoming.len()
                    && s.iter().zip(&incoming[i..]).all(|(s, &at)| *s == tree.shapes[at])
            });
            // Equal bodies go before those that only have the same calls in them.
            let end = exact.map(|s| i + s.len()).or(runs.get(&i).copied());
            if let Some(end) = end {
                out.push(Piece::Bare(incoming[i..end].to_vec()));
                i = end;
            } else {
                out.push(Piece::Node(incoming[i]));
                i += 1;
            }
        }
        out
    }

    fn shape(&self, id: Id) -> u64 {
        match &self.nodes[id].kind {
            NodeContent::Leaf(sym) => leaf_shape(*sym),
            NodeContent::Body(inner) => body_shape(inner.iter().map(|&c| self.shape(c))),
        }
    }

    fn leaf_set(&self, id: Id) -> Leaves {
        let mut out = Leaves::default();
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            match &self.nodes[id].kind {
                NodeContent::Leaf(sym) => {
                    out.insert(*sym);
                }
                NodeContent::Body(inner) => todo.extend(inner),
            }
        }
        out
    }
}

impl Incoming<'_> {
    fn children(&self, at: usize) -> Vec<usize> {
        match self.items[at] {
            Item::Leaf { .. } => Vec::new(),
            Item::Body { .. } => children(self.items, at + 1, at + 1 + below(self.items, at)),
        }
    }
    fn is_leaf(&self, piece: &Piece) -> bool {
        matches!(piece, Piece::Node(at) if matches!(self.items[*at], Item::Leaf { .. }))
    }
    fn piece_shape(&self, piece: &Piece) -> u64 {
        match piece {
            Piece::Node(at) => self.shapes[*at],
            Piece::Bare(run) => body_shape(run.iter().map(|&c| self.shapes[c])),
        }
    }
    fn leaves(&self, list: &[usize]) -> LeavesOfEach {
        LeavesOfEach::new(list.iter().map(|&at| self.leaf_set(&Piece::Node(at))).collect())
    }
    fn leaf_set(&self, piece: &Piece) -> Leaves {
        let spans = piece.roots().map(|at| &self.items[at..=at + below(self.items, at)]);
        let leaf = |i: &Item| if let Item::Leaf { sym } = i { Some(*sym) } else { None };
        spans.flatten().filter_map(leaf).collect()
    }
}

impl Piece {
    fn roots(&self) -> impl Iterator<Item = usize> + '_ {
        match self {
            Self::Node(at) => std::slice::from_ref(at).iter().copied(),
            Self::Bare(run) => run[..].iter().copied(),
        }
    }
}

/// Number of items below an item.
fn below(items: &[Item], at: usize) -> usize {
    match items[at] {
        Item::Leaf { .. } => 0,
        Item::Body { below } => below as usize,
    }
}

/// The items at the top level of a range.
fn children(items: &[Item], from: usize, to: usize) -> Vec<usize> {
    let mut out = Vec::new();
    let mut at = from;
    while at < to {
        out.push(at);
        at += 1 + below(items, at);
    }
    out
}

fn shapes(items: &[Item]) -> Vec<u64> {
    let mut out = vec![0; items.len()];
    for at in (0..items.len()).rev() {
        out[at] = match items[at] {
            Item::Leaf { sym } => leaf_shape(sym),
            Item::Body { .. } => {
                body_shape(children(items, at + 1, at + 1 + below(items, at)).into_iter().map(|c| out[c]))
            }
        };
    }
    out
}

fn shape_of_all(items: &[Item]) -> u128 {
    let mut bytes = Vec::with_capacity(items.len() * 5);
    for i in items {
        match i {
            Item::Leaf { sym } => {
                bytes.push(0);
                bytes.extend(sym.to_le_bytes());
            }
            Item::Body { below } => {
                bytes.push(1);
                bytes.extend(below.to_le_bytes());
            }
        }
    }
    xxh3_128(&bytes)
}

fn leaf_shape(sym: Sym) -> u64 {
    xxh3_64(&sym.to_le_bytes())
}

fn body_shape(inner: impl Iterator<Item = u64>) -> u64 {
    let bytes: Vec<u8> = std::iter::once(u64::MAX).chain(inner).flat_map(u64::to_le_bytes).collect();
    xxh3_64(&bytes)
}

fn weight_of(leaves: usize) -> u32 {
    narrow(leaves)
}

/// Writes a node in preorder. `present` are the ranks that visit its parent.
fn emit(
    nodes: &mut [Option<Node>],
    id: Id,
    present: &RankList,
    partitions: &mut Partitions,
    out: &mut (Vec<Item>, Vec<Elastic>),
) {
    let Some(mut node) = nodes[id].take() else { return };
    // Ranks that come by and do not have the node: 0 of it, or 1 where it is a loop around nodes that they have.
    let missing = present.difference(&node.counts.ranks());
    if !missing.is_empty() {
        node.counts.add_all(Sealed::from_constant(node.absent), &missing);
    }
    // Ranks that never enter are left out below: nothing has to be said of them there.
    let mut here = RankList::default();
    for (stream, ranks) in node.counts.list() {
        if stream.constant() != Some(0) {
            here = here.union(ranks);
        }
    }
    out.1.push(partitions.elastic(node.counts, Form::Absolute));
    let at = out.0.len();
    match node.kind {
        NodeContent::Leaf(sym) => out.0.push(Item::Leaf { sym }),
        NodeContent::Body(inner) => {
            out.0.push(Item::Body { below: 0 });
            for c in inner {
                emit(nodes, c, &here, partitions, out);
            }
            out.0[at] = Item::Body { below: narrow(out.0.len() - at - 1) };
        }
    }
}
