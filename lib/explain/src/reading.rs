//! A call that is read: what it begins and completes with others.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_match::Channel;
use st_match::communication::{Communication, End, Listener};
use st_match::graph::{COMPLETED, Epochs, POSTED, Part, Topologies, Turn};
use st_match::standing::{Scope, Standing, standing};
use st_match::unfreed::Unfreed;
use st_match::volume::Volumes;
use st_model::calls::Kind;
use st_model::calls::roles::{Action, Rule, Start};
use st_model::calls::words::slot;
use st_model::event::{Completed, Event};
use st_model::num::{Exact as _, narrow, saturate};
use st_model::objects::Name;
use st_model::ranks::RankSeq;
use st_model::section::Section;

use crate::analysis::Waited;
use crate::messages::{By, Messages};
use crate::operations::Operations;
use crate::pauses::Pauses;
use crate::pending_calls::{CallNumber, Ledger, Visit};
use crate::timeline::Timeline;

/// All that threads share.
#[derive(Default)]
pub(crate) struct Shared {
    /// All ranks that are read, ascending: where a rank is, is its number.
    pub(crate) ranks: Vec<u32>,
    pub(crate) groups: Vec<[RankSeq; 2]>,
    pub(crate) names: HashMap<Name, u32, FixedState>,
    pub(crate) ledger: Ledger,
    pub(crate) messages: Messages,
    pub(crate) operations: Operations,
    /// By thread and window: posts that its epoch waits for.
    pub(crate) accessed: HashMap<(u32, u32), Vec<u32>, FixedState>,
    /// None unless causes are looked for.
    pub(crate) timelines: Vec<Timeline>,
    pub(crate) unfreed: Unfreed,
    pub(crate) pauses: Pauses,
    /// Waits one by one, if they are asked for.
    pub(crate) each: Option<Vec<Waited>>,
}

impl Shared {
    /// Number of a rank among those that are read.
    pub(crate) fn number(&self, rank: i64) -> Option<u32> {
        let rank = u32::try_from(rank).ok()?;
        // Most often all ranks are read.
        let at = if self.ranks.get(rank.to_usize()) == Some(&rank) {
            rank.to_usize()
        } else {
            self.ranks.binary_search(&rank).ok()?
        };
        Some(narrow(at))
    }
}

/// A call that is being read.
pub(crate) struct Reading<'s, 'a> {
    pub(crate) shared: &'s mut Shared,
    pub(crate) section: &'a Section,
    pub(crate) topologies: &'s mut Topologies,
    pub(crate) volumes: &'s mut Volumes<'a>,
    pub(crate) visit: Visit,
    pub(crate) call: Option<CallNumber>,
    /// The call's bytes are known from its own words.
    pub(crate) measured: bool,
    pub(crate) bytes: u64,
}

impl Reading<'_, '_> {
    /// The call's number, as one that completes something.
    fn number(&mut self) -> CallNumber {
        let Self { shared, visit, call, .. } = self;
        *call.get_or_insert_with(|| shared.ledger.open(*visit))
    }

    /// What completes a message that the call sends or receives, if it is the call itself (`done`).
    fn completed_by(&mut self, event: &Event<'_>, done: bool) -> By {
        match event.action() {
            _ if !done => By::Unknown,
            Action::Send { .. } | Action::Receive { .. } if self.visit.waits => {
                By::Itself { exit: self.visit.exit }
            }
            _ => By::Call(self.number()),
        }
    }

    /// A message of so many bytes is complete.
    fn carry(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(if self.measured { 0 } else { bytes });
    }

    fn barrier(&mut self, at: Option<Standing>) {
        let Some(at) = at.filter(|at| at.members > 1) else { return };
        let part = Part { sends: true, receives: true, ..Part::internal(at, Rule::Barrier) };
        self.take_part(part, at, true);
    }

    fn take_part(&mut self, part: Part, at: Standing, done: bool) -> usize {
        let call = done.then(|| self.number());
        let of = at.members.to_usize();
        self.shared.operations.join(&self.visit, part, of, call, &mut self.shared.ledger).to_usize()
    }
}

impl Listener for Reading<'_, '_> {
    type Part = (Part, Standing);

