//! What a picture consists of.

/// A colour: red, green, blue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Colour(pub(crate) [u8; 3]);

impl Colour {
    /// Between this and another, of which it has a part from 0 to 1.
    pub(crate) fn mixed(self, other: Self, part: f64) -> Self {
        let mut all = [0; 3];
        for ((to, a), b) in all.iter_mut().zip(self.0).zip(other.0) {
            let value = f64::from(a) + (f64::from(b) - f64::from(a)) * part.clamp(0.0, 1.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
            let byte = value.round() as u8;
            *to = byte;
        }
        Self(all)
    }
}

/// Those of the page (`st-stat/report/src/style.css`), which colour-blind people tell apart.
pub(crate) const COMPUTATION: Colour = Colour([0xc9, 0xd7, 0xe3]);
pub(crate) const MPI: Colour = Colour([0x3b, 0x7f, 0xb8]);
pub(crate) const LATE_SENDER: Colour = Colour([0xd5, 0x5e, 0x00]);
pub(crate) const LATE_RECEIVER: Colour = Colour([0xb0, 0x52, 0x9a]);
pub(crate) const COLLECTIVE: Colour = Colour([0xe6, 0x9f, 0x00]);
pub(crate) const ONE_SIDED: Colour = Colour([0x00, 0x7a, 0x5a]);
pub(crate) const EMPTY: Colour = Colour([0xee, 0xf0, 0xf3]);
pub(crate) const HEAT: [Colour; 2] = [Colour([0xdb, 0xe7, 0xf3]), Colour([0x08, 0x30, 0x6b])];
pub(crate) const PATH: Colour = Colour([0xc0, 0x00, 0x00]);
pub(crate) const INK: Colour = Colour([0x1b, 0x1f, 0x24]);
pub(crate) const SOFT: Colour = Colour([0x57, 0x60, 0x6a]);

/// Where a text stands beside its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A rectangle: x, y, width, height.
pub(crate) type Rect = [f64; 4];

/// A part of the outline of a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Segment {
    Move([f64; 2]),
    Line([f64; 2]),
    /// A quadratic curve, by its control point and its end.
    Curve([f64; 4]),
    Close,
}

/// What is drawn, one over the other.
#[derive(Debug)]
pub(super) enum Mark {
    Boxes {
        colour: Colour,
        boxes: Vec<Rect>,
    },
    /// A text with its outline: no reader needs its font.
    Text {
        colour: Colour,
        text: String,
        outline: Vec<Segment>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_the_page() {
        let style = include_str!("../../report/src/style.css");
        let light = style.split_once(":root[data-theme").map_or("", |(light, _)| light);
        let all = [
            ("computation", COMPUTATION),
            ("mpi", MPI),
            ("late-sender", LATE_SENDER),
            ("late-receiver", LATE_RECEIVER),
            ("collective", COLLECTIVE),
            ("one-sided", ONE_SIDED),
            ("empty", EMPTY),
            ("heat-low", HEAT[0]),
            ("heat-high", HEAT[1]),
            ("path", PATH),
            ("ink", INK),
            ("soft", SOFT),
        ];
        for (name, Colour([r, g, b])) in all {
            assert!(light.contains(&format!("--{name}: #{r:02x}{g:02x}{b:02x};")), "{name}");
        }
    }
}
