//! What OTF2's library calls with what it reads.
//!
//! Source: the headers of OTF2 3.0 (`otf2/OTF2_GlobalDefReaderCallbacks.h`, `OTF2_EvtReaderCallbacks.h`).
#![expect(unsafe_code, reason = "a C library calls them")]

use std::collections::VecDeque;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::NonNull;

use super::definitions::Definitions;
use crate::otf2::{Access, Opening, Operation, Peer, Record};

/// Attributes of an event: of records but those of regions nobody asks for them.
type List = *mut c_void;
type Code = c_int;
/// `OTF2_CALLBACK_SUCCESS`.
const GO_ON: Code = 0;
/// `OTF2_CALLBACK_INTERRUPT`.
const STOP: Code = 1;

pub(super) type OnClock = unsafe extern "C" fn(*mut Definitions, u64, u64, u64, u64) -> Code;
pub(super) type OnString = unsafe extern "C" fn(*mut Definitions, u32, *const c_char) -> Code;
pub(super) type OnAttribute = unsafe extern "C" fn(*mut Definitions, u32, u32, u32, u8) -> Code;
pub(super) type OnNode = unsafe extern "C" fn(*mut Definitions, u32, u32, u32, u32) -> Code;
pub(super) type OnProcess = unsafe extern "C" fn(*mut Definitions, u32, u32, u8, u32, u32) -> Code;
pub(super) type OnLocation = unsafe extern "C" fn(*mut Definitions, u64, u32, u8, u64, u32) -> Code;
pub(super) type OnRegion =
    unsafe extern "C" fn(*mut Definitions, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> Code;
pub(super) type OnGroup =
    unsafe extern "C" fn(*mut Definitions, u32, u32, u8, u8, u32, u32, *const u64) -> Code;
pub(super) type OnComm = unsafe extern "C" fn(*mut Definitions, u32, u32, u32, u32, u32) -> Code;
pub(super) type OnInterComm = unsafe extern "C" fn(*mut Definitions, u32, u32, u32, u32, u32, u32) -> Code;
// Of an older library the flags are not there, and not looked at.
pub(super) type OnWindow = unsafe extern "C" fn(*mut Definitions, u32, u32, u32, u32) -> Code;
pub(super) type OnParadigm = unsafe extern "C" fn(
    *mut Definitions,
    u32,
    u32,
    u32,
    u8,
    u32,
    u8,
    *const u8,
    *const u8,
    *const u64,
) -> Code;
pub(super) type OnFile = unsafe extern "C" fn(*mut Definitions, u32, u32, u32) -> Code;
pub(super) type OnHandle = unsafe extern "C" fn(*mut Definitions, u32, u32, u32, u32, u32, u32, u32) -> Code;
pub(super) type OnRegionEvent = unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u32) -> Code;
pub(super) type OnMessage = unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u32, u32, u32, u64) -> Code;
pub(super) type OnAsked =
    unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u32, u32, u32, u64, u64) -> Code;
pub(super) type OnRequest = unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u64) -> Code;
pub(super) type OnCollective =
    unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u8, u32, u32, u64, u64) -> Code;
pub(super) type OnCompleted =
    unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u8, u32, u32, u64, u64, u64) -> Code;

pub(super) type OnShared = unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u32) -> Code;
pub(super) type OnAccess = unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u32, u32, u64, u64) -> Code;
pub(super) type OnAtomic =
    unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u32, u32, u8, u64, u64, u64) -> Code;
pub(super) type OnOperation = unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u32, u64) -> Code;
pub(super) type OnFence =
    unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u8, u32, u32, u32, u64, u64) -> Code;
pub(super) type OnGroupSync = unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u32, u32, u32) -> Code;
pub(super) type OnLock = unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u32, u32, u64, u8) -> Code;
pub(super) type OnRelease = unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u32, u32, u64) -> Code;
pub(super) type OnFileOpen = unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u32, u8, u32, u32) -> Code;
pub(super) type OnOperationBegin =
    unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u32, u8, u32, u64, u64) -> Code;
pub(super) type OnOperationComplete =
    unsafe extern "C" fn(u64, u64, u64, *mut Batch, List, u32, u64, u64) -> Code;

/// Attributes of an event by number, of a number its value, of other types what the library's union of values has.
pub(super) type Attributes = Vec<(u32, i64)>;

/// How attributes are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttributesBy {
    pub(super) count: unsafe extern "C" fn(List) -> u32,
    pub(super) get: unsafe extern "C" fn(List, u32, *mut u32, *mut u8, *mut i64) -> Code,
}

/// Events of a location that have been read.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// With their times.
    pub(super) records: VecDeque<(u64, Record)>,
    /// Of each record that enters a region, if they are asked for.
    pub(super) attributes: VecDeque<Attributes>,
    pub(super) by: Option<AttributesBy>,
}

/// Adds an event.
fn take(to: *mut Batch, time: u64, record: Record) -> Code {
    // SAFETY: the library passes on what `Archive::events` has registered, which lives until the reader of events is closed, and is
    // used by nothing else while it reads.
    let Some(to) = (unsafe { to.as_mut() }) else { return STOP };
    to.records.push_back((time, record));
    GO_ON
}

