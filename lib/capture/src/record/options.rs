//! What is recorded beside the structure.

use crate::fold::{DEFAULT_WINDOW, Fold};
use st_model::sketch::Shape;

/// What is recorded beside the structure, and how.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Keep exact times, handed out in chunks.
    pub columns: bool,
    /// Keep path-sensitive time sketches.
    pub sketches: bool,
    /// What sketches keep beside their totals.
    pub shape: Shape,
    /// How loops are found.
    pub fold: Fold,
    /// Tree nodes that folding looks back over.
    pub window: usize,
}

impl Default for Options {
    /// Columns and sketches, exact folding and the default window.
    fn default() -> Self {
        Self {
            columns: true,
            sketches: true,
            shape: Shape::Buckets,
            fold: Fold::Exact,
            window: DEFAULT_WINDOW,
        }
    }
}
