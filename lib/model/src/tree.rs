//! The count-stream tree in flat form, and the walk that reads a symbol sequence from it.
//!
//! A tree is a list of nodes. A node is a leaf (one symbol) or a body (a list of nodes), and has a count stream with
//! one value per visit of the body around it: how often it runs at that visit. Trip count, presence (0 or 1) and run
//! length are thus one notion. A node that runs 0 times consumes nothing below it.
//!
//! ```text
//! run(node): k = next(node.count); repeat k: emit the symbol, or run every child in order
//! ```
//!
//! The counts stand apart from the shape: a recorded tree has one stream per node, a merged tree one per node and
//! class of ranks.

mod seek;

pub use seek::{Found, Limits};

use crate::ints::Cursor;
use crate::num::Exact;

/// A node of a flat tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Item {
    /// One symbol.
    Leaf {
        /// The symbol.
        sym: u32,
    },
    /// A list of nodes.
    Body {
        /// Number of items that belong to it, at any depth, not counting itself.
        below: u32,
    },
}

/// The shape of a tree: its nodes in preorder. A node's number is its index.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct FlatTree {
    items: Vec<Item>,
}

impl FlatTree {
    /// A tree of these nodes in preorder. A body that announces more than its surroundings hold ends with them.
    #[must_use]
    pub fn new(items: Vec<Item>) -> Self {
        Self { items }
    }

    /// The nodes in preorder.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Index just after the node and everything below it.
    #[must_use]
    pub fn end_of(&self, node: usize) -> usize {
        match self.items.get(node) {
            Some(&Item::Body { below }) => (node + 1).saturating_add(below.to_usize()),
            _ => node + 1,
        }
        .min(self.items.len())
    }

    /// Depth of the deepest node; 1 for a list of leaves, 0 for no node.
    #[must_use]
    pub fn depth(&self) -> usize {
        let mut ends = Vec::new();
        let mut deepest = 0;
        for node in 0..self.items.len() {
            while ends.last().is_some_and(|&end| end <= node) {
                ends.pop();
            }
            ends.push(self.end_of(node));
            deepest = deepest.max(ends.len());
        }
        deepest
    }
}

/// How a walk learns how often a node runs at its next visit.
pub trait Counts {
    /// The node's next count. Called once per visit of the body around the node, in execution order.
    fn next_count(&mut self, node: usize) -> i64;
}

impl Counts for Vec<Cursor<'_>> {
    #[inline]
    fn next_count(&mut self, node: usize) -> i64 {
        self.get_mut(node).map_or(0, Cursor::next)
    }
}

/// Why a walk cannot go on: the tree is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WalkError {
    /// A count below zero.
    #[error("node {node}: negative count")]
    Negative {
        /// The node's number.
        node: usize,
    },
    /// A search would go through more.
    #[error(
        "its calls follow no pattern: to find a place takes more than {most} steps, which --max-steps sets"
    )]
    Long {
        /// Runs of symbols that were gone through.
        most: u64,
    },
    /// More nodes in a row run 0 times, or bodies go round without a call, than any recorded program causes.
    #[error("node {node}: loop without a call")]
    Idle {
        /// The node's number.
        node: usize,
    },
}

/// Visits in a row that emit nothing before a walk gives up, beyond a small multiple of the tree's size.
const IDLE: usize = 1 << 20;

/// A body in execution.
#[derive(Debug, Clone, Copy)]
struct LoopPosition {
    first: usize,
    end: usize,
    /// Iterations, and those still to begin.
    turns: i64,
    left: i64,
}

/// Where a walk is in the outermost loop around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The loop's node.
    pub node: usize,
    /// The iteration, from 0.
    pub turn: u64,
    /// How many there are.
    pub turns: u64,
}

/// Reads the symbols of a tree in execution order.
///
/// *Cost:* O(1) per symbol plus the bodies entered and left; memory in proportion to the depth, which is at most the
/// number of nodes.
#[derive(Debug, Clone)]
pub struct Walk<'a, C = Vec<Cursor<'a>>> {
    tree: &'a FlatTree,
    counts: C,
    frames: Vec<LoopPosition>,
    /// The next node to visit.
    at: usize,
    /// End of the innermost body.
    end: usize,
    sym: u32,
    /// How often `sym` comes in a row, and how often it is still to come.
    run: i64,
    repeats: i64,
    failed: Option<WalkError>,
}

