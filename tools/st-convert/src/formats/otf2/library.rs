//! Writing through the OTF2 library: declarations of what is called, and the only code that calls it.
//!
//! Source: the headers of OTF2 3.0 (`otf2/OTF2_Archive.h`, `OTF2_EvtWriter.h`, `OTF2_GlobalDefWriter.h`). Types of flags and kinds are
//! bytes there, references 32-bit numbers.
#![expect(unsafe_code, reason = "calls a C library")]

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{NonNull, null, null_mut};

use anyhow::{Context as _, Result, bail};
use libloading::Library;

use crate::otf2::{Handle, OnError, Opening, Record, SYNC_ALL, UNDEFINED, check, functions, library, text};

const FILEMODE_WRITE: u8 = 0;
const SUBSTRATE_POSIX: u8 = 1;
const COMPRESSION_NONE: u8 = 1;
/// `OTF2_FLUSH`: what is buffered may be written.
const FLUSH: u8 = 1;

#[repr(C)]
struct FlushCallbacks {
    pre_flush: unsafe extern "C" fn(*mut c_void, u8, u64, *mut c_void, bool) -> u8,
    post_flush: Option<unsafe extern "C" fn(*mut c_void, u8, u64) -> u64>,
}

unsafe extern "C" fn pre_flush(_: *mut c_void, _: u8, _: u64, _: *mut c_void, _: bool) -> u8 {
    FLUSH
}

thread_local! {
    /// The first error of this thread that nobody has been told of; 0 if there is none.
    static FIRST: Cell<c_int> = const { Cell::new(0) };
}

/// Keeps the first error, which the library would print: what its functions return in the end is only what came of that.
unsafe extern "C" fn keep(
    _: Handle,
    _: *const c_char,
    _: u64,
    _: *const c_char,
    code: c_int,
    _: *const c_char,
    _: Handle,
) -> c_int {
    FIRST.with(|first| first.set(if first.get() == 0 { code.max(0) } else { first.get() }));
    code
}

static FLUSHES: FlushCallbacks = FlushCallbacks { pre_flush, post_flush: None };

