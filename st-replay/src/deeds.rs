//! What a rank does with others, call by call: its ends of messages, and its parts in collective operations.
//!
//! Receives are told in the order in which they were posted, with what they got: one that waits for its completion
//! holds back those after it. *Cost:* O(words) time; memory for what is outstanding.

mod deed;
mod parts;
mod requests;

use std::collections::{HashMap, HashSet, VecDeque};

use st_model::calls::roles::{Epoch, Kind, Role, Start};
use st_model::calls::words::{Words, last_slot, slot};
use st_model::calls::{CallId, CallTable, Meaning, Row, Slot};
use st_model::project::Error;
use st_model::section::{Section, Sym, Tables};
use st_model::values::{ANY_TAG, NONE, NULL, PROC_NULL};

use crate::groups::{Groups, Place, Standing};
use crate::scaling::Scaling;
use crate::threads::Item;
pub(crate) use deed::PAIRS;
pub use deed::{Channel, Deed, End, Part};

/// What is known of a thread after the last call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Walked {
    /// Number of events.
    pub calls: u64,
    /// It came to `MPI_Finalize`.
    pub finalized: bool,
    /// It made calls of which it is not known what they did with others: ones that failed, or of unknown functions.
    pub unsure: bool,
}

/// What is not known of a receive yet.
const OPEN: u32 = u32::MAX;
/// What tags of messages in parts are apart from those of others.
const PARTITIONED: i64 = 1 << 32;

#[derive(Clone, Debug)]
enum Request {
    /// Nothing that others see.
    Nothing,
    /// None: its call is left out. Stays until another takes the number.
    LeftOut,
    Send(End),
    /// A receive, by its number, and where it was posted.
    Receive(u64, Sym),
    /// A message that was found, by the number of its receive, and the call that found it.
    Found(u64, u64),
    Part(Sym),
    Persistent(Box<Template>, Option<Box<Request>>),
}

#[derive(Clone, Debug)]
enum Template {
    Nothing,
    Send(End),
    Receive(End),
    Part(Part),
}

/// A posted receive that has not been told.
#[derive(Clone, Copy, Debug)]
struct Posted {
    end: End,
    /// Nothing more will be known.
    settled: bool,
    /// There is nothing to tell.
    void: bool,
}

/// What a symbol's calls are.
struct Plan {
    row: Option<&'static Row>,
    role: Role,
    /// Slot of a request that is made.
    makes: u8,
    /// Left out, as the replay does.
    left_out: bool,
    unsure: bool,
    base: CallId,
}

/// Whether a slot has an object that the call makes.
fn is_made(slot: &Slot) -> bool {
    slot.name.starts_with("new")
}

/// The objects that a call names, with their slots.
fn objects<'w>(row: &'w Row, words: &'w Words) -> impl Iterator<Item = (&'w Slot, Item)> {
    (0..).zip(&row.slots).flat_map(|(i, slot)| {
        let object = if let Meaning::Ref(object) = slot.meaning { Some(object) } else { None };
        let one = object.filter(|_| !slot.list).and(words.get(i));
        let list = if object.is_some() && slot.list { words.list(i) } else { &[] };
        let found = one.into_iter().chain(list.iter().copied()).filter(|index| *index >= 0);
        found.filter_map(move |index| Some((slot, (object?, index))))
    })
}

/// Walks one thread of a rank.
pub struct Walker<'a, F: FnMut(Deed)> {
    section: &'a Section,
    rank: u32,
    groups: &'a mut Groups,
    tell: F,
    plans: Vec<Plan>,
    standings: HashMap<Place, Option<Standing>>,
    sizes: HashMap<i64, i64>,
    requests: Vec<Option<Request>>,
    posted: VecDeque<Posted>,
    /// Number of receives told.
    told: u64,
    /// Persistent collective operations made, per communicator.
    made: HashMap<u32, u32>,
    in_parts: HashMap<(Channel, bool), i64>,
    /// Objects made by calls that are left out.
    unmade: HashSet<Item>,
    sym: Sym,
    call: u64,
}

