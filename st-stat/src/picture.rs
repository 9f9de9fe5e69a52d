//! The clusters drawn on the grid of ranks, as a picture: sub-clusters in shades of the colour of their main cluster, with their letters.

mod styles;

use std::collections::BTreeMap;

use anyhow::Result;
use st_model::num::{Exact as _, float};

use crate::args::PAPER;
use crate::clusters::letters;
use crate::figure::{Anchor, Figure, Rect, SMALL};
use crate::topology::{Grid, runs};
use styles::{Style, styles};

/// How high all ranks together are at most, and one of them, points.
const HIGH: f64 = 240.0;
const RANK: f64 = 24.0;
/// Sub-clusters that are explained below.
const NAMED: usize = 48;

/// Draws it in the width of a paper's column: a rectangle for neighbours that are alike, and below what the colours stand for.
///
/// # Errors
///
/// If the font that is part of the program cannot be read.
pub(crate) fn figure(grid: &Grid, title: String) -> Result<Figure> {
    let mut figure = Figure::new(PAPER, title)?;
    let (rows, styles) = (grid.rows(), styles(grid));
    let number = |n: usize| float(n.to_u64().into());
    let side = (figure.width / number(grid.width.max(1))).min(HIGH / number(rows.len().max(1))).min(RANK);
    let mut boxes: BTreeMap<usize, Vec<Rect>> = BTreeMap::new();
    for (y, times) in runs(rows.len(), |a, b| rows[a] == rows[b]) {
        for (x, n) in runs(rows[y].len(), |a, b| rows[y][a] == rows[y][b]) {
            let rect = [x, y, n, times].map(|n| side * number(n));
            boxes.entry(rows[y][x]).or_default().push(rect);
        }
    }
    for (cell, boxes) in boxes {
        // Ranks that are in no cluster stay white.
        if let Some(style) = styles.get(cell) {
            draw(&mut figure, *style, boxes, cell);
        }
    }
    figure.reach(side * number(rows.len()));
    legend(&mut figure, grid, &styles);
    Ok(figure)
}

/// Draws rectangles of a sub-cluster, with its letter where there is room.
fn draw(figure: &mut Figure, style: Style, boxes: Vec<Rect>, number: usize) {
    figure.boxes(style.colour, boxes.clone());
    over(figure, style, &boxes);
    let name = letters(number);
    let room = figure.wide(&name, SMALL) + 3.0;
    for [x, y, wide, high] in boxes {
        if wide < room || high < SMALL + 2.0 {
            continue;
        }
        let middle = (x + wide / 2.0, y + high / 2.0);
        // On ground of its own: lines do not cross it.
        figure.boxes(
            style.colour,
            vec![[middle.0 - room / 2.0, middle.1 - SMALL / 2.0 - 1.0, room, SMALL + 2.0]],
        );
        let line = [middle.0, middle.1 + SMALL * 0.35];
        figure.coloured(line, SMALL, Anchor::Middle, &name, style.ink());
    }
}

/// Draws a style's lines over rectangles.
fn over(figure: &mut Figure, style: Style, boxes: &[Rect]) {
    let lines = boxes.iter().flat_map(|of| style.lines(*of).1).collect();
    figure.boxes(style.ink(), lines);
}

/// Letters of sub-clusters beside their colours, with the number of the main cluster.
fn legend(figure: &mut Figure, grid: &Grid, styles: &[Style]) {
    let (mut x, mut y) = (0.0, figure.height() + 10.0);
    for (n, (main, style)) in grid.mains.iter().zip(styles).take(NAMED).enumerate() {
        let name = format!("{} (main {main})", letters(n));
        if x > 0.0 && x + 13.0 + figure.wide(&name, SMALL) > figure.width {
            (x, y) = (0.0, y + 8.5);
        }
        let patch = [x, y - 5.0, 5.0, 5.0];
        x = figure.legend([x, y], &[(&name, style.colour)]);
        over(figure, *style, &[patch]);
    }
    figure.reach(y + SMALL / 3.0);
    let more = grid.mains.len().saturating_sub(NAMED);
    if more > 0 {
        figure.below(SMALL, &format!("and {more} more sub-clusters"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure;

    fn grid() -> Grid {
        Grid { width: 2, mains: vec![0, 0, 1], cells: vec![0, 0, 1, 2, 1] }
    }

    fn svg(grid: &Grid) -> String {
        let mut out = Vec::new();
        figure::svg(&figure(grid, "app: clusters".into()).unwrap(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_rectangle_stands_for_a_run_and_is_explained() {
        let text = svg(&grid());
        assert!(text.starts_with("<svg") && text.contains("<title>app: clusters</title>"), "{text}");
        let shapes = |colour: &str| {
            let lines = text.lines().filter(|line| line.contains(&format!("fill=\"{colour}\" shape")));
            lines.map(|line| line.matches('M').count()).collect::<Vec<_>>()
        };
        // Two ranks beside each other, and one each in the second and in the third row; then the grounds of letters and the patches of the legend.
        assert_eq!(
            (shapes("#0072b2"), shapes("#66aad1"), shapes("#e69f00")),
            (vec![1, 1, 1], vec![2, 1, 1, 1], vec![1, 1, 1])
        );
        for name in ["A (main 0)", "B (main 0)", "C (main 1)"] {
            assert!(text.contains(&format!("aria-label=\"{name}\"")), "{name}: {text}");
        }
    }

    #[test]
    fn ranks_are_as_wide_as_there_is_room() {
        // 24 points a rank, of which two rows are alike; 85 mm by 100; 240 points by 1000.
        for (width, n, high) in [(2, 5, 48.0), (100, 1000, 24.1), (1, 1000, 240.0)] {
            let grid = Grid { width, mains: vec![0], cells: vec![0; n] };
            let all = svg(&grid);
            let first = all.split("d=\"M0.00 0.00h").nth(1).unwrap();
            let tall: f64 = first.split_once('v').unwrap().1.split('h').next().unwrap().parse().unwrap();
            assert!((tall - high).abs() < 0.1, "{width} {tall}");
        }
        assert!(svg(&Grid { width: 1, mains: vec![], cells: vec![] }).ends_with("</svg>\n"));
        let many = svg(&Grid { width: 10, mains: (0..100).collect(), cells: (0..100).collect() });
        assert!(many.contains("aria-label=\"and 52 more sub-clusters\""), "{many}");
        for (n, name) in [(47, "v"), (61, "9"), (62, "AA"), (99, "BL")] {
            assert!(many.contains(&format!("aria-label=\"{name}\"")), "{n}");
        }
    }
}