functions! {
    on_error = "Error_RegisterCallback"(OnError, Handle) -> Handle;
    describe = "Error_GetDescription"(c_int) -> *const c_char;
    open = "Archive_Open"(*const c_char, *const c_char, u8, u64, u64, u8, u8) -> Handle;
    close = "Archive_Close"(Handle) -> c_int;
    set_flush = "Archive_SetFlushCallbacks"(Handle, *const FlushCallbacks, *mut c_void) -> c_int;
    set_serial = "Archive_SetSerialCollectiveCallbacks"(Handle) -> c_int;
    set_creator = "Archive_SetCreator"(Handle, *const c_char) -> c_int;
    set_description = "Archive_SetDescription"(Handle, *const c_char) -> c_int;
    set_property = "Archive_SetProperty"(Handle, *const c_char, *const c_char, bool) -> c_int;
    open_events = "Archive_OpenEvtFiles"(Handle) -> c_int;
    close_events = "Archive_CloseEvtFiles"(Handle) -> c_int;
    event_writer = "Archive_GetEvtWriter"(Handle, u64) -> Handle;
    close_event_writer = "Archive_CloseEvtWriter"(Handle, Handle) -> c_int;
    open_definitions = "Archive_OpenDefFiles"(Handle) -> c_int;
    close_definitions = "Archive_CloseDefFiles"(Handle) -> c_int;
    definition_writer = "Archive_GetDefWriter"(Handle, u64) -> Handle;
    close_definition_writer = "Archive_CloseDefWriter"(Handle, Handle) -> c_int;
    global_writer = "Archive_GetGlobalDefWriter"(Handle) -> Handle;
    clock = "GlobalDefWriter_WriteClockProperties"(Handle, u64, u64, u64, u64) -> c_int;
    string = "GlobalDefWriter_WriteString"(Handle, u32, *const c_char) -> c_int;
    node = "GlobalDefWriter_WriteSystemTreeNode"(Handle, u32, u32, u32, u32) -> c_int;
    process = "GlobalDefWriter_WriteLocationGroup"(Handle, u32, u32, u8, u32, u32) -> c_int;
    location = "GlobalDefWriter_WriteLocation"(Handle, u64, u32, u8, u64, u32) -> c_int;
    region = "GlobalDefWriter_WriteRegion"(Handle, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> c_int;
    group = "GlobalDefWriter_WriteGroup"(Handle, u32, u32, u8, u8, u32, u32, *const u64) -> c_int;
    comm = "GlobalDefWriter_WriteComm"(Handle, u32, u32, u32, u32, u32) -> c_int;
    metric_member =
        "GlobalDefWriter_WriteMetricMember"(Handle, u32, u32, u32, u8, u8, u8, u8, i64, u32) -> c_int;
    metric_class = "GlobalDefWriter_WriteMetricClass"(Handle, u32, u8, *const u32, u8, u8) -> c_int;
    metric = "EvtWriter_Metric"(Handle, Handle, u64, u32, u8, *const u8, *const u64) -> c_int;
    enter = "EvtWriter_Enter"(Handle, Handle, u64, u32) -> c_int;
    leave = "EvtWriter_Leave"(Handle, Handle, u64, u32) -> c_int;
    send = "EvtWriter_MpiSend"(Handle, Handle, u64, u32, u32, u32, u64) -> c_int;
    isend = "EvtWriter_MpiIsend"(Handle, Handle, u64, u32, u32, u32, u64, u64) -> c_int;
    isend_complete = "EvtWriter_MpiIsendComplete"(Handle, Handle, u64, u64) -> c_int;
    irecv_request = "EvtWriter_MpiIrecvRequest"(Handle, Handle, u64, u64) -> c_int;
    recv = "EvtWriter_MpiRecv"(Handle, Handle, u64, u32, u32, u32, u64) -> c_int;
    irecv = "EvtWriter_MpiIrecv"(Handle, Handle, u64, u32, u32, u32, u64, u64) -> c_int;
    cancelled = "EvtWriter_MpiRequestCancelled"(Handle, Handle, u64, u64) -> c_int;
    collective_begin = "EvtWriter_MpiCollectiveBegin"(Handle, Handle, u64) -> c_int;
    collective_end = "EvtWriter_MpiCollectiveEnd"(Handle, Handle, u64, u8, u32, u32, u64, u64) -> c_int;
    collective_request = "EvtWriter_NonBlockingCollectiveRequest"(Handle, Handle, u64, u64) -> c_int;
    win_create = "EvtWriter_RmaWinCreate"(Handle, Handle, u64, u32) -> c_int;
    win_destroy = "EvtWriter_RmaWinDestroy"(Handle, Handle, u64, u32) -> c_int;
    put = "EvtWriter_RmaPut"(Handle, Handle, u64, u32, u32, u64, u64) -> c_int;
    get = "EvtWriter_RmaGet"(Handle, Handle, u64, u32, u32, u64, u64) -> c_int;
    atomic = "EvtWriter_RmaAtomic"(Handle, Handle, u64, u32, u32, u8, u64, u64, u64) -> c_int;
    access_complete = "EvtWriter_RmaOpCompleteBlocking"(Handle, Handle, u64, u32, u64) -> c_int;
    access_local = "EvtWriter_RmaOpCompleteNonBlocking"(Handle, Handle, u64, u32, u64) -> c_int;
    access_remote = "EvtWriter_RmaOpCompleteRemote"(Handle, Handle, u64, u32, u64) -> c_int;
    fence_begin = "EvtWriter_RmaCollectiveBegin"(Handle, Handle, u64) -> c_int;
    fence_end = "EvtWriter_RmaCollectiveEnd"(Handle, Handle, u64, u8, u32, u32, u32, u64, u64) -> c_int;
    group_sync = "EvtWriter_RmaGroupSync"(Handle, Handle, u64, u32, u32, u32) -> c_int;
    request_lock = "EvtWriter_RmaRequestLock"(Handle, Handle, u64, u32, u32, u64, u8) -> c_int;
    release_lock = "EvtWriter_RmaReleaseLock"(Handle, Handle, u64, u32, u32, u64) -> c_int;
    file_open = "EvtWriter_IoCreateHandle"(Handle, Handle, u64, u32, u8, u32, u32) -> c_int;
    file_close = "EvtWriter_IoDestroyHandle"(Handle, Handle, u64, u32) -> c_int;
    operation_begin = "EvtWriter_IoOperationBegin"(Handle, Handle, u64, u32, u8, u32, u64, u64) -> c_int;
    operation_issued = "EvtWriter_IoOperationIssued"(Handle, Handle, u64, u32, u64) -> c_int;
    operation_complete = "EvtWriter_IoOperationComplete"(Handle, Handle, u64, u32, u64, u64) -> c_int;
    new_list = "AttributeList_New"() -> Handle;
    delete_list = "AttributeList_Delete"(Handle) -> c_int;
    clear_list = "AttributeList_RemoveAllAttributes"(Handle) -> c_int;
    add_number = "AttributeList_AddInt64"(Handle, u32, i64) -> c_int;
    add_text = "AttributeList_AddStringRef"(Handle, u32, u32) -> c_int;
    attribute = "GlobalDefWriter_WriteAttribute"(Handle, u32, u32, u32, u8) -> c_int;
    rma_win = "GlobalDefWriter_WriteRmaWin"(Handle, u32, u32, u32, u32) -> c_int;
    io_paradigm = "GlobalDefWriter_WriteIoParadigm"(
        Handle, u32, u32, u32, u8, u32, u8, *const u8, *const u8, *const u64
    ) -> c_int;
    io_file = "GlobalDefWriter_WriteIoRegularFile"(Handle, u32, u32, u32) -> c_int;
    io_handle = "GlobalDefWriter_WriteIoHandle"(Handle, u32, u32, u32, u32, u32, u32, u32) -> c_int;
    io_handle_state = "GlobalDefWriter_WriteIoPreCreatedHandleState"(Handle, u32, u8, u32) -> c_int;
    collective_complete =
        "EvtWriter_NonBlockingCollectiveComplete"(Handle, Handle, u64, u8, u32, u32, u64, u64, u64) -> c_int;
}

/// A definition of the archive.
#[derive(Clone, Copy, Debug)]
pub(super) enum Definition<'a> {
    /// Ticks per second, offset, length, and the date of the offset in ns since 1970.
    Clock(u64, u64, u64, u64),
    String(u32, &'a str),
    /// Number, name, class, parent.
    Node(u32, u32, u32, u32),
    /// Number, name, kind, node.
    Process(u32, u32, u8, u32),
    /// Number, name, kind, events, process.
    Location(u64, u32, u8, u64, u32),
    /// Number, name, role, paradigm.
    Region(u32, u32, u8, u8),
    /// Number, name, kind, paradigm, members.
    Group(u32, u32, u8, u8, &'a [u64]),
    /// Number, name, group.
    Comm(u32, u32, u32),
    /// Number, name, communicator.
    Window(u32, u32, u32),
    /// What files are opened by: number, identification, name.
    Paradigm(u32, u32, u32),
    /// Number, name, node.
    File(u32, u32, u32),
    /// One that is open: number, name, file, paradigm, communicator.
    Opened(u32, u32, u32, u32, u32),
    /// The same, of one that is open when the archive begins.
    OpenBefore(u32, u32, u32, u32, u32),
    /// Such a one's number and how it was opened.
    OpenedBefore(u32, Opening),
    /// A time that is measured: number, name, unit.
    Measure(u32, u32, u32),
    /// What is measured together: number, and how many of the times, the first ones.
    Measures(u32, u8),
    /// Number, name, description, type.
    Attribute(u32, u32, u32, u8),
}

/// An attribute of an event: its number, and a number or that of a string.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attribute {
    Number(u32, i64),
    Text(u32, u32),
}

/// `OTF2_RMA_WIN_FLAG_CREATE_DESTROY_EVENTS`.
const CREATED: u32 = 1;
/// `OTF2_COLLECTIVE_OP_BARRIER`.
const BARRIER: u8 = 0;
/// `OTF2_IO_HANDLE_FLAG_PRE_CREATED`.
const PRE_CREATED: u32 = 1;
/// `OTF2_IO_PARADIGM_CLASS_PARALLEL`.
const PARALLEL: u8 = 1;
/// `OTF2_TYPE_UINT64`.
const UINT64: u8 = 4;
/// `OTF2_METRIC_TYPE_USER`.
const USER: u8 = 3;
/// `OTF2_METRIC_ABSOLUTE_NEXT`: a value is that of the time until the next one.
const ABSOLUTE_NEXT: u8 = 1 | 3 << 4;
/// `OTF2_BASE_DECIMAL`, and the exponent of ns.
const DECIMAL: u8 = 1;
const NANO: i64 = -9;
/// `OTF2_METRIC_ASYNCHRONOUS`.
const ASYNCHRONOUS: u8 = 2;
/// Number of what is measured together.
pub(super) const MEASURED: u32 = 0;
/// `OTF2_RECORDER_KIND_CPU`.
const BY_THREADS: u8 = 2;
/// Times that are measured together at most.
const MEASURES: usize = 3;
const NUMBERS: [u32; MEASURES] = [0, 1, 2];

/// Writes one location's events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writer(NonNull<c_void>);

/// An archive being written.
pub(super) struct Archive {
    functions: Functions,
    handle: NonNull<c_void>,
    /// Attributes of the event that is written next.
    list: NonNull<c_void>,
    // Dropped last: functions are in it.
    _library: Library,
}

impl Archive {
    /// Begins an archive in a directory that is there and empty, whose events take `chunk` bytes of memory per location.
    pub(super) fn create(directory: &Path, name: &str, chunk: u64) -> Result<Self> {
        let library = library()?;
        let functions = Functions::find(&library)?;
        let path = text(&directory.to_string_lossy());
        let name = text(name);
        FIRST.take();
        // SAFETY: the callback is a function of this program, and asks for no data.
        unsafe { (functions.on_error)(keep, null_mut()) };
        // SAFETY: both strings end with NUL and outlive the call; the numbers are those of the headers.
        let handle = unsafe {
            (functions.open)(
                path.as_ptr(),
                name.as_ptr(),
                FILEMODE_WRITE,
                chunk,
                DEFINITIONS,
                SUBSTRATE_POSIX,
                COMPRESSION_NONE,
            )
        };
        check(FIRST.take(), functions.describe)?;
        let handle = NonNull::new(handle).context("the OTF2 library cannot create the archive")?;
        // SAFETY: the function takes nothing.
        let list =
            NonNull::new(unsafe { (functions.new_list)() }).context("the OTF2 library has no memory")?;
        let archive = Self { functions, handle, list, _library: library };
        let (to, f) = (archive.handle.as_ptr(), &archive.functions);
        // SAFETY: the archive is open; the callbacks are static and ask for no data.
        archive.check(unsafe { (f.set_flush)(to, &raw const FLUSHES, null_mut()) })?;
        // SAFETY: the archive is open, and used by this process alone.
        archive.check(unsafe { (f.set_serial)(to) })?;
        // SAFETY: the archive is open.
        archive.check(unsafe { (f.open_events)(to) })?;
        Ok(archive)
    }

    /// What a code says that is not success, or what went wrong before it.
    fn check(&self, code: c_int) -> Result<()> {
        let first = FIRST.take();
        check(if first == 0 { code } else { first }, self.functions.describe)
    }

    pub(super) fn describe(&self, creator: &str, description: &str) -> Result<()> {
        let (creator, description) = (text(creator), text(description));
        // SAFETY: the archive is open; the strings end with NUL and outlive the calls, which copy them.
        self.check(unsafe { (self.functions.set_creator)(self.handle.as_ptr(), creator.as_ptr()) })?;
        // SAFETY: as above.
        self.check(unsafe { (self.functions.set_description)(self.handle.as_ptr(), description.as_ptr()) })
    }

    pub(super) fn property(&self, name: &str, value: &str) -> Result<()> {
        if value.is_empty() {
            // The library takes it as the wish to remove the property.
            return Ok(());
        }
        let (name, value) = (text(name), text(value));
        // SAFETY: as in `describe`.
        self.check(unsafe {
            (self.functions.set_property)(self.handle.as_ptr(), name.as_ptr(), value.as_ptr(), true)
        })
    }

    /// Begins a location's events.
    pub(super) fn writer(&self, location: u64) -> Result<Writer> {
        // SAFETY: the archive is open, and so are its files of events.
        let writer = unsafe { (self.functions.event_writer)(self.handle.as_ptr(), location) };
        self.check(0)?;
        NonNull::new(writer).map(Writer).context("the OTF2 library cannot write events of a location")
    }

    /// Ends a location's events, which must not be written to again.
    pub(super) fn end(&self, writer: Writer) -> Result<()> {
        // SAFETY: the writer is of this archive and open.
        self.check(unsafe { (self.functions.close_event_writer)(self.handle.as_ptr(), writer.0.as_ptr()) })
    }

    /// Enters a region at a time, with attributes.
    pub(super) fn enter(&self, writer: Writer, time: u64, region: u32, with: &[Attribute]) -> Result<()> {
        let (f, list) = (&self.functions, self.list.as_ptr());
        // SAFETY: the list is this archive's.
        self.check(unsafe { (f.clear_list)(list) })?;
        for attribute in with {
            // SAFETY: as above.
            self.check(unsafe {
                match *attribute {
                    Attribute::Number(name, number) => (f.add_number)(list, name, number),
                    Attribute::Text(name, text) => (f.add_text)(list, name, text),
                }
            })?;
        }
        // SAFETY: the writer is of this archive and open, as in `record`.
        self.check(unsafe { (f.enter)(writer.0.as_ptr(), list, time, region) })
    }

    /// Writes an event at a time.
    pub(super) fn record(&self, writer: Writer, time: u64, record: Record) -> Result<()> {
        let (f, w, no) = (&self.functions, writer.0.as_ptr(), null_mut());
        // SAFETY: the writer is of this archive and open (`end` takes it, and its caller lets go of it); NULL stands for
        // no attributes.
        self.check(unsafe {
            match record {
                Record::Enter(region) => (f.enter)(w, no, time, region),
                Record::Leave(region) => (f.leave)(w, no, time, region),
                Record::Send(p) => (f.send)(w, no, time, p.rank, p.comm, p.tag, p.bytes),
                Record::Isend(p, id) => (f.isend)(w, no, time, p.rank, p.comm, p.tag, p.bytes, id),
                Record::IsendComplete(id) => (f.isend_complete)(w, no, time, id),
                Record::IrecvRequest(id) => (f.irecv_request)(w, no, time, id),
                Record::Recv(p) => (f.recv)(w, no, time, p.rank, p.comm, p.tag, p.bytes),
                Record::Irecv(p, id) => (f.irecv)(w, no, time, p.rank, p.comm, p.tag, p.bytes, id),
                Record::Cancelled(id) => (f.cancelled)(w, no, time, id),
                Record::CollectiveBegin => (f.collective_begin)(w, no, time),
                Record::CollectiveEnd(o) => {
                    (f.collective_end)(w, no, time, o.kind, o.comm, o.root, o.sent, o.received)
                }
                Record::WinCreate(win) => (f.win_create)(w, no, time, win),
                Record::WinDestroy(win) => (f.win_destroy)(w, no, time, win),
                Record::Put(a) => (f.put)(w, no, time, a.win, a.remote, a.sent, a.id),
                Record::Get(a) => (f.get)(w, no, time, a.win, a.remote, a.received, a.id),
                Record::Atomic(a, kind) => {
                    (f.atomic)(w, no, time, a.win, a.remote, kind, a.sent, a.received, a.id)
                }
                Record::AccessComplete(win, id) => (f.access_complete)(w, no, time, win, id),
                Record::AccessLocal(win, id) => (f.access_local)(w, no, time, win, id),
                Record::AccessRemote(win, id) => (f.access_remote)(w, no, time, win, id),
                Record::FenceBegin => (f.fence_begin)(w, no, time),
                Record::FenceEnd(win) => (f.fence_end)(w, no, time, BARRIER, SYNC_ALL, win, UNDEFINED, 0, 0),
                Record::GroupSync(win, level, group) => (f.group_sync)(w, no, time, level, win, group),
                // There is one lock for each window and rank.
                Record::RequestLock(win, rank, kind) => (f.request_lock)(w, no, time, win, rank, 0, kind),
                Record::ReleaseLock(win, rank) => (f.release_lock)(w, no, time, win, rank, 0),
                Record::FileOpen { handle, mode } => {
                    (f.file_open)(w, no, time, handle, mode.access, mode.creation, mode.status)
                }
                Record::FileClose(handle) => (f.file_close)(w, no, time, handle),
                Record::OperationBegin { handle, mode, flags, bytes, id } => {
                    (f.operation_begin)(w, no, time, handle, mode, flags, bytes, id)
                }
                Record::OperationIssued(handle, id) => (f.operation_issued)(w, no, time, handle, id),
                Record::OperationComplete(handle, bytes, id) => {
                    (f.operation_complete)(w, no, time, handle, bytes, id)
                }
                Record::CollectiveRequest(id) => (f.collective_request)(w, no, time, id),
                Record::CollectiveComplete(o, id) => {
                    (f.collective_complete)(w, no, time, o.kind, o.comm, o.root, o.sent, o.received, id)
                }
            }
        })
    }

    /// Writes times, in ns, that hold from a time on: of the first so many that are measured together.
    pub(super) fn measure(&self, writer: Writer, time: u64, all: [Option<u64>; MEASURES]) -> Result<()> {
        let types = [UINT64; MEASURES];
        let count: u8 = all.iter().flatten().map(|_| 1).sum();
        let values = all.map(Option::unwrap_or_default);
        let (w, no) = (writer.0.as_ptr(), null_mut());
        // SAFETY: as in `record`; both lists have as many elements as are counted at least, of one and of eight bytes, as the
        // library's types of them have, and outlive the call, which copies them.
        self.check(unsafe {
            (self.functions.metric)(w, no, time, MEASURED, count, types.as_ptr(), values.as_ptr())
        })
    }

    /// Ends all events, and begins the definitions: first an empty file of them for each location, which readers look for.
    pub(super) fn definitions(&self, locations: impl Iterator<Item = u64>) -> Result<Definitions<'_>> {
        let (to, f) = (self.handle.as_ptr(), &self.functions);
        // SAFETY: the archive is open, and all writers of events are closed.
        self.check(unsafe { (f.close_events)(to) })?;
        // SAFETY: the archive is open.
        self.check(unsafe { (f.open_definitions)(to) })?;
        for location in locations {
            // SAFETY: the archive's files of definitions are open.
            let writer = unsafe { (f.definition_writer)(to, location) };
            self.check(0)?;
            if writer.is_null() {
                bail!("the OTF2 library cannot write definitions of a location");
            }
            // SAFETY: the writer has just been opened.
            self.check(unsafe { (f.close_definition_writer)(to, writer) })?;
        }
        // SAFETY: the archive is open, and all writers of local definitions are closed.
        self.check(unsafe { (f.close_definitions)(to) })?;
        // SAFETY: the archive is open.
        let writer = unsafe { (f.global_writer)(to) };
        self.check(0)?;
        let writer = NonNull::new(writer).context("the OTF2 library cannot write definitions")?;
        Ok(Definitions { archive: self, writer })
    }

    /// Writes what is left.
    pub(super) fn close(self) -> Result<()> {
        // SAFETY: the list is this archive's, and nobody uses it again.
        unsafe { (self.functions.delete_list)(self.list.as_ptr()) };
        // SAFETY: the archive is open, and `self` is gone afterwards: nobody uses the handle or what came from it again.
        let closed = unsafe { (self.functions.close)(self.handle.as_ptr()) };
        self.check(closed)
    }
}

