//! One thread of the program, and the call that it is making.

use crate::polls::{Repeat, Series};
use crate::requests::Key;
use st_model::calls::CallId;
use st_model::lowest::Lowest;
use st_unwind::Unwinder;
use std::ffi::c_void;
use std::sync::OnceLock;

/// A thread.
pub(crate) struct Thread {
    /// Index in the recorder.
    pub(crate) index: usize,
    /// None once the thread has ended.
    pub(crate) unwinder: Option<Unwinder>,
    /// The unwinder's number of the stack of the last call whose call site was looked up.
    pub(crate) stack: u32,
    /// When its last recorded call ended, or it began, ns.
    pub(crate) exit: i64,
    /// The call whose inputs were read and that has not come back.
    pub(crate) begun: Option<Event>,
    /// Words of the call that is being read.
    pub(crate) words: Vec<i64>,
    pub(crate) series: Series,
    pub(crate) numbers: Lowest,
    /// Requests named by the call that is being read; `None` for null ones.
    pub(crate) listed: Vec<Option<Key>>,
    /// Positions of those in the list whose places do not tell them from others.
    pub(crate) open: Vec<usize>,
    /// Address of the program's array of them.
    pub(crate) listed_at: usize,
    /// The call completes requests, and its lists are not written yet.
    pub(crate) owes_lists: bool,
    /// The class of the error that the call has returned, while its outputs are read.
    pub(crate) error: u32,
    /// A poll said no.
    pub(crate) failed: bool,
    /// Memory of stand-ins for ignored statuses.
    pub(crate) statuses: Vec<u64>,
    /// Positions, sources, tags and sizes of completed requests.
    pub(crate) completed: Vec<[i64; 4]>,
}

impl Thread {
    /// The next thread: its index in the recorder, its call sites, and when it begins, ns.
    pub(crate) fn new(index: usize, unwinder: Unwinder, start: i64) -> Self {
        Self {
            index,
            unwinder: Some(unwinder),
            stack: 0,
            exit: start,
            begun: None,
            words: Vec::with_capacity(64),
            series: Series::default(),
            numbers: Lowest::default(),
            listed: Vec::new(),
            open: Vec::new(),
            listed_at: 0,
            owes_lists: false,
            error: 0,
            failed: false,
            statuses: Vec::new(),
            completed: Vec::new(),
        }
    }

    /// Begins a call.
    pub(crate) fn begin(&mut self) {
        self.words.clear();
        self.listed.clear();
        self.owes_lists = false;
        self.failed = false;
    }
}

/// A call, as far as it has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) call: CallId,
    pub(crate) site: u32,
    pub(crate) error: u32,
    pub(crate) repeat: Repeat,
    /// Recorded by name only.
    pub(crate) opaque: bool,
    /// Recorded also while paused: the calls that frame a trace.
    pub(crate) always: bool,
    pub(crate) enter: i64,
    pub(crate) exit: i64,
}

/// Has a function, always the same, called at the end of the calling thread, if the system has a place left for that.
pub(crate) fn tell_end(ends: extern "C" fn(*mut c_void)) {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: a variable, and a function that may be called at the end of any thread.
        (unsafe { libc::pthread_key_create(&raw mut key, Some(ends)) } == 0).then_some(key)
    });
    if let Some(key) = key {
        // SAFETY: the key was made; what is not null makes the function be called, and is not read.
        unsafe { libc::pthread_setspecific(*key, std::ptr::dangling()) };
    }
}
