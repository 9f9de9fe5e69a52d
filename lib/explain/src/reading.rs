//! A call that is read: what it begins and completes with others, put down until its turn comes.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;
use st_match::Channel;
use st_match::communication::{Communication, End, Listener};
use st_match::graph::{COMPLETED, Epochs, POSTED, Part, Topologies, Turn};
use st_match::standing::{Scope, Standing, standing};
use st_match::volume::Volumes;
use st_model::calls::Kind;
use st_model::calls::names;
use st_model::calls::roles::{Action, Rule, Start};
use st_model::calls::words::slot;
use st_model::event::{Completed, Event};
use st_model::num::{Exact as _, narrow, saturate};
use st_model::objects::Name;
use st_model::ranks::RankSeq;
use st_model::section::Section;

use crate::ahead::{Ahead, Completes, Deed, Outgoing, UNNAMED};
use crate::sizes::may_wait;

/// What is known of all ranks.
#[derive(Default)]
pub(crate) struct Groups {
    /// All ranks that are read, ascending: where a rank is, is its number.
    ranks: Vec<u32>,
    met: Vec<[RankSeq; 2]>,
    names: HashMap<Name, u32, FixedState>,
}

impl Groups {
    pub(crate) fn of(sections: &[Section]) -> Self {
        let mut ranks: Vec<u32> = sections.iter().flat_map(|s| s.ranks.iter()).collect();
        ranks.sort_unstable();
        ranks.dedup();
        Self { ranks, ..Self::default() }
    }

    /// How many ranks are read.
    pub(crate) fn ranks(&self) -> usize {
        self.ranks.len()
    }

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

    /// Number of the rank at a position in a side of a group.
    fn member(&self, group: u32, side: u8, position: u32) -> Option<u32> {
        let sides = self.met.get(group.to_usize())?;
        self.number(sides[usize::from(side)].get(position.into())?)
    }
}

/// A call that is being read: what it does is put down until its turn comes.
pub(crate) struct Reading<'s, 'a> {
    pub(crate) groups: &'s mut Groups,
    pub(crate) section: &'a Section,
    pub(crate) topologies: &'s mut Topologies,
    pub(crate) volumes: &'s mut Volumes<'a>,
    pub(crate) ahead: &'s mut Ahead,
    /// It waits: it is no test.
    pub(crate) waits: bool,
    /// When it is entered and left.
    pub(crate) times: [i64; 2],
    /// The call's bytes are known from its own words.
    pub(crate) measured: bool,
    pub(crate) bytes: u64,
    /// Numbers of messages that the thread has put into MPI's buffer.
    pub(crate) buffered: &'s mut VecDeque<usize>,
}

/// Messages in the buffer that are followed: the last ones. Most have long been received.
const BUFFERED: usize = 1024;

impl Reading<'_, '_> {
    /// What completes a message that the call sends or receives, if it is the call itself (`done`).
    fn completed_by(&self, event: &Event<'_>, end: &End, done: bool) -> Completes {
        let [enter, exit] = self.times;
        match event.action() {
            _ if !done => Completes::Later,
            // How long it waits may depend on the call that completes the other end.
            Action::Send { .. } | Action::Receive { .. }
                if self.waits && !may_wait(end.bytes, enter, exit) =>
            {
                Completes::Itself
            }
            _ => Completes::Call,
        }
    }

    /// A number for what the call begins, unless it also completes it.
    fn number(&mut self, done: bool) -> u32 {
        if done { UNNAMED } else { self.ahead.take_number() }
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

    /// A call that all who have opened a file make: by what it must do it waits for nobody, and it is seen whether it has.
    fn meet_at_file(&mut self, at: Option<Standing>) {
        if let Some(at) = at.filter(|at| at.members > 1) {
            self.take_part(Part::internal(at, Rule::Barrier), at, true);
        }
    }

    fn take_part(&mut self, part: Part, at: Standing, done: bool) -> usize {
        let number = self.number(done);
        self.ahead.deed(Deed::Join { number, part: Box::new(part), members: at.members, done });
        number.to_usize()
    }
}

impl Listener for Reading<'_, '_> {
    type Part = (Part, Standing);

    fn standing(&mut self, event: &Event<'_>, scope: Scope) -> Option<Standing> {
        let Groups { met, names, .. } = self.groups;
        standing(self.section, event.rank, scope, |group| {
            Some(*names.entry(group.name).or_insert_with(|| {
                met.push(group.sides.map(Clone::clone));
                narrow(met.len() - 1)
            }))
        })
    }

    fn bytes(&mut self, _: &Event<'_>, count: i64, datatype: i64) -> i64 {
        self.volumes.size_of(datatype).map_or(-1, |size| size.saturating_mul(count))
    }

    fn send(&mut self, event: &Event<'_>, end: &End, done: bool) -> usize {
        if done {
            self.carry(saturate(end.bytes));
        }
        // The call that sends it does not wait for its receive: the one that gives back the buffer does.
        let buffered = done && event.row.is_some_and(|row| row.base() == names::MPI_Bsend);
        let done = done && !buffered;
        let (number, by) = (self.number(done), self.completed_by(event, end, done));
        let to = self.groups.member(end.at.group, end.at.other(), end.peer);
        self.ahead.deed(Deed::Send { number, what: Outgoing::of(end, to), by });
        if buffered {
            if self.buffered.len() >= BUFFERED
                && let Some(first) = self.buffered.pop_front()
            {
                self.forget_send(first);
            }
            self.buffered.push_back(number.to_usize());
        }
        number.to_usize()
    }

