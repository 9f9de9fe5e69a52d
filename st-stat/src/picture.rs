//! The clusters drawn on the grid of ranks, as a picture: sub-clusters in shades of the colour of their main cluster.

use std::collections::BTreeMap;

use anyhow::Result;
use st_model::num::{Exact as _, float, narrow};

use crate::args::PAPER;
use crate::clusters::letter;
use crate::figure::{Colour, Figure, Rect, SMALL};
use crate::topology::{Grid, runs};

/// Saturation of all colours, in percent.
const SATURATION: u32 = 60;
/// How high all ranks together are at most, and one of them, points.
const HIGH: f64 = 240.0;
const RANK: f64 = 24.0;
/// Sub-clusters that have a name beside their colour.
const NAMED: usize = 48;

/// Hue in degrees and lightness in percent, by sub-cluster.
fn colours(grid: &Grid) -> Vec<(u32, u32)> {
    let mut shades: BTreeMap<usize, u32> = BTreeMap::new();
    let colour = |main: &usize| {
        let shade = shades.entry(*main).and_modify(|n| *n = (*n + 1) % 6).or_insert(0);
        // The golden angle: neighbours in number are far apart in colour.
        (narrow(main * 137 % 360), 40 + 9 * *shade)
    };
    grid.mains.iter().map(colour).collect()
}

/// Draws it in the width of a paper's column: a rectangle for neighbours that are alike, and below what the colours stand for.
///
/// # Errors
///
/// If the font that is part of the program cannot be read.
pub(crate) fn figure(grid: &Grid, title: String) -> Result<Figure> {
    let mut figure = Figure::new(PAPER, title)?;
    let (rows, colours) = (grid.rows(), colours(grid));
    let colours: Vec<Colour> = colours.into_iter().map(|(hue, light)| rgb(hue, light)).collect();
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
        if let Some(colour) = colours.get(cell) {
            figure.boxes(*colour, boxes);
        }
    }
    figure.reach(side * number(rows.len()));
    legend(&mut figure, grid, &colours);
    Ok(figure)
}

/// Letters of sub-clusters beside their colours, with the number of the main cluster.
fn legend(figure: &mut Figure, grid: &Grid, colours: &[Colour]) {
    let (mut x, mut y) = (0.0, figure.height() + 10.0);
    for (n, (main, colour)) in grid.mains.iter().zip(colours).take(NAMED).enumerate() {
        let name = format!("{} (main {main})", letter(n));
        if x > 0.0 && x + 13.0 + figure.wide(&name, SMALL) > figure.width {
            (x, y) = (0.0, y + 8.5);
        }
        x = figure.legend((x, y), &[(&name, *colour)]);
    }
    figure.reach(y + SMALL / 3.0);
    let more = grid.mains.len().saturating_sub(NAMED);
    if more > 0 {
        figure.below(SMALL, &format!("and {more} more sub-clusters"));
    }
}

/// A colour by its hue in degrees and its lightness in percent, as CSS has it (hsl).
fn rgb(hue: u32, light: u32) -> Colour {
    let (hue, light, saturation) = (f64::from(hue), f64::from(light) / 100.0, f64::from(SATURATION) / 100.0);
    let spread = saturation * light.min(1.0 - light);
    Colour([0.0, 8.0, 4.0].map(|of| {
        let k = (of + hue / 30.0) % 12.0;
        let value = light - spread * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 255")]
        let byte = (value * 255.0).round() as u8;
        byte
    }))
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
        // Two ranks beside each other, and one each in the second and in the third row; then the patches of the legend.
        assert_eq!(
            (shapes("#a32929"), shapes("#c83232"), shapes("#29a34b")),
            (vec![1, 1], vec![2, 1], vec![1, 1])
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
    }

    #[test]
    fn colours_are_those_of_css() {
        // hsl(0, 60%, 40%) and so on, as browsers have them.
        assert_eq!(rgb(0, 40), Colour([163, 41, 41]));
        assert_eq!(rgb(120, 50), Colour([51, 204, 51]));
        assert_eq!(rgb(137, 49), Colour([50, 200, 92]));
        assert_eq!(colours(&grid()), [(0, 40), (0, 49), (137, 40)]);
    }
}
