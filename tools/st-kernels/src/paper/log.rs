//! One rank's log on paper: what a recorder inside the program would have kept.

use st_model::num::narrow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::Location;
use std::ptr;
use std::rc::Rc;

use foldhash::fast::FixedState;
use st_capture::fold::Fold;
use st_capture::record::{Options as RecordOptions, RankRecorder, well_formed};
use st_model::calls::{CallId, CallTable};
use st_model::columns::Column;
use st_model::objects::{Comm, Op as OpContent, SharedObject, Type};
use st_model::ranks::RankSeq;
use st_model::section::{Section, Sym};
use st_model::values::NONE;

use super::Plan;
use super::clock::{Clock, Cost, NODE, NodeClock};
use crate::{ANY_SOURCE, ANY_TAG, Arrival, Kind, Op, Receive};

/// Index of the world in the table of communicators.
pub(super) const WORLD: i64 = 0;

/// A started operation: what its completion tells, if it is a receive.
#[derive(Clone, Copy, Debug)]
struct Pending {
    message: Option<Message>,
}

/// A message that arrives: its words in a status, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    source: i64,
    tag: i64,
    bytes: i64,
    /// Rank of the sender in the world.
    from: i64,
}

impl Message {
    pub(super) fn new(arrival: Arrival, kind: Kind, from: i64) -> Self {
        let bytes = i64::from(arrival.count) * i64::from(kind.bytes());
        Self { source: arrival.source.into(), tag: arrival.tag.into(), bytes, from }
    }
    pub(super) fn cost(self) -> Cost {
        Cost::Message { peer: self.from, bytes: self.bytes }
    }
    /// The words of a `status` slot for a call that asked for a source and a tag.
    pub(super) fn status(self, source: i32, tag: i32) -> [i64; 3] {
        if source == ANY_SOURCE || tag == ANY_TAG {
            [self.source, self.tag, self.bytes]
        } else {
            [NONE, NONE, self.bytes]
        }
    }
}

/// The log of one rank.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) rank: i64,
    recorder: RankRecorder,
    node: NodeClock,
    /// When the clock was compared with rank 0's.
    compared: Vec<i64>,
    threads: Vec<ThreadLog>,
    /// The thread whose calls are logged.
    running: usize,
    places: Rc<RefCell<Places>>,
    calls: HashMap<&'static str, CallId, FixedState>,
    sites: HashMap<Caller, u32, FixedState>,
    /// Symbols of the first calls, found by comparing addresses.
    known: Vec<Known>,
    kinds: [Option<i64>; 4],
    pub(super) buffers: usize,
}

/// The log of one thread.
#[derive(Debug)]
struct ThreadLog {
    clock: Clock,
    /// Its number in the recorder.
    number: usize,
    column: Column,
    /// Requests by slot number.
    pending: Vec<Option<Pending>>,
    /// Callers of the functions that are running, as numbers of nestings.
    nested: Vec<u32>,
}

/// A function, a place of its calls, and their symbol.
#[derive(Debug)]
struct Known {
    name: &'static str,
    place: Caller,
    symbol: Sym,
}

/// So many are compared.
const KNOWN: usize = 24;

/// A place of a call: the nesting that it lies in, and its place in the text.
type Caller = (u32, &'static Location<'static>);

/// Places in the program's text and their names: the same for all ranks.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Nestings: (nesting outside, caller) → number; 0 is none.
    nestings: HashMap<Caller, u32, FixedState>,
    /// By number.
    callers: Vec<String>,
    labels: HashMap<Caller, String, FixedState>,
}

impl Places {
    /// Number of a nesting.
    fn nesting(&mut self, place: Caller) -> u32 {
        if let Some(&n) = self.nestings.get(&place) {
            return n;
        }
        let label = self.label(place).to_owned();
        self.callers.push(label);
        let n = narrow(self.callers.len());
        self.nestings.insert(place, n);
        n
    }

    /// Innermost place first, as a stack is printed.
    fn label(&mut self, place: Caller) -> &str {
        let (outside, at) = place;
        let callers = usize::try_from(outside).ok().and_then(|n| self.callers.get(n.checked_sub(1)?));
        self.labels.entry(place).or_insert_with(|| {
            let file = at.file().rsplit('/').next().unwrap_or_default();
            let here = format!("{file}:{}:{}", at.line(), at.column());
            callers.map_or_else(|| here.clone(), |callers| format!("{here} < {callers}"))
        })
    }
}

