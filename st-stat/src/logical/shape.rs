//! What a thread of a rank does, as loops and calls.

use st_model::num::Exact as _;
use st_model::section::{Section, Sym, Thread};
use st_model::sites::CallSites;
use st_model::steps::Looks;
use st_model::tree::Item;

use crate::calls::{function, site_of};

/// A loop or a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Node {
    /// How many loops it is in.
    pub(crate) depth: usize,
    /// How often it runs in all.
    pub(crate) runs: u64,
    /// Of a call the number among those of the thread.
    pub(crate) call: Option<usize>,
}

/// Nodes in preorder with what is called, by which threads that do the same are known.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape {
    pub(crate) thread: usize,
    pub(crate) nodes: Vec<Node>,
    /// Function and call site.
    pub(crate) calls: Vec<(String, Option<u32>)>,
}

/// What a thread does on a rank, and its symbols in the order in which they are called first.
pub(crate) fn shape(
    section: &Section,
    sites: &CallSites,
    number: usize,
    thread: &Thread,
    rank: u32,
) -> (Shape, Vec<Sym>) {
    let mut shape = Shape { thread: number, nodes: Vec::new(), calls: Vec::new() };
    let (mut symbols, mut ends): (Vec<Sym>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut numbers = vec![None; section.symbols.len()];
    for (node, (item, runs)) in
        thread.tree.items().iter().zip(section.runs_of(thread, rank, &mut Looks::default())).enumerate()
    {
        while ends.last().is_some_and(|end| *end <= node) {
            ends.pop();
        }
        let depth = ends.len();
        let call = match item {
            Item::Body { .. } => {
                ends.push(thread.tree.end_of(node));
                None
            }
            Item::Leaf { sym } => numbers.get_mut(sym.to_usize()).map(|known| {
                *known.get_or_insert_with(|| {
                    symbols.push(*sym);
                    symbols.len() - 1
                })
            }),
        };
        shape.nodes.push(Node { depth, runs, call });
    }
    let named = symbols.iter().filter_map(|sym| section.symbols.get(sym.to_usize()));
    let named = named.map(|s| (function(s.call, &section.tables), site_of(section, s, sites)));
    shape.calls = named.collect();
    (shape, symbols)
}
