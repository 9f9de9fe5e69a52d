//! Bars beside each other's names.

use st_model::num::{Exact as _, float};

use super::marks::{Anchor, Colour, EMPTY, SOFT};
use super::model::{Figure, SMALL, TEXT};

/// A row, its bar and the rest of it.
const ROW: f64 = 11.0;
const BAR: f64 = 7.0;
/// What stands below the last.
const BOTTOM: f64 = 3.0;
/// The part of the width that names have at most.
const NAMES: f64 = 0.58;
/// A bar has at least this.
const LEAST: f64 = 24.0;

/// A row.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    /// What stands behind the name, of which the beginning is left out if there is no room.
    pub(crate) place: String,
    /// How far the name is to the right.
    pub(crate) deep: u8,
    /// Parts of a bar of full length, one after the other, from 0 to 1 together.
    pub(crate) parts: Vec<(f64, Colour)>,
    /// What stands at its end.
    pub(crate) text: String,
}

/// Draws rows from y on; returns where they end.
pub(crate) fn bars(figure: &mut Figure, y: f64, of: &[Bar]) -> f64 {
    let widest = |width: &dyn Fn(&Bar) -> f64| of.iter().map(width).fold(0.0, f64::max);
    let indent = |bar: &Bar| f64::from(bar.deep) * 8.0;
    let values = widest(&|bar| figure.wide(&bar.text, SMALL)) + 4.0;
    let gap = |bar: &Bar| if bar.place.is_empty() { 0.0 } else { 3.0 };
    let both = |bar: &Bar| figure.wide(&bar.name, TEXT) + gap(bar) + figure.wide(&bar.place, SMALL);
    let named = widest(&|bar| indent(bar) + both(bar)) + 4.0;
    let most = (figure.width - values - LEAST).max(0.0).min(figure.width * NAMES);
    let left = named.min(most);
    let room = (figure.width - left - values).max(LEAST);
    for (i, bar) in of.iter().enumerate() {
        let top = y + ROW * float(i.to_u64().into());
        let base = top + BAR - 0.8;
        let name = figure.fitting(&bar.name, TEXT, left - indent(bar) - 3.0);
        figure.text([indent(bar), base], TEXT, Anchor::Start, &name);
        let begin = indent(bar) + figure.wide(&name, TEXT) + gap(bar);
        let place = figure.fitting(&bar.place, SMALL, left - begin - 3.0);
        figure.coloured([begin, base], SMALL, Anchor::Start, &place, SOFT);
        figure.boxes(EMPTY, vec![[left, top, room, BAR]]);
        let mut x = left;
        for (part, colour) in &bar.parts {
            let wide = room * part.clamp(0.0, 1.0);
            figure.boxes(*colour, vec![[x, top, wide, BAR]]);
            x += wide;
        }
        figure.text([figure.width, base], SMALL, Anchor::End, &bar.text);
    }
    let end = y + ROW * float(of.len().to_u64().into());
    figure.reach(end - ROW + BAR + BOTTOM);
    end
}
