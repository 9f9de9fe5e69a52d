//! What ranks do when, as a picture.

use st_model::num::{Exact as _, float, rounded};

use crate::figure::{self, Colour, Figure, Times};
use crate::levels::{KINDS, Levels, Rows};

/// Columns of time at most: about the dots that are told apart in print, in the width of a paper's column.
const COLUMNS: f64 = 240.0;
const WIDTH: f64 = 85.0;

/// As many columns of time as there is room for in a picture so many millimetres wide.
pub(crate) fn columns(millimetres: f64) -> usize {
    rounded(COLUMNS * millimetres / WIDTH).to_usize().max(1)
}

/// What is drawn, from below, and its colour.
const PARTS: [(&str, Colour); 2 + KINDS] = [
    ("computation", figure::COMPUTATION),
    ("MPI", figure::MPI),
    ("late sender", figure::LATE_SENDER),
    ("late receiver", figure::LATE_RECEIVER),
    ("collective", figure::COLLECTIVE),
    ("window", figure::ONE_SIDED),
];

/// The colour of a kind of waits.
pub(crate) fn colour(kind: usize) -> Colour {
    PARTS.get(2 + kind).map_or(figure::MPI, |(_, colour)| *colour)
}

/// What a cell consists of, in the order of [`PARTS`]; MPI without waits.
fn parts(of: &Levels, cell: usize) -> [u64; 2 + KINDS] {
    let at = |sums: &[u64]| sums.get(cell).copied().unwrap_or(0);
    let mut all = [0; 2 + KINDS];
    let mut own = at(&of.mpi);
    for (into, kind) in all[2..].iter_mut().zip(&of.waits) {
        *into = at(kind);
        own = own.saturating_sub(*into);
    }
    (all[0], all[1]) = (at(&of.computation), own);
    all
}

/// Draws it. `origin`: when it begins, ns.
pub(crate) fn draw(figure: &mut Figure, rows: &Rows, origin: i64) {
    let of = &rows.levels;
    let times = Times::new(figure, of);
    let mut used = vec![PARTS[0], PARTS[1]];
    for (number, part) in PARTS.into_iter().enumerate() {
        let mut boxes = Vec::new();
        for cell in 0..of.rows * of.columns {
            let parts = parts(of, cell);
            let sum: u64 = parts.iter().copied().fold(0, u64::saturating_add);
            if parts[number] == 0 {
                continue;
            }
            let below: u64 = parts[..number].iter().copied().fold(0, u64::saturating_add);
            let share = |ns: u64| float(ns.into()) / float(sum.into()) * times.inner();
            let (x, bottom, wide) = times.cell(cell / of.columns, cell % of.columns);
            let high = share(parts[number]);
            boxes.push([x, bottom - share(below) - high, wide, high]);
        }
        if !boxes.is_empty() && number >= 2 {
            used.push(part);
        }
        figure.boxes(part.1, boxes);
    }
    figure.legend(times.above(), &used);
    times.label(figure, rows, origin);
}