impl Log {
    pub(super) fn new(
        rank: u32,
        ranks: u32,
        seed: u64,
        fold: Fold,
        plan: &Plan,
        places: &Rc<RefCell<Places>>,
    ) -> Self {
        let mut recorder = RankRecorder::new(rank, RecordOptions { fold, ..RecordOptions::default() });
        let predefined =
            |kind: &str, members| Comm { kind: kind.into(), parent: 0, members, remote: RankSeq::default() };
        recorder.objects.comms.predefined(predefined("MPI_COMM_WORLD", RankSeq::first(ranks)));
        recorder.objects.comms.predefined(predefined("MPI_COMM_SELF", std::iter::once(rank).collect()));
        let clock = Clock::new(seed, rank.into()).planned(plan, rank);
        let node =
            plan.waits(rank).map_or_else(|| NodeClock::new(seed, rank.into()), |_| NodeClock::new(seed, 0));
        let mut log = Self {
            rank: rank.into(),
            recorder,
            node,
            compared: Vec::new(),
            threads: Vec::new(),
            running: 0,
            places: Rc::clone(places),
            calls: HashMap::default(),
            sites: HashMap::default(),
            known: Vec::new(),
            kinds: [None; 4],
            buffers: 0,
        };
        log.open(clock, Vec::new());
        log
    }

    fn open(&mut self, clock: Clock, nested: Vec<u32>) {
        let number = self.recorder.open_thread(self.node.shows(clock.now()));
        let (column, pending) = (Column::default(), Vec::new());
        self.threads.push(ThreadLog { clock, number, column, pending, nested });
    }

    /// Goes over to a thread, which begins now if there is none of that number.
    pub(super) fn run_thread(&mut self, thread: usize) {
        if thread == self.threads.len() {
            let begins = self.threads[self.running].clock.thread(thread);
            let nested = self.threads[self.running].nested.clone();
            self.open(begins, nested);
        }
        self.running = thread;
    }

    /// Joins all threads: the first goes on when the last has ended.
    pub(super) fn join_threads(&mut self) {
        let last = self.threads.iter().map(|t| t.clock.now()).max().unwrap_or(0);
        self.running = 0;
        self.here().clock.wait_until(last);
    }

    fn here(&mut self) -> &mut ThreadLog {
        &mut self.threads[self.running]
    }

    /// The running thread's clock.
    pub(super) fn clock(&mut self) -> &mut Clock {
        &mut self.here().clock
    }

    /// Logs a call of a function of the table.
    pub(super) fn call(
        &mut self,
        name: &'static str,
        at: &'static Location<'static>,
        words: &[i64],
        cost: Cost,
    ) {
        let symbol = self.symbol(name, at);
        debug_assert!(
            CallTable::builtin().by_name(name).is_none_or(|row| well_formed(&row.slots, words)),
            "{name} has other slots: {words:?}"
        );
        let here = &mut self.threads[self.running];
        let (enter, exit) = here.clock.call(cost);
        if cost == Cost::Launch {
            // At the end of MPI_Init, and before MPI_Finalize.
            self.compared.push(if self.compared.is_empty() { exit } else { enter });
        }
        let (enter, exit) = (self.node.shows(enter), self.node.shows(exit));
        let chunk = self.recorder.record(here.number, symbol, words, enter, exit);
        here.column.chunks.extend(chunk.map(|c| *c));
    }

    /// Symbol of a function that is called at a place.
    fn symbol(&mut self, name: &'static str, at: &'static Location<'static>) -> Sym {
        let place = (self.here().nested.last().copied().unwrap_or(0), at);
        let same = |k: &&Known| ptr::eq(k.place.1, at) && k.place.0 == place.0 && ptr::eq(k.name, name);
        if let Some(known) = self.known.iter().find(same) {
            return known.symbol;
        }
        let (call, site) = (self.call_id(name), self.site(at));
        let symbol = self.recorder.symbol(call, site, 0);
        if self.known.len() < KNOWN {
            self.known.push(Known { name, place, symbol });
        }
        symbol
    }

    /// Number of a function; one that the table lacks is recorded by name.
    fn call_id(&mut self, name: &'static str) -> CallId {
        let recorder = &mut self.recorder;
        *self.calls.entry(name).or_insert_with(|| {
            CallTable::builtin().by_name(name).map_or_else(|| recorder.unknown_call(name), |row| row.id)
        })
    }

    /// Index of the site of a call in the functions that are running.
    fn site(&mut self, at: &'static Location<'static>) -> u32 {
        let place = (self.here().nested.last().copied().unwrap_or(0), at);
        if let Some(&site) = self.sites.get(&place) {
            return site;
        }
        let site = self.recorder.sites.label(self.places.borrow_mut().label(place));
        self.sites.insert(place, site);
        site
    }

    pub(super) fn enter(&mut self, caller: &'static Location<'static>) {
        let outside = self.here().nested.last().copied().unwrap_or(0);
        let n = self.places.borrow_mut().nesting((outside, caller));
        self.here().nested.push(n);
    }

    pub(super) fn leave(&mut self) {
        self.here().nested.pop();
    }

    /// Word of a datatype.
    pub(super) fn kind(&mut self, kind: Kind) -> i64 {
        let size = i64::from(kind.bytes());
        let types = &mut self.recorder.objects.types;
        *self.kinds[kind as usize].get_or_insert_with(|| {
            let (words, parts) = (Vec::new(), Vec::new());
            types.predefined(Type { kind: kind.name().into(), words, parts, size, lb: 0, extent: size })
        })
    }

