//! The order of symbols in a merged section.

use st_model::num::narrow;
use std::collections::HashMap;

use st_model::section::Sym;
use st_model::tree::{FlatTree, Item};

/// Symbols in the order of their first appearance in the trees, then the rest; and each symbol's place in it.
pub(super) fn first_appearance<'a>(
    trees: impl Iterator<Item = &'a FlatTree>,
    symbols: usize,
) -> (Vec<Sym>, HashMap<Sym, Sym>) {
    let mut order = Vec::new();
    let mut numbers = HashMap::new();
    let leaves = trees
        .flat_map(|t| t.items())
        .filter_map(|i| if let Item::Leaf { sym } = i { Some(*sym) } else { None });
    for s in leaves.chain(0..narrow(symbols)) {
        numbers.entry(s).or_insert_with(|| {
            order.push(s);
            narrow(order.len() - 1)
        });
    }
    (order, numbers)
}

/// A tree with other numbers of symbols.
pub(super) fn renumbered(tree: &FlatTree, number: impl Fn(Sym) -> Sym) -> FlatTree {
    let rename = |i: &Item| match i {
        Item::Leaf { sym } => Item::Leaf { sym: number(*sym) },
        Item::Body { .. } => *i,
    };
    FlatTree::new(tree.items().iter().map(rename).collect())
}
