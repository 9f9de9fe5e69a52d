//! Messages that move only while both ranks are in MPI: who computes between the beginning and the end of a non-blocking operation
//! keeps the other one waiting, though its end of the message is there. Long ones may do so, and shorter ones where that is seen.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::pending_calls::{CallNumber, Cause, Certainty, Ledger, Reason, Visit};
use crate::sizes::{Size, may_wait};
use crate::waits::WaitKind;

/// The call that completes the first of a message's ends, held until the other one is known if it may wait for that.
#[derive(Clone, Copy, Debug)]
struct End {
    call: CallNumber,
    visit: Visit,
    sends: bool,
    waits: bool,
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moving {
    pub(crate) serial: u64,
    /// What it carries; below 0 if that is not known.
    pub(crate) bytes: i64,
    /// Both calls that complete its ends are known.
    pub(crate) both: bool,
}

/// Messages of which one end is complete.
#[derive(Default, Debug)]
pub(crate) struct Progress {
    ends: HashMap<u64, End, FixedState>,
}

impl End {
    /// The call may wait for that which completes the other end.
    fn waits_for(self, other: Self, size: Option<Size>) -> Option<Reason> {
        let kind = if self.sends { WaitKind::LateReceiver } else { WaitKind::LateSender };
        let certainty = size.map_or(Certainty::Seen, Certainty::Learned);
        self.waits.then_some(Reason { certainty, ..Reason::of(kind, Cause::of(&other.visit)) })
    }
}

impl Progress {
    /// A call completes an end of a message, and has not been told so. Returns whether it does not matter which one completes the other end.
    pub(crate) fn complete(
        &mut self,
        what: Moving,
        call: CallNumber,
        sends: bool,
        ledger: &mut Ledger,
    ) -> bool {
        let Some(visit) = ledger.visit(call).copied() else { return true };
        let waits = may_wait(what.bytes, visit.enter, visit.exit);
        let end = End { call, visit, sends, waits };
        match self.ends.remove(&what.serial) {
            // What comes later need not wait for a call that has come.
            None if !waits && !what.both => return true,
            None => {
                // As if it still sent something: what it receives is known.
                if waits {
                    ledger.expect(call, true);
                }
                self.ends.insert(what.serial, end);
            }
            Some(first) => {
                let size = Size::of(what.bytes, ledger.steps.far([first, end].map(|end| end.visit.thread)));
                if first.waits || end.waits {
                    let mut both = [first, end];
                    both.sort_by_key(|end| end.visit.enter);
                    for End { visit, .. } in both {
                        ledger.steps.tell(visit.reaches_message(what.serial, size));
                    }
                }
                end.waits_for(first, size).into_iter().for_each(|reason| ledger.suspect(call, reason));
                if first.waits {
                    ledger.give(first.call, true, first.waits_for(end, size));
                }
            }
        }
        false
    }

    /// No call completes the other end of a message: its request has been freed.
    pub(crate) fn forget(&mut self, message: u64, ledger: &mut Ledger) {
        if let Some(end) = self.ends.remove(&message)
            && end.waits
        {
            ledger.give(end.call, true, None);
        }
    }

    /// No more calls come.
    pub(crate) fn end(&mut self, ledger: &mut Ledger) {
        let mut left: Vec<_> = self.ends.drain().collect();
        left.sort_unstable_by_key(|(message, _)| *message);
        left.retain(|(_, end)| end.waits);
        left.into_iter().for_each(|(_, end)| ledger.give(end.call, true, None));
    }
}
