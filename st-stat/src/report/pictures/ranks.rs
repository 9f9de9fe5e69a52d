//! Ranks on the grid that their partners are in, by what they do.

use st_model::num::{Exact as _, float};

use super::cells::{cell, nothing, number};
use crate::figure::{Anchor, Figure, HEAT, SMALL, Shaded, TEXT};
use crate::report::told::Told;
use crate::table::{Cell, grouped};
use crate::topology::grid_width;

/// What is drawn side by side.
const QUANTITIES: [&str; 3] = ["computation_ns", "mpi_ns", "wait_ns"];

/// Between two grids, and what stands above and below each.
const GAP: f64 = 8.0;
const ABOVE: f64 = 10.0;
const BELOW: f64 = 12.0;
/// A grid is at most so high, and a rank's square at most so large.
const HIGH: f64 = 160.0;
const SIDE: f64 = 16.0;
/// Squares beside each other at most: of more ranks several share one.
const ACROSS: usize = 128;

pub(super) fn draw(figure: &mut Figure, told: &Told) {
    let table = &told.ranks;
    let is_known = |key: &&str| {
        let at = table.columns.iter().position(|column| column.key == *key);
        table.rows.iter().any(|row| at.and_then(|at| row.get(at)).is_some_and(|cell| !cell.value.is_null()))
    };
    let shown: Vec<&str> = QUANTITIES.into_iter().filter(is_known).collect();
    if shown.is_empty() {
        return nothing(figure, "no times of ranks");
    }
    let grid = Grid::of(told, figure.width, shown.len());
    for (i, key) in shown.iter().enumerate() {
        let x = (grid.wide + GAP) * float(i.to_u64().into());
        let title = table.columns.iter().find(|column| column.key == *key).map_or("", |column| column.title);
        figure.text([x, ABOVE - 3.0], TEXT, Anchor::Start, title);
        let cells: Vec<&Cell> = table.rows.iter().filter_map(|row| cell(table, row, key)).collect();
        let by = |a: &&&Cell, b: &&&Cell| value(a).total_cmp(&value(b));
        let (Some(least), Some(most)) = (cells.iter().min_by(by), cells.iter().max_by(by)) else { continue };
        // What is printed alike looks alike.
        let span = if least.text == most.text { f64::INFINITY } else { value(most) - value(least) };
        let all: Vec<f64> =
            table.rows.iter().map(|row| (number(table, row, key) - value(least)) / span).collect();
        grid.draw(figure, x, &all);
        figure.scale([x, grid.bottom() + 9.0], grid.wide, &least.text, &most.text, HEAT);
    }
    let mut said = format!("{} ranks in a row of the grid", grouped(grid.across.to_u64()));
    if grid.each > 1 {
        said += &format!(
            "; a square is {0} by {0} ranks, and has the colour of the largest of them",
            grouped(grid.each.to_u64())
        );
    }
    let y = grid.bottom() + BELOW + 7.0;
    figure.text([0.0, y], SMALL, Anchor::Start, &said);
    figure.reach(y + 3.0);
}

fn value(cell: &Cell) -> f64 {
    cell.value.as_f64().unwrap_or(0.0)
}

/// Where ranks are.
struct Grid {
    /// Ranks in a row, rows, and ranks on a side of a square.
    across: usize,
    down: usize,
    each: usize,
    /// Points on a side of a square, and points that there are for each grid.
    side: f64,
    wide: f64,
}

impl Grid {
    fn of(told: &Told, width: f64, grids: usize) -> Self {
        let ranks = told.ranks.rows.len();
        let across = grid_width(told.sections.iter().map(|(s, _)| s), ranks).min(ranks.max(1));
        let down = ranks.div_ceil(across).max(1);
        let each = across.max(down).div_ceil(ACROSS).max(1);
        let float = |n: usize| float(n.to_u64().into());
        let wide = (width - GAP * float(grids.saturating_sub(1))) / float(grids.max(1));
        let side = (wide / float(across.div_ceil(each))).min(HIGH / float(down.div_ceil(each))).min(SIDE);
        Self { across, down, each, side, wide }
    }

    fn bottom(&self) -> f64 {
        ABOVE + self.side * float(self.down.div_ceil(self.each).to_u64().into())
    }

    /// Squares whose upper left corner is at x; parts of the scale, by rank.
    fn draw(&self, figure: &mut Figure, x: f64, parts: &[f64]) {
        let columns = self.across.div_ceil(self.each);
        let mut squares = vec![None; columns * self.down.div_ceil(self.each)];
        for (rank, part) in parts.iter().enumerate() {
            let at = rank / self.across / self.each * columns + rank % self.across / self.each;
            if let Some(square) = squares.get_mut(at) {
                *square = Some(part.max(square.unwrap_or(0.0)));
            }
        }
        let mut shaded = Shaded::default();
        for (at, part) in squares.into_iter().enumerate() {
            let of = |n: usize| self.side * float(n.to_u64().into());
            if let Some(part) = part {
                shaded.push(part, [x + of(at % columns), ABOVE + of(at / columns), self.side, self.side]);
            }
        }
        shaded.draw(figure, HEAT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_has_the_colour_of_the_largest_of_its_ranks() {
        let grid = Grid { across: 5, down: 5, each: 2, side: 4.0, wide: 12.0 };
        let mut figure = Figure::new(85.0, "a test").unwrap();
        // The last square would have been that of one rank, which is not there.
        let parts: Vec<f64> = (0..24).map(|rank| if rank == 7 || rank == 23 { 1.0 } else { 0.0 }).collect();
        grid.draw(&mut figure, 0.0, &parts);
        let mut svg = Vec::new();
        crate::figure::svg(&figure, &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        let dark: Vec<&str> = svg.lines().filter(|line| line.contains("#08306b")).collect();
        assert_eq!(dark.len(), 1, "{svg}");
        assert_eq!(dark[0].matches('M').count(), 2, "{svg}");
        assert!(dark[0].contains("M4.00 10.00h4.00") && dark[0].contains("M4.00 18.00h4.00"), "{svg}");
        assert_eq!(svg.matches('M').count(), 8, "{svg}");
    }
}
