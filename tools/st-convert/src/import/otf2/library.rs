//! Reading through the OTF2 library: declarations of what is called, and the only code that calls it.
//!
//! Source: the headers of OTF2 3.0 (`otf2/OTF2_Reader.h`, `OTF2_GlobalDefReaderCallbacks.h`, `OTF2_EvtReaderCallbacks.h`).
#![expect(unsafe_code, reason = "calls a C library, which calls back")]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;

use anyhow::{Result, anyhow};
use libloading::Library;
use st_cli::InvalidStream;

use super::callbacks::{
    Attributes, AttributesBy, Batch, OnAccess, OnAsked, OnAtomic, OnAttribute, OnClock, OnCollective, OnComm,
    OnCompleted, OnFence, OnFile, OnFileOpen, OnGroup, OnGroupSync, OnHandle, OnInterComm, OnLocation,
    OnLock, OnMessage, OnNode, OnOperation, OnOperationBegin, OnOperationComplete, OnParadigm, OnProcess,
    OnRegion, OnRegionEvent, OnRelease, OnRequest, OnShared, OnString, OnWindow, access_complete,
    access_local, access_remote, atomic, attribute, cancelled, clock, collective, collective_request, comm,
    completed, enter, fence, file, file_close, file_open, get, group, group_sync, handle, inter_comm, irecv,
    irecv_request, isend, isend_complete, leave, location, node, operation_begin, operation_complete,
    paradigm, process, put, recv, region, release_lock, request_lock, send, string, win_create, win_destroy,
    window,
};
use super::definitions::Definitions;
use crate::otf2::{Handle, OnError, Record, check, functions, library, text};

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
    seek = "EvtReader_Seek"(Handle, u64) -> c_int;
    read_events = "Reader_ReadLocalEvents"(Handle, Handle, u64, *mut u64) -> c_int;
    close_events = "Reader_CloseEvtReader"(Handle, Handle) -> c_int;
    new_global = "GlobalDefReaderCallbacks_New"() -> Handle;
    delete_global = "GlobalDefReaderCallbacks_Delete"(Handle) -> ();
    on_clock = "GlobalDefReaderCallbacks_SetClockPropertiesCallback"(Handle, OnClock) -> c_int;
    on_string = "GlobalDefReaderCallbacks_SetStringCallback"(Handle, OnString) -> c_int;
    on_node = "GlobalDefReaderCallbacks_SetSystemTreeNodeCallback"(Handle, OnNode) -> c_int;
    on_process = "GlobalDefReaderCallbacks_SetLocationGroupCallback"(Handle, OnProcess) -> c_int;
    on_attribute = "GlobalDefReaderCallbacks_SetAttributeCallback"(Handle, OnAttribute) -> c_int;
    on_location = "GlobalDefReaderCallbacks_SetLocationCallback"(Handle, OnLocation) -> c_int;
    on_region = "GlobalDefReaderCallbacks_SetRegionCallback"(Handle, OnRegion) -> c_int;
    on_group = "GlobalDefReaderCallbacks_SetGroupCallback"(Handle, OnGroup) -> c_int;
    on_comm = "GlobalDefReaderCallbacks_SetCommCallback"(Handle, OnComm) -> c_int;
    on_inter_comm = "GlobalDefReaderCallbacks_SetInterCommCallback"(Handle, OnInterComm) -> c_int;
    on_window = "GlobalDefReaderCallbacks_SetRmaWinCallback"(Handle, OnWindow) -> c_int;
    on_paradigm = "GlobalDefReaderCallbacks_SetIoParadigmCallback"(Handle, OnParadigm) -> c_int;
    on_file = "GlobalDefReaderCallbacks_SetIoRegularFileCallback"(Handle, OnFile) -> c_int;
    on_handle = "GlobalDefReaderCallbacks_SetIoHandleCallback"(Handle, OnHandle) -> c_int;
    count_attributes = "AttributeList_GetNumberOfElements"(Handle) -> u32;
    get_attribute = "AttributeList_GetAttributeByIndex"(Handle, u32, *mut u32, *mut u8, *mut i64) -> c_int;
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
    on_win_create = "EvtReaderCallbacks_SetRmaWinCreateCallback"(Handle, OnShared) -> c_int;
    on_win_destroy = "EvtReaderCallbacks_SetRmaWinDestroyCallback"(Handle, OnShared) -> c_int;
    on_put = "EvtReaderCallbacks_SetRmaPutCallback"(Handle, OnAccess) -> c_int;
    on_get = "EvtReaderCallbacks_SetRmaGetCallback"(Handle, OnAccess) -> c_int;
    on_atomic = "EvtReaderCallbacks_SetRmaAtomicCallback"(Handle, OnAtomic) -> c_int;
    on_access_complete = "EvtReaderCallbacks_SetRmaOpCompleteBlockingCallback"(Handle, OnOperation) -> c_int;
    on_access_local = "EvtReaderCallbacks_SetRmaOpCompleteNonBlockingCallback"(Handle, OnOperation) -> c_int;
    on_access_remote = "EvtReaderCallbacks_SetRmaOpCompleteRemoteCallback"(Handle, OnOperation) -> c_int;
    on_fence = "EvtReaderCallbacks_SetRmaCollectiveEndCallback"(Handle, OnFence) -> c_int;
    on_group_sync = "EvtReaderCallbacks_SetRmaGroupSyncCallback"(Handle, OnGroupSync) -> c_int;
    on_request_lock = "EvtReaderCallbacks_SetRmaRequestLockCallback"(Handle, OnLock) -> c_int;
    on_release_lock = "EvtReaderCallbacks_SetRmaReleaseLockCallback"(Handle, OnRelease) -> c_int;
    on_file_open = "EvtReaderCallbacks_SetIoCreateHandleCallback"(Handle, OnFileOpen) -> c_int;
    on_file_close = "EvtReaderCallbacks_SetIoDestroyHandleCallback"(Handle, OnShared) -> c_int;
    on_operation_begin = "EvtReaderCallbacks_SetIoOperationBeginCallback"(Handle, OnOperationBegin) -> c_int;
    on_operation_complete =
        "EvtReaderCallbacks_SetIoOperationCompleteCallback"(Handle, OnOperationComplete) -> c_int;
}

