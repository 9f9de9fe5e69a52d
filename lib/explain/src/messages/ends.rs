//! Ends of messages under way, and what depends on when these are received.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_match::Channel;
use st_match::graph::{COMPLETED, POSTED};

use crate::pending_calls::{CallNumber, Cause};
use crate::progress::Moving;
use crate::waits::{Sum, Wait, WaitKind};

/// Waits of a call and those after it that are in the wrong order if an older message is received before their rank sends
/// anything.
#[derive(Debug)]
pub(super) struct Suspects {
    pub(super) thread: u32,
    pub(super) since: u64,
    pub(super) waits: HashMap<(Wait, bool), Sum, FixedState>,
    /// The same one by one, by their numbers, if each wait is kept.
    pub(super) each: Vec<(u32, bool)>,
}

/// A call's wait for its sender while an older message was there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspect<'a> {
    pub(crate) wait: &'a Wait,
    /// The send that it waits for.
    pub(crate) cause: &'a Cause,
    /// Its thread, and its number on that.
    pub(crate) thread: u32,
    pub(crate) call: u64,
    /// Number of the wait, if each is kept.
    pub(crate) number: Option<u32>,
}

/// What depends on when a message is received.
#[derive(Default, Debug)]
pub(super) struct Watch {
    pub(super) suspects: Option<Suspects>,
    /// Calls that still send, and that will be in the wrong order if this one is received before their rank sends anything.
    pub(super) by: Vec<CallNumber>,
}

/// The call that completes an end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum By {
    /// It has not been read yet.
    Unknown,
    Call(CallNumber),
    /// The call that sends or receives, which completes nothing else, and does not end before this. Most do: they need no
    /// entry among the calls under way.
    Itself {
        exit: i64,
    },
    /// None: its request is freed.
    Nobody,
}

#[derive(Debug)]
pub(super) struct Send {
    pub(super) serial: u64,
    pub(super) cause: Cause,
    /// Number of the call that sends it, on its thread.
    pub(super) call: u64,
    pub(super) by: By,
    pub(super) watch: Option<Box<Watch>>,
    /// Its rank, by number, if it is one that is read.
    pub(super) to: u32,
    pub(super) received: bool,
    /// What it carries; below 0 if that is not known.
    pub(super) bytes: i64,
    /// It is a message: no access to a window.
    pub(super) message: bool,
    /// Most libraries keep it until it is received.
    pub(super) kept: bool,
    /// The call that completes one end need not wait for that which completes the other, nor that for it.
    pub(super) over: bool,
    /// Nothing more is to be said of it.
    pub(super) done: bool,
}

impl Send {
    /// As what may move only while both ranks are in MPI, of which `other` completes the other end.
    pub(super) fn moving(&self, other: By) -> Option<Moving> {
        let both = matches!(other, By::Call(_));
        let may = self.message && !self.over && (both || matches!(other, By::Unknown));
        may.then_some(Moving { serial: self.serial, bytes: self.bytes, both })
    }
}

#[derive(Debug)]
pub(super) struct Receive {
    pub(super) posted: Cause,
    /// It is so; else a matched probe has found the message, and it was not received yet.
    pub(super) taken: bool,
    pub(super) by: By,
    /// Number of the call that posts it, on its thread.
    pub(super) call: u64,
    /// The call that has waited for the message before this one took it.
    pub(super) probe: Option<CallNumber>,
    /// Nothing more is to be said of it.
    pub(super) done: bool,
}

/// Why the receive of a channel waits for its send.
pub(super) fn kind(channel: &Channel) -> WaitKind {
    match channel.tag {
        POSTED => WaitKind::LatePost,
        COMPLETED => WaitKind::EarlyWait,
        _ => WaitKind::LateSender,
    }
}
