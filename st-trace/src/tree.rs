//! First form: plain values, without prediction or folding.
use crate::ints::Cursor;
/// Item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Leaf.
    Leaf {
        /// Symbol.
        sym: u32,
    },
    /// Body.
    Body {
        /// Items below.
        below: u32,
    },
}
/// Tree.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FlatTree {
    items: Vec<Item>,
}
impl FlatTree {
    /// New.
    pub fn new(items: Vec<Item>) -> Self {
        Self { items }
    }
    /// Items.
    pub fn items(&self) -> &[Item] {
        &self.items
    }
}
/// Error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tree does not end")]
pub struct WalkError;
/// Walk.
#[derive(Debug)]
pub struct Walk<'a> {
    tree: &'a FlatTree,
    cursors: Vec<Cursor<'a>>,
    stack: Vec<(usize, usize, i64)>,
    at: usize,
    end: usize,
    rep: (u32, i64),
}
impl<'a> Walk<'a> {
    /// New.
    pub fn new(tree: &'a FlatTree, cursors: Vec<Cursor<'a>>) -> Self {
        let end = tree.items.len();
        Self { tree, cursors, stack: Vec::new(), at: 0, end, rep: (0, 0) }
    }
    /// Next.
    pub fn next_symbol(&mut self) -> Result<Option<u32>, WalkError> {
        loop {
            if self.rep.1 > 0 {
                self.rep.1 -= 1;
                return Ok(Some(self.rep.0));
            }
            if self.at < self.end {
                let k = self.cursors[self.at].next();
                match self.tree.items[self.at] {
                    Item::Leaf { sym } => {
                        self.rep = (sym, k);
                        self.at += 1;
                    }
                    Item::Body { below } => {
                        let from = self.at + 1;
                        let to = from + below as usize;
                        if k > 0 && below > 0 {
                            self.stack.push((to, self.end, 0));
                            self.stack.push((from, to, k - 1));
                            self.at = from;
                            self.end = to;
                        } else {
                            self.at = to;
                        }
                    }
                }
            } else {
                let Some((from, to, k)) = self.stack.pop() else { return Ok(None) };
                if k > 0 {
                    self.stack.push((from, to, k - 1));
                    self.at = from;
                    self.end = to;
                } else {
                    let Some((next, end, _)) = self.stack.pop() else { return Ok(None) };
                    self.at = next;
                    self.end = end;
                }
            }
        }
    }
}
