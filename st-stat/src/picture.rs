//! The clusters drawn on the grid of ranks, as pictures: sub-clusters in shades of the colour of their main cluster.

use st_model::num::narrow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::clusters::letter;
use crate::topology::{Grid, runs};

/// Saturation of all colours, in percent.
const SATURATION: u32 = 60;
/// Pixels that the longer side of a picture has at least, as long as a rank has no more than so many a side.
const PIXELS: (usize, usize) = (512, 32);
/// What no rank is in.
const WHITE: [u8; 3] = [255; 3];

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

/// Draws it as SVG.
pub(crate) fn svg(grid: &Grid, out: &mut dyn Write) -> io::Result<()> {
    let (rows, colours) = (grid.rows(), colours(grid));
    let (w, h) = (grid.width, rows.len());
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" shape-rendering=\"crispEdges\">"
    )?;
    for (y, times) in runs(h, |a, b| rows[a] == rows[b]) {
        for (x, n) in runs(rows[y].len(), |a, b| rows[y][a] == rows[y][b]) {
            let cell = rows[y][x];
            let Some((main, (hue, light))) = grid.mains.get(cell).zip(colours.get(cell)) else { continue };
            writeln!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{n}\" height=\"{times}\" fill=\"hsl({hue},{SATURATION}%,{light}%)\"><title>main cluster {main}, {}</title></rect>",
                letter(cell)
            )?;
        }
    }
    writeln!(out, "</svg>")
}

/// Draws it as PNG: a square of pixels per rank.
pub(crate) fn png(grid: &Grid, out: &mut dyn Write) -> io::Result<()> {
    let rows = grid.rows();
    let longer = grid.width.max(rows.len()).max(1);
    let side = PIXELS.0.div_ceil(longer).min(PIXELS.1);
    let colours: Vec<[u8; 3]> = colours(grid).into_iter().map(|(hue, light)| rgb(hue, light)).collect();
    let pixels = |n: usize| u32::try_from(n * side).map_err(io::Error::other);
    let mut encoder = png::Encoder::new(out, pixels(grid.width)?, pixels(rows.len().max(1))?);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer()?;
    // Without any rank there is still a row.
    for row in rows.iter().copied().chain(rows.is_empty().then_some(&[][..])) {
        let cells = (0..grid.width).map(|x| row.get(x).and_then(|cell| colours.get(*cell)).unwrap_or(&WHITE));
        let line: Vec<u8> = cells.flat_map(|c| c.repeat(side)).collect();
        for _ in 0..side {
            stream.write_all(&line)?;
        }
    }
    stream.finish()?;
    Ok(writer.finish()?)
}

/// A colour by its hue in degrees and its lightness in percent, as CSS has it (hsl).
fn rgb(hue: u32, light: u32) -> [u8; 3] {
    let (hue, light, saturation) = (f64::from(hue), f64::from(light) / 100.0, f64::from(SATURATION) / 100.0);
    let spread = saturation * light.min(1.0 - light);
    [0.0, 8.0, 4.0].map(|of| {
        let k = (of + hue / 30.0) % 12.0;
        let value = light - spread * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 255")]
        let byte = (value * 255.0).round() as u8;
        byte
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        Grid { width: 2, mains: vec![0, 0, 1], cells: vec![0, 0, 1, 2, 1] }
    }

    #[test]
    fn a_rectangle_stands_for_a_run() {
        let mut out = Vec::new();
        svg(&grid(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("<rect").count(), 4);
        assert!(text.starts_with("<svg") && text.ends_with("</svg>\n"));
    }

    #[test]
    fn a_square_of_pixels_stands_for_a_rank() {
        let mut out = Vec::new();
        png(&grid(), &mut out).unwrap();
        let mut reader = png::Decoder::new(io::Cursor::new(out)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (64, 96));
        let at = |x: usize, y: usize| &pixels[3 * (64 * y + x)..][..3];
        let of: Vec<[u8; 3]> = colours(&grid()).into_iter().map(|(hue, light)| rgb(hue, light)).collect();
        for (x, y, colour) in
            [(0, 31, of[0]), (63, 0, of[0]), (31, 32, of[1]), (32, 63, of[2]), (63, 95, WHITE)]
        {
            assert_eq!(at(x, y), colour, "{x} {y}");
        }
        let mut none = Vec::new();
        png(&Grid { width: 1, mains: vec![], cells: vec![] }, &mut none).unwrap();
        assert!(png::Decoder::new(io::Cursor::new(none)).read_info().is_ok());
    }

    #[test]
    fn colours_are_those_of_css() {
        // hsl(0, 60%, 40%) and so on, as browsers have them.
        assert_eq!(rgb(0, 40), [163, 41, 41]);
        assert_eq!(rgb(120, 50), [51, 204, 51]);
        assert_eq!(rgb(137, 49), [50, 200, 92]);
        assert_eq!(colours(&grid()), [(0, 40), (0, 49), (137, 40)]);
    }
}
