//! What is waited for in messages under way, which `st_match` follows: the cause of each end's wait, and messages in the wrong
//! order.

mod ends;

use std::collections::{HashMap, VecDeque};

use st_match::messages::Messages as UnderWay;
use st_match::{Channel, NO_MESSAGE};
use st_model::event::Completed;
use st_model::num::Exact as _;

pub(crate) use self::ends::{By, Suspect};
use self::ends::{Receive, Send, Suspects, kind};
use crate::ahead::{Ahead, Deed, Outgoing};
use crate::analysis::Message;
use crate::pending_calls::{CallNumber, Cause, Certainty, Ledger, Older, Reason, Visit};
use crate::predict::{RunStep, Sending};
use crate::progress::Progress;
use crate::sizes::needs_both;
use crate::throttled::Throttled;
use crate::waits::{Sum, Wait, WaitKind};

/// No rank.
const NOBODY: u32 = u32::MAX;

/// All messages under way.
#[derive(Default, Debug)]
pub(crate) struct Messages {
    under_way: UnderWay<Send, Receive>,
    /// Sends by the number of the rank that they are for, in the order of time: the first has not been received.
    unreceived: Vec<VecDeque<(u32, u64)>>,
    throttled: Throttled,
    serial: u64,
    progress: Progress,
    pub(crate) cancelled: u64,
    /// Late senders that are in the wrong order, since they were taken before: the older message has been received.
    pub(crate) proven: Vec<(Wait, bool, Sum)>,
    /// The same one by one, by their numbers, if each wait is kept.
    pub(crate) proven_each: Vec<(u32, bool)>,
    /// Messages one by one, if they are asked for.
    each: Option<Vec<Message>>,
}

impl Messages {
    /// Ranks have numbers below this.
    pub(crate) fn with_ranks(&mut self, ranks: usize) {
        self.unreceived.resize_with(ranks, VecDeque::new);
    }

    /// Each message is kept.
    pub(crate) fn keep_each(&mut self) {
        self.each = Some(Vec::new());
    }

    /// Those that have been kept.
    pub(crate) fn take_each(&mut self) -> Vec<Message> {
        self.each.take().unwrap_or_default()
    }

    /// Looks at what a deed needs.
    pub(crate) fn look(&self, deed: &Deed, ahead: &Ahead) -> usize {
        match deed {
            Deed::Send { what, .. } => {
                let to = what.to.and_then(|to| self.unreceived.get(to.to_usize())).map_or(0, VecDeque::len);
                to + usize::from(self.under_way.is_used(&what.channel))
            }
            Deed::Post { channel, .. } => self.under_way.is_used(channel).into(),
            Deed::Sent { number, .. } => self.under_way.has_sent(ahead.known_as(*number)).into(),
            Deed::Received { number, .. } | Deed::Take { number } => {
                self.under_way.has_posted(ahead.known_as(*number)).into()
            }
            _ => 0,
        }
    }

    /// A message is sent; `by`: the call that completes it.
    pub(crate) fn send(&mut self, visit: &Visit, what: &Outgoing, by: By, ledger: &mut Ledger) -> u32 {
        let Outgoing { channel, to, bytes, sync } = *what;
        self.serial += 1;
        ledger.tracks[visit.thread.to_usize()].told = visit.call;
        if let By::Call(call) = by {
            ledger.expect(call, true);
        }
        let send = Send {
            serial: self.serial,
            cause: Cause::of(visit),
            call: visit.call,
            by,
            watch: None,
            to: to.unwrap_or(NOBODY),
            received: false,
            bytes,
            message: channel.tag >= NO_MESSAGE,
            kept: !sync && bytes >= 0 && !needs_both(bytes),
            over: false,
            done: false,
        };
        if let (By::Itself { .. } | By::Call(_), Some(to)) = (by, to)
            && send.message
            && !sync
        {
            self.throttled.send(visit, to, self.serial);
        }
        let id = self.under_way.send(visit.thread, channel, send);
        let sending = Sending {
            thread: visit.thread,
            bytes,
            sync,
            blocks: !matches!(by, By::Unknown),
            message: channel.tag >= NO_MESSAGE,
        };
        ledger.steps.tell(RunStep::Send(id, sending));
        if let Some(waiting) = to.and_then(|to| self.unreceived.get_mut(to.to_usize())) {
            waiting.push_back((id, self.serial));
        }
        self.settle(ledger);
        id
    }

