//! Calls whose waits are not known yet, and the threads that make them.

use std::num::NonZeroU64;

use slab::Slab;
use st_model::num::{Exact as _, narrow};

use crate::doubts::Doubts;
use crate::meetings::Meetings;
use crate::polls::Polls;
use crate::predict::{Reach, RunStep, Steps};
use crate::sizes::{ON_ITS_WAY, Size};
use crate::usual::Usual;
use crate::waits::{Sum, WaitKind};

/// A call under way, by number: none that is over has the number of another.
pub(crate) type CallNumber = NonZeroU64;

/// A call of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    pub(crate) thread: u32,
    pub(crate) place: u32,
    pub(crate) enter: i64,
    pub(crate) exit: i64,
    /// It waits: it is no test.
    pub(crate) waits: bool,
    /// It completes all that it names; else what comes first, in whatever order.
    pub(crate) orders: bool,
    /// Its number on the thread.
    pub(crate) call: u64,
    /// Bytes that it moves, as far as its own words say so.
    pub(crate) bytes: u64,
}

impl Visit {
    /// It completes its end of a message, of a size of which most libraries keep messages or not.
    pub(crate) fn reaches_message(&self, serial: u64, size: Option<Size>) -> RunStep {
        self.reaches(serial << 1, true, size)
    }

    /// It completes its part in a collective operation.
    pub(crate) fn reaches_operation(&self, serial: u64, all: bool) -> RunStep {
        self.reaches(serial << 1 | 1, all, None)
    }

    fn reaches(&self, group: u64, all: bool, size: Option<Size>) -> RunStep {
        let Self { thread, exit, waits, .. } = *self;
        RunStep::Reach(Reach { thread, group, exit, waits, all, size })
    }
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
    pub(crate) kind: WaitKind,
    /// The call that it waits for: until that is entered.
    pub(crate) cause: Cause,
    pub(crate) certainty: Certainty,
}

/// How certain it is that a library waits for something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Certainty {
    /// It must.
    Sure,
    /// It hardly does: it is the receive of a short message, which libraries keep.
    Hardly,
    /// It need not: it has waited where it evidently leaves when that comes.
    Seen,
    /// The same, and only where that is so of other messages of the size.
    Learned(Size),
}

impl Reason {
    pub(crate) fn of(kind: WaitKind, cause: Cause) -> Self {
        Self { kind, cause, certainty: Certainty::Sure }
    }

    pub(crate) fn until(&self) -> i64 {
        self.cause.at
    }

    /// The greatest of several reasons is why a call has waited: the last, and of messages of one call one that it receives.
    fn precedence(&self) -> (i64, bool) {
        (self.until(), self.kind != WaitKind::LateReceiver)
    }

    /// Whether a call has waited for this, though that is unlikely, and not only for what it surely waited for until an earlier time: it
    /// goes on from there for so long at least, and ends soon after this.
    fn is_likely(&self, since: i64, exit: i64, least: i64) -> bool {
        let more = self.until().saturating_sub(since);
        more >= least && (0..=more / 4).contains(&exit.saturating_sub(self.until()))
    }
}

/// Nobody is taken to be late by less: 50 µs, ns.
const LATE: i64 = 50_000;

/// Who is late is so by so many times what operations take where nobody is.
const TIMES: i64 = 4;

/// A call that completes something.
#[derive(Clone, Debug)]
struct Call {
    /// Tells it from others that have had its number.
    serial: u32,
    visit: Visit,
    /// What it completes that has not met its other end, and one until the call itself has been read.
    open: u32,
    /// Those of them that are sends.
    sends: u32,
    /// What else it completes.
    receives: u32,
    /// It completes a collective operation in which others may be waited for.
    joint: bool,
    /// Why it surely has waited, if it has.
    best: Option<Reason>,
    /// The last that hardly anybody waits for, and the last that it may be seen to have waited for.
    hardly: Option<Reason>,
    seen: Option<Reason>,
    /// The last that it may be seen to have waited for if others of the size have, and a size of which another end came after it ended.
    learned: Option<Reason>,
    ended: Option<Size>,
    /// It is a test that finds something: those before it that found nothing.
    polls: Polls,
    /// A message that was there when it had received all of its own, if that has been asked.
    older: Option<Box<Option<Older>>>,
}

