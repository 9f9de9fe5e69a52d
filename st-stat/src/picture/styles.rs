//! How sub-clusters look: a colour for each main cluster that colour-blind people tell apart, in shades, and lines over it where shades do
//! not suffice.

use std::collections::BTreeSet;

use st_model::num::float;

use crate::figure::{Colour, Rect};
use crate::topology::Grid;

/// Okabe and Ito's, which who sees fewer colours tells apart, too: without black, yellow, which has no shades, and the lighter blue, which
/// is a shade of the other.
const HUES: [Colour; 5] = [
    Colour([0x00, 0x72, 0xb2]),
    Colour([0xe6, 0x9f, 0x00]),
    Colour([0x00, 0x9e, 0x73]),
    Colour([0xd5, 0x5e, 0x00]),
    Colour([0xcc, 0x79, 0xa7]),
];
/// How much of white is in a shade.
const SHADES: [f64; 3] = [0.0, 0.4, 0.7];
/// How far colours are apart at least that are told apart side by side, as bytes of red, green and blue.
const APART: i32 = 110;
/// How lines over a colour run.
const LINES: [Lines; 4] = [Lines::None, Lines::Across, Lines::Down, Lines::Both];
const WHITE: Colour = Colour([0xff, 0xff, 0xff]);
const BLACK: Colour = Colour([0x00, 0x00, 0x00]);
/// From one line to the next, and how thick they are, points.
const PITCH: f64 = 3.0;
const THICK: f64 = 0.6;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lines {
    None,
    Across,
    Down,
    Both,
}

/// How a sub-cluster looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Style {
    pub(super) colour: Colour,
    lines: Lines,
}

impl Style {
    /// The style of one of those that have a main cluster's hue, by its number among them.
    fn of(main: usize, number: usize) -> Self {
        let white = SHADES[number % SHADES.len()];
        let lines = LINES[number / SHADES.len() % LINES.len()];
        Self { colour: HUES[main % HUES.len()].mixed(WHITE, white), lines }
    }

    /// Whether it cannot be told apart from another beside it.
    fn alike(self, other: Self) -> bool {
        let squares =
            self.colour.0.into_iter().zip(other.colour.0).map(|(a, b)| (i32::from(a) - i32::from(b)).pow(2));
        self.lines == other.lines && squares.sum::<i32>() < APART.pow(2)
    }

    /// Lines over a rectangle, in step with those of its neighbours, and their colour.
    pub(super) fn lines(self, of: Rect) -> (Colour, Vec<Rect>) {
        let [x, y, wide, high] = of;
        let mut all = Vec::new();
        if matches!(self.lines, Lines::Across | Lines::Both) {
            all.extend(steps(y, high).map(|(at, thick)| [x, at, wide, thick]));
        }
        if matches!(self.lines, Lines::Down | Lines::Both) {
            all.extend(steps(x, wide).map(|(at, thick)| [at, y, thick, high]));
        }
        (self.ink(), all)
    }

    /// What is seen on the colour.
    pub(super) fn ink(self) -> Colour {
        let [r, g, b] = self.colour.0.map(u32::from);
        // By how bright its parts are to the eye.
        if 299 * r + 587 * g + 114 * b > 120_000 { BLACK } else { WHITE }
    }
}

/// Where lines are in a stretch, and how thick they are there.
fn steps(from: f64, long: f64) -> impl Iterator<Item = (f64, f64)> {
    let first = (from / PITCH).ceil() * PITCH;
    let at = move |n: u64| first + PITCH * float(n.into());
    (0..).map(at).take_while(move |at| *at < from + long).map(move |at| (at, THICK.min(from + long - at)))
}

/// The style of each sub-cluster. Those that touch look different, unless one touches more of its
/// hue than there are styles that do (some eight), or its ranks are drawn smaller than lines are apart.
pub(super) fn styles(grid: &Grid) -> Vec<Style> {
    let beside = neighbours(grid);
    let mut used = [0; HUES.len()];
    let mut all: Vec<Style> = Vec::new();
    for (number, main) in grid.mains.iter().enumerate() {
        let next = used.get_mut(main % HUES.len());
        let from = next.as_deref().copied().unwrap_or(0);
        let touches = |style: &Style| {
            let lower = beside.range((number, 0)..(number + 1, 0));
            lower.filter_map(|(_, other)| all.get(*other)).any(|other| other.alike(*style))
        };
        let styles = SHADES.len() * LINES.len();
        let of = (from..from + styles).find(|n| !touches(&Style::of(*main, *n))).unwrap_or(from);
        all.push(Style::of(*main, of));
        if let Some(next) = next {
            *next = of + 1;
        }
    }
    all
}

/// Sub-clusters that touch on the grid: the one with the higher number first.
fn neighbours(grid: &Grid) -> BTreeSet<(usize, usize)> {
    let mut all = BTreeSet::new();
    for (at, cell) in grid.cells.iter().enumerate() {
        let left = (at % grid.width > 0).then(|| at - 1);
        let above = at.checked_sub(grid.width);
        for other in [left, above].into_iter().flatten().filter_map(|at| grid.cells.get(at)) {
            if other != cell {
                all.insert(((*cell).max(*other), (*cell).min(*other)));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Squares of four by four ranks, so many in a row, of as many sub-clusters.
    fn squares(side: usize, mains: Vec<usize>) -> Grid {
        let width = 4 * side;
        let cells = (0..width * width).map(|rank| rank / width / 4 * side + rank % width / 4).collect();
        Grid { width, cells, mains }
    }

    #[test]
    fn sub_clusters_of_one_main_cluster_look_different() {
        let styles = styles(&squares(3, vec![0; 9]));
        for (n, style) in styles.iter().enumerate() {
            assert!(!styles[..n].contains(style), "{n}: {styles:?}");
        }
    }

    #[test]
    fn main_clusters_of_one_hue_look_different() {
        let styles = styles(&squares(5, (0..25).collect()));
        for (n, style) in styles.iter().enumerate() {
            assert!(!styles[..n].contains(style), "{n}: {styles:?}");
        }
    }

    #[test]
    fn neighbours_are_told_apart_where_there_are_more_than_styles() {
        for mains in [vec![0; 400], (0..400).map(|n| n % 7).collect(), (0..400).collect()] {
            let grid = squares(20, mains);
            let styles = styles(&grid);
            for (a, b) in neighbours(&grid) {
                assert!(!styles[a].alike(styles[b]), "{a} and {b}");
            }
        }
    }

    #[test]
    fn lines_are_within_their_rectangle() {
        let style = Style { colour: WHITE, lines: Lines::Both };
        let (ink, lines) = style.lines([1.0, 2.0, 7.0, 5.0]);
        assert_eq!(ink, BLACK);
        assert_eq!(lines.len(), 4, "{lines:?}");
        for [x, y, wide, high] in lines {
            assert!(x >= 1.0 && y >= 2.0 && x + wide <= 8.0 && y + high <= 7.0, "{x} {y} {wide} {high}");
        }
        assert!(Style { lines: Lines::None, ..style }.lines([0.0, 0.0, 9.0, 9.0]).1.is_empty());
    }
}
