//! Calls whose waits are not known yet, and the threads that make them.

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
    visit: Visit,
    /// What it completes that has not met its other end, and one until the call itself has been read.
    open: u32,
    best: Option<Reason>,
}

/// A call of which all is known, and that has waited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) visit: Visit,
    pub(crate) reason: Reason,
}

/// A thread of a rank.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    pub(crate) rank: u32,
    /// When it would be where it is on an ideal network, ns.
    pub(crate) ideal: i64,
    /// Waits of its calls.
    pub(crate) waited: Sum,
}

/// Calls under way, by number, and all threads.
#[derive(Default, Debug)]
pub(crate) struct Ledger {
    calls: Slab<Call>,
    pub(crate) tracks: Vec<Track>,
    /// Calls that have waited, since they were taken before.
    pub(crate) finished: Vec<Finished>,
}

impl Ledger {
    /// A call is read that completes something.
    pub(crate) fn open(&mut self, visit: Visit) -> u32 {
        self.calls.add(Call { visit, open: 1, best: None })
    }

    pub(crate) fn visit(&self, call: u32) -> Option<Visit> {
        self.calls.get(call).map(|c| c.visit)
    }

    /// It completes something whose other end is not known.
    pub(crate) fn expect(&mut self, call: u32) {
        if let Some(call) = self.calls.get_mut(call) {
            call.open += 1;
        }
    }

    /// What it completes has met its other end, or the call has been read. A call that completes several things waits for
    /// the last.
    pub(crate) fn give(&mut self, number: u32, reason: Option<Reason>) {
        let Some(call) = self.calls.get_mut(number) else { return };
        call.open -= 1;
        call.best = match (call.best, reason.filter(|_| call.visit.waits)) {
            (Some(a), Some(b)) if b.until <= a.until => Some(a),
            (a, b) => b.or(a),
        };
        if call.open > 0 {
            return;
        }
        if let Some(Call { visit, best: Some(reason), .. }) = self.calls.remove(number)
            && reason.until > visit.enter
        {
            self.finished.push(Finished { visit, reason });
        }
    }

    /// A thread cannot go on sooner than this, on any network.
    pub(crate) fn no_sooner(&mut self, thread: u32, ideal: i64) {
        let track = &mut self.tracks[thread as usize];
        track.ideal = track.ideal.max(ideal);
    }

    pub(crate) fn ideal(&self, thread: u32) -> i64 {
        self.tracks[thread as usize].ideal
    }

    pub(crate) fn rank(&self, thread: u32) -> u32 {
        self.tracks[thread as usize].rank
    }

    /// Most calls that waited for their other ends at a time.
    pub(crate) fn most(&self) -> usize {
        self.calls.most()
    }
}
