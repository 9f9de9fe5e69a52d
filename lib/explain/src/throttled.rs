//! Blocking sends that wait for room.

use crate::pending_calls::{Cause, Reason};
use crate::waits::WaitKind;

/// A blocking send of a message that libraries keep, and that took long all the same: the room for messages may have been full. It then
/// has waited until its receiver took an earlier message.
#[derive(Debug)]
pub(crate) struct Throttled {
    pub(crate) serial: u64,
    pub(crate) enter: i64,
    pub(crate) exit: i64,
    /// Receives of earlier messages of the same sender that were posted during the send, and after it.
    pub(crate) within: u32,
    pub(crate) after: u32,
    /// The last of those during it.
    pub(crate) last: Option<Cause>,
}

/// Sends that take less wait for nobody, ns.
pub(crate) const LONG_SEND: i64 = 1_000_000;

/// So many earlier messages at least are left when it ends.
const FULL: u32 = 4;

/// Who takes one message after another at less than the first of these times keeps nobody, and at more than the second is what holds the
/// sender up in any case, ns.
const FAST: i64 = 100_000;
const SLOW: i64 = 500_000;

impl Throttled {
    /// A receive of a message of the same sender was posted.
    pub(crate) fn hear(&mut self, serial: u64, posted: Cause) {
        if serial < self.serial && posted.at > self.exit {
            self.after += 1;
        } else if serial < self.serial && posted.at > self.enter {
            self.within += 1;
            self.last = self.last.filter(|last| last.at >= posted.at).or(Some(posted));
        }
    }

    /// The receive that it has waited for, if it was that: it ends soon after, compared with the time from one receive to the next, or with
    /// its own where that is long.
    pub(crate) fn reason(&self) -> Option<Reason> {
        let last = self.last.filter(|_| self.after >= FULL)?;
        let (long, late) = (self.exit.saturating_sub(self.enter), self.exit.saturating_sub(last.at));
        let each = long / i64::from(self.within.max(1));
        let is_soon = late <= each / 4 || (each >= SLOW && late <= long / 16);
        (each >= FAST && is_soon).then(|| Reason::of(WaitKind::LateReceiver, last))
    }
}