impl<F: FnMut(Deed)> std::fmt::Debug for Walker<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walker").field("rank", &self.rank).field("call", &self.call).finish_non_exhaustive()
    }
}

impl<'a, F: FnMut(Deed)> Walker<'a, F> {
    /// A walker over a section's rank. Symbols for which `plays` is false are left out; deeds go to `tell`.
    pub fn new(
        section: &'a Section,
        rank: u32,
        groups: &'a mut Groups,
        plays: impl Fn(&st_model::section::Symbol) -> bool,
        tell: F,
    ) -> Self {
        let plan = |s: &st_model::section::Symbol| {
            let row = CallTable::builtin().get(s.call);
            let known = row.filter(|r| !r.properties.opaque);
            let makes = known.filter(|r| s.error == 0 && r.params.iter().any(|p| p.role == "newrequest"));
            let base = row.and_then(|r| CallTable::builtin().by_name(r.base()));
            Plan {
                row,
                role: known.map_or(Role::INTERNAL, Role::of),
                makes: makes.map_or(u8::MAX, |r| last_slot(r, "request")),
                left_out: s.error != 0 || !plays(s),
                unsure: match known {
                    None => plays(s),
                    Some(r) => s.error != 0 && !r.properties.local,
                },
                base: base.map_or(s.call, |r| r.id),
            }
        };
        Self {
            section,
            rank,
            groups,
            tell,
            plans: section.symbols.iter().map(plan).collect(),
            standings: HashMap::new(),
            sizes: HashMap::new(),
            requests: Vec::new(),
            posted: VecDeque::new(),
            told: 0,
            made: HashMap::new(),
            in_parts: HashMap::new(),
            unmade: HashSet::new(),
            sym: 0,
            call: 0,
        }
    }

    /// Walks a thread until its end, or until `until` calls have been seen and all that they posted is settled.
    ///
    /// # Errors
    ///
    /// If the section is malformed.
    pub fn walk(mut self, thread: usize, scaling: &Scaling, until: u64) -> Result<Walked, Error> {
        let mut walked = Walked::default();
        let Some(mut calls) = self.section.project(thread, self.rank) else { return Ok(walked) };
        let mut words = Words::default();
        loop {
            self.call = calls.index();
            if self.call >= until && self.posted.is_empty() {
                return Ok(walked);
            }
            let Some(sym) = calls.next_call(&mut words.words)? else { break };
            walked.calls += 1;
            self.sym = sym;
            let Some(plan) = self.plans.get(sym as usize) else { continue };
            walked.unsure |= plan.unsure;
            let (Some(row), role, left_out) = (plan.row, plan.role, plan.left_out) else { continue };
            let (makes, base) = (plan.makes, plan.base);
            if left_out {
                words.split(&row.slots);
                self.unmade.extend(objects(row, &words).filter(|(s, _)| is_made(s)).map(|(_, item)| item));
                if let Some(request) = words.get(makes) {
                    self.set(request, Some(Request::LeftOut));
                }
                continue;
            }
            walked.finalized |= role.kind == Kind::Finalize;
            scaling.apply(sym, &mut words.words);
            words.split(&row.slots);
            // The request of a message that was found may be the one that is made of it.
            if !self.unmade.is_empty() && self.uses_unmade(row, &words) {
                (self.tell)(Deed::Unmade(sym));
                continue;
            }
            if let Some(request) = words.get(makes).filter(|_| !matches!(role.kind, Kind::Matched { .. })) {
                self.set(request, Some(Request::Nothing));
            }
            self.see(row, &role, base, &words);
        }
        self.end(walked.finalized && !walked.unsure);
        Ok(walked)
    }

