//! Where rows go, and values of their cells.

use anyhow::Result;
use st_model::num::saturate;

/// A value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell<'a> {
    /// It is not known, or there is none.
    None,
    /// A number.
    Int(i64),
    /// A text.
    Text(&'a str),
}

/// Where rows go.
pub trait Sink {
    /// Whether rows of a table are taken at all.
    fn wants(&self, _table: usize) -> bool {
        true
    }

    /// Takes a row of a table, a cell per column.
    ///
    /// # Errors
    ///
    /// If it cannot be kept.
    fn row(&mut self, table: usize, cells: &[Cell<'_>]) -> Result<()>;

    /// Writes what is left.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    fn finish(&mut self) -> Result<()>;

    /// Gives the result its name.
    ///
    /// # Errors
    ///
    /// If it cannot have that.
    fn commit(self) -> Result<()>;
}

pub(super) fn count(n: u64) -> Cell<'static> {
    Cell::Int(saturate(n))
}

pub(super) fn maybe(n: Option<impl Into<i64>>) -> Cell<'static> {
    n.map_or(Cell::None, |n| Cell::Int(n.into()))
}

pub(super) fn known(text: &str) -> Cell<'_> {
    if text.is_empty() { Cell::None } else { Cell::Text(text) }
}
