//! Messages under way: the n-th send of a channel meets its n-th receive.
//!
//! Receives meet in the order in which they are posted. One with wildcards has no channel until it completes: those that
//! are posted after it, and that could take its message, are held back until then.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;
use st_match::communication::{End, UNKNOWN_TAG};
use st_match::graph::{COMPLETED, POSTED};
use st_match::{Channel, NO_MESSAGE, UNKNOWN};
use st_model::event::Completed;

use crate::ledger::{Cause, Ledger, Older, Reason, Visit};
use crate::predict::{Sending, Step};
use crate::slab::Slab;
use crate::waits::{Kind, Sum, Wait};

/// How far an end is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Running,
    /// Completed by a call under way.
    By(u64),
    /// Nothing more is to be said of it.
    Done,
}

/// Waits of a call and those after it that are in the wrong order if an older message is received before their rank sends
/// anything.
#[derive(Debug)]
struct Suspects {
    since: u64,
    waits: HashMap<(Wait, bool), Sum, FixedState>,
}

#[derive(Debug)]
struct Send {
    serial: u64,
    cause: Cause,
    state: State,
    receive: Option<u32>,
    received: bool,
    suspects: Option<Box<Suspects>>,
    /// Calls that still send, and that will be in the wrong order if this one is received before their rank sends anything.
    watched_by: Vec<u64>,
}

#[derive(Debug)]
struct Receive {
    thread: u32,
    posted: Cause,
    channel: Channel,
    state: State,
    send: Option<u32>,
    /// It stands in its channel.
    entered: bool,
    /// The call that has waited for the message before this one took it.
    probe: Option<u64>,
}

impl Receive {
    fn is_wild(&self) -> bool {
        self.channel.from == UNKNOWN || self.channel.tag == UNKNOWN_TAG
    }

    /// Whether it could take a message that is for another receive.
    fn may_take(&self, other: &Channel) -> bool {
        let Channel { group, side, from, to, tag } = self.channel;
        let alike = |mine, theirs, unknown| mine == theirs || mine == unknown || theirs == unknown;
        (group, side, to) == (other.group, other.side, other.to)
            && alike(from, other.from, UNKNOWN)
            && (tag == other.tag || tag == UNKNOWN_TAG || other.tag == UNKNOWN_TAG)
    }
}

/// Ends of a channel that wait for the others.
#[derive(Debug, Default)]
struct Traffic {
    waiting: VecDeque<u32>,
    receives: bool,
    /// Threads that send and receive.
    users: [Option<u32>; 2],
    /// Several threads of a rank use one end: their order is not known.
    ambiguous: bool,
}

/// Why the receive of a channel waits for its send.
fn kind(channel: &Channel) -> Kind {
    match channel.tag {
        POSTED => Kind::LatePost,
        COMPLETED => Kind::EarlyWait,
        _ => Kind::LateSender,
    }
}

/// All messages under way.
#[derive(Default, Debug)]
pub(crate) struct Messages {
    sends: Slab<Send>,
    receives: Slab<Receive>,
    channels: HashMap<Channel, Traffic, FixedState>,
    /// Per thread, in the order in which they were posted: receives without channel, and those that wait for these.
    held: HashMap<u32, VecDeque<u32>, FixedState>,
    /// Sends by the rank that they are for, in the order of time; some of them may be received.
    unreceived: HashMap<u32, VecDeque<(u32, u64)>, FixedState>,
    /// By thread: the last probe whose message has not been received, and where that comes through.
    probes: HashMap<u32, (Channel, u64), FixedState>,
    serial: u64,
    pub(crate) cancelled: u64,
    pub(crate) ambiguous: u64,
    /// Late senders that are in the wrong order, since they were taken before: the older message has been received.
    pub(crate) proven: Vec<(Wait, bool, Sum)>,
}

