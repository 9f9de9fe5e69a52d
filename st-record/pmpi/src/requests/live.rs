//! A live request.

/// What an operation is, as its creation says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RequestKind {
    /// Its completion tells source, tag and size.
    pub(crate) receive: bool,
    /// Its completion tells the size: it reads or writes a file.
    pub(crate) sized: bool,
    /// Starts inactive and survives its completion.
    pub(crate) persistent: bool,
    /// Leaves its source or tag open.
    pub(crate) wildcard: bool,
}

/// A communicator that exists when the request completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Promise {
    /// Address of the program's variable for the handle.
    pub(crate) place: usize,
    /// Index of the communicator.
    pub(crate) comm: i64,
}

/// A live request.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(super) handle: u64,
    /// Address of the program's variable when the request was made.
    pub(super) place: usize,
    pub(super) thread: usize,
    pub(super) number: u32,
    /// Requests made before it.
    pub(super) age: u64,
    /// The call that has already claimed it.
    pub(super) claimed: u64,
    pub(crate) kind: RequestKind,
    /// Started and not complete.
    pub(crate) active: bool,
    pub(crate) promise: Option<Promise>,
}

/// Index of a live request.
pub(crate) type Key = u32;

/// What a handle that a call names stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meant {
    /// This request.
    One(Key),
    /// One of several; which one, its place does not tell.
    OneOfSeveral,
    /// No request that is known.
    Nothing,
}