impl Call {
    /// It may have waited for this: the greatest reason is kept, of those that are sure and of others.
    fn suspect(&mut self, reason: Reason) {
        self.joint |= reason.certainty == Certainty::Seen && reason.kind == WaitKind::AllToAll;
        // A test is why tests before it found nothing.
        let since = if self.visit.waits { Some(self.visit.enter) } else { self.polls.since() };
        if since.is_none_or(|since| reason.until() <= since) {
            return;
        }
        let best = match reason.certainty {
            Certainty::Sure => &mut self.best,
            Certainty::Hardly => &mut self.hardly,
            Certainty::Seen if reason.until() > self.visit.exit => return,
            Certainty::Seen => &mut self.seen,
            Certainty::Learned(size) if reason.until() > self.visit.exit => {
                self.ended = Some(size);
                return;
            }
            Certainty::Learned(_) => &mut self.learned,
        };
        *best = best.filter(|best| best.precedence() >= reason.precedence()).or(Some(reason));
    }

    /// For whom tests before it found nothing.
    fn tested_for(&mut self) -> Option<Polled> {
        let reason = self.best.filter(|_| !self.visit.waits)?;
        Some(Polled { thread: self.visit.thread, polls: std::mem::take(&mut self.polls), reason })
    }

    /// Why it has waited; of calls that complete collective operations it is looked at what they take where nobody is late.
    fn reason(&self, usual: &mut Usual) -> Option<Reason> {
        let Visit { thread, place, enter, exit, .. } = self.visit;
        let since = self.best.map_or(enter, |sure| sure.until());
        let likely = |reason: &Reason| reason.is_likely(since, exit, ON_ITS_WAY);
        let hardly = self.hardly.filter(|reason| self.best.is_none() || likely(reason));
        let all = self.seen.map_or(since, |seen| seen.until().max(since));
        let alone = (self.joint && self.visit.waits).then(|| exit.saturating_sub(all));
        let usual = alone.and_then(|ns| usual.took(thread, place, ns));
        let least = usual.map_or(ON_ITS_WAY, |ns| ns.saturating_mul(TIMES).clamp(LATE, ON_ITS_WAY));
        let seen = self.seen.filter(|seen| {
            let joint = seen.kind == WaitKind::AllToAll;
            seen.is_likely(since, exit, if joint { least } else { ON_ITS_WAY })
        });
        let seen = seen.filter(|seen| hardly.is_none_or(|hardly| hardly.until() < seen.until()));
        seen.or(hardly).or(self.best)
    }

    /// What it tells of messages of a size if it is long beyond what it surely waited for: that it goes on for the other end of one, or not.
    fn learned(&self, surely: Option<Reason>) -> Option<(Size, Option<Reason>)> {
        let Visit { enter, exit, .. } = self.visit;
        let since = surely.map_or(enter, |reason| reason.until().max(enter));
        if exit.saturating_sub(since) < ON_ITS_WAY {
            return None;
        }
        let reason = self.learned.filter(|reason| reason.until() > since);
        let size = match reason.map(|reason| reason.certainty) {
            Some(Certainty::Learned(size)) => size,
            _ => self.ended?,
        };
        Some((size, reason.filter(|reason| reason.is_likely(since, exit, ON_ITS_WAY))))
    }

    /// It is over, and has waited for this.
    fn finish(&mut self, reason: Reason) -> Finished {
        // A call that is waited for is no message that could have been taken before another, and a call that needs several
        // cannot do without the last.
        let older = match reason.certainty {
            _ if self.receives > 1 => Some(None),
            Certainty::Seen | Certainty::Learned(_) => Some(None),
            Certainty::Sure | Certainty::Hardly => self.older.take().map(|older| *older),
        };
        Finished { visit: self.visit, reason, older }
    }
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

/// Tests of a thread for what comes late.
#[derive(Clone, Debug)]
pub(crate) struct Polled {
    pub(crate) thread: u32,
    pub(crate) polls: Polls,
    pub(crate) reason: Reason,
}

/// A thread of a rank.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    pub(crate) rank: u32,
    /// The rank by its number among all that are read.
    pub(crate) place: u32,
    /// Waits of its calls.
    pub(crate) waited: Sum,
    /// Number of the last call that sent something or began an operation with others.
    pub(crate) told: u64,
    /// Tests that have found nothing since one found something, or the thread waited.
    pub(crate) polls: Polls,
}

impl Track {
    pub(crate) fn of(rank: u32, place: u32) -> Self {
        Self { rank, place, ..Self::default() }
    }
}