/// Enters a definition.
fn define(to: *mut Definitions, enter: impl FnOnce(&mut Definitions)) -> Code {
    // SAFETY: the library passes on what `Archive::definitions` has registered, which lives until all definitions are read, and is
    // used by nothing else meanwhile.
    let Some(to) = (unsafe { to.as_mut() }) else { return STOP };
    enter(to);
    GO_ON
}

pub(super) unsafe extern "C" fn clock(
    to: *mut Definitions,
    ticks: u64,
    offset: u64,
    _: u64,
    date: u64,
) -> Code {
    define(to, |to| to.clock(ticks, offset, date))
}

pub(super) unsafe extern "C" fn string(to: *mut Definitions, number: u32, text: *const c_char) -> Code {
    let Some(text) = NonNull::new(text.cast_mut()) else { return GO_ON };
    // SAFETY: strings of definitions end with NUL and live until the callback returns.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
    define(to, |to| to.string(number, text))
}

pub(super) unsafe extern "C" fn attribute(
    to: *mut Definitions,
    number: u32,
    name: u32,
    _: u32,
    _: u8,
) -> Code {
    define(to, |to| to.define_attribute(number, name))
}

pub(super) unsafe extern "C" fn node(to: *mut Definitions, number: u32, name: u32, _: u32, _: u32) -> Code {
    define(to, |to| to.node(number, name))
}

pub(super) unsafe extern "C" fn process(
    to: *mut Definitions,
    number: u32,
    _: u32,
    _: u8,
    node: u32,
    _: u32,
) -> Code {
    define(to, |to| to.process(number, node))
}

pub(super) unsafe extern "C" fn location(
    to: *mut Definitions,
    number: u64,
    _: u32,
    _: u8,
    _: u64,
    process: u32,
) -> Code {
    define(to, |to| to.location(number, process))
}

pub(super) unsafe extern "C" fn region(
    to: *mut Definitions,
    number: u32,
    name: u32,
    _: u32,
    _: u32,
    _: u8,
    paradigm: u8,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
) -> Code {
    define(to, |to| to.region(number, name, paradigm))
}

pub(super) unsafe extern "C" fn group(
    to: *mut Definitions,
    number: u32,
    _: u32,
    kind: u8,
    _: u8,
    _: u32,
    length: u32,
    members: *const u64,
) -> Code {
    let members = match (NonNull::new(members.cast_mut()), usize::try_from(length)) {
        // SAFETY: there are so many members, which live until the callback returns.
        (Some(members), Ok(n)) => unsafe { std::slice::from_raw_parts(members.as_ptr(), n) },
        _ => &[],
    };
    define(to, |to| to.group(number, kind, members))
}

pub(super) unsafe extern "C" fn comm(
    to: *mut Definitions,
    number: u32,
    name: u32,
    group: u32,
    parent: u32,
    _: u32,
) -> Code {
    define(to, |to| to.comm(number, name, [group, group], parent))
}

pub(super) unsafe extern "C" fn inter_comm(
    to: *mut Definitions,
    number: u32,
    name: u32,
    a: u32,
    b: u32,
    common: u32,
    _: u32,
) -> Code {
    define(to, |to| to.comm(number, name, [a, b], common))
}

pub(super) unsafe extern "C" fn window(
    to: *mut Definitions,
    number: u32,
    name: u32,
    comm: u32,
    _: u32,
) -> Code {
    define(to, |to| to.define_window(number, name, comm))
}

pub(super) unsafe extern "C" fn paradigm(
    to: *mut Definitions,
    number: u32,
    identification: u32,
    _: u32,
    _: u8,
    _: u32,
    _: u8,
    _: *const u8,
    _: *const u8,
    _: *const u64,
) -> Code {
    define(to, |to| to.define_paradigm(number, identification))
}

pub(super) unsafe extern "C" fn file(to: *mut Definitions, number: u32, name: u32, _: u32) -> Code {
    define(to, |to| to.define_file(number, name))
}

pub(super) unsafe extern "C" fn handle(
    to: *mut Definitions,
    number: u32,
    _: u32,
    file: u32,
    paradigm: u32,
    _: u32,
    comm: u32,
    _: u32,
) -> Code {
    define(to, |to| to.define_handle(number, [file, paradigm, comm]))
}

pub(super) unsafe extern "C" fn enter(
    _: u64,
    time: u64,
    _: u64,
    to: *mut Batch,
    list: List,
    region: u32,
) -> Code {
    // SAFETY: as in `take`.
    let Some(batch) = (unsafe { to.as_mut() }) else { return STOP };
    if let Some(by) = batch.by {
        // SAFETY: the list is the library's, and lives until the callback returns.
        batch.attributes.push_back(unsafe { attributes(list, by) });
    }
    take(to, time, Record::Enter(region))
}