impl<'a, C: Counts> Walk<'a, C> {
    /// A walk from the beginning. `counts` has one cursor per node.
    #[must_use]
    pub fn new(tree: &'a FlatTree, counts: C) -> Self {
        let end = tree.items.len();
        Self { tree, counts, frames: Vec::new(), at: 0, end, sym: 0, run: 0, repeats: 0, failed: None }
    }

    /// The next symbol, or `None` at the end.
    ///
    /// # Errors
    ///
    /// If a count is negative or the tree loops without emitting anything; every further call then fails alike.
    #[inline]
    pub fn next_symbol(&mut self) -> Result<Option<u32>, WalkError> {
        if self.repeats > 0 {
            self.repeats -= 1;
            return Ok(Some(self.sym));
        }
        Ok(self.next_run()?.map(|(sym, n)| {
            (self.run, self.repeats) = (n, n - 1);
            sym
        }))
    }

    /// The next symbol with the number of times it comes in a row (at least 1; equal neighbours may follow).
    ///
    /// # Errors
    ///
    /// As [`Walk::next_symbol`].
    pub fn next_run(&mut self) -> Result<Option<(u32, i64)>, WalkError> {
        if self.repeats > 0 {
            return Ok(Some((self.sym, std::mem::take(&mut self.repeats))));
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.advance().inspect_err(|&error| self.failed = Some(error))
    }

    /// Number of the leaf that emitted the last symbol, once there was one.
    #[must_use]
    pub fn node(&self) -> Option<usize> {
        self.at.checked_sub(1)
    }

    /// Where the last symbol of [`Walk::next_symbol`] is in the outermost loop around it that has several iterations; a symbol
    /// that comes several times in a row is one by itself. A walk comes to each such loop once.
    #[must_use]
    pub fn turn(&self) -> Option<Turn> {
        let count = |n: i64| n.unsigned_abs();
        let outer = self.frames.iter().find(|frame| frame.turns > 1);
        let of = |f: &LoopPosition| Turn {
            node: f.first - 1,
            turn: count(f.turns - 1 - f.left),
            turns: count(f.turns),
        };
        let own = || {
            let node = self.node().filter(|_| self.run > 1)?;
            Some(Turn { node, turn: count(self.run - 1 - self.repeats), turns: count(self.run) })
        };
        outer.map(of).or_else(own)
    }

    fn advance(&mut self) -> Result<Option<(u32, i64)>, WalkError> {
        let patience = IDLE.saturating_add(self.tree.items.len().saturating_mul(4));
        for _ in 0..patience {
            if self.at == self.end {
                if !self.next_iteration() {
                    return Ok(None);
                }
                continue;
            }
            let node = self.at;
            let count = self.counts.next_count(node);
            if count < 0 {
                return Err(WalkError::Negative { node });
            }
            match self.tree.items[node] {
                Item::Leaf { sym } => {
                    self.at += 1;
                    if count > 0 {
                        self.sym = sym;
                        return Ok(Some((sym, count)));
                    }
                }
                Item::Body { .. } => {
                    let end = self.tree.end_of(node).min(self.end);
                    self.at = end;
                    if count > 0 && node + 1 < end {
                        self.frames.push(LoopPosition {
                            first: node + 1,
                            end: self.end,
                            turns: count,
                            left: count - 1,
                        });
                        self.at = node + 1;
                        self.end = end;
                    }
                }
            }
        }
        Err(WalkError::Idle { node: self.at })
    }

    /// Begins the next iteration of the innermost body, or leaves it; false at the end of the tree.
    fn next_iteration(&mut self) -> bool {
        let Some(frame) = self.frames.last_mut() else { return false };
        if frame.left > 0 {
            frame.left -= 1;
            self.at = frame.first;
        } else {
            self.end = frame.end;
            self.frames.pop();
        }
        true
    }
}

impl<C: Counts> Iterator for Walk<'_, C> {
    type Item = Result<u32, WalkError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_symbol().transpose()
    }
}
