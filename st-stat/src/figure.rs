//! Pictures for print: what is drawn ([`Figure`]), apart from how it is written down ([`svg`], [`png`]). Lengths are points, 72 to the
//! inch, from the upper left corner. The same picture gives the same bytes.

mod axis;
mod bars;
mod font;
mod marks;
mod model;
mod png;
mod svg;

pub(crate) use self::axis::Times;
pub(crate) use self::bars::{Bar, bars};
pub(crate) use self::marks::{
    Anchor, COLLECTIVE, COMPUTATION, Colour, EMPTY, HEAT, INK, LATE_RECEIVER, LATE_SENDER, MPI, ONE_SIDED,
    PATH, Rect, SOFT,
};
pub(crate) use self::model::{Figure, SMALL, Shaded, TEXT};
pub(crate) use self::png::write as png;
pub(crate) use self::svg::write as svg;
