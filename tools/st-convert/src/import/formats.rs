//! The formats that can be read, each a module with its `SOURCE`.

use super::dumpi;
use super::json;
use super::otf2;
use super::source::Source;

/// Name of the format that is written.
pub(crate) const ST: &str = "st";
/// How names of its files end.
pub(crate) const ENDING: &str = ".st";

/// All formats that can be read.
pub(super) const SOURCES: &[&Source] = &[&json::SOURCE, &otf2::SOURCE, &dumpi::SOURCE];

/// Their names.
pub(crate) fn names() -> Vec<&'static str> {
    SOURCES.iter().map(|source| source.name).collect()
}
