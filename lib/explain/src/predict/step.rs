//! What happens in a trace, step by step in the order of its times: what a walk needs to find out how long it would take
//! under other conditions. The steps are told by the search for waits, so that both know the same of who meets whom.

use crate::sizes::Size;

/// What a call of a thread does beside what the steps after it say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Does {
    /// It takes its time.
    Work,
    /// It finds nothing: tests and probes that the program repeats until it is reached by what it waits for.
    Poll,
    /// It ends MPI: what comes after it is not looked at.
    End,
}

/// A call, and the computation before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    pub(crate) thread: u32,
    pub(crate) place: u32,
    pub(crate) enter: i64,
    pub(crate) exit: i64,
    pub(crate) does: Does,
}

/// What is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sending {
    pub(crate) thread: u32,
    /// -1 if that is not known.
    pub(crate) bytes: i64,
    /// It cannot be complete before its receive is posted, however short it is.
    pub(crate) sync: bool,
    /// The call that sends it also completes it.
    pub(crate) blocks: bool,
    /// It is a message, and not what begins or ends an epoch.
    pub(crate) message: bool,
}

/// The call that a thread is in completes its end of a message or an operation that may move only while others are in calls that
/// complete theirs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reach {
    pub(crate) thread: u32,
    /// Which message or operation.
    pub(crate) group: u64,
    /// When the call ended.
    pub(crate) exit: i64,
    /// It waits: it is no test.
    pub(crate) waits: bool,
    /// All wait for all if one does.
    pub(crate) all: bool,
    /// It is a message of a size of which most libraries keep messages.
    pub(crate) size: Option<Size>,
}

/// A step. Ends of messages and parts in operations have numbers, which are used again once nothing more is said of
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunStep {
    /// A thread begins.
    Begin(u32, i64),
    /// A thread makes its next call. The steps after it, up to its next one, belong to it.
    Call(Call),
    /// The thread sends.
    Send(u32, Sending),
    /// A thread posts a receive.
    Post { thread: u32, receive: u32 },
    /// The receiver of a message completes it.
    Receive { send: u32, receive: u32 },
    /// The sender of a message completes it.
    Sent { send: u32, receive: u32 },
    /// A thread takes part in a collective operation, to and from which it moves so many bytes.
    Join { thread: u32, member: u32, bytes: u64 },
    /// Who is waited for begins anew.
    Clear,
    /// A member is waited for.
    From(u32),
    /// A member waits for these, in an operation of so many.
    To { member: u32, of: u32 },
    /// It completes its part.
    Leave(u32),
    /// A call completes its end of what may move only while others do.
    Reach(Reach),
}
