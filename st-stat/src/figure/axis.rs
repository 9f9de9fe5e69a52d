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
    pub(crate) fn above(&self) -> [f64; 2] {
        [LEFT, TOP - 4.0]
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
            figure.text([LEFT - 3.0, y], TEXT, Anchor::End, &name);
        }
        let bottom = TOP + self.row * self.rows + 9.0;
        let span = levels.span_ns;
        // The last column may reach beyond the end.
        let across = self.column * float(levels.columns.to_u64().into());
        let columns = levels.column_ns.saturating_mul(saturate(levels.columns));
        let per_ns = across / float(saturate::<u64>(columns).max(1).into());
        for (after, text) in moments(saturate(origin), span) {
            let anchor = match after {
                0 => Anchor::Start,
                _ if after == span => Anchor::End,
                _ => Anchor::Middle,
            };
            figure.text([LEFT + per_ns * float(after.into()), bottom], TEXT, anchor, &text);
        }
        figure.text([0.0, bottom], TEXT, Anchor::Start, rows.by.one());
        figure.reach(TOP + self.row * self.rows + BOTTOM);
        if levels.group > 1 {
            figure.below(SMALL, &format!("{} a row", rows.each()));
        }
    }
}

/// Begin, middle and end of a part of the time, ns: how much later than the begin, and its text. They are times of the run where three
/// digits tell them apart, else when it begins, with as many digits as that needs, and how much later the others are. Without a middle
/// if that is no whole number of ns.
fn moments(begin: u64, run: u64) -> Vec<(u64, String)> {
    let (half, end) = (run / 2, begin.saturating_add(run));
    let all = [0, half, run].into_iter().enumerate().filter(|(i, after)| *i != 1 || *after > 0);
    // What the last of three digits counts.
    let digit = end.checked_ilog10().map_or(1, |digits| 10_u64.pow(digits.saturating_sub(2)));
    if half >= digit.saturating_mul(10) || begin == 0 {
        return all.map(|(_, after)| (after, duration(begin.saturating_add(after)))).collect();
    }
    // As many as tell a tenth of the half.
    let mut units = std::iter::successors(Some(1_000_000_000_u64), |unit| Some(unit / 10)).take(10);
    let digits = units.position(|unit| unit.saturating_mul(10) <= half).unwrap_or(9);
    let text = |(i, after): (usize, u64)| match i {
        0 => (after, format!("{:.digits$} s", float(begin.into()) / 1e9)),
        _ => (after, format!("+{}", duration(after))),
    };
    all.map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_short_parts_are_told_apart() {
        let of = |begin, run| moments(begin, run).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(of(0, 3_000), ["0 ns", "1.50 µs", "3.00 µs"]);
        assert_eq!(of(50_000_000, 100_000_000), ["50.0 ms", "100 ms", "150 ms"]);
        assert_eq!(of(100_000_000, 1_000_000), ["0.10000 s", "+500 µs", "+1.00 ms"]);
        assert_eq!(of(100_000_000, 10_000), ["0.1000000 s", "+5.00 µs", "+10.0 µs"]);
        assert_eq!(of(100_000_012, 100), ["0.100000012 s", "+50 ns", "+100 ns"]);
        assert_eq!(of(1_500_000_000, 15_000_000), ["1.5000 s", "+7.50 ms", "+15.0 ms"]);
        assert_eq!(of(u64::MAX, u64::MAX)[0], duration(u64::MAX));
        // A middle that is a whole number of ns, where it is, or none.
        assert_eq!(moments(7, 3)[1], (1, "+1 ns".to_owned()));
        assert_eq!(of(7, 1), ["0.000000007 s", "+1 ns"]);
    }
}