    /// Whether a call names an object that a call makes which is left out. Those that it makes itself are there from now on.
    fn uses_unmade(&mut self, row: &Row, words: &Words) -> bool {
        for (slot, item) in objects(row, words) {
            if is_made(slot) {
                self.unmade.remove(&item);
            } else if self.unmade.contains(&item) {
                return true;
            }
        }
        false
    }

    fn see(&mut self, row: &'static Row, role: &Role, base: CallId, words: &Words) {
        let at = self.standing(Place::Comm(words.get(role.comm).unwrap_or(0)));
        match role.kind {
            Kind::Send { start, .. } => {
                let end = at.and_then(|at| self.sending(words, role, at));
                let end = if role.partitioned { end.map(|e| self.in_parts(e, true)) } else { end };
                self.send(end, start, words.one(role.request));
            }
            Kind::Receive { start } => {
                let end = at.and_then(|at| self.receiving(words, role, at));
                let end = if role.partitioned { end.map(|e| self.in_parts(e, false)) } else { end };
                self.receive(end, start, words.one(role.request));
            }
            Kind::Both { start } => {
                let end = at.and_then(|at| self.sending(words, role, at));
                self.send(end, Start::Blocking, NULL);
                let end = at.and_then(|at| self.receiving(words, role, at));
                self.receive(end, start, words.one(role.request));
            }
            Kind::Match => self.found(role, words, at),
            Kind::Matched { start } => self.take(role, words, start),
            Kind::Start => self.start(role, words),
            Kind::Complete => self.complete(role, words),
            Kind::Free => self.free(words.one(role.request)),
            Kind::Collective { start, .. } => self.collective(row, role, base, words, start, at),
            Kind::Epoch(epoch) => {
                let win = self.standing(Place::Win(words.one(role.win)));
                if matches!(epoch, Epoch::Fence | Epoch::Free) {
                    self.together(win, base);
                }
            }
            Kind::Close => {
                let file = self.standing(Place::File(words.one(role.file)));
                self.together(file, base);
            }
            Kind::Init | Kind::Finalize | Kind::Creation | Kind::Topology => {
                self.together(at, base);
                if matches!(row.base(), "MPI_Intercomm_create") {
                    self.on_new(row, words, base);
                }
            }
            Kind::Internal => self.other(row, base, words),
        }
    }

    /// What the graph of messages takes no notice of, and yet concerns others.
    fn other(&mut self, row: &'static Row, base: CallId, words: &Words) {
        let comm = row.comm_slot().and_then(|s| u8::try_from(s).ok()).and_then(|s| words.get(s));
        let mut at = || comm.and_then(|c| self.standing(Place::Comm(c)));
        match row.base() {
            "MPI_Iprobe" if words.get(slot(row, "flag")) != Some(1) => {}
            "MPI_Probe" | "MPI_Iprobe" => {
                let at = at();
                self.probe(row, words, at);
            }
            "MPI_Comm_free"
            | "MPI_Comm_disconnect"
            | "MPI_Comm_spawn"
            | "MPI_Comm_spawn_multiple"
            | "MPI_Comm_accept"
            | "MPI_Comm_connect" => {
                let at = at();
                self.together(at, base);
            }
            "MPI_Comm_create_group" => self.on_new(row, words, base),
            _ => {}
        }
    }

    /// A part on the communicator that the call makes: not all members of the one it names take part.
    fn on_new(&mut self, row: &Row, words: &Words, base: CallId) {
        if let Some(new) = words.get(slot(row, "newcomm")).filter(|n| *n >= 0) {
            let at = self.standing(Place::Comm(new));
            self.together(at, base);
        }
    }

    fn together(&mut self, at: Option<Standing>, function: CallId) {
        if let Some(at) = at.filter(|at| at.members > 1) {
            let (sym, call) = (self.sym, self.call);
            (self.tell)(Deed::Part(Part {
                at,
                lane: 0,
                function,
                root: None,
                bytes: None,
                op: None,
                sym,
                call,
            }));
        }
    }