impl Messages {
    /// A message is sent to a rank; `by`: the call that completes it, if that is known.
    pub(crate) fn send(
        &mut self,
        visit: &Visit,
        end: &End,
        to: Option<u32>,
        by: Option<u64>,
        ledger: &mut Ledger,
    ) -> u32 {
        self.serial += 1;
        ledger.tracks[visit.thread as usize].told = visit.call;
        let send = Send {
            serial: self.serial,
            cause: Cause::of(visit),
            state: State::Running,
            receive: None,
            received: false,
            suspects: None,
            watched_by: Vec::new(),
        };
        let id = self.sends.add(send);
        let sending = Sending {
            thread: visit.thread,
            bytes: end.bytes,
            sync: end.sync,
            blocks: by.is_some(),
            message: end.tag >= NO_MESSAGE,
        };
        ledger.steps.tell(Step::Send(id, sending));
        if let Some(to) = to {
            self.oldest(to);
            self.unreceived.entry(to).or_default().push_back((id, self.serial));
        }
        if let Some(call) = by {
            self.completes_send(id, call, ledger);
        }
        self.enter(end.sent_through(), id, false, visit.thread, ledger);
        id
    }

    /// The oldest message for a rank that has not been received.
    fn oldest(&mut self, rank: u32) -> Option<u32> {
        let waiting = self.unreceived.get_mut(&rank)?;
        while let Some((id, serial)) = waiting.front().copied() {
            if self.sends.get(id).is_some_and(|s| s.serial == serial && !s.received) {
                return Some(id);
            }
            waiting.pop_front();
        }
        None
    }

    /// The oldest message for a rank that has not been received, if it was sent before a time.
    pub(crate) fn older(&mut self, rank: u32, than: i64) -> Option<Older> {
        let id = self.oldest(rank)?;
        let send = self.sends.get(id).filter(|s| s.cause.at < than)?;
        Some(Older { id, serial: send.serial, cause: send.cause, told: None })
    }

    /// The older message that was there when a call had received all of its own, while it still sends: by the time that is
    /// done, the message may have been received long ago.
    pub(crate) fn watch(&mut self, older: &Older, call: u64) {
        let send = self.sends.get_mut(older.id).filter(|s| s.serial == older.serial);
        send.into_iter().for_each(|s| s.watched_by.push(call));
    }

    /// A call has waited for its sender while an older message was there: in the wrong order, if that is received before the
    /// rank sends anything; `told`: the last call in which it did.
    pub(crate) fn suspect(&mut self, older: &Older, cause: &Cause, (wait, call): (&Wait, u64), told: u64) {
        let same = older.cause.thread == cause.thread;
        let sum = Sum { count: 1, ns: wait.ns, longest: wait.ns };
        let wait = Wait { ns: 0, ..*wait };
        let Some(send) = self.sends.get_mut(older.id).filter(|s| s.serial == older.serial && !s.received)
        else {
            let told = older.told.unwrap_or(told);
            self.proven.extend((told <= call).then_some((wait, same, sum)));
            return;
        };
        let suspects = send
            .suspects
            .take()
            .filter(|s| told <= s.since)
            .unwrap_or_else(|| Box::new(Suspects { since: call, waits: HashMap::default() }));
        send.suspects.insert(suspects).waits.entry((wait, same)).or_default().add(sum);
    }

    /// Ends that have not met their other ends: sends and receives.
    pub(crate) fn unmatched(&self) -> [u64; 2] {
        let of = |receives| {
            let traffic = self.channels.values().filter(|t| t.receives == receives);
            traffic.map(|t| t.waiting.len() as u64).sum()
        };
        [of(false), of(true)]
    }

    /// A call completes a send.
    pub(crate) fn sent(&mut self, id: u32, call: u64, cancelled: bool, ledger: &mut Ledger) {
        self.cancelled += u64::from(cancelled);
        self.completes_send(id, call, ledger);
        self.settle_send(id, ledger);
    }

    fn completes_send(&mut self, id: u32, call: u64, ledger: &mut Ledger) {
        let Some(send) = self.sends.get_mut(id).filter(|s| s.state == State::Running) else { return };
        send.state = State::By(call);
        ledger.expect(call, true);
    }

