//! Accesses to windows and files as records.
//!
//! What a call begins stands at its enter, what it ends at its exit. An access to a window is complete with the next call that
//! synchronises with its target, or with all; of one that has a request which was complete before, only then where it goes to.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use st_model::calls::{Kind, Meaning, Object, names};
use st_model::event::{Arg, Event};
use st_model::num::{Exact as _, narrow};
use st_model::objects::{Comm, Group, Name, Named, SharedObject};
use st_model::ranks::RankSeq;
use st_model::section::Tables;
use st_model::values::{AMODE, LOCK_TYPE};

use crate::format::Call;
use crate::otf2::{Access, Opening, Record, SYNC_ALL, SYNC_PROCESS, UNDEFINED};
use crate::trace::Trace;

/// `OTF2_RmaAtomicType`.
const ACCUMULATE: u8 = 0;
const COMPARE_AND_SWAP: u8 = 3;
const FETCH_AND_ACCUMULATE: u8 = 7;
/// `OTF2_IoOperationMode`, and of `OTF2_IoAccessMode`, which has one more.
const READ: u8 = 0;
const WRITE: u8 = 1;
const READ_WRITE: u8 = 2;
/// `OTF2_IoOperationFlag`.
const BLOCKING: u32 = 0;
const NON_BLOCKING: u32 = 1;
const COLLECTIVE: u32 = 2;

/// What there are no records for.
const TOGETHER: &str = "synchronisations of windows with ranks that are not known (they are regions)";

/// `OTF2_LOCK_EXCLUSIVE` and `OTF2_LOCK_SHARED`.
const EXCLUSIVE: u8 = 0;
const SHARED: u8 = 1;

/// A window or file of the archive.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) label: String,
    /// World ranks in order.
    pub(super) members: RankSeq,
    /// The communicator that it was made on, and what that is called: itself, where that is not known.
    pub(super) comm: Name,
    pub(super) group: String,
    /// Of a file that was open before what is written of a rank: how it was opened.
    pub(super) before: Option<Opening>,
    /// Positions among the members that are in the archive, if these are not all.
    some: Option<HashMap<i64, u32, FixedState>>,
}

impl Shared {
    /// Where a member stands among those that are in the archive.
    fn position(&self, member: u32) -> Option<u32> {
        let Some(some) = &self.some else { return Some(member) };
        some.get(&self.members.get(member.into())?).copied()
    }
}

/// Windows or files by number.
#[derive(Debug, Default)]
pub(super) struct All {
    pub(super) each: Vec<Shared>,
    numbers: HashMap<(Name, String, bool), u32, FixedState>,
}

impl All {
    /// `made_on`: its communicator, which is looked for when it is met first.
    fn number<'a>(
        &mut self,
        found: &Named<SharedObject>,
        label: String,
        before: Option<Opening>,
        trace: &Trace,
        made_on: impl FnOnce() -> Option<&'a Named<Comm>>,
    ) -> u32 {
        let key = (found.name, label, before.is_some());
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = narrow(self.each.len());
        let (members, label) = (found.content.members.clone(), key.1.clone());
        let has = |rank: &i64| u32::try_from(*rank).is_ok_and(|rank| trace.has(rank));
        let some =
            (!members.iter().all(|rank| has(&rank))).then(|| members.iter().filter(has).zip(0..).collect());
        let (comm, group) = made_on().map_or((found.name, found.label()), |comm| (comm.name, comm.label()));
        self.each.push(Shared { label, members, comm, group, before, some });
        self.numbers.insert(key, number);
        number
    }
}

/// An operation on a file that is under way.
#[derive(Clone, Copy, Debug)]
struct Running {
    handle: u32,
    id: u64,
    bytes: u64,
}

/// A file that is open.
#[derive(Clone, Debug)]
struct Open {
    path: String,
    mode: Opening,
    /// Its number in the archive, unless it was opened before what is written.
    handle: Option<u32>,
}

/// How a file was opened of which that is not known.
const UNKNOWN: Opening = Opening { access: READ_WRITE, creation: 0, status: 0 };

/// What is known of windows and files, of the rank that is being written where it is no object of the archive.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    pub(super) windows: All,
    pub(super) files: All,
    /// Groups of ranks that calls synchronise with, by number from 1.
    pub(super) groups: Vec<Named<Group>>,
    group_numbers: HashMap<Name, u32, FixedState>,
    /// Groups of the rank's epochs, by window, and whether the others access that of the rank.
    epochs: HashMap<(u32, bool), u32, FixedState>,
    /// Files that the rank has open, by their numbers in its tables.
    open: HashMap<i64, Open, FixedState>,
    /// Accesses to windows that are not complete: window, target, number.
    pending: HashMap<u32, HashMap<u32, Vec<u64>, FixedState>, FixedState>,
    /// Those of them that are complete on the rank.
    local: HashSet<u64, FixedState>,
    /// Accesses with requests, by the thread that has begun them, and its request.
    asked: HashMap<(u32, i64), Access, FixedState>,
    /// By the thread that has begun them, and its request.
    running: HashMap<(u32, i64), Running, FixedState>,
    /// Begun in one call and ended in another, by file.
    split: HashMap<u32, Running, FixedState>,
    next: u64,
}

