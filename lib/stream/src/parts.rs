//! What each piece of a section takes before compression: the tree, every stream of counts and parameters, sketches.

use super::blocks::Blocks;
use super::elastic::{Written, put_elastic, put_made};
use super::forms::forms_of;
use super::matched;
use super::sketches::path_size;
use super::struct_columns::{COLUMNS, COUNTS, LENGTHS, role};
use super::structure::{put_partitions, put_symbols, put_tree, slot_made};
use super::transposed::Left;
use st_model::calls::CallTable;
use st_model::section::{Elastic, Form, Section, Sym};
use st_model::sketch::Sketch;
use st_model::tree::Item;

/// A piece of a section.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Piece {
    /// Symbols, in STRUCT.
    Symbols,
    /// Sets of ranks that streams are shared by, in STRUCT.
    Partitions,
    /// Nodes of the trees, in STRUCT.
    Tree,
    /// Trip counts of a loop, in STRUCT.
    Loop,
    /// How often a call was made in a row, in STRUCT.
    Count(Sym),
    /// Lengths of the lists of a slot of a symbol, in STRUCT.
    Lengths(Sym, usize),
    /// Values of a slot of a symbol, in STRUCT.
    Values(Sym, usize),
    /// Times of a symbol, in SKETCH.
    Times(Sym),
}

/// The size of a piece, and what it consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PieceSize {
    /// The piece.
    pub piece: Piece,
    /// Bytes before compression.
    pub bytes: u64,
    /// Classes of ranks that differ.
    pub classes: usize,
    /// Values that had to be stored because nothing predicts them, in all classes; for times the number of buckets.
    pub stored: usize,
    /// Whether the values are functions of the rank.
    pub symbolic: bool,
}

/// The pieces of a section's STRUCT and SKETCH in the order in which they lie there; no sketches, if its stream does not store
/// them since they follow from exact times (`derived`). *Cost:* as encoding it.
#[must_use]
pub fn piece_sizes(section: &Section, derived: bool) -> Vec<PieceSize> {
    let forms = forms_of(section);
    let mut out: Vec<PieceSize> = fixed_sizes(section)
        .map(|(piece, bytes)| PieceSize { piece, bytes, classes: 1, stored: 0, symbolic: false })
        .into();
    let (mut left, mut written) = (Left::all(), Written::new(&forms));
    let matched = matched::follows(section);
    for t in &section.threads {
        for (item, count) in t.tree.items().iter().zip(&t.counts) {
            let piece = match item {
                Item::Leaf { sym } => Piece::Count(*sym),
                Item::Body { .. } => Piece::Loop,
            };
            out.push(elastic(piece, count, COUNTS, &mut written));
        }
        for ((sym, symbol), streams) in (0..).zip(&section.symbols).zip(&t.params) {
            let made = slot_made(section, t, sym as usize, &matched, &mut left);
            for ((i, slot), s) in CallTable::builtin().slots(symbol.call).iter().enumerate().zip(streams) {
                if let Some(lens) = &s.lens {
                    out.push(elastic(Piece::Lengths(sym, i), lens, LENGTHS, &mut written));
                }
                let piece = Piece::Values(sym, i);
                out.push(match made {
                    Some(made) if made == i => made_again(piece, &s.values, &written),
                    _ => elastic(piece, &s.values, role(slot), &mut written),
                });
            }
        }
        for path in t.sketches.iter().filter(|_| !derived) {
            let bytes = path_size(path, &t.ranks);
            let stored = [&path.compute, &path.comm].map(numbers).iter().sum();
            out.push(PieceSize { piece: Piece::Times(path.sym), bytes, classes: 1, stored, symbolic: false });
        }
    }
    out
}

/// Buckets, bins, or durations that a sketch keeps.
fn numbers(s: &Sketch) -> usize {
    s.quantiles().map_or_else(|| s.buckets().count() + s.bins().len(), |kept| kept.buckets().len())
}

/// Bytes of what is no stream.
fn fixed_sizes(s: &Section) -> [(Piece, u64); 3] {
    let size = |put: &dyn Fn(&mut Blocks<COLUMNS>)| {
        let mut b = Blocks::<COLUMNS>::new();
        put(&mut b);
        b.len()
    };
    [
        (Piece::Symbols, size(&|b| put_symbols(b, &s.symbols))),
        (Piece::Partitions, size(&|b| put_partitions(b, s))),
        (Piece::Tree, size(&|b| s.threads.iter().for_each(|t| put_tree(b, &t.tree)))),
    ]
}

/// A piece whose values are not stored because they follow from others.
fn made_again(piece: Piece, e: &Elastic, written: &Written<'_, '_>) -> PieceSize {
    let mut scratch = Blocks::<COLUMNS>::new();
    put_made(&mut scratch, e, written);
    PieceSize { stored: 0, ..size(piece, e, scratch.len()) }
}

fn elastic<'a>(piece: Piece, e: &'a Elastic, role: usize, written: &mut Written<'a, '_>) -> PieceSize {
    let mut scratch = Blocks::<COLUMNS>::new();
    put_elastic(&mut scratch, e, role, written);
    size(piece, e, scratch.len())
}

fn size(piece: Piece, e: &Elastic, bytes: u64) -> PieceSize {
    PieceSize {
        piece,
        bytes,
        classes: e.streams.len(),
        stored: e.streams.iter().map(|s| s.elements().count()).sum(),
        symbolic: !matches!(e.form, Form::Absolute | Form::Predicted | Form::Histogram(_)),
    }
}
