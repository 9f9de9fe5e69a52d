//! One pass over the calls of a thread: its ends of messages, and its parts in collective operations.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::Issues;
use super::barriers::Barriers;
use super::collective::{Part, Standing, part};
use super::tags::PARTITIONED;
use super::topology::Topologies;
use st_model::calls::roles::{Kind, Role, Rule, Start};
use st_model::calls::words::{Words, slot};
use st_model::calls::{CallTable, Slot};
use st_model::project::Error;
use st_model::section::{Section, Tables};
use st_model::values::{CANCELLED, NONE};

/// One end of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct End {
    pub(super) at: Standing,
    pub(super) peer: u32,
    pub(super) tag: i64,
    /// The enter of a send, the exit of the completion of a receive; [`u32::MAX`] if there was none.
    pub(super) point: u32,
    /// The exit of the completion of a send, the enter of the call that posted a receive.
    pub(super) other: u32,
    /// A synchronous send.
    pub(super) sync: bool,
}

/// What a thread has to do with others.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// In the order of the calls.
    pub(super) sends: Vec<End>,
    /// In the order in which they were posted.
    pub(super) receives: Vec<End>,
    pub(super) parts: Vec<Part>,
    pub(super) issues: Issues,
}

/// A live request.
#[derive(Clone, Debug)]
enum Request {
    /// Something that concerns nobody else.
    Nothing,
    Send(usize),
    Receive(usize),
    Collective(usize),
    /// A persistent one, with what is running.
    Persistent(Box<Template>, Option<Box<Request>>),
}

#[derive(Clone, Debug)]
enum Template {
    Nothing,
    Send(End),
    Receive(End),
    Collective(Part, u32),
}

/// A receive of which source and tag are not known yet.
const OPEN: u32 = u32::MAX;
/// A tag that is not known yet.
pub(super) const NO_TAG: i64 = i64::MIN;

/// A window on one thread.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) at: Option<Standing>,
    /// The last fence has begun an epoch.
    pub(super) fenced: bool,
    /// Positions of the ranks to which it is exposed, and of those that the current epoch accesses.
    pub(super) exposed: Vec<u32>,
    pub(super) accessed: Vec<u32>,
}

/// The windows of one thread, by index.
type Windows = HashMap<i64, Window, FixedState>;

pub(super) struct Walker<'a> {
    pub(super) section: &'a Section,
    pub(super) rank: u32,
    roles: &'a [Role],
    pub(super) barriers: Barriers,
    /// Looks a communicator up: see [`super::Matcher`].
    standings: HashMap<i64, Option<Standing>, FixedState>,
    requests: Vec<Option<Request>>,
    topologies: Topologies,
    /// Persistent collective operations made, per communicator.
    made: HashMap<u32, u32, FixedState>,
    /// Messages in parts made, per communicator, peer, tag and direction.
    in_parts: HashMap<(u32, u32, i64, bool), i64, FixedState>,
    pub(super) windows: Windows,
    pub(super) enter: u32,
    pub(super) exit: u32,
    pub(super) out: Walked,
}

/// What a rank's standing is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// A communicator, by index.
    Comm(i64),
    /// A window, by index.
    Win(i64),
    /// A file, by index.
    File(i64),
}

impl<'a> Walker<'a> {
    pub(super) fn new(section: &'a Section, rank: u32, roles: &'a [Role], barriers: Barriers) -> Self {
        Self {
            section,
            rank,
            roles,
            barriers,
            standings: HashMap::default(),
            requests: Vec::new(),
            topologies: Topologies::default(),
            made: HashMap::default(),
            in_parts: HashMap::default(),
            windows: Windows::default(),
            enter: 0,
            exit: 0,
            out: Walked::default(),
        }
    }

