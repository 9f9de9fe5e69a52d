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
