//! What a row of a table says, for pictures.

use crate::figure::{Anchor, Figure, TEXT};
use crate::table::{Cell, Table};

/// The cell of a row in a column.
pub(super) fn cell<'a>(table: &Table, row: &'a [Cell], key: &str) -> Option<&'a Cell> {
    row.get(table.columns.iter().position(|column| column.key == key)?)
}

/// The text of a cell.
pub(super) fn text(table: &Table, row: &[Cell], key: &str) -> String {
    cell(table, row, key).map(|cell| cell.text.clone()).unwrap_or_default()
}

/// The number of a cell; 0 if it is not known.
pub(super) fn number(table: &Table, row: &[Cell], key: &str) -> f64 {
    cell(table, row, key).and_then(|cell| cell.value.as_f64()).unwrap_or(0.0)
}

/// Says in the place of a picture that there is nothing to draw.
pub(super) fn nothing(figure: &mut Figure, what: &str) {
    figure.text([0.0, 8.0], TEXT, Anchor::Start, what);
    figure.reach(11.0);
}
