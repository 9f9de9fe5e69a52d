//! Calls whose waits are not known yet, and the threads that make them.

use st_model::num::narrow;

use crate::meetings::Meetings;
use crate::predict::Steps;
use crate::slab::Slab;
use crate::waits::{Kind, Sum};

/// A call of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    pub(crate) thread: u32,
    pub(crate) place: u32,
    pub(crate) enter: i64,
    pub(crate) exit: i64,
    /// It waits: it is no test.
    pub(crate) waits: bool,
    /// Its number on the thread.
    pub(crate) call: u64,
    /// Bytes that it moves, as far as its own words say so.
    pub(crate) bytes: u64,
}

/// The call of another thread that one waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cause {
    pub(crate) thread: u32,
    pub(crate) place: u32,
    /// When it was entered.
    pub(crate) at: i64,
}

impl Cause {
    pub(crate) fn of(visit: &Visit) -> Self {
        Self { thread: visit.thread, place: visit.place, at: visit.enter }
    }
}

/// Why a call may have waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reason {
    pub(crate) kind: Kind,
    /// Until when.
    pub(crate) until: i64,
    pub(crate) cause: Cause,
}

/// A call that completes something.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// Tells it from others that have had its number.
    serial: u32,
    visit: Visit,
    /// What it completes that has not met its other end, and one until the call itself has been read.
    open: u32,
    /// Those of them that are sends.
    sends: u32,
    best: Option<Reason>,
    /// A message that was there when it had received all of its own, if that has been asked.
    older: Option<Option<Older>>,
}

/// The oldest message for a rank that has not been received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Older {
    pub(crate) id: u32,
    pub(crate) serial: u64,
    pub(crate) cause: Cause,
    /// The last call in which its receiver had sent anything when it was received, if it was and a call watches it.
    pub(crate) told: Option<u64>,
}

/// A call of which all is known, and that has waited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) visit: Visit,
    pub(crate) reason: Reason,
    /// As in the call.
    pub(crate) older: Option<Option<Older>>,
}

/// A thread of a rank.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    pub(crate) rank: u32,
    /// Waits of its calls.
    pub(crate) waited: Sum,
    /// Number of the last call that sent something or began an operation with others.
    pub(crate) told: u64,
}

impl Track {
    pub(crate) fn of(rank: u32) -> Self {
        Self { rank, ..Self::default() }
    }
}

/// Calls under way, by number, and all threads.
#[derive(Default, Debug)]
pub(crate) struct Ledger {
    calls: Slab<Call>,
    serial: u32,
    pub(crate) tracks: Vec<Track>,
    /// Calls that have received all of their messages and still send, since they were taken before.
    pub(crate) received: Vec<u64>,
    /// Calls that have waited, since they were taken before.
    pub(crate) finished: Vec<Finished>,
    /// When all waited for all, if causes are looked for.
    pub(crate) meetings: Option<Meetings>,
    /// Who hears of what happens.
    pub(crate) steps: Steps,
}

impl Ledger {
    /// A call is read that completes something; returns its number.
    pub(crate) fn open(&mut self, visit: Visit) -> u64 {
        self.serial = self.serial.wrapping_add(1);
        let slot =
            self.calls.add(Call { serial: self.serial, visit, open: 1, sends: 0, best: None, older: None });
        u64::from(self.serial) << 32 | u64::from(slot)
    }

    fn call(&mut self, number: u64) -> Option<&mut Call> {
        let found = self.calls.get_mut(slot(number));
        found.filter(|c| u64::from(c.serial) == number >> 32)
    }

    pub(crate) fn visit(&mut self, number: u64) -> Option<Visit> {
        self.call(number).map(|c| c.visit)
    }

    /// It completes something whose other end is not known.
    pub(crate) fn expect(&mut self, number: u64, send: bool) {
        if let Some(call) = self.call(number) {
            call.open += 1;
            call.sends += u32::from(send);
        }
    }

    /// What it completes has met its other end, or the call has been read. A call that completes several things waits for
    /// the last.
    pub(crate) fn give(&mut self, number: u64, send: bool, reason: Option<Reason>) {
        let Some(call) = self.call(number) else { return };
        call.open -= 1;
        call.sends -= u32::from(send);
        call.best = match (call.best, reason.filter(|_| call.visit.waits)) {
            (Some(a), Some(b)) if b.until <= a.until => Some(a),
            (a, b) => b.or(a),
        };
        if call.open > 0 {
            // Only sends are left: what older messages there are must be looked at now.
            if call.open == call.sends && !send {
                self.received.push(number);
            }
            return;
        }
        if let Some(Call { visit, best: Some(reason), older, .. }) = self.calls.remove(slot(number))
            && reason.until > visit.enter
        {
            self.finished.push(Finished { visit, reason, older });
        }
    }

    /// When the last message of a call was sent, if it is one that it may have waited for.
    pub(crate) fn sender(&mut self, number: u64) -> Option<(u32, i64)> {
        let call = self.call(number)?;
        let (thread, reason) = (call.visit.thread, call.best?);
        (reason.kind == Kind::LateSender).then(|| (self.rank(thread), reason.cause.at))
    }

    /// The older message that was there when a call had received all of its own.
    pub(crate) fn set_older(&mut self, number: u64, older: Option<Older>) {
        if let Some(call) = self.call(number) {
            call.older.get_or_insert(older);
        }
    }

    /// The older message has been received; `told`: the last call in which its receiver had sent anything by then.
    pub(crate) fn older_received(&mut self, number: u64, told: u64) {
        if let Some(older) = self.call(number).and_then(|c| c.older.as_mut()?.as_mut()) {
            older.told = Some(told);
        }
    }

    pub(crate) fn rank(&self, thread: u32) -> u32 {
        self.tracks[thread as usize].rank
    }

    /// Most calls that waited for their other ends at a time.
    pub(crate) fn most(&self) -> usize {
        self.calls.most()
    }
}

/// Where a call is kept.
fn slot(number: u64) -> u32 {
    narrow(number & u64::from(u32::MAX))
}