/// Calls under way, by number, and all threads.
#[derive(Default, Debug)]
pub(crate) struct Ledger {
    calls: Slab<Call>,
    most: usize,
    serial: u32,
    pub(crate) tracks: Vec<Track>,
    /// Calls that have received all of their messages and still send, since they were taken before.
    pub(crate) received: Vec<CallNumber>,
    /// Calls that have waited, since they were taken before.
    pub(crate) finished: Vec<Finished>,
    /// Tests whose reasons are known, since they were taken before.
    pub(crate) polled: Vec<Polled>,
    /// When all waited for all, if causes are looked for.
    pub(crate) meetings: Option<Meetings>,
    /// Who hears of what happens.
    pub(crate) steps: Steps,
    /// What collective operations take where nobody is late.
    usual: Usual,
    pub(crate) doubts: Doubts<Finished>,
}

impl Ledger {
    /// A call is read that completes something; returns its number.
    pub(crate) fn open(&mut self, visit: Visit) -> CallNumber {
        self.serial = (self.serial + 1) & SERIALS;
        let track = self.tracks.get_mut(visit.thread.to_usize());
        let polls = track.map(|track| std::mem::take(&mut track.polls)).filter(|_| !visit.waits);
        let call = Call {
            serial: self.serial,
            visit,
            open: 1,
            sends: 0,
            receives: 0,
            joint: false,
            best: None,
            hardly: None,
            seen: None,
            learned: None,
            ended: None,
            polls: polls.unwrap_or_default(),
            older: None,
        };
        let slot: u32 = narrow(self.calls.insert(call));
        self.most = self.most.max(self.calls.len());
        NonZeroU64::MIN | u64::from(self.serial) << 33 | u64::from(slot) << 1
    }

    fn call(&mut self, number: CallNumber) -> Option<&mut Call> {
        let found = self.calls.get_mut(slot(number));
        found.filter(|c| c.serial == serial(number))
    }

    pub(crate) fn visit(&mut self, number: CallNumber) -> Option<&Visit> {
        self.call(number).map(|c| &c.visit)
    }

    /// It completes something whose other end is not known.
    pub(crate) fn expect(&mut self, number: CallNumber, send: bool) {
        if let Some(call) = self.call(number) {
            call.open += 1;
            *if send { &mut call.sends } else { &mut call.receives } += 1;
        }
    }

    /// It may wait for this, too.
    pub(crate) fn suspect(&mut self, number: CallNumber, reason: Reason) {
        if let Some(call) = self.call(number) {
            call.suspect(reason);
        }
    }

    /// What it completes has met its other end, or the call has been read. A call that completes several things waits for
    /// the last.
    pub(crate) fn give(&mut self, number: CallNumber, send: bool, reason: Option<Reason>) {
        let found = self.calls.get_mut(slot(number));
        let Some(call) = found.filter(|c| c.serial == serial(number)) else { return };
        call.open -= 1;
        call.sends -= u32::from(send);
        if let Some(reason) = reason {
            call.suspect(reason);
        }
        if call.open > 0 {
            // Only sends are left: what older messages there are must be looked at now.
            if call.open == call.sends && !send {
                self.received.push(number);
            }
            return;
        }
        if let Some(polled) = call.tested_for() {
            self.polled.push(polled);
        } else if call.visit.waits {
            let surely = call.reason(&mut self.usual);
            let learned = call.learned(surely);
            let surely = surely.map(|reason| call.finish(reason));
            match learned {
                None => self.finished.extend(surely),
                Some((size, reason)) => {
                    let learned = reason.map(|reason| call.finish(reason));
                    self.doubts.tell(size, surely, learned, &mut self.finished);
                }
            }
        }
        self.calls.remove(slot(number));
    }

    /// No more calls come.
    pub(crate) fn end(&mut self) {
        self.doubts.end(&mut self.finished);
    }

    /// A call of which all is known by itself: where and when it is entered, its number on the thread, and when it ends.
    pub(crate) fn finish(&mut self, own: Cause, call: u64, exit: i64, reason: Reason) {
        if reason.until() > own.at {
            let Cause { thread, place, at: enter } = own;
            // What it moves nobody asks of a call that is over.
            let visit = Visit { thread, place, enter, exit, waits: true, orders: true, call, bytes: 0 };
            self.finished.push(Finished { visit, reason, older: None });
        }
    }

