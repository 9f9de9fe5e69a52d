//! What keeps a question about a trace from being answered.

use st_model::project::Error;
use st_model::steps::Exceeded;

/// Why something cannot be known.
#[derive(Debug, thiserror::Error)]
pub enum Unknown {
    /// A rank cannot be read back.
    #[error(transparent)]
    Damaged(#[from] Error),
    /// It takes more than is allowed.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}

impl Unknown {
    /// The same; of too many steps with what all ranks would take, where it was found at the last of `done`.
    #[must_use]
    pub fn of_part(self, done: u64, all: u64) -> Self {
        match self {
            Self::Exceeded(exceeded) => exceeded.of_part(done, all).into(),
            damaged @ Self::Damaged(_) => damaged,
        }
    }
}
