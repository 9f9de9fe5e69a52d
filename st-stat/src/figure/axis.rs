//! Time from left to right, ranks from above to below.

use st_model::num::{Exact as _, float, saturate};

use super::marks::Anchor;
use super::model::{Figure, SMALL, TEXT};
use crate::levels::{Levels, Rows};
use crate::table::duration;

/// What stands on the left of rows, and above and below them.
const LEFT: f64 = 30.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 14.0;
/// Rows together are as high, or less if they would be higher than this each.
const HIGH: f64 = 150.0;
const ROW: f64 = 14.0;

/// Where rows of ranks and columns of time are in a picture.
pub(crate) struct Times {
    /// How wide a column and how high a row is.
    column: f64,
    row: f64,
    rows: f64,
}

impl Times {
    pub(crate) fn new(figure: &Figure, levels: &Levels) -> Self {
        let number = |n: usize| float(n.to_u64().max(1).into());
        let row = (HIGH / number(levels.rows)).min(ROW);
        let column = (figure.width - LEFT) / number(levels.columns);
        Self { column, row, rows: float(levels.rows.to_u64().into()) }
    }

    /// How high a row is without what is between rows.
    pub(crate) fn inner(&self) -> f64 {
        self.row * 0.94
    }

    /// Left edge, lower edge and width of a cell.
    pub(crate) fn cell(&self, row: usize, column: usize) -> (f64, f64, f64) {
        let x = LEFT + self.column * float(column.to_u64().into());
        (x, TOP + self.row * float((row + 1).to_u64().into()), self.column)
    }

    /// Where a legend stands.
    pub(crate) fn above(&self) -> (f64, f64) {
        (LEFT, TOP - 4.0)
    }

    /// Writes ranks, or whatever rows are, on the left, times below. `origin`: when what is drawn begins, ns.
    pub(crate) fn label(&self, figure: &mut Figure, rows: &Rows, origin: i64) {
        let levels = &rows.levels;
        let times = |n: usize| self.row * float(n.to_u64().into());
        // As many as do not touch.
        let every = (0..usize::BITS).map(|n| 1 << n).find(|n| times(*n) > 8.0).unwrap_or(1);
        for row in (0..levels.rows).step_by(every) {
            let y = TOP + times(row) + self.row / 2.0 + 2.5;
            let [name, _] = rows.ends(row);
            let name = figure.fitting(&name, TEXT, LEFT - 3.0);
            figure.text((LEFT - 3.0, y), TEXT, Anchor::End, &name);
        }
        let run = levels.column_ns.saturating_mul(saturate(levels.columns));
        let bottom = TOP + self.row * self.rows + 9.0;
        for (part, anchor) in [(0, Anchor::Start), (1, Anchor::Middle), (2, Anchor::End)] {
            let x = LEFT + (figure.width - LEFT) * f64::from(part) / 2.0;
            let time = origin.saturating_add(run / 2 * i64::from(part));
            figure.text((x, bottom), TEXT, anchor, &duration(saturate(time)));
        }
        figure.text((0.0, bottom), TEXT, Anchor::Start, rows.by.one());
        figure.reach(TOP + self.row * self.rows + BOTTOM);
        if levels.group > 1 {
            figure.below(SMALL, &format!("{} a row", rows.each()));
        }
    }
}
