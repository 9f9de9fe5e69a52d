//! One thing that a rank does with others.

use st_match::Channel;
use st_match::communication;
use st_match::standing::Standing;
use st_model::calls::CallId;
use st_model::section::Sym;

/// One end of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// What it goes through.
    pub channel: Channel,
    /// Bytes sent, or room for so many; -1 if that is not known.
    pub bytes: i64,
    /// The call that sends it or posts the receive.
    pub sym: Sym,
    /// Position of that call on the thread.
    pub call: u64,
}

impl End {
    /// Of a message that is sent.
    pub(super) fn sends(end: &communication::End) -> Self {
        Self { channel: end.sent_through(), bytes: end.bytes, sym: end.sym, call: end.call }
    }
    /// Of a message that is received.
    pub(super) fn receives(end: &communication::End) -> Self {
        Self { channel: end.received_through(), bytes: end.bytes, sym: end.sym, call: end.call }
    }
}

/// A part in a collective operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperationPart {
    /// Where the rank stands.
    pub at: Standing,
    /// 0; of persistent operations 1 + which one it is of those made on the communicator.
    pub lane: u32,
    /// The function, large counts and older names as those they are like.
    pub function: CallId,
    /// Side and position of the root, for those that know one.
    pub root: Option<(u8, u32)>,
    /// What all members must agree on beside function and root: bytes per member, or a hash of them.
    pub bytes: Option<i64>,
    /// Hash of the name of a reduction's operation.
    pub op: Option<u64>,
    /// The call.
    pub sym: Sym,
    /// Its position on the thread.
    pub call: u64,
}

/// Something that a rank does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Sends a message.
    Send(End),
    /// Has cancelled a message that it sent before.
    Unsent(End),
    /// Posts the receive of a message.
    Receive(End),
    /// Cannot be stopped between two calls (after the first, before the second): what the first begins would be left.
    Held(u64, u64),
    /// Looks for a message, and leaves it there.
    Probe(End),
    /// Posts a receive of which nobody knows what it got; the channel says where, not from whom.
    Open(End),
    /// Gives to one member of a collective operation, or takes from one (`true`).
    Pair(End, bool),
    /// Takes part in a collective operation.
    Part(OperationPart),
    /// Starts something that never completes.
    Incomplete(Sym),
    /// Completes a request that nothing has started.
    Unknown(Sym),
    /// Uses an object that a call makes which is left out.
    Unmade(Sym),
}