/// What a call has beside its region.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// At its enter.
    pub(super) begin: Vec<Record>,
    /// At its exit.
    pub(super) end: Vec<Record>,
    /// What there is no record for, if anything.
    pub(super) lost: Option<&'static str>,
}

impl Accesses {
    /// Another rank is written.
    pub(super) fn next_rank(&mut self) {
        self.open.clear();
        self.pending.clear();
        self.epochs.clear();
        self.local.clear();
        self.asked.clear();
        self.running.clear();
        self.split.clear();
    }

    /// A call that is not written, after which files are open that are used in others.
    pub(super) fn passed(&mut self, call: &Call<'_>, trace: &Trace) {
        let event = call.event;
        for request in event.completed().filter_map(|got| got.request) {
            let by = call.starter(request);
            self.asked.remove(&(by, request));
            self.running.remove(&(by, request));
        }
        if event.symbol.error != 0 {
            return;
        }
        if let Some(index) = one(event, "newfile") {
            let (path, mode) = (path(event, &trace.section(&call.lane).tables), opening(event));
            self.open.insert(index, Open { path, mode, handle: None });
        } else if let Some(index) = one(event, "freefile") {
            self.open.remove(&index);
        }
    }

    /// Windows and files of a call, and what it does with them.
    pub(super) fn of(&mut self, call: &Call<'_>, trace: &Trace) -> Told {
        let event = call.event;
        let section = trace.section(&call.lane);
        let mut told = Told::default();
        let Some(row) = event.row.filter(|_| event.symbol.error == 0) else { return told };
        if !(self.running.is_empty() && self.asked.is_empty()) {
            self.complete(call, &mut told);
        }
        let names = |object| row.slots.iter().find(|slot| slot.meaning == Meaning::Ref(object));
        if names(Object::File).is_some() {
            self.file(call, trace, &mut told);
        } else if let Some(slot) = names(Object::Win) {
            let index = one(event, &slot.name).unwrap_or(-1);
            if let Some(found) = Tables::find(&section.tables.wins, index, event.rank) {
                let win = self.windows.number(found, found.label(), None, trace, || {
                    made_on(found, &section.tables, event.rank)
                });
                self.window(call, trace, win, &mut told);
            }
        }
        told
    }

    fn window(&mut self, call: &Call<'_>, trace: &Trace, win: u32, told: &mut Told) {
        let event = call.event;
        let target = one(event, "target").and_then(|target| u32::try_from(target).ok());
        let of = self.windows.each.get(win.to_usize());
        let remote = target.and_then(|target| of?.position(target));
        if target.is_some() && remote.is_none() {
            told.lost = Some("accesses to windows of ranks that are not converted");
            return;
        }
        if one(event, "newwin").is_some() {
            return told.end.push(Record::WinCreate(win));
        }
        if one(event, "freewin").is_some() {
            self.synchronise(win, None, told);
            return told.end.push(Record::WinDestroy(win));
        }
        let kind = event.row.map_or(Kind::Other, |row| row.kind);
        if matches!(kind, Kind::Put | Kind::Get | Kind::GetPut | Kind::CompareSwap) {
            // Nobody is reached.
            let Some(remote) = remote else { return };
            self.next += 1;
            let (id, sent, received) = (self.next, call.sent, call.received);
            let access = Access { win, remote, sent, received, id };
            told.begin.push(match kind {
                Kind::Put if one(event, "op").is_some() => Record::Atomic(access, ACCUMULATE),
                Kind::Put => Record::Put(access),
                Kind::Get => Record::Get(access),
                Kind::CompareSwap => Record::Atomic(access, COMPARE_AND_SWAP),
                _ => Record::Atomic(access, FETCH_AND_ACCUMULATE),
            });
            self.asked.extend(event.new_request().map(|request| ((call.at, request), access)));
            return self.pending.entry(win).or_default().entry(remote).or_default().push(id);
        }
        self.epoch(call, trace, win, remote, told);
    }