unsafe extern "C" {
    /// Of the C library: gives back what the library allocates for its callers.
    fn free(of: *mut c_void);
}

impl Functions {
    /// Asks for the records of windows and files.
    ///
    /// # Safety
    ///
    /// The set of callbacks is one of events, and not deleted.
    unsafe fn on_accesses(&self, set: Handle) {
        // SAFETY: the caller's promise; callbacks have the types of the headers.
        unsafe {
            (self.on_win_create)(set, win_create);
            (self.on_win_destroy)(set, win_destroy);
            (self.on_put)(set, put);
            (self.on_get)(set, get);
            (self.on_atomic)(set, atomic);
            (self.on_access_complete)(set, access_complete);
            (self.on_access_local)(set, access_local);
            (self.on_access_remote)(set, access_remote);
            (self.on_fence)(set, fence);
            (self.on_group_sync)(set, group_sync);
            (self.on_request_lock)(set, request_lock);
            (self.on_release_lock)(set, release_lock);
            (self.on_file_open)(set, file_open);
            (self.on_file_close)(set, file_close);
            (self.on_operation_begin)(set, operation_begin);
            (self.on_operation_complete)(set, operation_complete);
        }
    }
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

/// An archive being read.
pub(super) struct Archive {
    functions: Functions,
    reader: NonNull<c_void>,
    /// Readers of events that are open, with a file each.
    open: Cell<u32>,
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
        let archive = Self { functions, reader, open: Cell::new(0), _library: library };
        // SAFETY: the reader is open, and used by this process alone.
        let code = unsafe { (archive.functions.serial)(archive.reader.as_ptr()) };
        archive.check(code).map_err(|e| InvalidStream(e.to_string()))?;
        Ok(archive)
    }

    /// What a code says that is not success.
    fn check(&self, code: c_int) -> Result<()> {
        check(code, self.functions.describe)
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
            (f.on_attribute)(set, attribute);
            (f.on_node)(set, node);
            (f.on_process)(set, process);
            (f.on_location)(set, location);
            (f.on_region)(set, region);
            (f.on_group)(set, group);
            (f.on_comm)(set, comm);
            (f.on_inter_comm)(set, inter_comm);
            (f.on_window)(set, window);
            (f.on_paradigm)(set, paradigm);
            (f.on_file)(set, file);
            (f.on_handle)(set, handle);
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

    /// The same, with attributes of records that enter regions.
    pub(super) fn events_with_attributes(&self, location: u64) -> Events<'_> {
        let f = &self.functions;
        let by = AttributesBy { count: f.count_attributes, get: f.get_attribute };
        let mut events = self.events(location);
        events.batch.by = Some(by);
        events
    }

