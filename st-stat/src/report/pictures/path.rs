//! Where the critical path is when.

use st_explain::Analysis;
use st_model::num::{Exact as _, float, narrow, saturate};

use crate::causes::headline;
use crate::figure::{Colour, EMPTY, Figure, PATH, SMALL, Shaded, Times};
use crate::levels::{Grid, Rows};

/// From next to nothing of a column's time to all of it.
const SHADES: [Colour; 2] = [Colour([0xf2, 0xcc, 0xcc]), PATH];

/// Draws it. `from`: when what is drawn begins, ns from the beginning of the run, which is `origin`.
pub(super) fn draw(figure: &mut Figure, rows: &Rows, analysis: &Analysis, origin: i64, from: i64) {
    let of = &rows.levels;
    let path = analysis.path();
    let mut sums = vec![0u64; of.rows * of.columns];
    let begin = analysis.begin().saturating_add(from);
    let grid = Grid { begin, columns: of.columns, ns: of.column_ns.max(1) };
    for stay in &path.stays {
        let Ok(rank) = analysis.ranks.binary_search_by_key(&stay.rank, |ranks| ranks.rank) else { continue };
        if let Some(row) = sums.chunks_mut(of.columns.max(1)).nth(rank / of.group.max(1)) {
            grid.add(row, stay.from, stay.until);
        }
    }
    let times = Times::new(figure, of);
    let whole = float(saturate::<u64>(of.column_ns.max(1)).into());
    let (mut empty, mut shaded) = (Vec::new(), Shaded::default());
    for (cell, ns) in sums.into_iter().enumerate() {
        let (x, bottom, wide) = times.cell(cell / of.columns, cell % of.columns);
        let place = [x, bottom - times.inner(), wide, times.inner()];
        if cell % of.columns == 0 {
            empty.push([x, place[1], wide * float(of.columns.to_u64().into()), place[3]]);
        }
        if ns > 0 {
            shaded.push(float(ns.into()) / whole, place);
        }
    }
    figure.boxes(EMPTY, empty);
    shaded.draw(figure, SHADES);
    figure.scale(times.above(), 120.0, "none of a time", "all of it", SHADES);
    times.label(figure, rows, origin.saturating_add(from));
    // It tells of all that the path is.
    let end = begin.saturating_add(grid.ns.saturating_mul(narrow(of.columns)));
    let part = from > 0 || path.stays.iter().any(|stay| stay.until > end);
    let of = if part { "of the whole run: " } else { "" };
    let said = format!("{of}{}", headline(&path, analysis.ranks.len()));
    figure.below(SMALL, &said);
}