/// The attributes in a list.
///
/// # Safety
///
/// The list is one of the library's.
unsafe fn attributes(list: List, by: AttributesBy) -> Attributes {
    // SAFETY: the caller's promise.
    let count = unsafe { (by.count)(list) };
    let one = |at: u32| {
        let (mut name, mut kind, mut value) = (0, 0, 0);
        // SAFETY: the caller's promise; the union of values has eight bytes, as the number has.
        let code = unsafe { (by.get)(list, at, &raw mut name, &raw mut kind, &raw mut value) };
        (code == 0).then_some((name, value))
    };
    (0..count).filter_map(one).collect()
}

pub(super) unsafe extern "C" fn leave(
    _: u64,
    time: u64,
    _: u64,
    to: *mut Batch,
    _: List,
    region: u32,
) -> Code {
    take(to, time, Record::Leave(region))
}

/// Defines functions that are called back with the two kinds of messages.
macro_rules! messages {
    ($($name:ident $asked:ident $record:ident $asked_record:ident;)*) => {$(
        pub(super) unsafe extern "C" fn $name(
            _: u64, time: u64, _: u64, to: *mut Batch, _: List, rank: u32, comm: u32, tag: u32, bytes: u64,
        ) -> Code {
            take(to, time, Record::$record(Peer { rank, comm, tag, bytes }))
        }

        pub(super) unsafe extern "C" fn $asked(
            _: u64, time: u64, _: u64, to: *mut Batch, _: List, rank: u32, comm: u32, tag: u32, bytes: u64, id: u64,
        ) -> Code {
            take(to, time, Record::$asked_record(Peer { rank, comm, tag, bytes }, id))
        }
    )*};
}

messages! {
    send isend Send Isend;
    recv irecv Recv Irecv;
}

/// Defines functions that are called back with a request.
macro_rules! requests {
    ($($name:ident $record:ident;)*) => {$(
        pub(super) unsafe extern "C" fn $name(_: u64, time: u64, _: u64, to: *mut Batch, _: List, id: u64) -> Code {
            take(to, time, Record::$record(id))
        }
    )*};
}

requests! {
    isend_complete IsendComplete;
    irecv_request IrecvRequest;
    cancelled Cancelled;
    collective_request CollectiveRequest;
}

pub(super) unsafe extern "C" fn collective(
    _: u64,
    time: u64,
    _: u64,
    to: *mut Batch,
    _: List,
    kind: u8,
    comm: u32,
    root: u32,
    sent: u64,
    received: u64,
) -> Code {
    take(to, time, Record::CollectiveEnd(Operation { kind, comm, root, sent, received }))
}

pub(super) unsafe extern "C" fn completed(
    _: u64,
    time: u64,
    _: u64,
    to: *mut Batch,
    _: List,
    kind: u8,
    comm: u32,
    root: u32,
    sent: u64,
    received: u64,
    id: u64,
) -> Code {
    take(to, time, Record::CollectiveComplete(Operation { kind, comm, root, sent, received }, id))
}

/// Defines functions that are called back with other records.
macro_rules! records {
    ($($name:ident($($argument:pat, $kind:ty);*) $record:expr;)*) => {$(
        pub(super) unsafe extern "C" fn $name(
            _: u64, time: u64, _: u64, to: *mut Batch, _: List, $($argument: $kind),*
        ) -> Code {
            take(to, time, $record)
        }
    )*};
}

records! {
    win_create(win, u32) Record::WinCreate(win);
    win_destroy(win, u32) Record::WinDestroy(win);
    put(win, u32; remote, u32; sent, u64; id, u64) Record::Put(Access { win, remote, sent, received: 0, id });
    get(win, u32; remote, u32; received, u64; id, u64)
        Record::Get(Access { win, remote, sent: 0, received, id });
    atomic(win, u32; remote, u32; kind, u8; sent, u64; received, u64; id, u64)
        Record::Atomic(Access { win, remote, sent, received, id }, kind);
    access_complete(win, u32; id, u64) Record::AccessComplete(win, id);
    access_local(win, u32; id, u64) Record::AccessLocal(win, id);
    access_remote(win, u32; id, u64) Record::AccessRemote(win, id);
    fence(_, u8; _, u32; win, u32; _, u32; _, u64; _, u64) Record::FenceEnd(win);
    group_sync(level, u32; win, u32; group, u32) Record::GroupSync(win, level, group);
    request_lock(win, u32; remote, u32; _, u64; kind, u8) Record::RequestLock(win, remote, kind);
    release_lock(win, u32; remote, u32; _, u64) Record::ReleaseLock(win, remote);
    file_open(handle, u32; access, u8; creation, u32; status, u32)
        Record::FileOpen { handle, mode: Opening { access, creation, status } };
    file_close(handle, u32) Record::FileClose(handle);
    operation_begin(handle, u32; mode, u8; flags, u32; bytes, u64; id, u64)
        Record::OperationBegin { handle, mode, flags, bytes, id };
    operation_complete(handle, u32; bytes, u64; id, u64) Record::OperationComplete(handle, bytes, id);
}
