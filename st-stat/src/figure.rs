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

use std::path::Path;

use anyhow::{Result, bail};
use st_cli::UsageError;

/// What no trace is.
pub(crate) const PICTURE: &str = "this is a picture: name it otherwise";

/// Refuses the name of a trace for what is none: it may be one that somebody needs.
pub(crate) fn not_called_a_trace(option: &str, path: &Path, is: &str) -> Result<()> {
    if path.extension().is_some_and(|e| e == "st") {
        bail!(UsageError(format!("{option} {}: .st is the ending of traces, and {is}", path.display())));
    }
    Ok(())
}
