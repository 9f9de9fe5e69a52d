//! A picture as SVG. Texts are outlines, as programs that set papers have other fonts, with what they say as a label.

use std::io::{self, Write};

use super::marks::{Colour, Mark, Segment};
use super::model::Figure;

/// Writes it.
pub(crate) fn write(of: &Figure, out: &mut dyn Write) -> io::Result<()> {
    let (w, h) = (of.width, of.height);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.2}pt\" height=\"{h:.2}pt\" viewBox=\"0 0 {w:.2} {h:.2}\">"
    )?;
    writeln!(out, "<title>{}</title>", escaped(&of.title))?;
    for mark in &of.marks {
        match mark {
            Mark::Boxes { colour, boxes } => {
                write!(out, "<path fill=\"{}\" shape-rendering=\"crispEdges\" d=\"", hex(*colour))?;
                for [x, y, w, h] in boxes {
                    write!(out, "M{x:.2} {y:.2}h{w:.2}v{h:.2}h{:.2}z", -w)?;
                }
            }
            Mark::Text { colour, text, outline } => {
                write!(out, "<path fill=\"{}\" aria-label=\"{}\" d=\"", hex(*colour), escaped(text))?;
                for step in outline {
                    match step {
                        Segment::Move([x, y]) => write!(out, "M{x:.2} {y:.2}")?,
                        Segment::Line([x, y]) => write!(out, "L{x:.2} {y:.2}")?,
                        Segment::Curve([a, b, x, y]) => write!(out, "Q{a:.2} {b:.2} {x:.2} {y:.2}")?,
                        Segment::Close => write!(out, "z")?,
                    }
                }
            }
        }
        writeln!(out, "\"/>")?;
    }
    writeln!(out, "</svg>")
}

fn hex(Colour([r, g, b]): Colour) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// A text as it stands in XML, without what may not stand there.
fn escaped(text: &str) -> String {
    let may = |c: &char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    let text: String = text.chars().filter(may).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_program_are_no_markup() {
        assert_eq!(escaped("a<b>\"&\u{1}\n"), "a&lt;b&gt;&quot;&amp;");
    }
}
