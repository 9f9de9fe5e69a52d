//! A picture as PNG.

use std::io::Write;

use anyhow::{Context as _, Result, bail};
use st_cli::UsageError;
use st_model::num::rounded;
use tiny_skia::{Color, FillRule, Paint, PathBuilder, Pixmap, Transform};

use super::marks::{Colour, Mark, Rect, Segment};
use super::model::Figure;
use crate::table::grouped;

/// Dots of a picture at most: some 200 MB while it is made.
const MOST: u64 = 50_000_000;

/// Writes it with so many dots to the inch.
///
/// # Errors
///
/// If there would be too many, or it cannot be written.
pub(crate) fn write(of: &Figure, dpi: u16, out: &mut dyn Write) -> Result<()> {
    let scale = f64::from(dpi) / 72.0;
    let [w, h] = [of.width, of.height].map(|points| rounded((points * scale).ceil()).max(1));
    if w.saturating_mul(h) > MOST {
        let dots = grouped(w.saturating_mul(h));
        bail!(UsageError(format!(
            "the picture would have {dots} dots, and {} are the most: choose a smaller --dpi or --width",
            grouped(MOST)
        )));
    }
    let size = (u32::try_from(w)?, u32::try_from(h)?);
    let mut pixels = Pixmap::new(size.0, size.1).context("a picture of this size")?;
    pixels.fill(Color::WHITE);
    let zoom = Transform::from_scale(small(scale), small(scale));
    for mark in &of.marks {
        let (path, colour, smooth) = match mark {
            Mark::Boxes { colour, boxes } => (boxed(boxes), colour, false),
            Mark::Text { colour, outline, .. } => (traced(outline), colour, true),
        };
        let Colour([r, g, b]) = *colour;
        let mut paint = Paint { anti_alias: smooth, ..Paint::default() };
        paint.set_color_rgba8(r, g, b, 255);
        // Of a blank there is no path.
        if let Some(path) = path {
            pixels.fill_path(&path, &paint, FillRule::Winding, zoom, None);
        }
    }
    encode(&pixels, dpi, out)
}

fn boxed(boxes: &[Rect]) -> Option<tiny_skia::Path> {
    let mut path = PathBuilder::new();
    for rect in boxes {
        let [x, y, w, h] = rect.map(small);
        if let Some(rect) = tiny_skia::Rect::from_xywh(x, y, w, h) {
            path.push_rect(rect);
        }
    }
    path.finish()
}

fn traced(outline: &[Segment]) -> Option<tiny_skia::Path> {
    let mut path = PathBuilder::new();
    for step in outline {
        match step {
            Segment::Move([x, y]) => path.move_to(small(*x), small(*y)),
            Segment::Line([x, y]) => path.line_to(small(*x), small(*y)),
            Segment::Curve([a, b, x, y]) => path.quad_to(small(*a), small(*b), small(*x), small(*y)),
            Segment::Close => path.close(),
        }
    }
    path.finish()
}

/// A length in points, which needs no more digits.
fn small(length: f64) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "a hundredth of a dot is seen by nobody")]
    let length = length as f32;
    length
}

fn encode(pixels: &Pixmap, dpi: u16, out: &mut dyn Write) -> Result<()> {
    // What the encoder says of an output that fails leaves out why.
    let mut encoded = Vec::new();
    let mut encoder = png::Encoder::new(&mut encoded, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgb);
    // So that a program which sets a paper knows how wide it is.
    let per_metre = u32::try_from(rounded(f64::from(dpi) / 0.0254))?;
    let unit = png::Unit::Meter;
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit }));
    let rgb: Vec<u8> = pixels.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&rgb)?;
    writer.finish()?;
    Ok(out.write_all(&encoded)?)
}
