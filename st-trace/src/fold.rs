//! First form: plain values, without prediction or folding.
use crate::ints::{Ints, Sealed};
use crate::tree::{FlatTree, Item};
/// Window.
pub const DEFAULT_WINDOW: usize = 131_072;
/// Folder.
#[derive(Debug)]
pub struct Folder {
    v: Vec<u32>,
}
/// Folded.
#[derive(Debug)]
pub struct Folded {
    v: Vec<u32>,
}
impl Folder {
    /// New.
    pub fn new(_window: usize) -> Self {
        Self { v: Vec::new() }
    }
    /// Push.
    pub fn push(&mut self, s: u32) {
        self.v.push(s)
    }
    /// Finish.
    pub fn finish(self) -> Folded {
        Folded { v: self.v }
    }
}
impl Folded {
    /// Flatten.
    pub fn flatten(self) -> (FlatTree, Vec<Sealed>) {
        let mut items = Vec::new();
        let mut counts: Vec<Ints> = Vec::new();
        let mut last = None;
        for s in self.v {
            if last == Some(s) {
                if let Some(c) = counts.last_mut() {
                    let n = c.clone().seal().constant().unwrap_or(0);
                    *c = Ints::new();
                    c.push(n + 1);
                }
            } else {
                items.push(Item::Leaf { sym: s });
                let mut c = Ints::new();
                c.push(1);
                counts.push(c);
                last = Some(s);
            }
        }
        (FlatTree::new(items), counts.into_iter().map(|c| c.seal()).collect())
    }
}
