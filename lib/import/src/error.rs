//! What is wrong with a source.

use std::io;

/// Why calls cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line says what cannot be.
    #[error("line {0}: {1}")]
    Line(u64, String),
    /// There is nothing to be read in it.
    #[error("{0}")]
    Nothing(String),
    /// It cannot be read.
    #[error("reading: {0}")]
    Io(#[from] io::Error),
}
