//! Why sections cannot be merged.

use st_model::steps::Exceeded;

/// Why sections cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Two sections hold the same rank.
    #[error("rank {0} is in more than one input; give each rank's stream once")]
    Duplicate(u32),
    /// Tags have been left out of some sections.
    #[error("tags are left out of some inputs and not of others; merge all of them as recorded")]
    Tags,
    /// Parameters of some sections are histograms, and in others are not, or such of something else.
    #[error(
        "parameters are histograms in some inputs and not in others, or other ones; merge all of them as recorded"
    )]
    Histograms,
    /// Loops lie in each other, more than this many.
    #[error("more than {0} loops lie in each other; is an input damaged?")]
    Deep(usize),
    /// It takes more steps than are allowed.
    #[error(transparent)]
    Steps(#[from] Exceeded),
}
