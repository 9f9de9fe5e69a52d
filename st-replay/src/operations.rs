//! What a rank does with others, call by call: its ends of messages, and its parts in collective operations.
//!
//! Receives are told in the order in which they were posted, with what they got: one that waits for its completion
//! holds back those after it. *Cost:* O(words) time; memory for what is outstanding.

mod agreed;
mod operation;

use std::collections::{HashMap, HashSet, VecDeque};

use st_match::communication::{self, Communication, Listener, UNKNOWN_TAG};
use st_match::standing::{Scope, Standing};
use st_match::{Channel, UNKNOWN};
use st_model::calls::roles::{Action, Epoch, Rule};
use st_model::calls::words::{Words, slot};
use st_model::calls::{CallId, CallTable, Kind, Meaning, Object, Row, Slot};
use st_model::event::{Completed, Event};
use st_model::objects::{Comm, Named};
use st_model::project::Error;
use st_model::ranklist::RankList;
use st_model::section::{Section, Sym, Symbol, Tables};
use st_model::values::ANY_TAG;

use crate::groups::Groups;
use crate::scaling::Scaling;
use crate::supported::{Where, is_of_tools, is_suspect, refusal};
use crate::threads::Item;
pub use operation::{End, Operation, OperationPart};

/// What is known of a thread after the last call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Walked {
    /// Number of calls, of a series of polls each.
    pub calls: u64,
    /// It came to `MPI_Finalize`.
    pub finalized: bool,
    /// It made calls of which it is not known what they did with others: ones that failed, or of unknown functions.
    pub unsure: bool,
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
    /// Left out, as the replay does.
    left_out: bool,
    /// Some may be, by their words.
    suspect: bool,
    unsure: bool,
    base: CallId,
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
pub struct Walker<'a, F: FnMut(Operation)> {
    section: &'a Section,
    rank: u32,
    plans: Vec<Plan>,
    /// Objects made by calls that are left out, or by none.
    unmade: HashSet<Item>,
    teller: Teller<'a, F>,
}

/// Puts into operations what it hears.
struct Teller<'a, F: FnMut(Operation)> {
    groups: &'a mut Groups,
    tell: F,
    sizes: HashMap<i64, i64>,
    posted: VecDeque<Posted>,
    /// Number of receives told.
    told: usize,
    /// The function of the call at hand, as the one that it is like.
    base: CallId,
}

impl<F: FnMut(Operation)> std::fmt::Debug for Walker<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walker").field("rank", &self.rank).finish_non_exhaustive()
    }
}

impl<'a, F: FnMut(Operation)> Walker<'a, F> {
    /// A walker over a section's rank; operations go to `tell`. With a place of which it is known what cannot be replayed there,
    /// that is left out.
    pub fn new(
        section: &'a Section,
        rank: u32,
        groups: &'a mut Groups,
        here: Option<&Where>,
        tell: F,
    ) -> Self {
        let plan = |s: &Symbol| {
            let row = CallTable::builtin().get(s.call);
            let is_known = !is_of_tools(s, &section.tables);
            let plays = is_known && here.is_none_or(|here| !here.refuses(s));
            Plan {
                left_out: s.error != 0 || !plays,
                // What scaling makes wide is any.
                suspect: here.is_some() && is_suspect(s, true),
                unsure: match row.filter(|r| !r.properties.opaque) {
                    None => plays,
                    Some(r) => s.error != 0 && !r.properties.local,
                },
                base: row.map_or(s.call, |r| r.base_id),
            }
        };
        let (sizes, posted) = (HashMap::new(), VecDeque::new());
        let teller = Teller { groups, tell, sizes, posted, told: 0, base: CallId(0) };
        let plans = section.symbols.iter().map(plan).collect();
        Self { section, rank, plans, unmade: HashSet::new(), teller }
    }