    /// Walks a thread. `stand` finds a rank's standing in a communicator or window of its tables.
    pub(super) fn walk(
        mut self,
        thread: usize,
        mut stand: impl FnMut(Place) -> Option<Standing>,
    ) -> Result<Walked, Error> {
        let Some(mut calls) = self.section.project(thread, self.rank) else { return Ok(self.out) };
        let mut words = Words::default();
        loop {
            let index = calls.index();
            let Some(sym) = calls.next_call(&mut words.words)? else { break };
            let roles = self.roles;
            let Some(role) = roles.get(sym as usize) else { continue };
            if role.kind == Kind::Internal {
                continue;
            }
            let Ok(enter) = u32::try_from(index.saturating_mul(2)) else { break };
            if enter > u32::MAX - 4 {
                break;
            }
            (self.enter, self.exit) = (enter, enter + 1);
            let call = self.section.symbols[sym as usize].call;
            let slots = CallTable::builtin().slots(call);
            words.split(slots);
            if let Kind::Epoch(epoch) = role.kind {
                self.epoch(role, epoch, &words, |win| stand(Place::Win(win)));
                continue;
            }
            if role.kind == Kind::Close {
                if self.barriers.creation {
                    let at = stand(Place::File(words.one(role.file)));
                    self.barrier(at);
                }
                continue;
            }
            // World is the first communicator of every table.
            let comm = words.get(role.comm).unwrap_or(0);
            let at = *self.standings.entry(comm).or_insert_with(|| stand(Place::Comm(comm)));
            self.call(role, &words, slots, comm, at);
            if matches!(role.kind, Kind::Topology | Kind::Creation) || role.kind == IDUP {
                self.learn(call, &words, comm, &mut stand);
            }
        }
        let open = |e: &&End| e.point == OPEN;
        self.out.issues.incomplete += self.out.receives.iter().filter(open).count() as u64;
        self.out.issues.incomplete += self.out.parts.iter().filter(|p| p.exit == OPEN).count() as u64;
        Ok(self.out)
    }

    fn call(&mut self, role: &Role, words: &Words, slots: &[Slot], comm: i64, at: Option<Standing>) {
        match role.kind {
            Kind::Internal | Kind::Epoch(_) | Kind::Close => {}
            Kind::Send { sync, start } => {
                let end = at.and_then(|at| self.end(words, role, 0, at, sync));
                let end = if role.partitioned { end.map(|e| self.in_parts(e, true)) } else { end };
                self.send(end, start, words.one(role.request));
            }
            Kind::Receive { start } => {
                let end = at.and_then(|at| self.receive_end(words, role, at));
                let end = if role.partitioned { end.map(|e| self.in_parts(e, false)) } else { end };
                self.receive(end, start, words.one(role.request));
            }
            Kind::Both { start } => {
                let end = at.and_then(|at| self.end(words, role, 0, at, false));
                self.send(end, Start::Blocking, -1);
                let end = at.and_then(|at| self.receive_end(words, role, at));
                self.receive(end, start, words.one(role.request));
            }
            Kind::Match => self.matched(role, words, at),
            Kind::Matched { start } => self.take_matched(role, words, start),
            Kind::Start => self.start(role, words),
            Kind::Complete => self.complete(role, words, slots),
            Kind::Free => self.set(words.one(role.request), None),
            Kind::Collective { rule, start } => self.collective(role, words, rule, start, comm, at),
            Kind::Init if self.barriers.init => self.barrier(at),
            Kind::Finalize if self.barriers.finalize => self.barrier(at),
            Kind::Creation | Kind::Topology if self.barriers.creation => self.barrier(at),
            Kind::Init | Kind::Finalize | Kind::Creation | Kind::Topology => {}
        }
    }

    /// The end of a message that a call names; `None` without partner.
    fn end(&self, words: &Words, role: &Role, i: usize, at: Standing, sync: bool) -> Option<End> {
        let peer = u32::try_from(words.one(role.peer[i])).ok().filter(|p| *p < at.peers)?;
        let tag = words.one(role.tag[i]);
        Some(End { at, peer, tag, point: self.enter, other: OPEN, sync })
    }

    /// The end of a posted receive, open where it has wildcards.
    fn receive_end(&self, words: &Words, role: &Role, at: Standing) -> Option<End> {
        let (mut source, mut tag) = (words.one(role.peer[1]), words.one(role.tag[1]));
        let resolved = |i: usize| words.get(role.resolved[i]).filter(|v| *v != NONE);
        if let Some(s) = resolved(0) {
            source = s;
        }
        if let Some(t) = resolved(1) {
            tag = t;
        }
        if source == st_model::values::PROC_NULL {
            return None;
        }
        let peer = u32::try_from(source).unwrap_or(OPEN);
        let tag = if tag == st_model::values::ANY_TAG { NO_TAG } else { tag };
        Some(End { at, peer, tag, point: OPEN, other: self.enter, sync: false })
    }

