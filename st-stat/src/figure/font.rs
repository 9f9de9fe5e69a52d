//! The font of pictures: the Latin part of Noto Sans, under the SIL Open Font License (`st-stat/font`).

use anyhow::{Context as _, Result};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::marks::Segment;

const FONT: &[u8] = include_bytes!("../../font/NotoSans-subset.ttf");

/// What stands for characters that the font does not have.
const OTHER: char = '?';

pub(super) struct Font {
    face: Face<'static>,
}

impl Font {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { face: Face::parse(FONT, 0).context("the font of pictures")? })
    }

    fn glyph(&self, of: char) -> GlyphId {
        let known = self.face.glyph_index(of).or_else(|| self.face.glyph_index(OTHER));
        known.unwrap_or_default()
    }

    fn advance(&self, of: GlyphId, size: f64) -> f64 {
        f64::from(self.face.glyph_hor_advance(of).unwrap_or(0)) * size / f64::from(self.face.units_per_em())
    }

    /// How wide a text is in a size.
    pub(super) fn width(&self, text: &str, size: f64) -> f64 {
        text.chars().map(|c| self.advance(self.glyph(c), size)).sum()
    }

    /// The outline of a text that begins at x, on the base line y.
    pub(super) fn outline(&self, text: &str, [x, y]: [f64; 2], size: f64) -> Vec<Segment> {
        let scale = size / f64::from(self.face.units_per_em());
        let mut pen = Pen { x, y, scale, steps: Vec::new() };
        for glyph in text.chars().map(|c| self.glyph(c)) {
            self.face.outline_glyph(glyph, &mut pen);
            pen.x += self.advance(glyph, size);
        }
        pen.steps
    }
}

struct Pen {
    x: f64,
    y: f64,
    scale: f64,
    steps: Vec<Segment>,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> [f64; 2] {
        [self.x + f64::from(x) * self.scale, self.y - f64::from(y) * self.scale]
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.steps.push(Segment::Move(self.at(x, y)));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.steps.push(Segment::Line(self.at(x, y)));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ([a, b], [c, d]) = (self.at(x1, y1), self.at(x, y));
        self.steps.push(Segment::Curve([a, b, c, d]));
    }

    /// Outlines of TrueType have none.
    fn curve_to(&mut self, _: f32, _: f32, _: f32, _: f32, x: f32, y: f32) {
        self.line_to(x, y);
    }

    fn close(&mut self) {
        self.steps.push(Segment::Close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_what_is_printed() {
        let font = Font::new().unwrap();
        for c in (' '..='~').chain("µ·×…–ÄÖÜäöüßéñ".chars()) {
            assert!(font.face.glyph_index(c).is_some(), "{c}");
        }
        assert_eq!(font.glyph('中'), font.glyph(OTHER));
        // Numbers stand in columns.
        let digits: Vec<f64> = ('0'..='9').map(|c| font.width(&c.to_string(), 7.0)).collect();
        assert!(digits.iter().all(|w| (w - digits[0]).abs() < 1e-9 && *w > 3.0), "{digits:?}");
    }

    #[test]
    fn a_letter_stands_on_its_line() {
        let steps = Font::new().unwrap().outline("H", [10.0, 20.0], 10.0);
        let points = steps.iter().filter_map(|s| match s {
            Segment::Move(at) | Segment::Line(at) => Some(*at),
            Segment::Curve(_) | Segment::Close => None,
        });
        let ys: Vec<f64> = points.map(|[_, y]| y).collect();
        let most = ys.iter().copied().fold(f64::MIN, f64::max);
        let least = ys.iter().copied().fold(f64::MAX, f64::min);
        assert!((most - 20.0).abs() < 1e-9 && (least - (20.0 - 7.14)).abs() < 1e-6, "{least} {most}");
    }
}
