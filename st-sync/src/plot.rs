//! Pictures of violated messages: how many over time, and between which ranks.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use st_match::graph::Survey;

const WIDTH: u64 = 400;
const BARS: u64 = 120;
const GRID: u64 = 320;
/// Most cells of the table of pairs, each way: more ranks share cells.
const CELLS: u32 = 64;

/// Stages side by side: bars over time above, a table of sender (down) and receiver (across) below.
pub(crate) fn svg(stages: &[(&str, &Survey)], caption: &str) -> String {
    let most = stages.iter().flat_map(|(_, s)| &s.over_time).copied().max().unwrap_or(0).max(1);
    let grids: Vec<_> = stages.iter().map(|(_, s)| cells(s)).collect();
    let darkest = grids.iter().flat_map(|(_, g)| g.values()).copied().max().unwrap_or(0).max(1);
    let (width, height) = (stages.len() as u64 * (WIDTH + 40) + 40, BARS + GRID + 140);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"40\" y=\"20\">{caption}</text>\n"
    );
    for (i, ((name, survey), (ranks, grid))) in (0u64..).zip(stages.iter().zip(&grids)) {
        let left = 40 + i * (WIDTH + 40);
        let ms = survey.span.ns() / 1_000_000;
        let _ = writeln!(
            out,
            "<text x=\"{left}\" y=\"45\">{name}: violated messages over {ms} ms, at most {most} in a hundredth</text>"
        );
        let bottom = 55 + BARS;
        let bar = WIDTH / (survey.over_time.len() as u64).max(1);
        for (k, n) in (0u64..).zip(&survey.over_time).filter(|(_, n)| **n > 0) {
            let h = (BARS * n / most).max(1);
            let (x, y) = (left + k * bar, bottom - h);
            let _ =
                writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{bar}\" height=\"{h}\" fill=\"#b2182b\"/>");
        }
        let _ = writeln!(out, "<path d=\"M{left} {bottom}h{WIDTH}\" stroke=\"black\"/>");
        let top = bottom + 40;
        let _ = writeln!(
            out,
            "<text x=\"{left}\" y=\"{}\">from rank (down) to rank (across), {ranks} ranks</text>\n\
             <rect x=\"{left}\" y=\"{top}\" width=\"{GRID}\" height=\"{GRID}\" fill=\"none\" stroke=\"black\"/>",
            top - 8
        );
        let n = u64::from((*ranks).clamp(1, CELLS));
        let side = GRID / n;
        for ((a, b), count) in grid {
            let (x, y) = (left + u64::from(*b) * side, top + u64::from(*a) * side);
            let shade = 230 - (200 * count / darkest).min(200);
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill=\"rgb({shade},{shade},255)\">\
                 <title>{count} violated</title></rect>"
            );
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Number of ranks, and violated messages per cell of the table.
fn cells(survey: &Survey) -> (u32, BTreeMap<(u32, u32), u64>) {
    let ranks = survey.ranks.keys().map(|(a, b)| a.max(b).saturating_add(1)).max().unwrap_or(1);
    let per_cell = ranks.div_ceil(CELLS);
    let mut grid = BTreeMap::new();
    for ((a, b), t) in &survey.ranks {
        *grid.entry((a / per_cell, b / per_cell)).or_default() += t.violated;
    }
    (ranks, grid)
}
