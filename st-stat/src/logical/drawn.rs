//! Rows as a picture.

use st_model::num::{Exact as _, float, saturate};
use st_model::ranklist_notation::plain;

use super::boxes::What;
use super::{Logical, Row};
use crate::figure::{self, Anchor, Colour, EMPTY, Figure, INK, Rect, SMALL, TEXT};
use crate::table::{duration, grouped};

/// What stands on the left of rows and above them, a loop's band, the calls, and what is between two rows, points.
const LEFT: f64 = 34.0;
const TOP: f64 = 12.0;
const BAND: f64 = 6.5;
const CALLS: f64 = 11.0;
const GAP: f64 = 4.0;
/// All rows together are at most so high.
const HIGH: f64 = 320.0;
/// Bands of loops, by turns, so that one in another is seen.
const BANDS: [Colour; 2] = [EMPTY, Colour([0xdd, 0xe1, 0xe7])];

/// What is drawn in one colour, and what is written over it: where, how wide, and what.
#[derive(Default)]
struct Layers {
    bands: [Vec<Rect>; 2],
    times: [Vec<Rect>; 2],
    texts: Vec<([f64; 2], f64, String)>,
}

/// Draws it.
pub(crate) fn draw(figure: &mut Figure, of: &Logical) {
    let depth = |row: &Row| {
        row.boxes.iter().filter(|one| one.what == What::Loop).map(|one| one.depth + 1).max().unwrap_or(0)
    };
    let number = |n: usize| float(n.to_u64().into());
    let high = |row: &Row| BAND * number(depth(row)) + CALLS;
    let whole: f64 = of.rows.iter().map(|row| high(row) + GAP).sum();
    let scale = (HIGH / whole.max(1.0)).min(1.0);
    let per = (figure.width - LEFT) / float(of.span());
    let (mut y, mut all) = (TOP, Layers::default());
    for row in &of.rows {
        let bottom = y + scale * high(row);
        layers(&mut all, of, row, [y, bottom], [per, scale]);
        let named = beginning(figure, &plain(&row.ranks));
        figure.text([LEFT - 3.0, f64::midpoint(y, bottom) + 2.5], TEXT, Anchor::End, &named);
        y = bottom + scale * GAP;
    }
    for (boxes, colour) in all.bands.into_iter().zip(BANDS) {
        figure.boxes(colour, boxes);
    }
    for (boxes, colour) in all.times.into_iter().zip([figure::COMPUTATION, figure::MPI]) {
        figure.boxes(colour, boxes);
    }
    for (at, room, text) in all.texts {
        if figure.wide(&text, SMALL) + 2.0 <= room {
            figure.coloured(at, SMALL, Anchor::Start, &text, INK);
        }
    }
    let kinds = [("computation", figure::COMPUTATION), ("MPI", figure::MPI)];
    figure.legend([LEFT, TOP - 4.0], if of.timed { &kinds } else { &kinds[1..] });
    let end = saturate(of.span());
    let text = if of.timed { duration(end) } else { format!("{} calls", grouped(end)) };
    figure.text([0.0, y + 6.0], TEXT, Anchor::Start, "ranks");
    figure.text([LEFT, y + 6.0], TEXT, Anchor::Start, "0");
    figure.text([figure.width, y + 6.0], TEXT, Anchor::End, &text);
    figure.reach(y + 10.0);
    figure.below(SMALL, &of.told());
}

/// As much of a list as there is room for on the left: of ranks the first say which these are.
fn beginning(figure: &Figure, list: &str) -> String {
    let fits = |text: &String| figure.wide(text, TEXT) <= LEFT - 4.0;
    let all = (1..=list.chars().count()).rev().map(|n| match n == list.chars().count() {
        true => list.to_owned(),
        false => list.chars().take(n).chain(['…']).collect(),
    });
    all.into_iter().find(fits).unwrap_or_default()
}

/// What a row consists of, from one height to another.
fn layers(all: &mut Layers, of: &Logical, row: &Row, [top, bottom]: [f64; 2], [per, scale]: [f64; 2]) {
    let x = |at: u128| LEFT + per * float(at);
    for one in &row.boxes {
        let begin = of.begin(one);
        let wide = per * float(of.width([one.computation, one.mpi], one.calls));
        let y = top + scale * BAND * float(one.depth.to_u64().into());
        if one.what == What::Loop {
            all.bands[one.depth % 2].push([x(begin), y, wide, bottom - y]);
            all.texts.push(([x(begin) + 1.5, y + 5.2 * scale], wide * scale, one.turns()));
            continue;
        }
        // Calls stand at the bottom, all at one height: a row is one line through the program.
        let y = bottom - scale * CALLS;
        let (left, high) = (x(begin), scale * CALLS - 1.0);
        let computation = if of.timed { per * float(one.computation) } else { 0.0 };
        for (boxes, [x, wide]) in
            all.times.iter_mut().zip([[left, computation], [left + computation, wide - computation]])
        {
            if wide > 0.0 {
                boxes.push([x, y, wide, high]);
            }
        }
        let name = of.name(row, one);
        let name = name.strip_prefix("MPI_").unwrap_or(&name).to_owned();
        all.texts.push(([left + 1.5, y + 7.5 * scale], wide * scale, name));
    }
    if row.shape.is_none() {
        let [computation, mpi] = [row.times[0], of.width(row.times, row.calls).saturating_sub(row.times[0])];
        for (boxes, [from, wide]) in all.times.iter_mut().zip([[0, computation], [computation, mpi]]) {
            boxes.push([x(from), top, per * float(wide), bottom - top]);
        }
    }
}