    /// A send, unless its number is another's by now.
    fn send_of(&mut self, id: u32, serial: u64) -> Option<&mut Send> {
        self.under_way.sent(id).filter(|s| s.serial == serial)
    }

    /// A message for a rank has been received.
    fn forget_received(&mut self, to: u32, serial: u64) {
        let waiting = self.unreceived.get_mut(to.to_usize());
        let Some(waiting) = waiting.filter(|w| w.front().is_some_and(|first| first.1 == serial)) else {
            return;
        };
        waiting.pop_front();
        let under_way = &mut self.under_way;
        let mut is_there = |&(id, serial): &(u32, u64)| {
            under_way.sent(id).is_some_and(|s| s.serial == serial && !s.received)
        };
        while waiting.front().is_some_and(|next| !is_there(next)) {
            waiting.pop_front();
        }
    }

    /// The oldest message for a rank that has not been received, if it was sent before a time.
    pub(crate) fn older(&mut self, rank: u32, than: i64) -> Option<Older> {
        let (id, serial) = *self.unreceived.get(rank.to_usize())?.front()?;
        let send = self.send_of(id, serial).filter(|s| s.cause.at < than)?;
        Some(Older { id, serial, cause: send.cause, told: None })
    }

    /// The older message that was there when a call had received all of its own, while it still sends: by the time that is
    /// done, the message may have been received long ago.
    pub(crate) fn watch(&mut self, older: &Older, call: CallNumber) {
        let send = self.send_of(older.id, older.serial);
        send.into_iter().for_each(|s| s.watch.get_or_insert_default().by.push(call));
    }

    /// A call may have waited in the wrong order: it has, if the older message is received before the rank sends anything;
    /// `told`: the last call in which it did.
    pub(crate) fn suspect(&mut self, older: &Older, suspect: Suspect<'_>, told: u64) {
        let Suspect { wait, cause, thread, call, number } = suspect;
        let same = older.cause.thread == cause.thread;
        let sum = Sum { count: 1, ns: wait.ns, longest: wait.ns };
        let wait = Wait { ns: 0, ..*wait };
        let Some(send) = self.send_of(older.id, older.serial).filter(|s| !s.received) else {
            let told = older.told.unwrap_or(told);
            if told <= call {
                self.proven.push((wait, same, sum));
                self.proven_each.extend(number.map(|number| (number, same)));
            }
            return;
        };
        let watch = send.watch.get_or_insert_default();
        let fresh = Suspects { thread, since: call, waits: HashMap::default(), each: Vec::new() };
        let suspects =
            watch.suspects.take().filter(|s| s.thread == thread && told <= s.since).unwrap_or(fresh);
        let suspects = watch.suspects.insert(suspects);
        suspects.waits.entry((wait, same)).or_default().add(sum);
        suspects.each.extend(number.map(|number| (number, same)));
    }

    /// No more calls come.
    pub(crate) fn end(&mut self, ledger: &mut Ledger) {
        self.progress.end(ledger);
    }

    /// Ends that have not met their other ends: sends and receives.
    pub(crate) fn unmatched(&self) -> [u64; 2] {
        self.under_way.unmatched()
    }

    /// Messages whose order is not known.
    pub(crate) fn unordered(&self) -> u64 {
        self.under_way.unordered()
    }

    /// A call completes a send.
    pub(crate) fn sent(&mut self, id: u32, call: CallNumber, cancelled: bool, ledger: &mut Ledger) {
        self.cancelled += u64::from(cancelled);
        if let Some(send) = self.under_way.sent(id).filter(|s| matches!(s.by, By::Unknown) && !s.done) {
            send.by = By::Call(call);
            ledger.expect(call, true);
        }
        self.settle_send(id, ledger);
    }

