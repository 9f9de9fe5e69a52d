//! The clusters drawn on the grid of ranks, as letters.

use std::collections::BTreeMap;
use std::io::{self, Write};

use st_cli::counted;
use st_model::form::Form;
use st_model::num::Exact as _;
use st_model::section::Section;

use crate::clusters::{Main, letters};

/// Most columns and rows that are drawn as they are; beyond, equal neighbours are drawn once.
const DRAWN: (usize, usize) = (64, 32);
/// A rank that is in no cluster.
const NONE: usize = usize::MAX;

/// Ranks in rows, each the number of its sub-cluster.
#[derive(Debug)]
pub(crate) struct Grid {
    pub(crate) width: usize,
    pub(crate) cells: Vec<usize>,
    /// Main cluster of each sub-cluster.
    pub(crate) mains: Vec<usize>,
}

impl Grid {
    /// Ranks of the clusters; as wide as said, but not wider than they are, or as the grid in which most partners are, or nearly a square.
    pub(crate) fn new(mains: &[Main<'_>], sections: &[Section], width: Option<usize>) -> Self {
        let subs = || mains.iter().enumerate().flat_map(|(i, m)| m.subs.iter().map(move |s| (i, s)));
        let size = subs().filter_map(|(_, s)| s.ranks.highest()).max().map_or(0, |r| r as usize + 1);
        let mut cells = vec![NONE; size];
        for (n, (_, sub)) in subs().enumerate() {
            for rank in sub.ranks.iter() {
                cells[rank as usize] = n;
            }
        }
        let width = width.map_or_else(|| grid_width(sections, size), |width| width.min(size));
        Self { width: width.max(1), cells, mains: subs().map(|(i, _)| i).collect() }
    }

    pub(crate) fn rows(&self) -> Vec<&[usize]> {
        self.cells.chunks(self.width).collect()
    }

    /// Draws it with letters.
    pub(crate) fn draw(&self, out: &mut dyn Write) -> io::Result<()> {
        let rows = self.rows();
        let small = self.width <= DRAWN.0 && rows.len() <= DRAWN.1;
        let lines = runs(rows.len(), |a, b| !small && rows[a] == rows[b]);
        let column = |x: usize| {
            lines.iter().map(|(y, _)| rows[*y].get(x).copied().unwrap_or(NONE)).collect::<Vec<_>>()
        };
        let all: Vec<Vec<usize>> = (0..self.width).map(column).collect();
        let across = runs(self.width, |a, b| !small && all[a] == all[b]);
        if across.len() > DRAWN.0 || lines.len() > DRAWN.1 {
            return writeln!(
                out,
                "{} by {}, too varied to be drawn here (--draw)",
                self.width,
                counted(rows.len().to_u64(), "rank")
            );
        }
        if !small {
            let widths: Vec<String> = across.iter().map(|(_, n)| n.to_string()).collect();
            let high = counted(rows.len().to_u64(), "rank");
            writeln!(out, "{} by {high}; columns: {}", self.width, widths.join(" "))?;
        }
        let wide = letters(self.mains.len().saturating_sub(1)).len();
        for (y, n) in lines {
            let text = |x: &(usize, usize)| match rows[y].get(x.0) {
                Some(&cell) if cell != NONE => letters(cell),
                _ => String::new(),
            };
            let line: String = across.iter().map(|x| format!("{:wide$} ", text(x))).collect();
            let times = if small { String::new() } else { format!(" × {n}") };
            writeln!(out, "{}{times}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Runs of equal neighbours: where each begins, and its length.
pub(crate) fn runs(n: usize, equal: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    for i in 0..n {
        match out.last_mut() {
            Some((from, length)) if equal(*from, i) => *length += 1,
            _ => out.push((i, 1)),
        }
    }
    out
}

/// Ranks in a row of the grid in which most partners are, or nearly of a square.
pub(crate) fn grid_width<'a>(sections: impl IntoIterator<Item = &'a Section>, size: usize) -> usize {
    met(sections, size).unwrap_or_else(|| nearly_square(size)).max(1)
}

/// Width of the grid of two dimensions that most parameters are written in.
fn met<'a>(sections: impl IntoIterator<Item = &'a Section>, size: usize) -> Option<usize> {
    let mut widths: BTreeMap<usize, usize> = BTreeMap::new();
    let slots = sections.into_iter().flat_map(|s| &s.threads).flat_map(|t| t.params.iter().flatten());
    for slot in slots {
        if let Form::Affine { grid, .. } | Form::Shift { grid, .. } = slot.values.form
            && let Ok(inner @ 2..) = usize::try_from(grid.extents().1)
            && size.is_multiple_of(inner)
        {
            *widths.entry(inner).or_default() += 1;
        }
    }
    widths.into_iter().max_by_key(|(_, n)| *n).map(|(w, _)| w)
}

/// The smallest width that divides so many ranks into at most as many rows.
fn nearly_square(size: usize) -> usize {
    let from = (1..).find(|w| w * w >= size).unwrap_or(1).max(1);
    let widths = (from..).take(size).find(|w| size.is_multiple_of(*w));
    widths.filter(|w| *w <= 4 * from).unwrap_or(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_kernels::{Kernel, Options, paper};

    fn drawn(width: usize, cells: Vec<usize>) -> String {
        let mut out = Vec::new();
        let grid = Grid { width, mains: vec![0, 0, 1], cells };
        grid.draw(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn small_grids_are_drawn_as_they_are_and_large_ones_by_runs() {
        assert_eq!(drawn(3, vec![0, 1, 0, 2, 2, 0, 1]), "A B A\nC C A\nB\n");
        let border = |x: usize| usize::from(x > 0 && x < 99);
        let cells = (0..10_000).map(|r| border(r % 100) + border(r / 100)).collect();
        assert_eq!(
            drawn(100, cells),
            "100 by 100 ranks; columns: 1 98 1\nA B A × 1\nB C B × 98\nA B A × 1\n"
        );
    }

    #[test]
    fn a_grid_is_no_wider_than_there_are_ranks() {
        let sections: Vec<Section> =
            paper::sections(Kernel::Stencil1d, &Options::default(), 4).map(Result::unwrap).collect();
        let mains = crate::clusters::mains(&sections, false);
        for width in [5, 4_000_000_000] {
            let grid = Grid::new(&mains, &sections, Some(width));
            assert_eq!((grid.width, grid.rows().len()), (4, 1));
        }
    }

    #[test]
    fn grids_are_nearly_square() {
        assert_eq!([1, 6, 12, 64, 7, 1000].map(nearly_square), [1, 3, 4, 8, 7, 40]);
    }
}