    /// A call of a thread has waited for a message that it leaves where it is.
    pub(crate) fn probe(&mut self, visit: &Visit, channel: Channel, call: u64, ledger: &mut Ledger) {
        ledger.expect(call, false);
        if let Some((_, before)) = self.probes.insert(visit.thread, (channel, call)) {
            ledger.give(before, false, None);
        }
    }

    /// The probe that found what a thread's next receive takes.
    fn probed(&mut self, thread: u32, by: &Receive) -> Option<u64> {
        self.probes.get(&thread).filter(|(found, _)| by.may_take(found))?;
        self.probes.remove(&thread).map(|(_, call)| call)
    }

    /// A receive is posted; `by`: the call that completes it, if that is known, and the one that has found its message.
    pub(crate) fn post(
        &mut self,
        visit: &Visit,
        end: &End,
        (by, found_by): (Option<u64>, Option<u64>),
        ledger: &mut Ledger,
    ) -> u32 {
        let mut receive = Receive {
            thread: visit.thread,
            posted: Cause::of(visit),
            channel: end.received_through(),
            state: State::Running,
            send: None,
            entered: false,
            probe: found_by,
        };
        match found_by {
            Some(call) => ledger.expect(call, false),
            None => receive.probe = self.probed(visit.thread, &receive),
        }
        let id = self.receives.add(receive);
        ledger.steps.tell(Step::Post { thread: visit.thread, receive: id });
        if let Some(call) = by {
            self.completes_receive(id, call, ledger);
        }
        self.held.entry(visit.thread).or_default().push_back(id);
        self.release(visit.thread, ledger);
        id
    }

    /// A call completes a receive.
    pub(crate) fn received(&mut self, id: u32, call: u64, got: &Completed, ledger: &mut Ledger) {
        if got.cancelled {
            self.cancelled += 1;
            return self.drop_receive(id, ledger);
        }
        self.completes_receive(id, call, ledger);
        let Some(receive) = self.receives.get_mut(id) else { return };
        let thread = receive.thread;
        if !receive.entered {
            receive.channel.settle(got);
            self.release(thread, ledger);
        }
        self.settle_receive(id, ledger);
    }

    fn completes_receive(&mut self, id: u32, call: u64, ledger: &mut Ledger) {
        let Some(receive) = self.receives.get_mut(id).filter(|r| r.state == State::Running) else { return };
        receive.state = State::By(call);
        ledger.expect(call, false);
    }

    /// The request of a receive is freed: it takes its message, and nobody hears of it.
    pub(crate) fn forget(&mut self, id: u32) {
        if let Some(receive) = self.receives.get_mut(id) {
            receive.state = State::Done;
        }
    }

    /// A receive that takes no message.
    fn drop_receive(&mut self, id: u32, ledger: &mut Ledger) {
        let Some(receive) = self.receives.get_mut(id) else { return };
        receive.state = State::Done;
        if let Some(probe) = receive.probe.take() {
            ledger.give(probe, false, None);
        }
        if receive.send.is_some() {
            return;
        }
        if receive.entered {
            let channel = receive.channel;
            let traffic = self.channels.get_mut(&channel).filter(|t| t.receives);
            traffic.into_iter().for_each(|t| t.waiting.retain(|w| *w != id));
        } else if let Some(held) = self.held.get_mut(&receive.thread) {
            held.retain(|h| *h != id);
        }
        self.receives.remove(id);
    }

    /// Enters receives into their channels that no receive before them could stand in for.
    fn release(&mut self, thread: u32, ledger: &mut Ledger) {
        let Some(mut held) = self.held.remove(&thread) else { return };
        let mut wild: Vec<u32> = Vec::new();
        let mut stay = VecDeque::new();
        while let Some(id) = held.pop_front() {
            let Some(receive) = self.receives.get(id) else { continue };
            let channel = receive.channel;
            let before = wild.iter().filter_map(|w| self.receives.get(*w));
            if receive.is_wild() || before.into_iter().any(|w| w.may_take(&channel)) {
                wild.push(id);
                stay.push_back(id);
                continue;
            }
            if let Some(receive) = self.receives.get_mut(id) {
                receive.entered = true;
            }
            self.enter(channel, id, true, thread, ledger);
        }
        if !stay.is_empty() {
            self.held.insert(thread, stay);
        }
    }

