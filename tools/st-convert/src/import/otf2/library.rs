//! Reading through the OTF2 library: declarations of what is called, and the only code that calls it.
//!
//! Source: the headers of OTF2 3.0 (`otf2/OTF2_Reader.h`, `OTF2_GlobalDefReaderCallbacks.h`, `OTF2_EvtReaderCallbacks.h`).
#![expect(unsafe_code, reason = "calls a C library, which calls back")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;

use anyhow::{Result, anyhow};
use libloading::Library;
use st_cli::InvalidStream;

use super::definitions::Definitions;
use crate::otf2::{Handle, Operation, Peer, Record, functions, library, text};

/// Attributes of an event, which nobody asks for.
type List = *mut c_void;
type Code = c_int;
/// `OTF2_CALLBACK_SUCCESS`.
const GO_ON: Code = 0;
/// `OTF2_CALLBACK_INTERRUPT`.
const STOP: Code = 1;

type OnError =
    unsafe extern "C" fn(Handle, *const c_char, u64, *const c_char, c_int, *const c_char, Handle) -> c_int;

functions! {
    on_error = "Error_RegisterCallback"(OnError, Handle) -> Handle;
    describe = "Error_GetDescription"(c_int) -> *const c_char;
    open = "Reader_Open"(*const c_char) -> Handle;
    close = "Reader_Close"(Handle) -> c_int;
    property = "Reader_GetProperty"(Handle, *const c_char, *mut *mut c_char) -> c_int;
    serial = "Reader_SetSerialCollectiveCallbacks"(Handle) -> c_int;
    global = "Reader_GetGlobalDefReader"(Handle) -> Handle;
    register_global = "Reader_RegisterGlobalDefCallbacks"(Handle, Handle, Handle, Handle) -> c_int;
    read_global = "Reader_ReadAllGlobalDefinitions"(Handle, Handle, *mut u64) -> c_int;
    select = "Reader_SelectLocation"(Handle, u64) -> c_int;
    open_definitions = "Reader_OpenDefFiles"(Handle) -> c_int;
    close_definitions = "Reader_CloseDefFiles"(Handle) -> c_int;
    local = "Reader_GetDefReader"(Handle, u64) -> Handle;
    read_local = "Reader_ReadAllLocalDefinitions"(Handle, Handle, *mut u64) -> c_int;
    close_local = "Reader_CloseDefReader"(Handle, Handle) -> c_int;
    open_events = "Reader_OpenEvtFiles"(Handle) -> c_int;
    events = "Reader_GetEvtReader"(Handle, u64) -> Handle;
    register_events = "Reader_RegisterEvtCallbacks"(Handle, Handle, Handle, Handle) -> c_int;
    read_events = "Reader_ReadAllLocalEvents"(Handle, Handle, *mut u64) -> c_int;
    close_events = "Reader_CloseEvtReader"(Handle, Handle) -> c_int;
    new_global = "GlobalDefReaderCallbacks_New"() -> Handle;
    delete_global = "GlobalDefReaderCallbacks_Delete"(Handle) -> ();
    on_clock = "GlobalDefReaderCallbacks_SetClockPropertiesCallback"(Handle, OnClock) -> c_int;
    on_string = "GlobalDefReaderCallbacks_SetStringCallback"(Handle, OnString) -> c_int;
    on_node = "GlobalDefReaderCallbacks_SetSystemTreeNodeCallback"(Handle, OnNode) -> c_int;
    on_process = "GlobalDefReaderCallbacks_SetLocationGroupCallback"(Handle, OnProcess) -> c_int;
    on_location = "GlobalDefReaderCallbacks_SetLocationCallback"(Handle, OnLocation) -> c_int;
    on_region = "GlobalDefReaderCallbacks_SetRegionCallback"(Handle, OnRegion) -> c_int;
    on_group = "GlobalDefReaderCallbacks_SetGroupCallback"(Handle, OnGroup) -> c_int;
    on_comm = "GlobalDefReaderCallbacks_SetCommCallback"(Handle, OnComm) -> c_int;
    on_inter_comm = "GlobalDefReaderCallbacks_SetInterCommCallback"(Handle, OnInterComm) -> c_int;
    new_events = "EvtReaderCallbacks_New"() -> Handle;
    delete_events = "EvtReaderCallbacks_Delete"(Handle) -> ();
    on_enter = "EvtReaderCallbacks_SetEnterCallback"(Handle, OnRegionEvent) -> c_int;
    on_leave = "EvtReaderCallbacks_SetLeaveCallback"(Handle, OnRegionEvent) -> c_int;
    on_send = "EvtReaderCallbacks_SetMpiSendCallback"(Handle, OnMessage) -> c_int;
    on_recv = "EvtReaderCallbacks_SetMpiRecvCallback"(Handle, OnMessage) -> c_int;
    on_isend = "EvtReaderCallbacks_SetMpiIsendCallback"(Handle, OnAsked) -> c_int;
    on_irecv = "EvtReaderCallbacks_SetMpiIrecvCallback"(Handle, OnAsked) -> c_int;
    on_isend_complete = "EvtReaderCallbacks_SetMpiIsendCompleteCallback"(Handle, OnRequest) -> c_int;
    on_irecv_request = "EvtReaderCallbacks_SetMpiIrecvRequestCallback"(Handle, OnRequest) -> c_int;
    on_cancelled = "EvtReaderCallbacks_SetMpiRequestCancelledCallback"(Handle, OnRequest) -> c_int;
    on_collective = "EvtReaderCallbacks_SetMpiCollectiveEndCallback"(Handle, OnCollective) -> c_int;
    on_collective_request =
        "EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback"(Handle, OnRequest) -> c_int;
    on_collective_complete =
        "EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback"(Handle, OnCompleted) -> c_int;
}

