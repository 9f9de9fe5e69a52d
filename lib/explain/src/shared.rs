//! What threads do with each other when their turns come.

use std::collections::HashMap;
use std::hint::black_box;

use foldhash::fast::FixedState;
use st_match::unfreed::Unfreed;
use st_model::num::{Exact as _, narrow, saturate};

use crate::ahead::{Ahead, Coming, Completes, Deed, completed};
use crate::analysis::Waited;
use crate::messages::{By, Messages, Suspect};
use crate::operations::Operations;
use crate::pending_calls::{CallNumber, Finished, Ledger, Polled, Visit};
use crate::polls::Poll;
use crate::predict::{Call, Does, RunStep};
use crate::reading::Groups;
use crate::timeline::Timeline;
use crate::waits::{At, Sum, Wait, WaitKind, Waits};

/// All that threads share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) groups: Groups,
    pub(crate) ledger: Ledger,
    pub(crate) messages: Messages,
    pub(crate) operations: Operations,
    /// By thread and window: posts that its epoch waits for.
    pub(crate) accessed: HashMap<(u32, u32), Vec<u32>, FixedState>,
    /// None unless causes are looked for.
    pub(crate) timelines: Vec<Timeline>,
    pub(crate) unfreed: Unfreed,
    /// Waits one by one, if they are asked for.
    pub(crate) each: Option<Vec<Waited>>,
}

/// Deeds of a call that are looked at before its turn.
const LOOKS: usize = 16;

/// A call whose turn it is.
struct Acting<'s> {
    shared: &'s mut Shared,
    visit: Visit,
    call: Option<CallNumber>,
}

impl Acting<'_> {
    /// The call's number, as one that completes something.
    fn number(&mut self) -> CallNumber {
        let Self { shared, visit, call } = self;
        *call.get_or_insert_with(|| shared.ledger.open(*visit))
    }

    fn by(&mut self, completes: Completes) -> By {
        match completes {
            Completes::Later => By::Unknown,
            Completes::Itself => By::Itself { exit: self.visit.exit },
            Completes::Call => By::Call(self.number()),
        }
    }

    fn act(&mut self, deed: Deed, ahead: &mut Ahead) {
        match deed {
            Deed::Send { number, what, by } => {
                let by = self.by(by);
                let Shared { messages, ledger, .. } = &mut *self.shared;
                ahead.name(number, messages.send(&self.visit, &what, by, ledger));
            }
            Deed::Sent { number, cancelled } => {
                let call = self.number();
                let Shared { messages, ledger, .. } = &mut *self.shared;
                messages.sent(ahead.known_as(number), call, cancelled, ledger);
            }
            Deed::Post { number, channel, by, finds } => {
                let by = self.by(by);
                let found_by = finds.then(|| self.number());
                let Shared { messages, ledger, .. } = &mut *self.shared;
                ahead.name(number, messages.post(&self.visit, channel, by, found_by, ledger));
            }
            Deed::Take { number } => {
                let Shared { messages, ledger, .. } = &mut *self.shared;
                messages.take(&self.visit, ahead.known_as(number), ledger);
            }
            Deed::Received { number, source, tag, cancelled } => {
                let (call, got) = (self.number(), completed(source, tag, cancelled));
                let Shared { messages, ledger, .. } = &mut *self.shared;
                messages.received(ahead.known_as(number), call, &got, ledger);
            }
            Deed::Forget { number } => {
                let Shared { messages, ledger, .. } = &mut *self.shared;
                messages.forget(ahead.known_as(number), ledger);
            }
            Deed::ForgetSend { number } => {
                let Shared { messages, ledger, .. } = &mut *self.shared;
                messages.forget_send(ahead.known_as(number), ledger);
            }
            Deed::Join { number, part, members, done } => {
                let call = done.then(|| self.number());
                let Shared { operations, ledger, .. } = &mut *self.shared;
                let joined = operations.join(&self.visit, *part, members.to_usize(), call, ledger);
                ahead.name(number, joined);
            }
            Deed::Leave { number } => {
                let call = self.number();
                let Shared { operations, ledger, .. } = &mut *self.shared;
                operations.leave(ahead.known_as(number), call, ledger);
            }
            Deed::Object(object) => {
                let rank = self.shared.ledger.rank(self.visit.thread);
                self.shared.unfreed.enter(rank, object, self.visit.place);
            }
            Deed::Pause => {
                let rank = self.shared.ledger.rank(self.visit.thread);
                self.shared.unfreed.pause(rank);
            }
            Deed::Open
            | Deed::Probe(_)
            | Deed::Access { .. }
            | Deed::AwaitPost { .. }
            | Deed::EndAccess { .. } => {
                self.look(deed);
            }
        }
    }

    /// What a call does to find others there.
    fn look(&mut self, deed: Deed) {
        let call = self.number();
        let Self { shared, visit, .. } = self;
        let Shared { messages, ledger, accessed, .. } = &mut **shared;
        match deed {
            Deed::Probe(channel) => messages.probe(visit, channel, call, ledger),
            Deed::Access { group } => _ = accessed.insert((visit.thread, group), Vec::new()),
            Deed::AwaitPost { group, channel } => {
                let post = messages.post(visit, channel, By::Unknown, Some(call), ledger);
                accessed.entry((visit.thread, group)).or_default().push(post);
            }
            Deed::EndAccess { group } => {
                let posts = accessed.remove(&(visit.thread, group)).unwrap_or_default();
                let got = completed(None, None, false);
                posts.into_iter().for_each(|id| messages.received(id, call, &got, ledger));
            }
            _ => {}
        }
    }
}

