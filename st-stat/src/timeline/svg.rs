//! What ranks do when, as a picture in the width of a paper's column. The same trace gives the same bytes.

use std::io::{self, Write};

use st_model::num::{Exact as _, float, saturate};

use crate::levels::{KINDS, Levels};
use crate::table::{duration, grouped};

/// Columns of time at most: about the dots that are told apart in print.
pub(super) const COLUMNS: usize = 240;

/// A paper's column, and what stands beside and around the rows, in points.
const WIDTH: f64 = 241.0;
const LEFT: f64 = 30.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 14.0;
/// Rows together are as high, or less if they would be higher than this each.
const HIGH: f64 = 150.0;
const ROW: f64 = 14.0;

/// What is drawn, from below, and its colour: those of the page (`st-stat/report/src/style.css`), which colour-blind people tell apart.
const PARTS: [(&str, &str); 2 + KINDS] = [
    ("computation", "#c9d7e3"),
    ("MPI", "#3b7fb8"),
    ("late sender", "#d55e00"),
    ("late receiver", "#b0529a"),
    ("collective", "#e69f00"),
    ("window", "#007a5a"),
];

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
pub(super) fn draw(of: &Levels, origin: i64, out: &mut dyn Write) -> io::Result<()> {
    let row = (HIGH / float(of.rows.to_u64().max(1).into())).min(ROW);
    let high = row * float(of.rows.to_u64().into());
    let all = TOP + high + BOTTOM;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}pt\" height=\"{all:.2}pt\" viewBox=\"0 0 {WIDTH} {all:.2}\" \
         font-family=\"Helvetica, Arial, sans-serif\" font-size=\"7\">"
    )?;
    let column = (WIDTH - LEFT) / float(of.columns.to_u64().max(1).into());
    let mut used = [true, true, false, false, false, false];
    for (number, (_, colour)) in PARTS.iter().enumerate() {
        write!(out, "<path fill=\"{colour}\" shape-rendering=\"crispEdges\" d=\"")?;
        for cell in 0..of.rows * of.columns {
            let parts = parts(of, cell);
            let sum: u64 = parts.iter().copied().fold(0, u64::saturating_add);
            if parts[number] == 0 {
                continue;
            }
            used[number] = true;
            let below: u64 = parts[..number].iter().copied().fold(0, u64::saturating_add);
            let share = |ns: u64| float(ns.into()) / float(sum.into()) * row * 0.94;
            let x = LEFT + column * float((cell % of.columns).to_u64().into());
            let bottom = TOP + row * float((cell / of.columns + 1).to_u64().into()) - share(below);
            let h = share(parts[number]);
            write!(out, "M{x:.2} {bottom:.2}v{:.2}h{column:.2}v{h:.2}z", -h)?;
        }
        writeln!(out, "\"/>")?;
    }
    labels(of, origin, (row, high), out)?;
    let mut x = LEFT;
    for ((name, colour), _) in PARTS.iter().zip(used).filter(|(_, used)| *used) {
        writeln!(out, "<rect x=\"{x:.2}\" y=\"2\" width=\"6\" height=\"6\" fill=\"{colour}\"/>")?;
        writeln!(out, "<text x=\"{:.2}\" y=\"7.5\" font-size=\"6\">{name}</text>", x + 7.5)?;
        x += 14.0 + 3.0 * float(name.len().to_u64().into());
    }
    writeln!(out, "</svg>")
}

/// Ranks on the left, times below.
fn labels(of: &Levels, origin: i64, (row, high): (f64, f64), out: &mut dyn Write) -> io::Result<()> {
    // As many as do not touch.
    let every = (1..).map(|n: usize| 1 << n.min(32)).find(|n: &usize| row * float(n.to_u64().into()) > 8.0);
    let every = if row > 8.0 { 1 } else { every.unwrap_or(1) };
    for number in (0..of.rows).step_by(every) {
        let y = TOP + row * (float(number.to_u64().into()) + 0.5) + 2.5;
        let rank = grouped(of.ends(number).0.into());
        writeln!(out, "<text x=\"{:.2}\" y=\"{y:.2}\" text-anchor=\"end\">{rank}</text>", LEFT - 3.0)?;
    }
    let run = of.column_ns.saturating_mul(saturate(of.columns));
    for (part, anchor) in [(0, "start"), (1, "middle"), (2, "end")] {
        let x = LEFT + (WIDTH - LEFT) * f64::from(part) / 2.0;
        let time = duration(saturate(origin.saturating_add(run / 2 * i64::from(part))));
        let y = TOP + high + 9.0;
        writeln!(out, "<text x=\"{x:.2}\" y=\"{y:.2}\" text-anchor=\"{anchor}\">{time}</text>")?;
    }
    writeln!(out, "<text x=\"0\" y=\"{:.2}\">rank</text>", TOP + high + 9.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_the_page() {
        let style = include_str!("../../report/src/style.css");
        let light = style.split_once(":root[data-theme").map_or("", |(light, _)| light);
        let names = ["computation", "mpi", "late-sender", "late-receiver", "collective", "one-sided"];
        for ((_, colour), name) in PARTS.iter().zip(names) {
            assert!(light.contains(&format!("--{name}: {colour};")), "{name}");
        }
    }
}