type OnClock = unsafe extern "C" fn(*mut Definitions, u64, u64, u64, u64) -> Code;
type OnString = unsafe extern "C" fn(*mut Definitions, u32, *const c_char) -> Code;
type OnNode = unsafe extern "C" fn(*mut Definitions, u32, u32, u32, u32) -> Code;
type OnProcess = unsafe extern "C" fn(*mut Definitions, u32, u32, u8, u32, u32) -> Code;
type OnLocation = unsafe extern "C" fn(*mut Definitions, u64, u32, u8, u64, u32) -> Code;
type OnRegion =
    unsafe extern "C" fn(*mut Definitions, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> Code;
type OnGroup = unsafe extern "C" fn(*mut Definitions, u32, u32, u8, u8, u32, u32, *const u64) -> Code;
type OnComm = unsafe extern "C" fn(*mut Definitions, u32, u32, u32, u32, u32) -> Code;
type OnInterComm = unsafe extern "C" fn(*mut Definitions, u32, u32, u32, u32, u32, u32) -> Code;
type OnRegionEvent = unsafe extern "C" fn(u64, u64, u64, *mut Take<'_>, List, u32) -> Code;
type OnMessage = unsafe extern "C" fn(u64, u64, u64, *mut Take<'_>, List, u32, u32, u32, u64) -> Code;
type OnAsked = unsafe extern "C" fn(u64, u64, u64, *mut Take<'_>, List, u32, u32, u32, u64, u64) -> Code;
type OnRequest = unsafe extern "C" fn(u64, u64, u64, *mut Take<'_>, List, u64) -> Code;
type OnCollective = unsafe extern "C" fn(u64, u64, u64, *mut Take<'_>, List, u8, u32, u32, u64, u64) -> Code;
type OnCompleted =
    unsafe extern "C" fn(u64, u64, u64, *mut Take<'_>, List, u8, u32, u32, u64, u64, u64) -> Code;

unsafe extern "C" {
    /// Of the C library: gives back what the library allocates for its callers.
    fn free(of: *mut c_void);
}

/// What events of a location are handed to, and what was wrong with one.
struct Take<'a> {
    take: &'a mut dyn FnMut(u64, Record) -> Result<()>,
    failed: Option<anyhow::Error>,
}

/// Hands an event on.
fn take(to: *mut Take<'_>, time: u64, record: Record) -> Code {
    // SAFETY: the library passes on what `Archive::events` has registered, which lives until all events are read, and is used by
    // nothing else meanwhile.
    let Some(to) = (unsafe { to.as_mut() }) else { return STOP };
    match (to.take)(time, record) {
        Ok(()) => GO_ON,
        Err(error) => {
            to.failed = Some(error);
            STOP
        }
    }
}

/// Enters a definition.
fn define(to: *mut Definitions, enter: impl FnOnce(&mut Definitions)) -> Code {
    // SAFETY: the library passes on what `Archive::definitions` has registered, which lives until all definitions are read, and is
    // used by nothing else meanwhile.
    let Some(to) = (unsafe { to.as_mut() }) else { return STOP };
    enter(to);
    GO_ON
}

unsafe extern "C" fn ignore(
    _: Handle,
    _: *const c_char,
    _: u64,
    _: *const c_char,
    code: c_int,
    _: *const c_char,
    _: Handle,
) -> c_int {
    code
}

unsafe extern "C" fn clock(to: *mut Definitions, ticks: u64, offset: u64, _: u64, date: u64) -> Code {
    define(to, |to| to.clock(ticks, offset, date))
}

unsafe extern "C" fn string(to: *mut Definitions, number: u32, text: *const c_char) -> Code {
    let Some(text) = NonNull::new(text.cast_mut()) else { return GO_ON };
    // SAFETY: strings of definitions end with NUL and live until the callback returns.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
    define(to, |to| to.string(number, text))
}

unsafe extern "C" fn node(to: *mut Definitions, number: u32, name: u32, _: u32, _: u32) -> Code {
    define(to, |to| to.node(number, name))
}

unsafe extern "C" fn process(to: *mut Definitions, number: u32, _: u32, _: u8, node: u32, _: u32) -> Code {
    define(to, |to| to.process(number, node))
}

unsafe extern "C" fn location(
    to: *mut Definitions,
    number: u64,
    _: u32,
    _: u8,
    _: u64,
    process: u32,
) -> Code {
    define(to, |to| to.location(number, process))
}

unsafe extern "C" fn region(
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

unsafe extern "C" fn group(
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

unsafe extern "C" fn comm(
    to: *mut Definitions,
    number: u32,
    name: u32,
    group: u32,
    parent: u32,
    _: u32,
) -> Code {
    define(to, |to| to.comm(number, name, [group, group], parent))
}

unsafe extern "C" fn inter_comm(
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

unsafe extern "C" fn enter(_: u64, time: u64, _: u64, to: *mut Take<'_>, _: List, region: u32) -> Code {
    take(to, time, Record::Enter(region))
}

unsafe extern "C" fn leave(_: u64, time: u64, _: u64, to: *mut Take<'_>, _: List, region: u32) -> Code {
    take(to, time, Record::Leave(region))
}

/// Defines functions that are called back with the two kinds of messages.
macro_rules! messages {
    ($($name:ident $asked:ident $record:ident $asked_record:ident;)*) => {$(
        unsafe extern "C" fn $name(
            _: u64, time: u64, _: u64, to: *mut Take<'_>, _: List, rank: u32, comm: u32, tag: u32, bytes: u64,
        ) -> Code {
            take(to, time, Record::$record(Peer { rank, comm, tag, bytes }))
        }

        unsafe extern "C" fn $asked(
            _: u64, time: u64, _: u64, to: *mut Take<'_>, _: List, rank: u32, comm: u32, tag: u32, bytes: u64, id: u64,
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
        unsafe extern "C" fn $name(_: u64, time: u64, _: u64, to: *mut Take<'_>, _: List, id: u64) -> Code {
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

unsafe extern "C" fn collective(
    _: u64,
    time: u64,
    _: u64,
    to: *mut Take<'_>,
    _: List,
    kind: u8,
    comm: u32,
    root: u32,
    sent: u64,
    received: u64,
) -> Code {
    take(to, time, Record::CollectiveEnd(Operation { kind, comm, root, sent, received }))
}

unsafe extern "C" fn completed(
    _: u64,
    time: u64,
    _: u64,
    to: *mut Take<'_>,
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

/// An archive being read.
pub(super) struct Archive {
    functions: Functions,
    reader: NonNull<c_void>,
    // Dropped last: functions are in it.
    _library: Library,
}

impl Archive {
    /// Opens an archive by its anchor file.
    pub(super) fn open(anchor: &Path) -> Result<Self> {
        let library = library()?;
        let functions = Functions::find(&library)?;
        let path = text(&anchor.to_string_lossy());
        // SAFETY: the callback is a function of this program, and asks for no data.
        unsafe { (functions.on_error)(ignore, std::ptr::null_mut()) };
        // SAFETY: the path ends with NUL and outlives the call.
        let reader = unsafe { (functions.open)(path.as_ptr()) };
        let no = || InvalidStream("the OTF2 library cannot open it as an archive".into());
        let reader = NonNull::new(reader).ok_or_else(no)?;
        let archive = Self { functions, reader, _library: library };
        // SAFETY: the reader is open, and used by this process alone.
        let code = unsafe { (archive.functions.serial)(archive.reader.as_ptr()) };
        archive.check(code).map_err(|e| InvalidStream(e.to_string()))?;
        Ok(archive)
    }

    /// What a code says that is not success.
    fn check(&self, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the function takes any code, and gives a text of the library's, or none.
        let what = NonNull::new(unsafe { (self.functions.describe)(code) }.cast_mut());
        // SAFETY: texts of the library end with NUL and live as long as it.
        let what = what.map(|what| unsafe { CStr::from_ptr(what.as_ptr()) }.to_string_lossy().into_owned());
        Err(anyhow!("the OTF2 library says: {}", what.unwrap_or_else(|| format!("error {code}"))))
    }

    /// A property of the archive; `None` if it has none of this name.
    pub(super) fn property(&self, name: &str) -> Option<String> {
        let (name, mut value) = (text(name), std::ptr::null_mut());
        // SAFETY: the reader is open, the name ends with NUL and outlives the call, and `value` is where the answer goes.
        let code = unsafe { (self.functions.property)(self.reader.as_ptr(), name.as_ptr(), &raw mut value) };
        let value = NonNull::new(value).filter(|_| code == 0)?;
        // SAFETY: the library has allocated a text that ends with NUL, and leaves it to the caller.
        let told = unsafe { CStr::from_ptr(value.as_ptr()) }.to_string_lossy().into_owned();
        // SAFETY: it comes from `malloc`, and nobody uses it again.
        unsafe { free(value.as_ptr().cast()) };
        Some(told)
    }

    /// The archive's global definitions.
    pub(super) fn definitions(&self) -> Result<Definitions> {
        let (f, of) = (&self.functions, self.reader.as_ptr());
        let (mut to, mut read) = (Definitions::default(), 0u64);
        // SAFETY: the reader is open; callbacks have the types of the headers, `to` lives until all definitions are read, and the
        // set of callbacks, which the library copies, is deleted after that.
        let code = unsafe {
            let global = (f.global)(of);
            let set = (f.new_global)();
            (f.on_clock)(set, clock);
            (f.on_string)(set, string);
            (f.on_node)(set, node);
            (f.on_process)(set, process);
            (f.on_location)(set, location);
            (f.on_region)(set, region);
            (f.on_group)(set, group);
            (f.on_comm)(set, comm);
            (f.on_inter_comm)(set, inter_comm);
            (f.register_global)(of, global, set, (&raw mut to).cast());
            (f.delete_global)(set);
            (f.read_global)(of, global, &raw mut read)
        };
        self.check(code)?;
        Ok(to)
    }

    /// Chooses locations, and reads what their own numbers stand for in the archive's.
    pub(super) fn select(&self, locations: &[u64]) -> Result<()> {
        let (f, of) = (&self.functions, self.reader.as_ptr());
        for location in locations {
            // SAFETY: the reader is open, and the location is one of the archive's.
            self.check(unsafe { (f.select)(of, *location) })?;
        }
        // SAFETY: the reader is open. Archives without files of local definitions have global numbers everywhere.
        let there = unsafe { (f.open_definitions)(of) } == 0;
        for location in locations.iter().filter(|_| there) {
            let mut read = 0u64;
            // SAFETY: files of definitions are open.
            let local = unsafe { (f.local)(of, *location) };
            if local.is_null() {
                continue;
            }
            // SAFETY: the local reader has just been opened, and is closed after that.
            let code = unsafe {
                let code = (f.read_local)(of, local, &raw mut read);
                (f.close_local)(of, local);
                code
            };
            self.check(code)?;
        }
        if there {
            // SAFETY: files of definitions are open, and all their readers closed.
            self.check(unsafe { (f.close_definitions)(of) })?;
        }
        // SAFETY: the reader is open.
        self.check(unsafe { (f.open_events)(of) })
    }

    /// Hands over the events of a location that was chosen, in their order.
    pub(super) fn events(&self, location: u64, mut to: impl FnMut(u64, Record) -> Result<()>) -> Result<()> {
        let (f, of) = (&self.functions, self.reader.as_ptr());
        let (mut take, mut read) = (Take { take: &mut to, failed: None }, 0u64);
        // SAFETY: the reader is open, and so are its files of events.
        let events = unsafe { (f.events)(of, location) };
        if events.is_null() {
            return Err(anyhow!("location {location}: the OTF2 library cannot read its events"));
        }
        // SAFETY: as in `definitions`; the reader of events is closed after that.
        let code = unsafe {
            let set = (f.new_events)();
            (f.on_enter)(set, enter);
            (f.on_leave)(set, leave);
            (f.on_send)(set, send);
            (f.on_recv)(set, recv);
            (f.on_isend)(set, isend);
            (f.on_irecv)(set, irecv);
            (f.on_isend_complete)(set, isend_complete);
            (f.on_irecv_request)(set, irecv_request);
            (f.on_cancelled)(set, cancelled);
            (f.on_collective)(set, collective);
            (f.on_collective_request)(set, collective_request);
            (f.on_collective_complete)(set, completed);
            (f.register_events)(of, events, set, (&raw mut take).cast());
            (f.delete_events)(set);
            let code = (f.read_events)(of, events, &raw mut read);
            (f.close_events)(of, events);
            code
        };
        if let Some(failed) = take.failed {
            return Err(failed);
        }
        self.check(code).map_err(|e| e.context(format!("location {location}: events")))
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        // SAFETY: the reader is open, and nobody uses it again. What closing it says is of no interest any more.
        unsafe { (self.functions.close)(self.reader.as_ptr()) };
    }
}