    fn standing(&mut self, event: &Event<'_>, scope: Scope) -> Option<Standing> {
        let Shared { groups, names, .. } = self.shared;
        standing(self.section, event.rank, scope, |met| {
            Some(*names.entry(met.name).or_insert_with(|| {
                groups.push(met.sides.map(Clone::clone));
                narrow(groups.len() - 1)
            }))
        })
    }

    fn bytes(&mut self, _: &Event<'_>, count: i64, datatype: i64) -> i64 {
        self.volumes.size_of(datatype).map_or(-1, |size| size.saturating_mul(count))
    }

    fn send(&mut self, event: &Event<'_>, end: &End, done: bool) -> usize {
        let by = self.completed_by(event, done);
        if done {
            self.carry(saturate(end.bytes));
        }
        let side = usize::from(end.at.other());
        let group = self.shared.groups.get(end.at.group.to_usize());
        let to = group.and_then(|g| g[side].get(end.peer.into())).and_then(|rank| self.shared.number(rank));
        let Shared { messages, ledger, .. } = self.shared;
        messages.send(&self.visit, end, to, by, ledger).to_usize()
    }

    fn sent(&mut self, _: &Event<'_>, number: usize, end: &End, cancelled: bool) {
        let call = self.number();
        self.carry(saturate(end.bytes));
        self.shared.messages.sent(narrow(number), call, cancelled, &mut self.shared.ledger);
    }

    fn post(&mut self, event: &Event<'_>, end: &End, done: bool) -> usize {
        let by = self.completed_by(event, done);
        let found_by = (event.action() == Action::Match).then(|| self.number());
        let Shared { messages, ledger, .. } = self.shared;
        messages.post(&self.visit, end, by, found_by, ledger).to_usize()
    }

    fn received(&mut self, _: &Event<'_>, number: usize, got: &Completed) {
        let call = self.number();
        self.carry(got.bytes.unwrap_or(0));
        self.shared.messages.received(narrow(number), call, got, &mut self.shared.ledger);
    }

    fn forget(&mut self, number: usize) {
        self.shared.messages.forget(narrow(number));
    }

    fn part(&mut self, event: &Event<'_>, at: Standing, rule: Rule) -> Self::Part {
        let part = Part::of(event, at, rule, self.topologies);
        (part.unwrap_or_else(|| Part::internal(at, rule)), at)
    }

    fn join(
        &mut self,
        _: &Event<'_>,
        (part, at): Self::Part,
        persistent: Option<(u32, u32)>,
        done: bool,
    ) -> usize {
        self.take_part(Part { persistent, ..part }, at, done)
    }

    fn leave(&mut self, _: &Event<'_>, number: usize) {
        let call = self.number();
        self.shared.operations.leave(narrow(number), call, &mut self.shared.ledger);
    }