/// The global definitions being written.
pub(super) struct Definitions<'a> {
    archive: &'a Archive,
    writer: NonNull<c_void>,
}

impl Definitions<'_> {
    pub(super) fn write(&self, definition: Definition<'_>) -> Result<()> {
        let (f, w) = (&self.archive.functions, self.writer.as_ptr());
        // SAFETY: the writer is open as long as the archive, which this borrows; strings end with NUL and lists have the length
        // that stands before them, and both outlive the call, which copies them.
        self.archive.check(unsafe {
            match definition {
                Definition::Clock(ticks, offset, length, date) => (f.clock)(w, ticks, offset, length, date),
                Definition::String(number, string) => (f.string)(w, number, text(string).as_ptr()),
                Definition::Node(number, name, class, parent) => (f.node)(w, number, name, class, parent),
                Definition::Process(number, name, kind, node) => {
                    (f.process)(w, number, name, kind, node, UNDEFINED)
                }
                Definition::Location(number, name, kind, events, process) => {
                    (f.location)(w, number, name, kind, events, process)
                }
                Definition::Region(number, name, role, paradigm) => {
                    (f.region)(w, number, name, name, UNDEFINED, role, paradigm, 0, UNDEFINED, 0, 0)
                }
                Definition::Group(number, name, kind, paradigm, members) => {
                    let length = u32::try_from(members.len())?;
                    let list = if members.is_empty() { null() } else { members.as_ptr() };
                    (f.group)(w, number, name, kind, paradigm, 0, length, list)
                }
                Definition::Comm(number, name, group) => (f.comm)(w, number, name, group, UNDEFINED, 0),
                Definition::Window(number, name, comm) => (f.rma_win)(w, number, name, comm, CREATED),
                Definition::Paradigm(number, identification, name) => {
                    (f.io_paradigm)(w, number, identification, name, PARALLEL, 0, 0, null(), null(), null())
                }
                Definition::File(number, name, node) => (f.io_file)(w, number, name, node),
                Definition::Opened(number, name, file, paradigm, comm) => {
                    (f.io_handle)(w, number, name, file, paradigm, 0, comm, UNDEFINED)
                }
                Definition::OpenBefore(number, name, file, paradigm, comm) => {
                    (f.io_handle)(w, number, name, file, paradigm, PRE_CREATED, comm, UNDEFINED)
                }
                Definition::OpenedBefore(number, mode) => {
                    (f.io_handle_state)(w, number, mode.access, mode.status)
                }
                Definition::Attribute(number, name, description, kind) => {
                    (f.attribute)(w, number, name, description, kind)
                }
                Definition::Measure(number, name, unit) => (f.metric_member)(
                    w,
                    number,
                    name,
                    UNDEFINED,
                    USER,
                    ABSOLUTE_NEXT,
                    UINT64,
                    DECIMAL,
                    NANO,
                    unit,
                ),
                Definition::Measures(number, count) => {
                    let count = count.min(NUMBERS.len().try_into()?);
                    (f.metric_class)(w, number, count, NUMBERS.as_ptr(), ASYNCHRONOUS, BY_THREADS)
                }
            }
        })
    }
}

/// Bytes of memory for definitions, the library's own default.
const DEFINITIONS: u64 = 4 << 20;