impl Shared {
    /// Looks at what turns will need, and does nothing with it. Where threads are many, little of that is in the caches of the
    /// processor; what does not depend on each other it fetches at the same time, and turn by turn it would wait for each.
    pub(crate) fn look(&self, ahead: &[Ahead], turns: &[u32]) {
        let of = |thread: &u32| &ahead[thread.to_usize()];
        black_box(turns.iter().map(|thread| of(thread).look()).sum::<usize>());
        black_box(turns.iter().map(|thread| of(thread).next_deeds(LOOKS).count()).sum::<usize>());
        for thread in turns {
            black_box(self.ledger.tracks[thread.to_usize()].told);
            let ahead = of(thread);
            black_box(ahead.next_deeds(LOOKS).map(|deed| self.messages.look(deed, ahead)).sum::<usize>());
        }
    }

    /// It is the turn of a thread's next call.
    pub(crate) fn take_turn(&mut self, call: &Coming, ahead: &mut Ahead) {
        let visit = call.visit;
        let Visit { thread, place, enter, exit, .. } = visit;
        let steps = &mut self.ledger.steps;
        if let Some(at) = call.begins {
            steps.tell(RunStep::Begin(thread, at));
        }
        if let Some(does) = call.does {
            steps.tell(RunStep::Call(Call { thread, place, enter, exit, does }));
        }
        if call.does == Some(Does::Poll) {
            let ns = saturate(exit.saturating_sub(enter));
            self.ledger.tracks[thread.to_usize()].polls.add(Poll { place, enter, exit, ns });
        }
        let mut acting = Acting { shared: self, visit, call: None };
        for _ in 0..call.deeds {
            ahead.next_deed().into_iter().for_each(|deed| acting.act(deed, ahead));
        }
        if let Some(call) = acting.call {
            self.ledger.give(call, false, None);
        }
    }

    /// Enters for whom threads have tested.
    fn blame_for_tests(&mut self, waits: &mut Waits) {
        while let Some(Polled { thread, polls, reason }) = self.ledger.polled.pop() {
            let culprit = At { rank: self.ledger.rank(reason.cause.thread), place: reason.cause.place };
            let known = polls.iter().map(|poll| (poll.place, poll.until(reason.until())));
            for (place, ns) in known.filter(|(_, ns)| *ns > 0 && culprit.rank != self.ledger.rank(thread)) {
                let sum = waits.polls.entry((place, culprit)).or_default();
                sum.add(Sum { count: 1, ns, longest: ns });
            }
        }
    }

    /// Enters what has become known.
    pub(crate) fn settle(&mut self, waits: &mut Waits) {
        while let Some(number) = self.ledger.received.pop() {
            if let Some((rank, sent)) = self.ledger.sender(number) {
                let older = self.messages.older(rank, sent);
                older.iter().for_each(|older| self.messages.watch(older, number));
                self.ledger.set_older(number, older);
            }
        }
        self.blame_for_tests(waits);
        let mut finished = std::mem::take(&mut self.ledger.finished);
        for Finished { visit, reason, older } in finished.drain(..) {
            let at = |thread: u32, place| At { rank: self.ledger.rank(thread), place };
            let until = reason.until().min(visit.exit);
            waits.violations += u64::from(reason.until() > visit.exit);
            let ns = saturate(until.saturating_sub(visit.enter));
            let (victim, culprit) =
                (at(visit.thread, visit.place), at(reason.cause.thread, reason.cause.place));
            let wait = Wait { kind: reason.kind, victim, culprit, ns };
            if ns == 0 {
                continue;
            }
            waits.add(&wait);
            let number = self.each.as_ref().map(|each| narrow(each.len()));
            let waited = Waited {
                rank: victim.rank,
                enter: visit.enter,
                ns,
                thread: visit.thread,
                for_rank: culprit.rank,
                kind: reason.kind,
                call: visit.call,
                place: victim.place,
                for_place: culprit.place,
            };
            self.each.iter_mut().for_each(|each| each.push(waited));
            self.ledger.tracks[visit.thread as usize].waited.add(Sum { count: 1, ns, longest: ns });
            if let Some(line) = self.timelines.get_mut(visit.thread as usize) {
                line.wait(visit.enter, until, reason.cause.thread, reason.cause.place);
            }
            if reason.kind == WaitKind::LateSender
                && visit.orders
                && let Some(older) = older.unwrap_or_else(|| {
                    let rank = self.ledger.tracks[visit.thread as usize].place;
                    self.messages.older(rank, reason.cause.at)
                })
                // Of a wait in which it hardly was there it is not the cause.
                && until.saturating_sub(older.cause.at) >= until.saturating_sub(visit.enter) / 2
            {
                let told = self.ledger.tracks[visit.thread as usize].told;
                let (thread, call) = (visit.thread, visit.call);
                let suspect = Suspect { wait: &wait, cause: &reason.cause, thread, call, number };
                self.messages.suspect(&older, suspect, told);
            }
        }
        // The lists keep their room: this is done after each call.
        self.ledger.finished = finished;
        let wrong = |same: bool| if same { WaitKind::WrongOrderSame } else { WaitKind::WrongOrderOther };
        for (wait, same, sum) in self.messages.proven.drain(..) {
            waits.rename(&wait, wrong(same), sum);
        }
        for (number, same) in self.messages.proven_each.drain(..) {
            let waited = self.each.as_mut().and_then(|each| each.get_mut(number as usize));
            waited.into_iter().for_each(|waited| waited.kind = wrong(same));
        }
    }
}
