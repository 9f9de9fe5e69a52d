//! The smallest of several trees of one sequence.
//!
//! Exact folding may double the bytes where calls inside a loop are made or not by chance, and finds little where a
//! program has no loops. Neither can be known before the end; then it is tried. Trees of programs with loops are so
//! small that nothing is tried at all.
//!
//! Source: our own trial on real codes; approximate matches as in Wu, Mueller 2013, section 3.2.

use super::node::Node;
use super::{Folded, Folder, Likeness};
use st_model::ints::{Cursor, Sealed};
use st_model::num::{Exact, narrow};
use st_model::tree::{Counts, FlatTree, Item, Walk};
use st_model::varint;

/// A tree and the counts of its nodes.
type Tree = (FlatTree, Vec<Sealed>);

/// A sequence's tree, chosen among several.
#[derive(Debug)]
pub struct Chosen {
    /// The tree, and the counts of its nodes.
    pub tree: (FlatTree, Vec<Sealed>),
    /// Whether it is the one that [`Fold::Approx`](super::Fold::Approx) found.
    pub approximate: bool,
}

/// Smaller trees are taken as they are, and so are larger ones than can be tried in a moment.
const NODES: std::ops::RangeInclusive<usize> = 128..=1 << 18;
/// The bare sequence is tried up to so many events per node: beyond, it cannot be smaller.
const EVENTS: usize = 8;
/// Another tree with loops must save a sixteenth of its bytes, the bare sequence half of them: where a program goes round tells its
/// user more than some bytes do.
const GAIN: usize = 16;
const BARE_GAIN: usize = 2;
/// Approximate matches are tried on so many stretches of a sequence first, an eighth of it together, if each has so many events at
/// least: trying all takes up to some 17,000 instructions per event where calls come by chance, and mostly gains nothing there.
const STRETCHES: usize = 2;
const SHARE: usize = 8;
const STRETCH: usize = 1 << 10;
/// Level of zstd at which sizes are compared.
const LEVEL: i32 = 3;

impl Folded {
    /// The smallest found of: the tree as it was folded, what was folded beside it, that with approximate matches, and the bare
    /// sequence. Approximate matches in a long bare sequence are left out where stretches of it gain nothing by them. *Cost:* a small
    /// multiple of the nodes' number, and nothing beyond [`Folded::flatten`] for a tree of few nodes that has none beside it.
    #[must_use]
    pub fn smallest(mut self) -> Chosen {
        let beside = self.beside.take();
        let nodes = self.frozen.nodes() + self.open.nodes();
        let try_others = NODES.contains(&nodes);
        if beside.is_none() && !try_others {
            return Chosen { tree: self.flatten(), approximate: false };
        }
        let mut best = self.laid_out();
        let mut size = stored(&best);
        let bare = if try_others { bare(&best) } else { None };
        let elastic = match &bare {
            Some(bare) => may_gain(bare).then(|| elastic(bare)),
            None => try_others.then(|| among(self)),
        };
        let beside = beside.map(|beside| beside.flatten());
        let others = [(elastic, GAIN, false), (bare, BARE_GAIN, false), (beside, GAIN, true)];
        let mut approximate = false;
        for (other, gain, is_beside) in
            others.into_iter().filter_map(|(tree, gain, is)| Some((tree?, gain, is)))
        {
            let its = stored(&other);
            if its + its / gain < size {
                (best, size, approximate) = (other, its, is_beside);
            }
        }
        Chosen { tree: best, approximate }
    }
}

/// Whether approximate matches may save bytes in a bare sequence: in any of some stretches of a long one.
fn may_gain((tree, counts): &Tree) -> bool {
    let all = tree.items().len();
    let length = all / (SHARE * STRETCHES);
    length < STRETCH
        || (0..STRETCHES).any(|i| {
            // The middle of each part.
            let from = all * (2 * i + 1) / (2 * STRETCHES) - length / 2;
            let items = tree.items()[from..from + length].to_vec();
            let stretch = (FlatTree::new(items), counts[from..from + length].to_vec());
            let size = stored(&stretch).min(stored(&folded(&stretch, Folder::new(super::DEFAULT_WINDOW))));
            let its = stored(&elastic(&stretch));
            its + its / GAIN < size
        })
}

