//! Blocking sends that wait for room.
//!
//! A library keeps messages until they are received, as far as it has room for them, by pair of ranks. When that is full a send goes on until
//! the receiver takes an earlier message. No message tells of that; it shows by two things. The send ends soon after such a receive, compared
//! with the time from one to the next. Or it ends before the next one, as where the sender is told late, and as many messages of the pair were
//! under way when it began as with others of its long sends before: that is the room. A send that is long for another reason ends at any time,
//! and begins with any number of them.
//!
//! *Memory:* by pairs of ranks with long sends, so many sends of each. *Cost:* as many steps per receive of such a pair.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;

use crate::pending_calls::{Cause, Reason, Visit};
use crate::waits::WaitKind;

/// A send that took long: the room for messages may have been full.
#[derive(Debug)]
struct Long {
    serial: u64,
    enter: i64,
    exit: i64,
    /// Receives of earlier messages of the same sender that were posted during the send, and after it.
    within: u32,
    after: u32,
    /// The last of those during it.
    last: Option<Cause>,
}

/// Sends that take less wait for nobody, ns.
const LONG_SEND: i64 = 1_000_000;

/// So many earlier messages at least are left when it ends.
const FULL: u32 = 4;

/// Who takes one message after another at less than this time keeps nobody, ns.
const FAST: i64 = 100_000;

/// A send ends soon after a receive if that is less than one part in so many of the time from one to the next.
const SOON: i64 = 4;

/// Long sends of a pair that are remembered by how many messages were under way, how many of these began with as many, and by one part in how
/// many these differ at most.
const REMEMBERED: usize = 4;
const ALIKE: usize = 2;
const DIFFER: u32 = 8;

/// Long sends of a pair that are followed, the last ones: what is never received has no end.
const FOLLOWED: usize = 64;

/// Two ranks, one of which sends to the other.
#[derive(Default, Debug)]
struct Pair {
    /// Long sends whose messages have not been received.
    long: VecDeque<Long>,
    /// How many messages were under way when the last others began.
    filled: VecDeque<u32>,
}

/// All long sends.
#[derive(Default, Debug)]
pub(crate) struct Throttled {
    /// By the thread that sends, and the number of the rank that the messages are for.
    pairs: HashMap<(u32, u32), Pair, FixedState>,
}

impl Throttled {
    /// A message that libraries may keep is sent to a rank; its number ascends.
    pub(crate) fn send(&mut self, visit: &Visit, to: u32, serial: u64) {
        if visit.exit.saturating_sub(visit.enter) < LONG_SEND {
            return;
        }
        let (enter, exit) = (visit.enter, visit.exit);
        let pair = self.pairs.entry((visit.thread, to)).or_default();
        if pair.long.len() == FOLLOWED {
            pair.long.pop_front();
        }
        pair.long.push_back(Long { serial, enter, exit, within: 0, after: 0, last: None });
    }

    /// The receive of a message of a pair was posted.
    pub(crate) fn hear(&mut self, from: u32, to: u32, serial: u64, posted: Cause) {
        if !self.pairs.is_empty()
            && let Some(pair) = self.pairs.get_mut(&(from, to))
        {
            pair.long.iter_mut().for_each(|send| send.hear(serial, posted));
        }
    }

    /// What a send has waited for that was complete before its receive was posted.
    pub(crate) fn reason(&mut self, from: u32, to: u32, serial: u64) -> Option<Reason> {
        let pair = self.pairs.get_mut(&(from, to))?;
        let at = pair.long.iter().position(|send| send.serial == serial)?;
        let send = pair.long.remove(at)?;
        let under_way = send.within.saturating_add(send.after);
        let alike = |before: &&u32| before.abs_diff(under_way) <= under_way / DIFFER;
        let is_full = pair.filled.iter().filter(alike).count() >= ALIKE;
        if pair.filled.len() == REMEMBERED {
            pair.filled.pop_front();
        }
        pair.filled.push_back(under_way);
        send.reason(is_full)
    }
}

impl Long {
    fn hear(&mut self, serial: u64, posted: Cause) {
        if serial < self.serial && posted.at > self.exit {
            self.after += 1;
        } else if serial < self.serial && posted.at > self.enter {
            self.within += 1;
            self.last = self.last.filter(|last| last.at >= posted.at).or(Some(posted));
        }
    }

    /// The receive that it has waited for, if it was that. `is_full`: by what was under way the room was.
    fn reason(&self, is_full: bool) -> Option<Reason> {
        let last = self.last.filter(|_| self.after >= FULL)?;
        let each = self.exit.saturating_sub(self.enter) / i64::from(self.within.max(1));
        let late = self.exit.saturating_sub(last.at);
        let is_told = late <= each / SOON || (is_full && late <= each);
        (each >= FAST && is_told).then(|| Reason::of(WaitKind::LateReceiver, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_that_nobody_receives_do_not_add_up() {
        let mut all = Throttled::default();
        let visit = |call: u64| {
            let enter = i64::try_from(call).unwrap() * 2 * LONG_SEND;
            let exit = enter + LONG_SEND;
            Visit { thread: 0, place: 0, enter, exit, waits: true, orders: true, call, bytes: 0 }
        };
        (0..1000).for_each(|call| all.send(&visit(call), 1, call));
        assert_eq!(all.pairs[&(0, 1)].long.len(), FOLLOWED);
        // The last ones are followed.
        let posted = |at| Cause { at, ..Cause::of(&visit(999)) };
        let (enter, exit) = (visit(999).enter, visit(999).exit);
        all.hear(0, 1, 990, posted(exit - 10));
        (991..996).for_each(|serial| all.hear(0, 1, serial, posted(exit + 10)));
        assert_eq!(all.reason(0, 1, 999).map(|reason| reason.cause.at), Some(exit - 10));
        assert!(enter < exit && all.reason(0, 1, 1).is_none());
    }
}