    fn sent(&mut self, _: &Event<'_>, number: usize, end: &End, cancelled: bool) {
        self.carry(saturate(end.bytes));
        let number = self.ahead.give_number(number);
        self.ahead.deed(Deed::Sent { number, cancelled });
    }

    fn post(&mut self, event: &Event<'_>, end: &End, done: bool) -> usize {
        let (number, by) = (self.number(done), self.completed_by(event, end, done));
        let finds = event.action() == Action::Match;
        self.ahead.deed(Deed::Post { number, channel: end.received_through(), by, finds });
        number.to_usize()
    }

    fn take(&mut self, _: &Event<'_>, number: usize, _: i64) {
        self.ahead.deed(Deed::Take { number: narrow(number) });
    }

    fn received(&mut self, _: &Event<'_>, number: usize, got: &Completed) {
        self.carry(got.bytes.unwrap_or(0));
        let number = self.ahead.give_number(number);
        let Completed { source, tag, cancelled, .. } = *got;
        self.ahead.deed(Deed::Received { number, source, tag, cancelled });
    }

    fn forget(&mut self, number: usize) {
        let number = self.ahead.give_number(number);
        self.ahead.deed(Deed::Forget { number });
    }

    fn forget_send(&mut self, number: usize) {
        let number = self.ahead.give_number(number);
        self.ahead.deed(Deed::ForgetSend { number });
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
        let number = self.ahead.give_number(number);
        self.ahead.deed(Deed::Leave { number });
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

/// Whether all ranks that have opened a file make a call together, and may wait for each other in it: what is begun by one call and ended
/// by another is left out.
fn is_collective_on_file(event: &Event<'_>) -> bool {
    let blocks = |name: &str| {
        let together = [
            names::MPI_File_set_view,
            names::MPI_File_set_size,
            names::MPI_File_preallocate,
            names::MPI_File_sync,
        ];
        let moves = name.starts_with(names::MPI_File_read) || name.starts_with(names::MPI_File_write);
        together.contains(&name) || (moves && (name.ends_with("_all") || name.ends_with("_ordered")))
    };
    event.row.is_some_and(|row| row.properties.files && blocks(row.base()))
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
        Action::Internal if is_collective_on_file(event) => {
            let file = event.row.and_then(|row| event.words().get(slot(row, "file")));
            let at = file.and_then(|file| communication.standing(event, Scope::File(file), reading));
            return reading.meet_at_file(at);
        }
        Action::Internal if event.row.is_some_and(|row| row.kind == Kind::Probe) => {
            if finds_nothing(event) {
                return;
            }
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
    /// A call that waits until all messages in the buffer have left it.
    pub(crate) fn detach(&mut self, event: &Event<'_>) {
        if event.row.is_some_and(|row| row.base() == names::MPI_Buffer_detach) && !self.buffered.is_empty() {
            self.ahead.deed(Deed::Open);
            while let Some(number) = self.buffered.pop_front() {
                let number = self.ahead.give_number(number);
                self.ahead.deed(Deed::Sent { number, cancelled: false });
            }
        }
    }

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
                self.ahead.deed(Deed::Access { group: at.group });
                for end in ends(event, at, targets, POSTED) {
                    let (group, channel) = (at.group, end.received_through());
                    self.ahead.deed(Deed::AwaitPost { group, channel });
                }
            }
            Turn::Complete(targets) => {
                // The library waits for posts where the epoch begins, or here.
                self.ahead.deed(Deed::EndAccess { group: at.group });
                self.tell(event, at, targets, COMPLETED);
            }
            Turn::Wait(origins) => self.hear(event, at, origins, COMPLETED),
        }
    }

    /// A probe that has found a message, which its thread will receive.
    fn probe(&mut self, event: &Event<'_>, at: Option<Standing>) {
        if let (Some(at), Some(from), Some(tag)) = (at, event.source(), event.received_tag()) {
            let channel = Channel { group: at.group, side: at.other(), from, to: at.me, tag };
            self.ahead.deed(Deed::Probe(channel));
        }
    }

    fn tell(&mut self, event: &Event<'_>, at: Standing, peers: &[u32], tag: i64) {
        self.ahead.deed(Deed::Open);
        for end in ends(event, at, peers, tag) {
            let what = Outgoing::of(&end, None);
            self.ahead.deed(Deed::Send { number: UNNAMED, what, by: Completes::Call });
        }
    }

    fn hear(&mut self, event: &Event<'_>, at: Standing, peers: &[u32], tag: i64) {
        self.ahead.deed(Deed::Open);
        for end in ends(event, at, peers, tag) {
            let (number, by, channel) = (UNNAMED, Completes::Call, end.received_through());
            self.ahead.deed(Deed::Post { number, channel, by, finds: false });
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