/// The tree with approximate matches.
fn elastic(bare: &Tree) -> Tree {
    folded(bare, Folder::approximate(Likeness::default(), super::DEFAULT_WINDOW))
}

/// The tree of a bare sequence.
fn folded((tree, counts): &Tree, mut folder: Folder) -> Tree {
    for (item, count) in tree.items().iter().zip(counts) {
        if let Item::Leaf { sym } = item {
            folder.push_n(*sym, count.constant().map_or(0, i64::unsigned_abs));
        }
    }
    folder.finish().flatten()
}

/// The tree with approximate matches among its outermost nodes.
fn among(folded: Folded) -> Tree {
    let mut folder = Folder::approximate(Likeness::default(), super::DEFAULT_WINDOW);
    for node in folded.frozen.nodes_in_order().chain(folded.open.into_nodes()) {
        folder.push_node(node);
    }
    folder.finish().flatten()
}

impl Folder {
    /// Appends a node that was folded elsewhere.
    fn push_node(&mut self, node: Node) {
        self.open.push(node);
        self.reduce();
    }
}

/// The counts of nodes as they are walked over. Most are the same at each visit, and a reader of others is large: only these have one.
struct Lazy<'a> {
    counts: &'a [Sealed],
    /// By node one more than the place of its reader; 0: it has none yet.
    places: Vec<u32>,
    readers: Vec<Cursor<'a>>,
}

impl<'a> Lazy<'a> {
    fn of(counts: &'a [Sealed]) -> Self {
        Self { counts, places: vec![0; counts.len()], readers: Vec::new() }
    }
}

impl Counts for Lazy<'_> {
    fn next_count(&mut self, node: usize) -> i64 {
        let Some(counts) = self.counts.get(node) else { return 0 };
        if let Some(constant) = counts.constant() {
            return constant;
        }
        if self.places[node] == 0 {
            self.readers.push(counts.cursor());
            self.places[node] = narrow(self.readers.len());
        }
        self.readers[self.places[node].to_usize() - 1].next()
    }
}

/// The bare sequence, if that may be smaller.
fn bare((tree, counts): &Tree) -> Option<Tree> {
    let limit = tree.items().len() * EVENTS;
    let mut walk = Walk::new(tree, Lazy::of(counts));
    let (mut items, mut runs) = (Vec::new(), Vec::new());
    let mut open: Option<(u32, i64)> = None;
    let mut close = |(sym, run)| {
        items.push(Item::Leaf { sym });
        runs.push(Sealed::from_constant(run));
        items.len() < limit
    };
    while let Some((sym, n)) = walk.next_run().ok()? {
        match &mut open {
            Some((last, run)) if *last == sym => *run += n,
            _ => {
                if let Some(before) = open.replace((sym, n))
                    && !close(before)
                {
                    return None;
                }
            }
        }
    }
    if let Some(last) = open {
        close(last);
    }
    Some((FlatTree::new(items), runs))
}

/// Bytes of a tree as a stream stores it, or nearly so.
fn stored((tree, counts): &Tree) -> usize {
    let (mut nodes, mut below, mut heads, mut values) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for item in tree.items() {
        match item {
            Item::Leaf { sym } => varint::put_u64(&mut nodes, u64::from(*sym) + 2),
            Item::Body { below: n } => {
                varint::put_u64(&mut nodes, 1);
                varint::put_u64(&mut below, u64::from(*n));
            }
        }
    }
    counts.iter().for_each(|count| count.encode(&mut heads, &mut values));
    let all = [nodes, below, heads, values].concat();
    zstd::bulk::compress(&all, LEVEL).map_or(all.len(), |packed| packed.len())
}
