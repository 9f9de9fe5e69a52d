//! Nodes beyond the window: kept, but no longer compared.
//!
//! A program without loops would otherwise cost the memory of a node per call; here an event costs two or three
//! bytes until the tree is finished.

use super::Sym;
use super::node::{Kind, Node};
use crate::varint;

#[derive(Debug, Clone, Default)]
pub(super) struct Frozen {
    /// Per node: symbol × 2 and count of an event, or 1 for the next body.
    codes: Vec<u8>,
    leaves: usize,
    bodies: Vec<Node>,
}

impl Frozen {
    pub(super) fn extend(&mut self, nodes: Vec<Node>) {
        for node in nodes {
            match node.kind {
                Kind::Leaf(sym) => self.leaf(sym, node.last),
                Kind::Body(_) => {
                    varint::put_u64(&mut self.codes, 1);
                    self.bodies.push(node);
                }
            }
        }
    }

    /// Appends an event that came `n` times.
    pub(super) fn leaf(&mut self, sym: Sym, n: u64) {
        varint::put_u64(&mut self.codes, u64::from(sym) * 2);
        varint::put_u64(&mut self.codes, n);
        self.leaves += 1;
    }

    /// Number of nodes at all levels.
    pub(super) fn nodes(&self) -> usize {
        self.leaves + self.bodies.iter().map(Node::size).sum::<usize>()
    }

    /// Memory, in words of 8 bytes.
    pub(super) fn heap_words(&self) -> usize {
        let bodies: usize = self.bodies.iter().map(Node::heap_words).sum();
        self.codes.capacity() / 8 + self.bodies.capacity() * size_of::<Node>() / 8 + bodies
    }

    /// The nodes in order. The codes are our own, so an end amid them cannot occur and ends the list.
    pub(super) fn into_nodes(self) -> impl Iterator<Item = Node> {
        let (codes, mut bodies) = (self.codes, self.bodies.into_iter());
        let mut used = 0;
        std::iter::from_fn(move || {
            let mut rest = codes.get(used..)?;
            let code = varint::get_u64(&mut rest).ok()?;
            let node = if code == 1 {
                bodies.next()?
            } else {
                Node::leaf(u32::try_from(code / 2).ok()?, varint::get_u64(&mut rest).ok()?)
            };
            used = codes.len() - rest.len();
            Some(node)
        })
    }
}