    /// The events of a location that was chosen.
    pub(super) fn events(&self, location: u64) -> Events<'_> {
        let f = &self.functions;
        // SAFETY: callbacks have the types of the headers.
        let callbacks = unsafe {
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
            f.on_accesses(set);
            set
        };
        Events {
            archive: self,
            location,
            reader: None,
            read: 0,
            over: false,
            callbacks,
            batch: Batch::default(),
            attributes: Attributes::new(),
        }
    }

    /// A reader of a location's events from one of them on.
    fn open_events(&self, location: u64, from: u64) -> Result<NonNull<c_void>> {
        let (f, of) = (&self.functions, self.reader.as_ptr());
        // SAFETY: the reader is open, and so are its files of events.
        let reader = NonNull::new(unsafe { (f.events)(of, location) });
        let reader =
            reader.ok_or_else(|| anyhow!("location {location}: the OTF2 library cannot read its events"))?;
        self.open.set(self.open.get() + 1);
        if from > 0 {
            // SAFETY: the reader of events has just been opened.
            self.check(unsafe { (f.seek)(reader.as_ptr(), from) })?;
        }
        Ok(reader)
    }
}

/// Events of a location that are read at a time, and where its reader does not stay open until the next time.
const TOGETHER: u64 = 256;
const APART: u64 = 2048;

/// Readers that stay open: each has a file, of which a process may have few.
const OPEN: u32 = 128;

/// The events of a location, in their order.
pub(super) struct Events<'a> {
    archive: &'a Archive,
    location: u64,
    reader: Option<NonNull<c_void>>,
    /// How many have been read, and whether these are all.
    read: u64,
    over: bool,
    callbacks: Handle,
    batch: Batch,
    /// Of the event that was taken.
    attributes: Attributes,
}

impl Events<'_> {
    /// When the next event is; `None` if there is none.
    pub(super) fn time(&mut self) -> Result<Option<u64>> {
        let (f, of) = (&self.archive.functions, self.archive.reader.as_ptr());
        while self.batch.records.is_empty() && !self.over {
            let reader = match self.reader {
                Some(reader) => reader,
                None => *self.reader.insert(self.archive.open_events(self.location, self.read)?),
            };
            let stays = self.archive.open.get() <= OPEN;
            let (wanted, mut read) = (if stays { TOGETHER } else { APART }, 0u64);
            // SAFETY: both readers are open, callbacks are deleted with them, and nothing else uses the batch while they are called.
            let code = unsafe {
                (f.register_events)(of, reader.as_ptr(), self.callbacks, (&raw mut self.batch).cast());
                (f.read_events)(of, reader.as_ptr(), wanted, &raw mut read)
            };
            self.archive.check(code).map_err(|e| e.context(format!("location {}: events", self.location)))?;
            self.read += read;
            // Behind the last one the library finds an error.
            self.over = read < wanted;
            if self.over || !stays {
                self.close();
            }
        }
        Ok(self.batch.records.front().map(|(time, _)| *time))
    }

    /// The event whose time was asked for.
    pub(super) fn take(&mut self) -> Option<(u64, Record)> {
        let next = self.batch.records.pop_front();
        let enters = matches!(next, Some((_, Record::Enter(_))));
        self.attributes =
            if enters { self.batch.attributes.pop_front().unwrap_or_default() } else { Attributes::new() };
        next
    }

    /// Attributes of the event that was taken, if they are asked for, and if it enters a region.
    pub(super) fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn close(&mut self) {
        let f = &self.archive.functions;
        if let Some(reader) = self.reader.take() {
            // SAFETY: both readers are open, and nobody uses that of events again.
            unsafe { (f.close_events)(self.archive.reader.as_ptr(), reader.as_ptr()) };
            self.archive.open.set(self.archive.open.get() - 1);
        }
    }
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        self.close();
        // SAFETY: no reader has the callbacks any more.
        unsafe { (self.archive.functions.delete_events)(self.callbacks) };
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        // SAFETY: the reader is open, and nobody uses it again. What closing it says is of no interest any more.
        unsafe { (self.functions.close)(self.reader.as_ptr()) };
    }
}