    /// The end of a message in parts: the n-th such send that was made for a peer and tag meets the n-th receive, and
    /// nothing else (MPI 4.0, section 4.2.1).
    fn in_parts(&mut self, end: End, sends: bool) -> End {
        let n = self.in_parts.entry((end.at.group, end.peer, end.tag, sends)).or_default();
        *n += 1;
        End { tag: end.tag.saturating_add(*n * PARTITIONED), ..end }
    }

    fn send(&mut self, end: Option<End>, start: Start, request: i64) {
        match (start, end) {
            (Start::Blocking, Some(e)) => self.out.sends.push(End { other: self.exit, ..e }),
            (Start::Blocking, None) => {}
            (Start::Request, Some(e)) => {
                self.out.sends.push(e);
                self.set(request, Some(Request::Send(self.out.sends.len() - 1)));
            }
            (Start::Request, None) => self.set(request, Some(Request::Nothing)),
            (Start::Persistent, e) => self.set_template(request, e.map_or(Template::Nothing, Template::Send)),
        }
    }

    fn receive(&mut self, end: Option<End>, start: Start, request: i64) {
        match (start, end) {
            (Start::Blocking, Some(e)) => self.out.receives.push(End { point: self.exit, ..e }),
            (Start::Blocking, None) => {}
            (Start::Request, Some(e)) => {
                self.out.receives.push(e);
                self.set(request, Some(Request::Receive(self.out.receives.len() - 1)));
            }
            (Start::Request, None) => self.set(request, Some(Request::Nothing)),
            (Start::Persistent, e) => {
                self.set_template(request, e.map_or(Template::Nothing, Template::Receive));
            }
        }
    }

    fn set_template(&mut self, request: i64, template: Template) {
        self.set(request, Some(Request::Persistent(Box::new(template), None)));
    }

    fn matched(&mut self, role: &Role, words: &Words, at: Option<Standing>) {
        if words.get(role.flag) == Some(0) {
            return;
        }
        let end = at.and_then(|at| self.receive_end(words, role, at));
        self.receive(end, Start::Request, words.one(role.request));
    }

    fn take_matched(&mut self, role: &Role, words: &Words, start: Start) {
        let message = words.one(role.request);
        let taken = usize::try_from(message).ok().and_then(|i| self.requests.get_mut(i)?.take());
        match (start, taken) {
            (Start::Blocking, Some(Request::Receive(i))) => self.out.receives[i].point = self.exit,
            (Start::Blocking, _) => {}
            (_, taken) => self.set(words.one(role.new_request), taken.or(Some(Request::Nothing))),
        }
    }

    fn start(&mut self, role: &Role, words: &Words) {
        if role.requests == st_model::calls::words::ABSENT {
            self.start_one(words.one(role.request));
        }
        for &r in words.list(role.requests) {
            self.start_one(r);
        }
    }

    fn start_one(&mut self, request: i64) {
        let (enter, out) = (self.enter, &mut self.out);
        let slot = usize::try_from(request).ok().and_then(|i| self.requests.get_mut(i));
        let Some(Some(Request::Persistent(template, running))) = slot else { return };
        let started = match &mut **template {
            Template::Nothing => Request::Nothing,
            Template::Send(e) => {
                out.sends.push(End { point: enter, ..*e });
                Request::Send(out.sends.len() - 1)
            }
            Template::Receive(e) => {
                out.receives.push(End { other: enter, ..*e });
                Request::Receive(out.receives.len() - 1)
            }
            Template::Collective(part, starts) => {
                let persistent = part.persistent.map(|(made, _)| (made, *starts));
                *starts += 1;
                out.parts.push(Part { enter, persistent, ..part.clone() });
                Request::Collective(out.parts.len() - 1)
            }
        };
        *running = Some(Box::new(started));
    }

    fn complete(&mut self, role: &Role, words: &Words, _slots: &[Slot]) {
        let requests = words.list(role.requests);
        let [positions, sources, tags, bytes] = role.completed.map(|s| words.list(s));
        for (k, position) in positions.iter().enumerate() {
            let request = usize::try_from(*position).ok().and_then(|p| requests.get(p)).copied();
            let of = |list: &[i64]| list.get(k).copied().unwrap_or(NONE);
            self.complete_one(request.unwrap_or(-1), (of(sources), of(tags), of(bytes)));
        }
    }

