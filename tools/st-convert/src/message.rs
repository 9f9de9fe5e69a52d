//! Messages both ends of which are known.

/// A call that has to do with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moment {
    /// Its thread, by number in [`Trace::lanes`].
    pub(crate) at: u32,
    /// Position of the call on its thread.
    pub(crate) call: u64,
    /// Enter and exit of the call.
    pub(crate) times: Option<(i64, i64)>,
}

/// A message both ends of which are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    /// The number that the exchanges call it by.
    pub(crate) id: u64,
    /// The call that sends it.
    pub(crate) sent: Moment,
    /// The call that posts its receive.
    pub(crate) posted: Moment,
    /// The call that completes its receive.
    pub(crate) received: Moment,
    /// Number of the communicator.
    pub(crate) group: u32,
    pub(crate) tag: i64,
    pub(crate) bytes: u64,
}
