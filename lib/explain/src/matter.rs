//! What can be the matter with a program.

use crate::waits::WaitKind;

/// What is the matter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Matter {
    /// Ranks wait for others.
    Wait(WaitKind),
    /// Tests that complete nothing.
    Polling,
    /// Calls whose messages are short (at most [`crate::SHORT`] bytes a call): the time is latency, short waits for the
    /// other end among it.
    Latency,
    /// Calls that move much (at least [`crate::LONG`] bytes each).
    Bandwidth,
    /// Calls on files.
    Files,
    /// Calls on another's window: what they wait for is in no trace.
    OneSided,
    /// Other calls' own time.
    Inside,
    /// Requests that nothing completes.
    LeakedRequests,
    /// Communicators, datatypes and other objects that nothing frees.
    LeakedObjects,
    /// A node has more ranks than processors that they may run on.
    Crowded {
        /// Ranks of the fullest node.
        ranks: u64,
        /// Its processors.
        processors: u32,
    },
    /// Ranks that are ready to run and have no processor: others have it.
    Queued,
    /// The program has paused recording.
    Paused,
    /// Ranks that compute longer than the others wherever they compute: in [`Explains::findings`](crate::Explains::findings) a rank with
    /// how much longer that is, in what [`crate::joined`] makes of these the waits that are due to them.
    SlowRank,
    /// Ranks run one after another, though all compute alike: in findings the waits for messages, joined all that is due to it.
    Serialised,
    /// Ranks that come to `MPI_Finalize` last: the others have nothing to do. Its end is in no trace, so this is no wait.
    LateEnd,
}

impl Matter {
    /// It is why ranks wait, and costs what these waits do.
    #[must_use]
    pub fn is_reason(self) -> bool {
        matches!(self, Self::SlowRank | Self::Serialised)
    }
}