    /// Walks a thread until its end, or until `until` calls have been seen and all that they posted is settled.
    ///
    /// # Errors
    ///
    /// If the section is malformed.
    pub fn walk(mut self, thread: usize, scaling: &Scaling, until: u64) -> Result<Walked, Error> {
        let mut walked = Walked::default();
        let Some(mut events) = self.section.events(thread, self.rank) else { return Ok(walked) };
        // What one thread uses another may have made.
        if thread == 0 {
            self.unmade.extend(strays(self.section, self.rank));
        }
        let mut communication = Communication::default();
        loop {
            if events.index() >= until && self.teller.posted.is_empty() {
                return Ok(walked);
            }
            let left_out = |sym: Sym| self.plans.get(sym as usize).is_none_or(|plan| plan.left_out);
            let scaled = |sym, words: &mut Vec<i64>| {
                if !left_out(sym) {
                    scaling.apply(sym, words);
                }
            };
            let Some(event) = events.next_changed(scaled)? else { break };
            walked.calls = walked.calls.saturating_add(event.calls());
            let Some(plan) = self.plans.get(event.sym as usize) else { continue };
            walked.unsure |= plan.unsure;
            self.teller.base = plan.base;
            let Some(row) = event.row else { continue };
            if plan.left_out || plan.suspect && refusal(&event.symbol, &event.words().words).is_some() {
                let made = objects(row, event.words()).filter(|(s, _)| s.is_made()).map(|(_, item)| item);
                self.unmade.extend(made);
                communication.leave_out(&event);
                continue;
            }
            walked.finalized |= event.action() == Action::Finalize;
            if !self.unmade.is_empty() && self.uses_unmade(row, event.words()) {
                (self.teller.tell)(Operation::Unmade(event.sym));
                communication.leave_out(&event);
                continue;
            }
            communication.event(&event, &mut self.teller);
            self.teller.rest(row, &event, &mut communication);
        }
        if walked.finalized && !walked.unsure {
            communication.outstanding().for_each(|sym| (self.teller.tell)(Operation::Incomplete(sym)));
        }
        self.teller.posted.iter_mut().for_each(|p| p.settled = true);
        self.teller.flush();
        Ok(walked)
    }

    /// Whether a call names an object that is not made. Those that it makes itself are there from now on.
    fn uses_unmade(&mut self, row: &Row, words: &Words) -> bool {
        for (slot, item) in objects(row, words) {
            if slot.is_made() {
                self.unmade.remove(&item);
            } else if self.unmade.contains(&item) {
                return true;
            }
        }
        false
    }
}

impl<F: FnMut(Operation)> Listener for Teller<'_, F> {
    /// What is told of each, and of operations in which each pair has a size of its own the pairs.
    type Part = (OperationPart, Vec<(End, bool)>);

    fn standing(&mut self, event: &Event<'_>, scope: Scope) -> Option<Standing> {
        self.groups.standing(event.section(), event.rank, scope)
    }

    fn bytes(&mut self, event: &Event<'_>, count: i64, datatype: i64) -> i64 {
        let types = &event.section().tables.types;
        let find = || Tables::find(types, datatype, event.rank).map_or(-1, |t| t.content.size);
        let size = *self.sizes.entry(datatype).or_insert_with(find);
        if size < 0 { -1 } else { count.saturating_mul(size) }
    }

    fn send(&mut self, _: &Event<'_>, end: &communication::End, _: bool) -> usize {
        (self.tell)(Operation::Send(End::sends(end)));
        0
    }

    fn sent(&mut self, event: &Event<'_>, _: usize, end: &communication::End, cancelled: bool) {
        if cancelled {
            (self.tell)(Operation::Held(end.call, event.index));
            (self.tell)(Operation::Unsent(End::sends(end)));
        }
    }

    fn post(&mut self, _: &Event<'_>, end: &communication::End, done: bool) -> usize {
        self.posted.push_back(Posted { end: End::receives(end), settled: done, void: false });
        let number = self.told + self.posted.len() - 1;
        self.flush();
        number
    }

    fn take(&mut self, event: &Event<'_>, number: usize, bytes: i64) {
        let Some(posted) = self.posted(number) else { return };
        posted.end.bytes = bytes;
        let found = posted.end.call;
        (self.tell)(Operation::Held(found, event.index));
    }

    fn received(&mut self, event: &Event<'_>, number: usize, got: &Completed) {
        let Some(posted) = self.posted(number) else { return };
        (posted.settled, posted.void) = (true, got.cancelled);
        posted.end.channel.settle(got);
        let call = posted.end.call;
        self.flush();
        if got.cancelled {
            (self.tell)(Operation::Held(call, event.index));
        }
    }

    fn forget(&mut self, number: usize) {
        if let Some(posted) = self.posted(number) {
            posted.settled = true;
        }
        self.flush();
    }

    fn part(&mut self, event: &Event<'_>, at: Standing, rule: Rule) -> Self::Part {
        let mut part = self.plain(event, at);
        part.op = event.row.and_then(|row| agreed::operation(event, event.words().get(slot(row, "op"))?));
        let mut size = |n, t| self.bytes(event, n, t);
        let pairs = agreed::agree(event, rule, &mut part, &mut size);
        (part, pairs)
    }

    fn make(&mut self, _: &Event<'_>, (part, _): &Self::Part) {
        // Making a persistent operation is itself an operation of all.
        (self.tell)(Operation::Part(*part));
    }

    fn join(
        &mut self,
        event: &Event<'_>,
        (part, pairs): Self::Part,
        persistent: Option<(u32, u32)>,
        _: bool,
    ) -> usize {
        if persistent.is_none() {
            pairs.into_iter().for_each(|(end, receives)| (self.tell)(Operation::Pair(end, receives)));
        }
        let lane = persistent.map_or(0, |(which, _)| which + 1);
        (self.tell)(Operation::Part(OperationPart { lane, sym: event.sym, call: event.index, ..part }));
        0
    }

    fn leave(&mut self, _: &Event<'_>, _: usize) {}

    fn unknown(&mut self, event: &Event<'_>) {
        (self.tell)(Operation::Unknown(event.sym));
    }
}