    /// A call of a thread has waited for a message that it leaves where it is.
    pub(crate) fn probe(&mut self, visit: &Visit, channel: Channel, call: CallNumber, ledger: &mut Ledger) {
        ledger.expect(call, false);
        let before = self.under_way.probe(visit.thread, channel, call.get());
        if let Some(before) = before.and_then(CallNumber::new) {
            ledger.give(before, false, None);
        }
    }

    /// A receive is posted; `by`: the call that completes it, and the one that has found its message.
    pub(crate) fn post(
        &mut self,
        visit: &Visit,
        channel: Channel,
        by: By,
        found_by: Option<CallNumber>,
        ledger: &mut Ledger,
    ) -> u32 {
        let probe = match found_by {
            Some(call) => {
                ledger.expect(call, false);
                found_by
            }
            None => self.under_way.probed(visit.thread, &channel).and_then(CallNumber::new),
        };
        if let By::Call(call) = by {
            ledger.expect(call, false);
        }
        let (posted, taken) = (Cause::of(visit), found_by.is_none());
        let receive = Receive { posted, taken, by, call: visit.call, probe, done: false };
        let id = self.under_way.post(visit.thread, channel, receive);
        if taken {
            ledger.steps.tell(RunStep::Post { thread: visit.thread, receive: id });
        }
        self.settle(ledger);
        id
    }

    /// A call receives the message that a matched probe has found: a sender that waits for its receive has waited for this call.
    pub(crate) fn take(&mut self, visit: &Visit, id: u32, ledger: &mut Ledger) {
        let Some(receive) = self.under_way.posted(id).filter(|receive| !receive.taken) else { return };
        (receive.posted, receive.call, receive.taken) = (Cause::of(visit), visit.call, true);
        ledger.steps.tell(RunStep::Post { thread: visit.thread, receive: id });
        if let Some(send) = self.under_way.met_by_receive(id).map(|(_, _, send, _)| send) {
            self.settle_send(send, ledger);
        }
    }

    /// A call completes a receive.
    pub(crate) fn received(&mut self, id: u32, call: CallNumber, got: &Completed, ledger: &mut Ledger) {
        if got.cancelled {
            self.cancelled += 1;
            return self.drop_receive(id, ledger);
        }
        if let Some(receive) = self.under_way.posted(id).filter(|r| matches!(r.by, By::Unknown) && !r.done) {
            receive.by = By::Call(call);
            ledger.expect(call, false);
        }
        self.under_way.settle(id, got);
        self.settle(ledger);
        self.settle_receive(id, ledger);
    }

    /// The request of a receive is freed: it takes its message, and nobody hears of it.
    pub(crate) fn forget(&mut self, id: u32, ledger: &mut Ledger) {
        let Some(receive) = self.under_way.posted(id) else { return };
        (receive.by, receive.done) = (By::Nobody, true);
        if let Some(probe) = receive.probe.take() {
            ledger.give(probe, false, None);
        }
        let met = self.under_way.met_by_receive(id).filter(|(.., send)| send.done);
        if let Some(send) = met.map(|(_, _, send, _)| send) {
            self.let_go(send, id, ledger);
        }
    }

    /// The request of a send is.
    pub(crate) fn forget_send(&mut self, id: u32, ledger: &mut Ledger) {
        let Some(send) = self.under_way.sent(id) else { return };
        (send.by, send.done) = (By::Nobody, true);
        let met = self.under_way.met_by_send(id).filter(|(.., receive)| receive.done);
        if let Some(receive) = met.map(|(_, receive, _)| receive) {
            self.let_go(id, receive, ledger);
        }
    }

    /// Nothing more is to be said of a message, one of whose requests has been freed.
    fn let_go(&mut self, send: u32, receive: u32, ledger: &mut Ledger) {
        let known = self.under_way.sent(send).map(|s| (s.to, s.serial));
        if let Some((to, serial)) = known {
            self.progress.forget(serial, ledger);
            self.under_way.forget(send, receive);
            self.forget_received(to, serial);
        }
    }