    /// Of a call whose last message it may have waited for: its rank's number, and when that was sent.
    pub(crate) fn sender(&mut self, number: CallNumber) -> Option<(u32, i64)> {
        let call = self.call(number)?;
        let (thread, reason) = (call.visit.thread, call.best?);
        (reason.kind == WaitKind::LateSender).then(|| (self.tracks[thread.to_usize()].place, reason.cause.at))
    }

    /// The older message that was there when a call had received all of its own.
    pub(crate) fn set_older(&mut self, number: CallNumber, older: Option<Older>) {
        if let Some(call) = self.call(number) {
            call.older.get_or_insert_with(|| Box::new(older));
        }
    }

    /// The older message has been received by a thread; `told`: the last call in which that had sent anything by then. What another
    /// thread than the call's receives is in no order with it.
    pub(crate) fn older_received(&mut self, number: CallNumber, thread: u32, told: u64) {
        let Some(call) = self.call(number) else { return };
        let told = if call.visit.thread == thread { told } else { u64::MAX };
        if let Some(older) = call.older.as_mut().and_then(|older| older.as_mut().as_mut()) {
            older.told = Some(told);
        }
    }

    pub(crate) fn rank(&self, thread: u32) -> u32 {
        self.tracks[thread as usize].rank
    }

    /// Whether no call waits for another end.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }

    /// Most calls that waited for their other ends at a time.
    pub(crate) fn most(&self) -> usize {
        self.most
    }
}

/// Tells a call from others that have had its slot.
fn serial(number: CallNumber) -> u32 {
    narrow(number.get() >> 33)
}

/// Where a call is kept.
fn slot(number: CallNumber) -> usize {
    (number.get() >> 1 & SLOTS).to_usize()
}

const SLOTS: u64 = u32::MAX as u64;
const SERIALS: u32 = u32::MAX >> 1;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// What a call of 100 ms has waited for: a late sender, and the receive of a short message, until these times.
    fn waited(sender: i64, receiver: i64, thread: u32) -> Option<Finished> {
        let mut ledger = Ledger { tracks: vec![Track::of(0, 0), Track::of(0, 0)], ..Ledger::default() };
        let visit = Visit {
            thread: 0,
            place: 7,
            enter: 0,
            exit: 100 * MS,
            waits: true,
            orders: true,
            call: 1,
            bytes: 0,
        };
        let call = ledger.open(visit);
        let reason = |kind, at| Reason {
            certainty: if kind == WaitKind::LateReceiver { Certainty::Hardly } else { Certainty::Sure },
            ..Reason::of(kind, Cause { thread: 1, place: 8, at })
        };
        for (kind, at) in [(WaitKind::LateSender, sender), (WaitKind::LateReceiver, receiver)] {
            ledger.expect(call, kind == WaitKind::LateReceiver);
            ledger.give(call, kind == WaitKind::LateReceiver, Some(reason(kind, at)));
        }
        let older = Older { id: 0, serial: 0, cause: Cause { thread: 1, place: 8, at: 0 }, told: None };
        ledger.set_older(call, Some(older));
        ledger.older_received(call, thread, 5);
        ledger.give(call, false, None);
        ledger.finished.pop()
    }

    #[test]
    fn a_call_that_goes_on_after_its_message_came_has_waited_for_the_receive_that_it_ends_with() {
        let kind = |sender, receiver| waited(sender, receiver, 0).map(|f| f.reason.kind);
        assert_eq!(kind(20_000, 99 * MS), Some(WaitKind::LateReceiver));
        assert_eq!(kind(-5, 99 * MS), Some(WaitKind::LateReceiver));
        assert_eq!(kind(-5, 3 * MS), Some(WaitKind::LateReceiver));
        // What short messages take on their way, and receives that come when they come.
        assert_eq!(kind(99 * MS + 900_000, 99 * MS + 990_000), Some(WaitKind::LateSender));
        assert_eq!(kind(20_000, 50 * MS), Some(WaitKind::LateSender));
        assert_eq!(kind(99 * MS, 50 * MS), Some(WaitKind::LateSender));
        assert_eq!(kind(-5, -7), None);
    }

    #[test]
    fn what_another_thread_receives_is_in_no_order_with_a_call() {
        let told =
            |thread| waited(50 * MS, -5, thread).and_then(|f| f.older).flatten().and_then(|older| older.told);
        assert_eq!([told(0), told(1)], [Some(5), Some(u64::MAX)]);
    }
}
