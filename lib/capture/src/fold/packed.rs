//! Nodes packed in bytes: those beyond the window, which are kept but no longer compared, and trees in a journal.
//!
//! A program without loops would otherwise cost the memory of a node per call; here an event costs two or three
//! bytes until the tree is finished, and so does each event of a loop that ran a few times and never came again. A
//! snapshot for the journal takes what is packed as it is.

use st_model::num::Exact;
use std::borrow::Borrow;

use super::node::{Node, NodeKind, Sym, signed};
use st_model::ints::{Ints, Sealed};
use st_model::tree::{FlatTree, Item};
use st_model::varint::{self, DecodeError};

/// Counts that stand as they are; more are a stream.
const FEW: u64 = 8;

/// Nodes in preorder. Each is a number, four times an event's symbol or a body's number of children, and flags; then its counts,
/// as many as the body around it ran times: the one that all are; or how many there are, and all of them; or 0, and a stream in
/// two parts, each behind its length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packed {
    codes: Vec<u8>,
    nodes: usize,
}

/// Flags of a node.
const BODY: u64 = 1;
/// All counts are the one that stands there.
const CONSTANT: u64 = 2;

impl Packed {
    /// What [`Packed::bytes`] has given.
    #[must_use]
    pub fn from_bytes(codes: Vec<u8>) -> Self {
        Self { codes, nodes: 0 }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.codes
    }

    /// The tree of these nodes over so many symbols, and the count stream of each. *Cost:* O(bytes), whatever they are.
    ///
    /// # Errors
    ///
    /// If the bytes are none that were [packed](crate::fold::Folder::packed), or name other symbols.
    pub fn unpack(&self, symbols: usize) -> Result<(FlatTree, Vec<Sealed>), DecodeError> {
        let (mut items, mut counts) = (Vec::new(), Vec::new());
        // The bodies around, and how many children of each are to come.
        let mut open: Vec<(usize, u64)> = Vec::new();
        let mut rest = self.codes.as_slice();
        while !rest.is_empty() {
            let header = varint::get_u64(&mut rest)?;
            counts.push(match header & CONSTANT {
                0 => stream(&mut rest)?,
                _ => Sealed::from_constant(varint::get_i64(&mut rest)?),
            });
            if header & BODY == 0 {
                let sym = Sym::try_from(header >> 2).map_err(|_| DecodeError::Range)?;
                if sym.to_usize() >= symbols {
                    return Err(DecodeError::Range);
                }
                items.push(Item::Leaf { sym });
            } else if header >> 2 == 0 {
                return Err(DecodeError::Range);
            } else {
                open.push((items.len(), header >> 2));
                items.push(Item::Body { below: 0 });
                continue;
            }
            // A leaf ends the bodies of which it is the last child.
            while let Some((at, left)) = open.last_mut() {
                *left -= 1;
                if *left > 0 {
                    break;
                }
                let below = u32::try_from(items.len() - *at - 1).map_err(|_| DecodeError::Range)?;
                items[*at] = Item::Body { below };
                open.pop();
            }
        }
        if open.is_empty() { Ok((FlatTree::new(items), counts)) } else { Err(DecodeError::Truncated) }
    }

    pub(super) fn extend(&mut self, nodes: impl Iterator<Item: Borrow<Node>>) {
        nodes.for_each(|node| self.node(node.borrow()));
    }

    pub(super) fn append(&mut self, later: &Self) {
        self.nodes += later.nodes;
        self.codes.extend_from_slice(&later.codes);
    }

    /// Appends an event that came `n` times.
    pub(super) fn leaf(&mut self, sym: Sym, n: u64) {
        self.nodes += 1;
        varint::put_u64(&mut self.codes, u64::from(sym) << 2 | CONSTANT);
        varint::put_i64(&mut self.codes, signed(n));
    }

    fn node(&mut self, node: &Node) {
        let last = signed(node.last);
        let constant = node.past.is_empty() || node.past.constant() == Some(last);
        let (number, body) = match &node.kind {
            NodeKind::Leaf(sym) if constant => return self.leaf(*sym, node.last),
            NodeKind::Leaf(sym) => (u64::from(*sym), 0),
            NodeKind::Body(body) => (body.children.len().to_u64(), BODY),
        };
        self.nodes += 1;
        varint::put_u64(&mut self.codes, number << 2 | body | if constant { CONSTANT } else { 0 });
        if constant {
            varint::put_i64(&mut self.codes, last);
        } else {
            self.counts(node);
        }
        node.as_body().into_iter().flat_map(|body| &body.children).for_each(|child| self.node(child));
    }

