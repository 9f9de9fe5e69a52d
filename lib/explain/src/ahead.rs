//! Calls of a thread that have been read before their turn comes: as far as others do not matter to it.
//!
//! Threads take turns in the order of time, and one call of each at a time: what is touched of a thread then has left the caches of
//! processors since, where there are many. Several calls of a thread are read at once, and what is left to be done when their turn
//! comes is small and stands together.

use std::collections::VecDeque;

use st_match::Channel;
use st_match::communication::End;
use st_match::graph::Part;
use st_match::unfreed::Object;
use st_model::event::Completed;
use st_model::num::{Exact as _, narrow};

use crate::pending_calls::Visit;
use crate::predict::Does;

/// Calls that are read at once, and things that these do with others: about that many at most wait for their turn.
pub(crate) const CALLS: usize = 32;
const DEEDS: usize = 128;

/// The thread's own number of a message or operation that nothing asks for later.
pub(crate) const UNNAMED: u32 = u32::MAX;

/// What completes what a call begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Completes {
    /// Another call.
    Later,
    /// The call, which completes nothing else.
    Itself,
    /// The call.
    Call,
}

/// A message that is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) channel: Channel,
    /// The rank that it is for, by number, if it is one that is read.
    pub(crate) to: Option<u32>,
    /// What it carries; below 0 if that is not known.
    pub(crate) bytes: i64,
    pub(crate) sync: bool,
}

impl Outgoing {
    /// One end of it.
    pub(crate) fn of(end: &End, to: Option<u32>) -> Self {
        Self { channel: end.sent_through(), to, bytes: end.bytes, sync: end.sync }
    }
}

/// What a call does with others. Messages and operations have numbers of the thread's own.
#[derive(Debug)]
pub(crate) enum Deed {
    /// It completes something, or may do so.
    Open,
    Send {
        number: u32,
        what: Outgoing,
        by: Completes,
    },
    Sent {
        number: u32,
        cancelled: bool,
    },
    Post {
        number: u32,
        channel: Channel,
        by: Completes,
        /// A matched probe, which has found the message.
        finds: bool,
    },
    /// A message that a matched probe has found is received: only now its sender may go on.
    Take {
        number: u32,
    },
    Received {
        number: u32,
        source: Option<u32>,
        tag: Option<i64>,
        cancelled: bool,
    },
    Forget {
        number: u32,
    },
    ForgetSend {
        number: u32,
    },
    Probe(Channel),
    Join {
        number: u32,
        part: Box<Part>,
        members: u32,
        done: bool,
    },
    Leave {
        number: u32,
    },
    /// An epoch of a group's window begins, which waits for posts.
    Access {
        group: u32,
    },
    /// One of them.
    AwaitPost {
        group: u32,
        channel: Channel,
    },
    /// They are there when it ends.
    EndAccess {
        group: u32,
    },
    /// An object is made or freed.
    Object(Object),
    /// Recording pauses.
    Pause,
}

/// A call whose turn has not come.
#[derive(Debug)]
pub(crate) struct Coming {
    pub(crate) visit: Visit,
    /// When its thread begins, if it is the first.
    pub(crate) begins: Option<i64>,
    /// Nothing if it is the first and does nothing else, or if its thread has ended.
    pub(crate) does: Option<Does>,
    /// Number of its deeds.
    pub(crate) deeds: u32,
}

/// Calls of a thread that are to come.
#[derive(Default, Debug)]
pub(crate) struct Ahead {
    calls: VecDeque<Coming>,
    deeds: VecDeque<Deed>,
    /// Numbers that are free, below `numbers`.
    free: Vec<u32>,
    numbers: u32,
    /// What others know as the messages and operations that the thread has numbered.
    known_as: Vec<u32>,
}

impl Ahead {
    /// No more calls need to be read.
    pub(crate) fn is_full(&self) -> bool {
        self.calls.len() >= CALLS || self.deeds.len() >= DEEDS
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// When the calls are entered.
    pub(crate) fn enters(&self) -> impl Iterator<Item = i64> {
        self.calls.iter().map(|call| call.visit.enter)
    }

    /// Looks at where calls and deeds are.
    pub(crate) fn look(&self) -> usize {
        self.calls.len() + self.deeds.len() + self.known_as.len()
    }

    /// The first deeds of the next call, so many at most.
    pub(crate) fn next_deeds(&self, most: usize) -> impl Iterator<Item = &Deed> {
        let n = self.calls.front().map_or(0, |call| call.deeds);
        self.deeds.iter().take(n.to_usize().min(most))
    }

    /// All calls that had been read are over: room is kept for as many as are usual.
    pub(crate) fn shrink(&mut self) {
        self.deeds.shrink_to(DEEDS);
    }

    /// Number of deeds that wait.
    pub(crate) fn deeds(&self) -> usize {
        self.deeds.len()
    }

    pub(crate) fn call(&mut self, call: Coming) {
        self.calls.push_back(call);
    }

    pub(crate) fn deed(&mut self, deed: Deed) {
        self.deeds.push_back(deed);
    }

    pub(crate) fn next_call(&mut self) -> Option<Coming> {
        self.calls.pop_front()
    }

    pub(crate) fn next_deed(&mut self) -> Option<Deed> {
        self.deeds.pop_front()
    }

    /// A number for what is complete later.
    pub(crate) fn take_number(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.numbers += 1;
            self.numbers - 1
        })
    }

    /// What has a number is complete.
    pub(crate) fn give_number(&mut self, number: usize) -> u32 {
        let number = narrow(number);
        self.free.push(number);
        number
    }

    /// Others know a number as this.
    pub(crate) fn name(&mut self, number: u32, known_as: u32) {
        if number == UNNAMED {
            return;
        }
        let at = number.to_usize();
        if at >= self.known_as.len() {
            self.known_as.resize(at + 1, UNNAMED);
        }
        self.known_as[at] = known_as;
    }

    /// What others know a number as.
    pub(crate) fn known_as(&self, number: u32) -> u32 {
        self.known_as.get(number.to_usize()).copied().unwrap_or(UNNAMED)
    }
}

/// What a receive's completion tells of its message.
pub(crate) fn completed(source: Option<u32>, tag: Option<i64>, cancelled: bool) -> Completed {
    Completed { source, tag, cancelled, ..Completed::default() }
}
