//! Call sites by time.

use anyhow::Result;
use st_model::num::Exact as _;

use super::cells::{nothing, number, text};
use crate::figure::{self, Anchor, Bar, Figure, SMALL, bars};
use crate::input::Lacking;
use crate::report::told::Told;
use crate::table::{Cell, grouped};

/// Call sites at most.
const MOST: usize = 12;

pub(super) fn draw(figure: &mut Figure, told: &Told) -> Result<()> {
    let Some([_, table]) = &told.calls else {
        return Err(Lacking(told.lacks.join("; ")).into());
    };
    // What begins and ends MPI has no share.
    let shared =
        |row: &&Vec<Cell>| number(table, row, "time_ns") > 0.0 && text(table, row, "share_percent") != "-";
    let rows: Vec<_> = table.rows.iter().filter(shared).collect();
    let Some(most) = rows.first().map(|row| number(table, row, "time_ns")) else {
        nothing(figure, "no times of call sites");
        return Ok(());
    };
    let bar = |row: &&Vec<Cell>| Bar {
        name: text(table, row, "function"),
        place: text(table, row, "place"),
        deep: 0,
        parts: vec![(number(table, row, "time_ns") / most, figure::MPI)],
        text: format!("{}  {}", text(table, row, "time_ns"), text(table, row, "share_percent")),
    };
    let all: Vec<Bar> = rows.iter().take(MOST).map(bar).collect();
    let y = bars(figure, 2.0, &all);
    if let Some(left) = rows.len().checked_sub(MOST).filter(|left| *left > 0) {
        let said = format!("and {} more call sites", grouped(left.to_u64()));
        figure.coloured([0.0, y + 5.0], SMALL, Anchor::Start, &said, figure::SOFT);
        figure.reach(y + 8.0);
    }
    Ok(())
}
