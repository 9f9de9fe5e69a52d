//! What a format is handed in the place of calls.

use crate::trace::Lane;

/// What one rank does in an iteration or a phase, or between these.
#[derive(Debug)]
pub(crate) struct Phase<'a> {
    /// The first thread of its rank, by number in [`Trace::lanes`].
    pub(crate) at: u32,
    pub(crate) lane: Lane,
    /// Its loop; `None` of what lies between.
    pub(crate) of: Option<&'a Loop>,
    /// Which iteration, from 0.
    pub(crate) iteration: Option<u64>,
    /// Its first call.
    pub(crate) function: &'a str,
    /// Call site of that, by number in [`Trace::sites`].
    pub(crate) site: Option<u32>,
    /// Begin and end, ns since the trace's zero.
    pub(crate) times: (i64, i64),
    pub(crate) calls: u64,
    /// Time between calls, ns.
    pub(crate) compute: u64,
    /// Time in calls, ns.
    pub(crate) mpi: u64,
    /// How much of that is waiting for others, ns, if that is asked for.
    pub(crate) wait: Option<u64>,
}

/// A loop, or the phases of one level.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// In the order in which ranks come to them, the first rank's first.
    pub(crate) number: u32,
    /// The level of phases.
    pub(crate) level: Option<i64>,
    /// What slices are called.
    pub(crate) name: String,
}

/// What lies between iterations or phases is called.
pub(crate) const BETWEEN: &str = "between";

impl Phase<'_> {
    /// What its slice is called.
    pub(crate) fn name(&self) -> &str {
        self.of.map_or(BETWEEN, |of| &of.name)
    }
}