    /// A receive that takes no message.
    fn drop_receive(&mut self, id: u32, ledger: &mut Ledger) {
        let Some(receive) = self.under_way.posted(id) else { return };
        receive.done = true;
        if let Some(probe) = receive.probe.take() {
            ledger.give(probe, false, None);
        }
        self.under_way.withdraw(id);
        self.settle(ledger);
    }

    /// Tells of ends that have met.
    fn settle(&mut self, ledger: &mut Ledger) {
        while let Some((send, receive)) = self.under_way.next_met() {
            self.settle_receive(receive, ledger);
            self.settle_send(send, ledger);
        }
    }

    /// Tells of a receive that has met its send and is complete.
    fn settle_receive(&mut self, id: u32, ledger: &mut Ledger) {
        let Some((receive, channel, sent, send)) = self.under_way.met_by_receive(id) else { return };
        let by = receive.by;
        if receive.done || matches!(by, By::Unknown) {
            return;
        }
        (receive.done, send.received) = (true, true);
        let (posted, call) = (receive.posted, receive.call);
        let reason = Reason::of(kind(channel), send.cause);
        let (to, serial, both_done) = (send.to, send.serial, send.done);
        let (thread, moving) = (posted.thread, send.moving(send.by));
        if send.message {
            self.throttled.hear(send.cause.thread, to, serial, posted);
        }
        if let Some(each) = self.each.as_mut().filter(|_| channel.tag >= NO_MESSAGE) {
            let received = match by {
                By::Call(call) => ledger.visit(call).map(|v| v.exit),
                By::Itself { exit } => Some(exit),
                By::Unknown | By::Nobody => None,
            };
            let (threads, sent) = ([send.cause.thread, thread], send.cause.at);
            let [from, to] = threads.map(|thread| ledger.rank(thread));
            let bytes = u64::try_from(send.bytes).ok();
            each.extend(received.map(|received| Message { from, to, threads, sent, received, bytes }));
        }
        ledger.steps.tell(RunStep::Receive { send: sent, receive: id });
        let (probe, watch) = (receive.probe.take(), send.watch.take());
        self.forget_received(to, serial);
        if let Some(watch) = watch {
            let told = ledger.tracks[thread.to_usize()].told;
            watch.by.into_iter().for_each(|call| ledger.older_received(call, thread, told));
            // What another thread receives is in no order with it.
            let suspects = watch.suspects.filter(|s| s.thread == thread && told <= s.since);
            if let Some(Suspects { waits, each, .. }) = suspects {
                self.proven.extend(waits.into_iter().map(|((wait, same), sum)| (wait, same, sum)));
                self.proven_each.extend(each);
            }
        }
        if let Some(probe) = probe {
            // MPI_Win_start need not wait for what it finds. A probe that ends before what it has found is sent shows that
            // clocks are apart, as a receive does: it has waited all the same.
            let waited = reason.kind != WaitKind::LatePost
                || ledger.visit(probe).is_some_and(|v| v.exit >= reason.until());
            ledger.give(probe, false, waited.then_some(reason));
        }
        match by {
            By::Call(call) => {
                if let Some(what) = moving
                    && self.progress.complete(what, call, false, ledger)
                    && let Some(send) = self.under_way.sent(sent)
                {
                    send.over = true;
                }
                ledger.give(call, false, Some(reason));
            }
            By::Itself { exit } => ledger.finish(posted, call, exit, reason),
            By::Unknown | By::Nobody => {}
        }
        if both_done {
            self.under_way.forget(sent, id);
        }
    }