    /// Word of an operation.
    pub(super) fn op(&mut self, op: Op) -> i64 {
        self.recorder.objects.ops.predefined(OpContent { kind: op.name().into(), commutes: true })
    }

    /// Registers a communicator made by `MPI_Comm_split` at a place, of these ranks of its parent, and returns its
    /// index and its members in the world.
    pub(super) fn split(
        &mut self,
        at: &'static Location<'static>,
        parent: i64,
        group: &RankSeq,
        chosen: &RankSeq,
    ) -> (i64, RankSeq) {
        let members = if parent == WORLD {
            chosen.clone()
        } else {
            let world = |i: i64| group.get(u64::try_from(i).ok()?).and_then(|r| u32::try_from(r).ok());
            chosen.iter().filter_map(world).collect()
        };
        let call = self.call_id("MPI_Comm_split");
        let site = self.site(at);
        let site = self.recorder.sites.get(site).map_or(0, |s| s.id);
        let parent = self.recorder.objects.comms.get(parent).map_or(0, |c| c.name);
        let content = Comm {
            kind: "MPI_Comm_split".into(),
            parent,
            members: members.clone(),
            remote: RankSeq::default(),
        };
        (self.recorder.objects.comms.create(call, site, content), members)
    }

    /// Registers a window made on a communicator of these members of the world.
    pub(super) fn window(&mut self, at: &'static Location<'static>, comm: i64, members: &RankSeq) -> i64 {
        let call = self.call_id("MPI_Win_create");
        let site = self.site(at);
        let site = self.recorder.sites.get(site).map_or(0, |s| s.id);
        let comm = self.recorder.objects.comms.get(comm).map_or(0, |c| c.name);
        let content = SharedObject { kind: "MPI_Win_create".into(), comm, members: members.clone() };
        self.recorder.objects.wins.create(call, site, content)
    }

    pub(super) fn free_window(&mut self, index: i64) {
        self.recorder.objects.wins.free(index);
    }

    pub(super) fn free_comm(&mut self, index: i64) {
        self.recorder.objects.comms.free(index);
    }

    /// The lowest free request slot, taken.
    pub(super) fn start(&mut self, message: Option<Message>) -> i64 {
        let started = Some(Pending { message });
        let pending = &mut self.here().pending;
        let free = pending.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            pending.push(None);
            pending.len() - 1
        });
        pending[slot] = started;
        narrow(slot)
    }

    /// Completes the requests at these positions: frees their slots and appends the words of the `completed` slots.
    /// Returns what the last of them cost.
    pub(super) fn complete(
        &mut self,
        requests: &mut [i64],
        positions: &[usize],
        words: &mut Vec<i64>,
    ) -> Cost {
        let mut done = Vec::with_capacity(positions.len());
        let mut cost = Cost::Message { peer: self.rank, bytes: 0 };
        for &p in positions {
            let Some(request) = requests.get_mut(p) else { continue };
            let slot =
                usize::try_from(*request).ok().and_then(|s| self.threads[self.running].pending.get_mut(s));
            let Some(pending) = slot.and_then(Option::take) else { continue };
            *request = st_model::values::NULL;
            if let Some(message) = pending.message {
                cost = message.cost();
            }
            done.push((p, pending.message));
        }
        let n = narrow(done.len());
        let mut list = |word: &dyn Fn(usize, Option<Message>) -> i64| {
            words.push(n);
            words.extend(done.iter().map(|(p, m)| word(*p, *m)));
        };
        list(&|p, _| narrow(p));
        list(&|_, m| m.map_or(NONE, |m| m.source));
        list(&|_, m| m.map_or(NONE, |m| m.tag));
        list(&|_, m| m.map_or(NONE, |m| m.bytes));
        cost
    }

    /// The rank's trace, times included.
    pub(super) fn finish(mut self) -> Section {
        for (number, chunk) in self.recorder.flush_columns() {
            let of = self.threads.iter_mut().filter(|t| u32::try_from(t.number) == Ok(number));
            of.for_each(|t| t.column.chunks.push(chunk.clone()));
        }
        let rank = narrow(self.rank);
        let mut section = self.recorder.finish(&format!("node{}", self.rank / NODE));
        if let Some(first) = self.threads.first_mut() {
            first.column.clock = self.node.compared(&self.compared);
        }
        for t in self.threads {
            if let Some(thread) = section.threads.get_mut(t.number) {
                thread.columns.push((rank, t.column));
            }
        }
        section
    }
}

/// The message that a receive gets, from a rank of the world.
pub(super) fn arriving(receive: Receive, group: &RankSeq) -> Message {
    Message::new(receive.forecast, receive.into.kind, world_rank(group, receive.forecast.source))
}

/// Rank in the world of a rank of a group.
pub(super) fn world_rank(group: &RankSeq, rank: i32) -> i64 {
    group.get(narrow(rank)).unwrap_or(0)
}