    /// Calls that begin or end epochs.
    fn epoch(&mut self, call: &Call<'_>, trace: &Trace, win: u32, remote: Option<u32>, told: &mut Told) {
        let event = call.event;
        let local = event.row.is_some_and(|row| row.properties.local);
        match (event.name().unwrap_or_default(), remote) {
            (names::MPI_Win_lock, Some(remote)) => {
                let named =
                    one(event, "locktype").and_then(|kind| LOCK_TYPE.get(usize::try_from(kind).ok()?));
                let kind = if named == Some(&"MPI_LOCK_SHARED") { SHARED } else { EXCLUSIVE };
                // When it is granted MPI does not say, so that no record of that follows, as in Score-P's archives.
                told.begin.push(Record::RequestLock(win, remote, kind));
            }
            (names::MPI_Win_unlock, Some(remote)) => {
                self.synchronise(win, Some(remote), told);
                told.end.push(Record::ReleaseLock(win, remote));
            }
            (names::MPI_Win_flush | names::MPI_Win_flush_local, Some(remote)) => {
                self.synchronise(win, Some(remote), told);
            }
            (names::MPI_Win_flush_all | names::MPI_Win_flush_local_all, _) => {
                self.synchronise(win, None, told);
            }
            (names::MPI_Win_fence, _) => {
                told.begin.push(Record::FenceBegin);
                self.synchronise(win, None, told);
                told.end.push(Record::FenceEnd(win));
            }
            (names::MPI_Win_lock_all, _) => told.begin.push(Record::RequestLock(win, UNDEFINED, SHARED)),
            (names::MPI_Win_unlock_all, _) => {
                self.synchronise(win, None, told);
                told.end.push(Record::ReleaseLock(win, UNDEFINED));
            }
            (name @ (names::MPI_Win_post | names::MPI_Win_start), _) => {
                match self.group(event, &trace.section(&call.lane).tables) {
                    Some(group) => {
                        self.epochs.insert((win, name == names::MPI_Win_post), group);
                        told.end.push(Record::GroupSync(win, SYNC_PROCESS, group));
                    }
                    None => told.lost = Some(TOGETHER),
                }
            }
            (names::MPI_Win_complete, _) => {
                self.synchronise(win, None, told);
                self.end_epoch(win, false, told);
            }
            (names::MPI_Win_wait | names::MPI_Win_test, _) if one(event, "flag") != Some(0) => {
                self.end_epoch(win, true, told);
            }
            (names::MPI_Win_test, _) => {}
            (names::MPI_Win_set_info, _) => {}
            _ if local => {}
            _ => told.lost = Some(TOGETHER),
        }
    }

    /// The group of ranks that a call names.
    fn group(&mut self, event: &Event<'_>, tables: &Tables) -> Option<u32> {
        let found = Tables::find(&tables.groups, one(event, "group")?, event.rank)?;
        let next = narrow::<u32>(self.groups.len()).checked_add(1)?;
        Some(*self.group_numbers.entry(found.name).or_insert_with(|| {
            self.groups.push(found.clone());
            next
        }))
    }

    /// An epoch with a group of ranks ends.
    fn end_epoch(&mut self, win: u32, of_others: bool, told: &mut Told) {
        match self.epochs.remove(&(win, of_others)) {
            Some(group) => told.end.push(Record::GroupSync(win, SYNC_ALL, group)),
            None => told.lost = Some(TOGETHER),
        }
    }

    /// Accesses that have begun are complete.
    fn synchronise(&mut self, win: u32, remote: Option<u32>, told: &mut Told) {
        let Some(pending) = self.pending.get_mut(&win) else { return };
        let mut complete = match remote {
            Some(remote) => pending.remove(&remote).unwrap_or_default(),
            None => pending.drain().flat_map(|(_, ids)| ids).collect(),
        };
        complete.sort_unstable();
        let record = |id| match self.local.remove(&id) {
            true => Record::AccessRemote(win, id),
            false => Record::AccessComplete(win, id),
        };
        told.end.extend(complete.into_iter().map(record));
    }

    fn file(&mut self, call: &Call<'_>, trace: &Trace, told: &mut Told) {
        let (event, tables) = (call.event, &trace.section(&call.lane).tables);
        if let Some(index) = one(event, "newfile") {
            let Some(found) = Tables::find(&tables.files, index, event.rank) else { return };
            let (path, mode) = (path(event, tables), opening(event));
            let handle =
                self.files.number(found, path.clone(), None, trace, || made_on(found, tables, event.rank));
            self.open.insert(index, Open { path, mode, handle: Some(handle) });
            return told.end.push(Record::FileOpen { handle, mode });
        }
        let Some(index) = one(event, "file").or_else(|| one(event, "freefile")) else { return };
        let Some(found) = Tables::find(&tables.files, index, event.rank) else { return };
        // One that the trace does not open has no name.
        let unknown = || Open { path: String::new(), mode: UNKNOWN, handle: None };
        let open = self.open.entry(index).or_insert_with(unknown);
        let handle = match open.handle {
            Some(handle) => handle,
            None => self.files.number(found, open.path.clone(), Some(open.mode), trace, || {
                made_on(found, tables, event.rank)
            }),
        };
        open.handle = Some(handle);
        if one(event, "freefile").is_some() {
            self.open.remove(&index);
            return told.end.push(Record::FileClose(handle));
        }
        self.operation(call, handle, told);
    }