    fn standing(&mut self, place: Place) -> Option<Standing> {
        if let Some(known) = self.standings.get(&place) {
            return *known;
        }
        let at = self.groups.standing(self.section, self.rank, place);
        self.standings.insert(place, at);
        at
    }

    /// Bytes of so many elements; -1 if the type is not known.
    fn bytes(&mut self, count: i64, datatype: i64) -> i64 {
        let (section, rank) = (self.section, self.rank);
        let find = || Tables::find(&section.tables.types, datatype, rank).map_or(-1, |t| t.content.size);
        let size = *self.sizes.entry(datatype).or_insert_with(find);
        if size < 0 { -1 } else { count.saturating_mul(size) }
    }

    fn sending(&mut self, words: &Words, role: &Role, at: Standing) -> Option<End> {
        let to = u32::try_from(words.one(role.peer[0])).ok().filter(|p| *p < at.peers)?;
        let bytes = self.bytes(words.one(role.count[0]), words.one(role.types[0]));
        let channel =
            Channel { group: at.group, side: at.side, from: at.me, to, tag: words.one(role.tag[0]) };
        Some(End { channel, bytes, sym: self.sym, call: self.call })
    }

    fn receiving(&mut self, words: &Words, role: &Role, at: Standing) -> Option<End> {
        let named = |own: u8, resolved: u8| {
            words.get(resolved).filter(|v| *v != NONE).unwrap_or_else(|| words.one(own))
        };
        let source = named(role.peer[1], role.resolved[0]);
        let tag = named(role.tag[1], role.resolved[1]);
        if source == PROC_NULL {
            return None;
        }
        let from = u32::try_from(source).unwrap_or(OPEN);
        let tag = if tag == ANY_TAG { NONE } else { tag };
        let bytes = self.bytes(words.one(role.count[1]), words.one(role.types[1]));
        let channel = Channel { group: at.group, side: at.other(), from, to: at.me, tag };
        Some(End { channel, bytes, sym: self.sym, call: self.call })
    }

    /// The n-th such send in parts that was made for a peer and tag meets the n-th receive (MPI 4.0, section 4.2.1).
    fn in_parts(&mut self, end: End, sends: bool) -> End {
        let n = self.in_parts.entry((end.channel, sends)).or_default();
        *n += 1;
        let tag = end.channel.tag.saturating_add(*n * PARTITIONED);
        // Parts of another number on the other side make the same message.
        End { channel: Channel { tag, ..end.channel }, bytes: -1, ..end }
    }

    fn collective(
        &mut self,
        row: &'static Row,
        role: &Role,
        base: CallId,
        words: &Words,
        start: Start,
        at: Option<Standing>,
    ) {
        let request = words.one(role.new_request);
        let Some(at) = at.filter(|at| at.members > 1) else { return };
        let (sym, call) = (self.sym, self.call);
        let (section, rank) = (self.section, self.rank);
        let op = words.get(slot(row, "op")).and_then(|o| parts::operation(section, rank, o));
        let mut part = Part { at, lane: 0, function: base, root: None, bytes: None, op, sym, call };
        let mut pairs = Vec::new();
        let mut size = |n, t| self.bytes(n, t);
        parts::agree(row, role, words, &mut part, &mut pairs, &mut size);
        if start == Start::Persistent {
            let n = self.made.entry(at.group).or_default();
            *n += 1;
            let template = Template::Part(Part { lane: *n, ..part });
            self.set(request, Some(Request::Persistent(Box::new(template), None)));
        } else {
            for (end, receives) in pairs {
                (self.tell)(Deed::Pair(end, receives));
            }
            if start == Start::Request {
                self.set(request, Some(Request::Part(sym)));
            }
        }
        // Making a persistent operation is itself an operation of all.
        (self.tell)(Deed::Part(part));
    }
}