    fn unknown(&mut self, _: &Event<'_>) {}
}

/// Whether what a call moves stands in its own words, and is moved in it.
pub(crate) fn says_its_bytes(action: Action) -> bool {
    match action {
        Action::Send { start, .. }
        | Action::Receive { start }
        | Action::Both { start }
        | Action::Matched { start } => start == Start::Blocking,
        Action::Complete | Action::Match | Action::Free => false,
        _ => true,
    }
}

/// Whether a test or probe has found nothing.
pub(crate) fn finds_nothing(event: &Event<'_>) -> bool {
    match event.words().get(event.role.flag) {
        Some(flag) => flag == 0,
        // Of requests that are over it finds what there is to find: nothing.
        None => event.completed().next().is_none() && event.requests().iter().any(|request| *request >= 0),
    }
}

/// What is neither message nor collective operation, and yet synchronises.
pub(crate) fn synchronise(
    event: &Event<'_>,
    communication: &mut Communication<(Part, Standing)>,
    epochs: &mut Epochs,
    reading: &mut Reading<'_, '_>,
) {
    let scope = match event.action() {
        Action::Close => Scope::File(event.words().one(event.role.file)),
        Action::Creation | Action::Topology => Scope::Comm(event.comm().unwrap_or(0)),
        Action::Collective { rule: Rule::Barrier, start: Start::Request } => {
            return learn(event, communication, reading);
        }
        Action::Internal if event.row.is_some_and(|row| row.kind == Kind::Probe) => {
            let at = communication.standing(event, Scope::Comm(event.comm().unwrap_or(0)), reading);
            return reading.probe(event, at);
        }
        Action::Epoch(epoch) => {
            let stand = |win| communication.standing(event, Scope::Win(win), reading);
            if let Some((at, turn)) = epochs.turn(event, epoch, stand) {
                reading.turn(event, at, &turn);
            }
            return;
        }
        _ => return,
    };
    let at = communication.standing(event, scope, reading);
    reading.barrier(at);
    learn(event, communication, reading);
}

impl Reading<'_, '_> {
    /// Begins or ends an epoch.
    fn turn(&mut self, event: &Event<'_>, at: Standing, turn: &Turn) {
        match turn {
            Turn::Fence(ends) if at.members > 1 => {
                let part = Part { sends: *ends, receives: *ends, ..Part::internal(at, Rule::Barrier) };
                self.take_part(part, at, true);
            }
            Turn::Fence(_) => {}
            Turn::Free => self.barrier(Some(at)),
            Turn::Post(origins) => self.tell(event, at, origins, POSTED),
            Turn::Start(targets) => {
                let call = self.number();
                let Shared { messages, ledger, accessed, .. } = self.shared;
                let post = |end| messages.post(&self.visit, &end, By::Unknown, Some(call), ledger);
                let posts = ends(event, at, targets, POSTED).map(post).collect();
                accessed.insert((self.visit.thread, at.group), posts);
            }
            Turn::Complete(targets) => {
                // The library waits for posts where the epoch begins, or here.
                let call = self.number();
                let Shared { messages, ledger, accessed, .. } = self.shared;
                let posts = accessed.remove(&(self.visit.thread, at.group)).unwrap_or_default();
                posts.into_iter().for_each(|id| messages.received(id, call, &Completed::default(), ledger));
                self.tell(event, at, targets, COMPLETED);
            }
            Turn::Wait(origins) => self.hear(event, at, origins, COMPLETED),
        }
    }

    /// A probe that has found a message, which its thread will receive.
    fn probe(&mut self, event: &Event<'_>, at: Option<Standing>) {
        if let (Some(at), Some(from), Some(tag), true) =
            (at, event.source(), event.received_tag(), self.visit.waits)
        {
            let call = self.number();
            let channel = Channel { group: at.group, side: at.other(), from, to: at.me, tag };
            let Shared { messages, ledger, .. } = self.shared;
            messages.probe(&self.visit, channel, call, ledger);
        }
    }

    fn tell(&mut self, event: &Event<'_>, at: Standing, peers: &[u32], tag: i64) {
        let call = self.number();
        let Shared { messages, ledger, .. } = self.shared;
        for end in ends(event, at, peers, tag) {
            messages.send(&self.visit, &end, None, By::Call(call), ledger);
        }
    }

    fn hear(&mut self, event: &Event<'_>, at: Standing, peers: &[u32], tag: i64) {
        let call = self.number();
        let Shared { messages, ledger, .. } = self.shared;
        for end in ends(event, at, peers, tag) {
            messages.post(&self.visit, &end, By::Call(call), None, ledger);
        }
    }
}

/// Ends of what is told of epochs.
fn ends<'a>(
    event: &'a Event<'_>,
    at: Standing,
    peers: &'a [u32],
    tag: i64,
) -> impl Iterator<Item = End> + 'a {
    let end = move |peer: &u32| End {
        at,
        peer: *peer,
        tag,
        sync: false,
        bytes: 0,
        sym: event.sym,
        call: event.index,
        made: event.index,
    };
    peers.iter().map(end)
}

/// A communicator may have been made.
fn learn(
    event: &Event<'_>,
    communication: &mut Communication<(Part, Standing)>,
    reading: &mut Reading<'_, '_>,
) {
    let made = event.row.and_then(|row| event.words().get(slot(row, "newcomm"))).filter(|new| *new >= 0);
    let at = made.and_then(|new| communication.standing(event, Scope::Comm(new), reading));
    reading.topologies.learn_of(event, |_| at);
}
