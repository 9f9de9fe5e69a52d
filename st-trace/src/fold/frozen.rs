//! Nodes beyond the window: kept, but no longer compared.
//!
//! A program without loops would otherwise cost the memory of a node per call; here an event costs two or three
//! bytes until the tree is finished, and so does each event of a loop that ran a few times and never came again.

use super::Sym;
use super::node::{Kind, Node, signed, wide};
use crate::ints::{Ints, Sealed};
use crate::varint::{self, DecodeError};

/// Counts that stand as they are; more are a stream.
const FEW: u64 = 8;

/// Nodes in preorder. Each is a number, four times an event's symbol or a body's number of children, and flags; then
/// its counts, as many as the body around it ran times.
#[derive(Debug, Clone, Default)]
pub(super) struct Frozen {
    codes: Vec<u8>,
    nodes: usize,
}

/// Flags of a node.
const BODY: u64 = 1;
/// All counts are the one that stands there.
const CONSTANT: u64 = 2;

impl Frozen {
    pub(super) fn extend(&mut self, nodes: impl Iterator<Item = Node>) {
        nodes.for_each(|node| self.node(node));
    }

    /// Appends an event that came `n` times.
    pub(super) fn leaf(&mut self, sym: Sym, n: u64) {
        self.nodes += 1;
        varint::put_u64(&mut self.codes, u64::from(sym) << 2 | CONSTANT);
        varint::put_i64(&mut self.codes, signed(n));
    }

    fn node(&mut self, mut node: Node) {
        self.nodes += 1;
        let (number, body) = match &node.kind {
            Kind::Leaf(sym) => (u64::from(*sym), 0),
            Kind::Body(body) => (wide(body.children.len()), BODY),
        };
        node.past.push(signed(node.last));
        let constant = node.past.constant();
        varint::put_u64(&mut self.codes, number << 2 | body | constant.map_or(0, |_| CONSTANT));
        match constant {
            Some(count) => varint::put_i64(&mut self.codes, count),
            None => self.counts(std::mem::take(&mut node.past)),
        }
        node.into_body().into_iter().flat_map(|body| body.children).for_each(|child| self.node(child));
    }

    fn counts(&mut self, counts: Ints) {
        if counts.len() <= FEW {
            return counts.iter().for_each(|count| varint::put_i64(&mut self.codes, count));
        }
        let (mut head, mut values) = (Vec::new(), Vec::new());
        counts.seal().encode(&mut head, &mut values);
        for part in [head, values] {
            varint::put_u64(&mut self.codes, wide(part.len()));
            self.codes.extend(part);
        }
    }

    /// Number of nodes at all levels.
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
    let counts = read_counts(codes, visits, header & CONSTANT != 0)?;
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

fn read_counts(codes: &mut &[u8], visits: u64, constant: bool) -> Result<Ints, DecodeError> {
    let mut counts = Ints::new();
    if constant {
        counts.push_run(varint::get_i64(codes)?, visits);
    } else if visits <= FEW {
        for _ in 0..visits {
            counts.push(varint::get_i64(codes)?);
        }
    } else {
        let (mut head, mut values) = (part(codes)?, part(codes)?);
        counts = Sealed::decode(&mut head, &mut values)?.to_ints(visits);
    }
    Ok(counts)
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

    fn written(nodes: impl Iterator<Item = Node>) -> (Vec<crate::tree::Item>, Vec<Sealed>) {
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
            let mut frozen = Frozen::default();
            frozen.extend(open.clone().into_iter());
            prop_assert_eq!(frozen.nodes(), open.iter().map(Node::size).sum::<usize>());
            prop_assert_eq!(written(frozen.nodes_in_order()), written(open.into_iter()));
        }
    }
}
