//! How a walk goes.

/// In which order calls are handed on, and what is found beside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Way {
    /// Those of all threads in the order of their times, and messages.
    #[default]
    InTime,
    /// One rank after the other, the calls of its threads in the order of their times.
    ByRank,
    /// One thread after the other, with what collective operations consist of.
    Played,
}