    fn operation(&mut self, call: &Call<'_>, handle: u32, told: &mut Told) {
        let event = call.event;
        let (Some(row), name) = (event.row, event.name().unwrap_or_default()) else { return };
        let (begins, ends) = (name.contains("_begin"), name.contains("_end"));
        if ends {
            if let Some(Running { handle, id, bytes }) = self.split.remove(&handle) {
                let bytes = if row.kind == Kind::Read { call.received } else { bytes };
                told.end.push(Record::OperationComplete(handle, bytes, id));
            }
            return;
        }
        let mode = match row.kind {
            Kind::Write => WRITE,
            Kind::Read => READ,
            _ if begins => READ,
            _ => return,
        };
        let room = || one(event, "count").zip(one(event, "type")).and_then(|(n, of)| event.size(n, of));
        let bytes = if mode == WRITE { call.sent } else { room().unwrap_or(0) };
        let asks = event.new_request();
        let together = ["_all", "_ordered"].iter().any(|part| name.contains(part));
        let flags = if asks.is_some() || begins { NON_BLOCKING } else { BLOCKING };
        let flags = flags | if together { COLLECTIVE } else { 0 };
        self.next += 1;
        let running = Running { handle, id: self.next, bytes };
        let id = running.id;
        told.begin.push(Record::OperationBegin { handle, mode, flags, bytes, id });
        if flags & NON_BLOCKING != 0 {
            told.end.push(Record::OperationIssued(handle, id));
        }
        if let Some(request) = asks {
            self.running.insert((call.at, request), running);
        } else if begins {
            self.split.insert(handle, running);
        } else {
            let bytes = if mode == WRITE { bytes } else { call.received };
            told.end.push(Record::OperationComplete(handle, bytes, id));
        }
    }

    /// Operations on files, and accesses to windows, whose requests a call completes.
    fn complete(&mut self, call: &Call<'_>, told: &mut Told) {
        for got in call.event.completed() {
            let Some(request) = got.request else { continue };
            let by = call.starter(request);
            if let Some(Access { win, remote, id, .. }) = self.asked.remove(&(by, request)) {
                // Unless it was synchronised before.
                let pending = self.pending.get(&win).and_then(|of| of.get(&remote));
                // They ascend.
                if pending.is_some_and(|ids| ids.binary_search(&id).is_ok()) {
                    self.local.insert(id);
                    told.end.push(Record::AccessLocal(win, id));
                }
                continue;
            }
            let Some(Running { handle, id, bytes }) = self.running.remove(&(by, request)) else { continue };
            told.end.push(Record::OperationComplete(handle, got.bytes.unwrap_or(bytes), id));
        }
    }
}

/// The communicator that a window or file was made on.
fn made_on<'a>(of: &Named<SharedObject>, tables: &'a Tables, rank: u32) -> Option<&'a Named<Comm>> {
    tables.comms.iter().filter_map(|entry| entry.on(rank)).find(|comm| comm.name == of.content.comm)
}

/// A parameter that is there.
fn one(event: &Event<'_>, name: &str) -> Option<i64> {
    match event.arg(name) {
        Some(Arg::One(value)) => Some(value),
        _ => None,
    }
}

/// What a file is called that a call opens.
fn path(event: &Event<'_>, tables: &Tables) -> String {
    let name = one(event, "filename").and_then(|at| Tables::find(&tables.texts, at, event.rank));
    name.map_or_else(String::new, Named::label)
}

/// How a call opens a file.
fn opening(event: &Event<'_>) -> Opening {
    let mode = one(event, "amode").unwrap_or(0);
    let has = |name: &str| AMODE.iter().position(|bit| *bit == name).is_some_and(|bit| mode >> bit & 1 != 0);
    let flag = |name: &str, flag: u32| if has(name) { flag } else { 0 };
    let access = match (has("MPI_MODE_RDONLY"), has("MPI_MODE_WRONLY")) {
        (true, _) => READ,
        (false, true) => WRITE,
        _ => READ_WRITE,
    };
    let creation =
        flag("MPI_MODE_CREATE", 1) | flag("MPI_MODE_EXCL", 1 << 3) | flag("MPI_MODE_UNIQUE_OPEN", 1 << 10);
    let status = flag("MPI_MODE_APPEND", 1 << 1) | flag("MPI_MODE_DELETE_ON_CLOSE", 1 << 8);
    Opening { access, creation, status }
}