    /// An end meets its other end, or waits for it.
    fn enter(&mut self, channel: Channel, id: u32, receives: bool, thread: u32, ledger: &mut Ledger) {
        let traffic = self.channels.entry(channel).or_default();
        if *traffic.users[usize::from(receives)].get_or_insert(thread) != thread && !traffic.ambiguous {
            traffic.ambiguous = true;
            traffic.waiting = VecDeque::new();
        }
        if traffic.ambiguous {
            self.ambiguous += u64::from(receives);
            return;
        }
        if traffic.waiting.is_empty() || traffic.receives == receives {
            traffic.receives = receives;
            traffic.waiting.push_back(id);
            return;
        }
        let Some(other) = traffic.waiting.pop_front() else { return };
        if traffic.waiting.is_empty() {
            traffic.waiting = VecDeque::new();
        }
        let (send, receive) = if receives { (other, id) } else { (id, other) };
        if let (Some(s), Some(r)) = (self.sends.get_mut(send), self.receives.get_mut(receive)) {
            s.receive = Some(receive);
            r.send = Some(send);
        }
        self.settle_receive(receive, ledger);
        self.settle_send(send, ledger);
    }

    /// Tells of a receive that has met its send and is complete.
    fn settle_receive(&mut self, id: u32, ledger: &mut Ledger) {
        let Some(receive) = self.receives.get_mut(id) else { return };
        let (State::By(call), Some(sent)) = (receive.state, receive.send) else { return };
        let Some(send) = self.sends.get_mut(sent) else { return };
        receive.state = State::Done;
        send.received = true;
        let reason = Reason { kind: kind(&receive.channel), until: send.cause.at, cause: send.cause };
        ledger.steps.tell(Step::Receive { send: sent, receive: id });
        let told = ledger.tracks[receive.thread as usize].told;
        let suspects = send.suspects.take().filter(|s| told <= s.since);
        std::mem::take(&mut send.watched_by).into_iter().for_each(|call| ledger.older_received(call, told));
        if let Some(probe) = receive.probe.take() {
            // A call that need not wait for it may have ended before.
            let waited = ledger.visit(probe).is_some_and(|v| v.exit >= reason.until);
            ledger.give(probe, false, waited.then_some(reason));
        }
        ledger.give(call, false, Some(reason));
        let proven = suspects.into_iter().flat_map(|s| s.waits);
        self.proven.extend(proven.map(|((wait, same), sum)| (wait, same, sum)));
        self.free(sent, id);
    }

    /// Tells of a send that has met its receive and is complete.
    fn settle_send(&mut self, id: u32, ledger: &mut Ledger) {
        let Some(send) = self.sends.get_mut(id) else { return };
        let (State::By(call), Some(met)) = (send.state, send.receive) else { return };
        let Some(receive) = self.receives.get_mut(met) else { return };
        send.state = State::Done;
        // A message that is complete before its receive is posted did not wait for that.
        let posted = receive.posted;
        let waited = ledger.visit(call).is_some_and(|v| v.exit > posted.at);
        let reason = Reason { kind: Kind::LateReceiver, until: posted.at, cause: posted };
        ledger.steps.tell(Step::Sent { send: id, receive: met });
        ledger.give(call, true, waited.then_some(reason));
        self.free(id, met);
    }

    fn free(&mut self, send: u32, receive: u32) {
        let done = self.sends.get(send).is_some_and(|s| s.state == State::Done)
            && self.receives.get(receive).is_some_and(|r| r.state == State::Done);
        if done {
            self.sends.remove(send);
            self.receives.remove(receive);
        }
    }
}