    fn complete_one(&mut self, request: i64, (source, tag, bytes): (i64, i64, i64)) {
        let slot = usize::try_from(request).ok().and_then(|i| self.requests.get_mut(i));
        let done = match slot {
            Some(Some(Request::Persistent(_, running))) => running.take().map(|r| *r),
            Some(slot) => slot.take(),
            None => None,
        };
        match done {
            None => self.out.issues.requests += 1,
            Some(Request::Nothing | Request::Persistent(..)) => {}
            Some(Request::Send(i)) => {
                self.out.sends[i].other = self.exit;
                if bytes == CANCELLED {
                    self.out.sends[i].peer = OPEN;
                    self.out.issues.cancelled += 1;
                }
            }
            Some(Request::Collective(i)) => self.out.parts[i].exit = self.exit,
            Some(Request::Receive(i)) => {
                let end = &mut self.out.receives[i];
                end.point = self.exit;
                if bytes == CANCELLED {
                    end.peer = OPEN;
                    self.out.issues.cancelled += 1;
                    return;
                }
                if let Ok(peer) = u32::try_from(source) {
                    end.peer = peer;
                }
                if tag >= 0 {
                    end.tag = tag;
                }
            }
        }
    }

    fn set(&mut self, request: i64, to: Option<Request>) {
        let Ok(i) = usize::try_from(request) else { return };
        if i >= self.requests.len() {
            // Numbers are the lowest free ones, so they stay small in any trace a recorder made.
            if i > 1 << 24 {
                return;
            }
            self.requests.resize(i + 1, None);
        }
        self.requests[i] = to;
    }

    fn collective(
        &mut self,
        role: &Role,
        words: &Words,
        rule: Rule,
        start: Start,
        comm: i64,
        at: Option<Standing>,
    ) {
        let request = words.one(role.new_request);
        let Some(at) = at.filter(|at| at.members > 1) else {
            if start != Start::Blocking {
                self.set(request, Some(Request::Nothing));
            }
            return;
        };
        let (section, rank) = (self.section, self.rank);
        let bytes_of = |t| Tables::find(&section.tables.types, t, rank).map_or(1, |t| t.content.size);
        let part = part(role, rule, at, words, self.topologies.neighbours(comm), bytes_of);
        let part = part.unwrap_or_else(|| {
            // It still counts in the order of the communicator's operations.
            self.out.issues.neighbours += 1;
            internal(at, rule)
        });
        let part = Part { enter: self.enter, ..part };
        match start {
            Start::Blocking => self.out.parts.push(Part { exit: self.exit, ..part }),
            Start::Request => {
                self.out.parts.push(part);
                self.set(request, Some(Request::Collective(self.out.parts.len() - 1)));
            }
            Start::Persistent => {
                let n = self.made.entry(at.group).or_default();
                let part = Part { persistent: Some((*n, 0)), ..part };
                *n += 1;
                self.set_template(request, Template::Collective(part, 0));
            }
        }
    }

    pub(super) fn barrier(&mut self, at: Option<Standing>) {
        let Some(at) = at.filter(|at| at.members > 1) else { return };
        let part = internal(at, Rule::Barrier);
        self.out.parts.push(Part { sends: true, receives: true, enter: self.enter, exit: self.exit, ..part });
    }

    fn learn(
        &mut self,
        call: st_model::calls::CallId,
        words: &Words,
        old: i64,
        stand: &mut impl FnMut(Place) -> Option<Standing>,
    ) {
        let Some(row) = CallTable::builtin().get(call) else { return };
        let new = words.get(slot(row, "newcomm")).unwrap_or(-1);
        if let Some(at) = (new >= 0).then(|| stand(Place::Comm(new))).flatten() {
            self.topologies.learn(row, words, old, new, at.me.into());
        }
    }
}

const IDUP: Kind = Kind::Collective { rule: Rule::Barrier, start: Start::Request };

pub(super) fn internal(at: Standing, rule: Rule) -> Part {
    Part {
        group: at.group,
        side: at.side,
        me: at.me,
        rule,
        root: None,
        persistent: None,
        sends: false,
        receives: false,
        enter: 0,
        exit: u32::MAX,
        pairs: None,
    }
}
