//! Long messages that move only while both ranks are in MPI: who computes between the beginning and the end of a non-blocking operation
//! keeps the other one waiting, though its end of the message is there.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::pending_calls::{CallNumber, Cause, Certainty, Ledger, Reason};
use crate::waits::WaitKind;

/// Messages of more bytes than this may not move without both ranks: the least limit of common libraries (Open MPI's shared memory).
const EAGER: i64 = 4096;

/// The call that completes the first of a message's ends, held until the other one is known.
#[derive(Clone, Copy, Debug)]
struct End {
    call: CallNumber,
    cause: Cause,
    sends: bool,
}

/// Messages of which one end is complete.
#[derive(Default, Debug)]
pub(crate) struct Progress {
    ends: HashMap<u64, End, FixedState>,
}

/// Whether a message of so many bytes may need both ranks.
pub(crate) fn needs_both(bytes: i64) -> bool {
    bytes > EAGER
}

impl End {
    /// The call may wait for that which completes the other end.
    fn waits_for(self, other: Self) -> Reason {
        let kind = if self.sends { WaitKind::LateReceiver } else { WaitKind::LateSender };
        Reason { certainty: Certainty::Seen, ..Reason::of(kind, other.cause) }
    }
}

impl Progress {
    /// A call completes an end of a message, by its number, and has not been told so.
    pub(crate) fn complete(&mut self, message: u64, call: CallNumber, sends: bool, ledger: &mut Ledger) {
        let Some(cause) = ledger.visit(call).map(Cause::of) else { return };
        let end = End { call, cause, sends };
        match self.ends.remove(&message) {
            None => {
                // As if it still sent something: what it receives is known.
                ledger.expect(call, true);
                self.ends.insert(message, end);
            }
            Some(first) => {
                let mut both = [first, end];
                both.sort_by_key(|end| end.cause.at);
                for End { call, .. } in both {
                    let step = ledger.visit(call).map(|visit| visit.reaches_message(message));
                    step.into_iter().for_each(|step| ledger.steps.tell(step));
                }
                ledger.suspect(call, end.waits_for(first));
                ledger.give(first.call, true, Some(first.waits_for(end)));
            }
        }
    }

    /// No call completes the other end of a message: its request has been freed.
    pub(crate) fn forget(&mut self, message: u64, ledger: &mut Ledger) {
        if let Some(end) = self.ends.remove(&message) {
            ledger.give(end.call, true, None);
        }
    }

    /// No more calls come.
    pub(crate) fn end(&mut self, ledger: &mut Ledger) {
        let mut left: Vec<_> = self.ends.drain().collect();
        left.sort_unstable_by_key(|(message, _)| *message);
        left.into_iter().for_each(|(_, end)| ledger.give(end.call, true, None));
    }
}
