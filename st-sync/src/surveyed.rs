//! What the messages of a trace say of its clocks.

use st_match::graph::{Shortest, Survey};

use crate::lags::Lags;

/// What was found in a survey.
#[derive(Clone, Debug)]
pub(crate) struct Surveyed {
    /// On the first process of all messages, on others of what they matched.
    pub(crate) found: Survey,
    /// Violated messages of all processes.
    pub(crate) violated: u64,
    /// The shortest times of all processes.
    pub(crate) shortest: Shortest,
    /// The quickest messages of all processes between clocks, beyond the least latency.
    pub(crate) lags: Lags,
}