    /// Tells of a send that has met its receive and is complete.
    fn settle_send(&mut self, id: u32, ledger: &mut Ledger) {
        let Some((send, met, receive)) = self.under_way.met_by_send(id) else { return };
        let by = send.by;
        if send.done || !receive.taken || matches!(by, By::Unknown) {
            return;
        }
        send.done = true;
        let certainty = if send.kept { Certainty::Hardly } else { Certainty::Sure };
        let moving = send.moving(receive.by);
        let (serial, own, call, to) = (send.serial, send.cause, send.call, send.to);
        let (posted, both_done) = (receive.posted, receive.done);
        let unheard = (both_done && !send.received).then_some((send.to, send.serial));
        ledger.steps.tell(RunStep::Sent { send: id, receive: met });
        let reason = Reason { kind: WaitKind::LateReceiver, cause: posted, certainty };
        // A message that is complete before its receive is posted did not wait for that.
        match by {
            By::Call(call) => {
                let waited = ledger.visit(call).is_some_and(|v| v.exit > posted.at);
                if let Some(what) = moving
                    && self.progress.complete(what, call, true, ledger)
                    && let Some(send) = self.under_way.sent(id)
                {
                    send.over = true;
                }
                let throttled = self.throttled.reason(own.thread, to, serial);
                ledger.give(call, true, if waited { Some(reason) } else { throttled });
            }
            By::Itself { exit } => {
                let throttled = self.throttled.reason(own.thread, to, serial);
                let waited = if exit > posted.at { Some(reason) } else { throttled };
                waited.into_iter().for_each(|reason| ledger.finish(own, call, exit, reason));
            }
            By::Unknown | By::Nobody => {}
        }
        unheard.into_iter().for_each(|(to, serial)| self.forget_received(to, serial));
        if both_done {
            self.under_way.forget(id, met);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending_calls::Track;

    /// Two threads, of which the first sends the second a long message, by these deeds in their order. Whether no call waits for another
    /// end, and nothing is kept of the message.
    fn nothing_is_left(deeds: &[&str]) -> bool {
        let mut ledger = Ledger::default();
        ledger.tracks.extend([0, 1].map(|rank| Track::of(rank, rank)));
        [0, 1].into_iter().for_each(|_| ledger.steps.add_thread(0));
        let mut messages = Messages::default();
        messages.with_ranks(2);
        let channel = Channel { group: 0, side: 0, from: 0, to: 1, tag: NO_MESSAGE };
        let (mut send, mut receive) = (u32::MAX, u32::MAX);
        for (call, deed) in (0..).zip(deeds) {
            let at = i64::try_from(call).unwrap() * 10;
            let thread = u32::from(deed.starts_with("receive"));
            let (place, enter, exit) = (0, at, at + 5);
            let visit = Visit { thread, place, enter, exit, waits: true, orders: true, call, bytes: 0 };
            let number = ledger.open(visit);
            match *deed {
                "send" => {
                    let what = Outgoing { channel, to: Some(1), bytes: 100_000, sync: false };
                    send = messages.send(&visit, &what, By::Unknown, &mut ledger);
                }
                "receive" => receive = messages.post(&visit, channel, By::Unknown, None, &mut ledger),
                "send completes" => messages.sent(send, number, false, &mut ledger),
                "receive completes" => messages.received(receive, number, &Completed::default(), &mut ledger),
                "send is freed" => messages.forget_send(send, &mut ledger),
                _ => messages.forget(receive, &mut ledger),
            }
            ledger.give(number, false, None);
        }
        ledger.is_idle()
            && messages.under_way.sent(send).is_none()
            && messages.under_way.posted(receive).is_none()
    }

    #[test]
    fn a_message_of_which_a_request_is_freed_is_over_when_the_other_end_is() {
        let freed = ["receive is freed", "send is freed"];
        let complete = ["send completes", "receive completes"];
        for first in [["send", "receive"], ["receive", "send"]] {
            let both = |last: [&str; 2]| nothing_is_left(&[first, last].concat());
            assert!(both(complete));
            for (freed, complete) in freed.into_iter().zip(complete) {
                assert!(both([freed, complete]), "{freed}");
                assert!(both([complete, freed]), "{freed}, late");
            }
            assert!(both(freed));
        }
        // Before the other end is there.
        assert!(nothing_is_left(&["send", "send is freed", "receive", "receive completes"]));
        assert!(nothing_is_left(&["receive", "receive is freed", "send", "send completes"]));
    }
}
