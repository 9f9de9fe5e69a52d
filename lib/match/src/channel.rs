//! Channels, whose messages arrive in the order in which they are sent.

use st_model::event::Completed;

/// Messages from one rank to another with one tag on one communicator: the n-th that is sent is the n-th received
/// (MPI 4.1, section 3.5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Channel {
    /// The communicator.
    pub group: u32,
    /// Side of the sender; 0 but for intercommunicators.
    pub side: u8,
    /// Position of the sender in its side.
    pub from: u32,
    /// Position of the receiver in its side.
    pub to: u32,
    /// Tag; from [`PARTITIONED`] on, of messages in parts; below [`NO_MESSAGE`] of what is no message between two calls.
    pub tag: i64,
}

/// How far tags of messages in parts are from those of others: tags are ints. The n-th that is made for a peer and tag
/// has n times so much added (MPI 4.1, section 4.2).
pub const PARTITIONED: i64 = 1 << 32;
/// Tags below this are no tags: parts in collective operations, and epochs.
pub const NO_MESSAGE: i64 = i64::MIN + 0x1_0000;
/// A position that is not known yet.
pub const UNKNOWN: u32 = u32::MAX;

impl Channel {
    /// Whether its messages are sent in parts.
    #[must_use]
    pub fn is_partitioned(&self) -> bool {
        self.tag >= PARTITIONED
    }

    /// Takes over what the completion of a receive tells.
    pub fn settle(&mut self, got: &Completed) {
        if let Some(source) = got.source {
            self.from = source;
        }
        // Tags of messages in parts are more than their tags.
        if let Some(tag) = got.tag.filter(|_| !self.is_partitioned()) {
            self.tag = tag;
        }
    }
}