impl<F: FnMut(Operation)> Teller<'_, F> {
    /// A receive that has not been told.
    fn posted(&mut self, number: usize) -> Option<&mut Posted> {
        self.posted.get_mut(number.checked_sub(self.told)?)
    }

    /// Tells what is settled, in the order of posting.
    fn flush(&mut self) {
        while let Some(p) = self.posted.front().copied().filter(|p| p.settled) {
            self.posted.pop_front();
            self.told += 1;
            let known = p.end.channel.from != UNKNOWN && p.end.channel.tag != UNKNOWN_TAG;
            if !p.void {
                (self.tell)(if known { Operation::Receive(p.end) } else { Operation::Open(p.end) });
            }
        }
    }

    /// What is neither message nor collective operation, and yet concerns others.
    fn rest(
        &mut self,
        row: &Row,
        event: &Event<'_>,
        communication: &mut Communication<<Self as Listener>::Part>,
    ) {
        let words = event.words();
        let scope = match event.action() {
            Action::Epoch(Epoch::Fence | Epoch::Free) => Some(Scope::Win(words.one(event.role.win))),
            Action::Close => Some(Scope::File(words.one(event.role.file))),
            Action::Init | Action::Finalize | Action::Creation | Action::Topology => {
                Some(Scope::Comm(event.comm().unwrap_or(0)))
            }
            Action::Internal => self.other(row, event, communication),
            _ => None,
        };
        self.together(scope, event, communication);
        if row.kind == Kind::Intercomm {
            self.together(on_new(row, words), event, communication);
        }
    }

    /// What the graph of messages takes no notice of, and yet concerns others.
    fn other(
        &mut self,
        row: &Row,
        event: &Event<'_>,
        communication: &mut Communication<<Self as Listener>::Part>,
    ) -> Option<Scope> {
        let comm = event.comm().map(Scope::Comm);
        match row.kind {
            Kind::Probe if event.words().get(event.role.flag) == Some(0) => None,
            Kind::Probe => {
                let at = communication.standing(event, comm?, self)?;
                self.probe(event, at);
                None
            }
            Kind::CommFree | Kind::Connect => comm,
            Kind::GroupCreation => on_new(row, event.words()),
            _ => None,
        }
    }

    fn probe(&mut self, event: &Event<'_>, at: Standing) {
        let (source, tag) = (event.source(), event.received_tag().filter(|tag| *tag != ANY_TAG));
        if let (Some(from), Some(tag)) = (source, tag) {
            let channel = Channel { group: at.group, side: at.other(), from, to: at.me, tag };
            (self.tell)(Operation::Probe(End { channel, bytes: -1, sym: event.sym, call: event.index }));
        }
    }

    fn together(
        &mut self,
        scope: Option<Scope>,
        event: &Event<'_>,
        communication: &mut Communication<<Self as Listener>::Part>,
    ) {
        let at = scope.and_then(|scope| communication.standing(event, scope, self));
        if let Some(at) = at.filter(|at| at.members > 1) {
            let part = self.plain(event, at);
            (self.tell)(Operation::Part(part));
        }
    }

    /// A part of which nothing but the function is known.
    fn plain(&self, event: &Event<'_>, at: Standing) -> OperationPart {
        let (function, sym, call) = (self.base, event.sym, event.index);
        OperationPart { at, lane: 0, function, root: None, bytes: None, op: None, sym, call }
    }
}

/// Communicators of a rank that are not MPI's own, nor made of others, as far as is known: of who has read what others have recorded.
fn strays(section: &Section, rank: u32) -> impl Iterator<Item = Item> {
    let is_stray =
        |comm: &Comm| comm.parent == 0 && comm.kind != "MPI_COMM_WORLD" && comm.kind != "MPI_COMM_SELF";
    // What an index stands for was made alike on all ranks: MPI_COMM_SELF is another one on each, and there can be very many.
    let first =
        move |of: &[(RankList, Named<Comm>)]| of.first().is_some_and(|(_, comm)| is_stray(&comm.content));
    let all = (0..).zip(&section.tables.comms).filter(move |(_, comm)| first(&comm.of));
    all.filter(move |(_, comm)| comm.on(rank).is_some()).map(|(index, _)| (Object::Comm, index))
}

/// The communicator that the call makes: not all members of the one it names take part.
fn on_new(row: &Row, words: &Words) -> Option<Scope> {
    words.get(slot(row, "newcomm")).filter(|n| *n >= 0).map(Scope::Comm)
}