    fn counts(&mut self, node: &Node) {
        let mut counts = node.past.clone();
        counts.push(signed(node.last));
        if counts.len() <= FEW {
            varint::put_u64(&mut self.codes, counts.len());
            return counts.iter().for_each(|count| varint::put_i64(&mut self.codes, count));
        }
        varint::put_u64(&mut self.codes, 0);
        let (mut head, mut values) = (Vec::new(), Vec::new());
        counts.seal().encode(&mut head, &mut values);
        for part in [head, values] {
            varint::put_u64(&mut self.codes, part.len().to_u64());
            self.codes.extend(part);
        }
    }

    /// Number of nodes at all levels, if they were packed here.
    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    /// Memory, in words of 8 bytes.
    pub(super) fn heap_words(&self) -> usize {
        self.codes.capacity() / 8
    }

    /// The nodes in order. The codes are our own, so an end amid them cannot occur and ends the list.
    pub(super) fn nodes_in_order(&self) -> impl Iterator<Item = Node> {
        let mut rest = self.codes.as_slice();
        std::iter::from_fn(move || if rest.is_empty() { None } else { read(&mut rest, 1).ok() })
    }
}

/// Reads a node inside a body that ran so often.
fn read(codes: &mut &[u8], visits: u64) -> Result<Node, DecodeError> {
    let header = varint::get_u64(codes)?;
    let mut counts = Ints::new();
    if header & CONSTANT != 0 {
        counts.push_run(varint::get_i64(codes)?, visits);
    } else {
        counts = stream(codes)?.to_ints(visits);
    }
    let mut node = if header & BODY == 0 {
        Node::leaf(u32::try_from(header >> 2).map_err(|_| DecodeError::Range)?, 0)
    } else {
        let runs = counts.iter().map(i64::unsigned_abs).sum();
        let children = (0..header >> 2).map(|_| read(codes, runs)).collect::<Result<_, _>>()?;
        Node::body(children, 0)
    };
    // The last count stands apart.
    let mut before = counts.len().saturating_sub(1);
    let mut cursor = counts.cursor();
    while before > 0 {
        let (count, n) = cursor.next_run(before);
        node.past.push_run(count, n);
        before -= n;
    }
    node.last = cursor.next().unsigned_abs();
    Ok(node)
}

/// Counts that are not all equal.
fn stream(codes: &mut &[u8]) -> Result<Sealed, DecodeError> {
    let n = varint::get_u64(codes)?;
    if n > FEW {
        return Err(DecodeError::Range);
    }
    if n > 0 {
        return (0..n).map(|_| varint::get_i64(codes)).collect();
    }
    let (mut head, mut values) = (part(codes)?, part(codes)?);
    Sealed::decode(&mut head, &mut values)
}

/// A part of the codes that stands behind its length.
fn part<'a>(codes: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let n = varint::get_len(codes, codes.len())?;
    let (part, rest) = codes.split_at(n);
    *codes = rest;
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::{DEFAULT_WINDOW, Folder};
    use proptest::prelude::*;

    fn written(nodes: impl Iterator<Item = Node>) -> (Vec<st_model::tree::Item>, Vec<Sealed>) {
        let (mut items, mut counts) = (Vec::new(), Vec::new());
        nodes.for_each(|node| node.write(&mut items, &mut counts));
        (items, counts)
    }

    proptest! {
        #[test]
        fn nodes_come_back(
            rounds in proptest::collection::vec((proptest::collection::vec(0..4_u32, 1..5), 1..30_usize), 0..40),
        ) {
            let mut folder = Folder::new(DEFAULT_WINDOW);
            for (round, n) in &rounds {
                round.repeat(*n).into_iter().for_each(|sym| folder.push(sym));
            }
            let open: Vec<Node> = folder.finish().open.into_nodes().collect();
            let mut packed = Packed::default();
            packed.extend(open.iter());
            prop_assert_eq!(packed.nodes(), open.iter().map(Node::size).sum::<usize>());
            let (tree, counts) = packed.unpack(4).unwrap();
            let (items, sealed) = written(open.into_iter());
            prop_assert_eq!((tree.items(), &counts), (&items[..], &sealed));
            prop_assert_eq!(written(packed.nodes_in_order()), (items, sealed));
        }

        #[test]
        fn any_bytes_are_a_tree_or_an_error(bytes: Vec<u8>) {
            let packed = Packed::from_bytes(bytes);
            if let Ok((tree, counts)) = packed.unpack(3) {
                prop_assert_eq!(tree.items().len(), counts.len());
                let known = |item: &Item| !matches!(item, Item::Leaf { sym: 3.. });
                prop_assert!(tree.items().iter().all(known));
                prop_assert!((0..counts.len()).all(|i| tree.end_of(i) > i));
            }
        }
    }
}
