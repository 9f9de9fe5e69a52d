//! A picture, as it is drawn.

use std::collections::BTreeMap;

use anyhow::Result;
use st_model::num::{Exact as _, float, rounded, saturate};

use super::font::Font;
use super::marks::{Anchor, Colour, INK, Mark, Rect};

/// Points of a millimetre.
const MILLIMETRE: f64 = 72.0 / 25.4;

/// Sizes of texts.
pub(crate) const TEXT: f64 = 7.0;
pub(crate) const SMALL: f64 = 6.0;

/// A picture.
pub(crate) struct Figure {
    pub(crate) width: f64,
    pub(super) height: f64,
    pub(super) title: String,
    pub(super) marks: Vec<Mark>,
    font: Font,
}

impl Figure {
    /// An empty one, so many millimetres wide; its title is for programs that read it to people.
    ///
    /// # Errors
    ///
    /// If the font that is part of the program cannot be read.
    pub(crate) fn new(millimetres: f64, title: impl Into<String>) -> Result<Self> {
        let (width, title) = (millimetres * MILLIMETRE, title.into());
        Ok(Self { width, height: 0.0, title, marks: Vec::new(), font: Font::new()? })
    }

    /// Makes it at least so high.
    pub(crate) fn reach(&mut self, y: f64) {
        self.height = self.height.max(y);
    }

    /// How high it is as yet.
    pub(crate) fn height(&self) -> f64 {
        self.height
    }

    /// Draws rectangles.
    pub(crate) fn boxes(&mut self, colour: Colour, boxes: Vec<Rect>) {
        if !boxes.is_empty() {
            self.marks.push(Mark::Boxes { colour, boxes });
        }
    }

    /// Writes a text whose base line is at y.
    pub(crate) fn text(&mut self, [x, y]: [f64; 2], size: f64, anchor: Anchor, text: &str) {
        self.coloured([x, y], size, anchor, text, INK);
    }

    /// The same in a colour.
    pub(crate) fn coloured(
        &mut self,
        [x, y]: [f64; 2],
        size: f64,
        anchor: Anchor,
        text: &str,
        colour: Colour,
    ) {
        if text.is_empty() {
            return;
        }
        let width = self.wide(text, size);
        let x = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width,
        };
        let outline = self.font.outline(text, [x, y], size);
        self.marks.push(Mark::Text { colour, text: text.to_owned(), outline });
    }

    /// How wide a text is.
    pub(crate) fn wide(&self, text: &str, size: f64) -> f64 {
        self.font.width(text, size)
    }

    /// A text of which the beginning is left out if there is no room for it: of places the end tells most.
    pub(crate) fn fitting(&self, text: &str, size: f64, room: f64) -> String {
        if self.wide(text, size) <= room {
            return text.to_owned();
        }
        let ends = text.char_indices().skip(1).map(|(at, _)| format!("…{}", &text[at..]));
        ends.into_iter().find(|end| self.wide(end, size) <= room).unwrap_or_default()
    }

    /// Writes sentences below all that is there, in as many lines as they need.
    pub(crate) fn below(&mut self, size: f64, text: &str) {
        let mut line = String::new();
        for word in text.split(' ') {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if self.wide(&longer, size) > self.width && !line.is_empty() {
                self.line_below(size, &line);
                word.clone_into(&mut line);
            } else {
                line = longer;
            }
        }
        self.line_below(size, &line);
    }

    fn line_below(&mut self, size: f64, line: &str) {
        let y = self.height + size;
        self.text([0.0, y], size, Anchor::Start, line);
        self.reach(y + size / 3.0);
    }

    /// Names of colours in a row from x on, with a patch each; returns where it ends.
    pub(crate) fn legend(&mut self, [mut x, y]: [f64; 2], of: &[(&str, Colour)]) -> f64 {
        for (name, colour) in of {
            self.boxes(*colour, vec![[x, y - 5.0, 5.0, 5.0]]);
            self.text([x + 7.0, y], SMALL, Anchor::Start, name);
            x += 7.0 + self.wide(name, SMALL) + 6.0;
        }
        x
    }

    /// A scale of colours from one value to another, in a row that ends at most at x.
    pub(crate) fn scale(
        &mut self,
        [x, y]: [f64; 2],
        width: f64,
        least: &str,
        most: &str,
        [low, high]: [Colour; 2],
    ) {
        let (before, after) = (self.wide(least, SMALL) + 3.0, self.wide(most, SMALL) + 3.0);
        let room = (width - before - after).clamp(0.0, 60.0);
        self.text([x, y], SMALL, Anchor::Start, least);
        for step in 0..SHADES {
            let (step, part) = (f64::from(step), room / f64::from(SHADES));
            let colour = low.mixed(high, step / f64::from(SHADES - 1));
            self.boxes(colour, vec![[x + before + part * step, y - 5.0, part, 5.0]]);
        }
        self.text([x + before + room + 3.0, y], SMALL, Anchor::Start, most);
    }
}

/// Colours of a scale.
const SHADES: u32 = 16;

/// The shade of a part from 0 to 1, so that equal shades can be drawn together.
pub(crate) fn shade(part: f64) -> usize {
    let steps = part.clamp(0.0, 1.0) * f64::from(SHADES - 1);
    saturate(rounded(steps))
}

/// Rectangles by their shade, drawn in its colour.
#[derive(Default)]
pub(crate) struct Shaded(BTreeMap<usize, Vec<Rect>>);

impl Shaded {
    /// One more.
    pub(crate) fn push(&mut self, part: f64, rect: Rect) {
        self.0.entry(shade(part)).or_default().push(rect);
    }

    /// Draws them all.
    pub(crate) fn draw(self, figure: &mut Figure, [low, high]: [Colour; 2]) {
        for (shade, boxes) in self.0 {
            let part = float(shade.to_u64().into()) / f64::from(SHADES - 1);
            figure.boxes(low.mixed(high, part), boxes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_text_gives_way() {
        let figure = Figure::new(85.0, "a test").unwrap();
        let text = "src/with/a/long/path/main.c:17";
        let wide = figure.wide(text, TEXT);
        assert_eq!(figure.fitting(text, TEXT, wide), text);
        let short = figure.fitting(text, TEXT, wide / 2.0);
        assert!(short.starts_with('…') && short.ends_with("main.c:17"), "{short}");
        assert!(figure.wide(&short, TEXT) <= wide / 2.0);
        assert_eq!(figure.fitting(text, TEXT, 0.0), "");
    }
}
