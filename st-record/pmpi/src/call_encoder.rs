//! Reads the parameters of a call into words. Called by the generated wrappers, in row order.

mod completion;
mod infos;
mod lists;
mod numbered;
mod shared_objects;

use crate::comms::Comms;
use crate::constants as k;
use crate::ffi::{Handles, is_mark};
use crate::local::made_at;
use crate::maker::Maker;
use crate::requests::{Meant, Promise, RequestKind};
use crate::state::State;
use crate::thread::Thread;
pub(crate) use numbered::parts;
use st_model::calls::CallId;
use st_model::num::narrow;
use st_model::values::{NONE, NULL};
use std::ffi::{c_int, c_void};

/// A call being written down.
pub(crate) struct CallEncoder<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) thread: usize,
    call: CallId,
    site: u32,
}

/// Which parameters of a rooted collective mean something on this rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Significance {
    /// Those of the root.
    pub(crate) at_root: bool,
    /// Those of the others (of all, on an intracommunicator).
    pub(crate) elsewhere: bool,
}

impl<'a> CallEncoder<'a> {
    pub(crate) fn new(state: &'a mut State, thread: usize, call: CallId, site: u32) -> Self {
        Self { state, thread, call, site }
    }

    /// The calling thread's state.
    #[inline]
    pub(crate) fn own(&mut self) -> &mut Thread {
        &mut self.state.threads[self.thread]
    }

    /// Adds a word.
    #[inline]
    pub(crate) fn push(&mut self, word: i64) {
        self.own().words.push(word);
    }

    /// Keeps a place for an output that reads `default` if the call fails.
    pub(crate) fn reserve(&mut self, default: i64) -> usize {
        let words = &mut self.own().words;
        words.push(default);
        words.len() - 1
    }

    /// Keeps places for the three words of a status.
    pub(crate) fn reserve_status(&mut self) -> usize {
        let at = self.reserve(NONE);
        self.push(NONE);
        self.push(-1);
        at
    }

    /// Fills a place.
    #[inline]
    pub(crate) fn set(&mut self, at: usize, word: i64) {
        self.own().words[at] = word;
    }

    /// Notes that a poll said no.
    pub(crate) fn poll_failed(&mut self) {
        self.own().failed = true;
    }

    // ---- buffers and ranks ----

    /// Whether a buffer is `MPI_IN_PLACE`; adds the flag.
    pub(crate) fn in_place(&mut self, buffer: *const c_void) -> bool {
        let yes = is_mark(buffer, k::MPI_IN_PLACE());
        self.push(i64::from(yes));
        yes
    }

    /// Which parameters of a rooted collective count here. `by_root`: the root has parameters of its own.
    pub(crate) fn significance(&mut self, comm: u64, root: c_int, by_root: bool) -> Significance {
        let index = self.comm(comm);
        let info = self.state.comms.info(index);
        if !info.inter {
            return Significance { at_root: info.rank == root, elsewhere: true };
        }
        let at_root = root == k::MPI_ROOT();
        Significance { at_root, elsewhere: root >= 0 || (at_root && !by_root) }
    }

    // ---- communicators and groups ----

    /// Index of a communicator.
    #[inline]
    pub(crate) fn comm(&mut self, handle: u64) -> i64 {
        self.state.comms.index(handle, &mut self.state.recorder)
    }
    /// Number of ranks that lists by rank have.
    pub(crate) fn peers(&mut self, comm: u64) -> i64 {
        let index = self.comm(comm);
        self.state.comms.info(index).peers
    }
    /// Size of the local group.
    pub(crate) fn local_size(&mut self, comm: u64) -> i64 {
        let index = self.comm(comm);
        self.state.comms.info(index).local
    }
    /// See [`Comms::cart_dims`].
    pub(crate) fn cart_dims(&mut self, comm: u64) -> i64 {
        Comms::cart_dims(comm)
    }
    /// See [`Comms::graph_dims`].
    pub(crate) fn graph_dims(&mut self, comm: u64) -> (i64, i64) {
        Comms::graph_dims(comm)
    }
    /// See [`Comms::graph_degree`].
    pub(crate) fn graph_degree(&mut self, comm: u64, rank: c_int) -> i64 {
        Comms::graph_degree(comm, rank)
    }
    /// See [`Comms::dist_degrees`].
    pub(crate) fn dist_degrees(&mut self, comm: u64) -> (i64, i64) {
        Comms::dist_degrees(comm)
    }
    /// See [`Comms::degrees`].
    pub(crate) fn degrees(&mut self, comm: u64) -> (i64, i64) {
        let index = self.comm(comm);
        self.state.comms.degrees(comm, index)
    }
    /// Registers a new communicator.
    pub(crate) fn new_comm(&mut self, parent: u64, handle: u64) -> i64 {
        let (parent, maker) = (self.comm(parent), self.maker());
        self.state.comms.create(handle, parent, maker, &mut self.state.recorder)
    }
    /// Registers a communicator that was not made from another, unless it is known (`MPI_Comm_get_parent`).
    pub(crate) fn new_comm_alone(&mut self, handle: u64) -> i64 {
        if self.state.comms.knows(handle) {
            return self.comm(handle);
        }
        let maker = self.maker();
        self.state.comms.create(handle, NULL, maker, &mut self.state.recorder)
    }
    /// Registers a communicator that a request will deliver.
    pub(crate) fn promise_comm(&mut self, parent: u64) -> i64 {
        let (parent, maker) = (self.comm(parent), self.maker());
        self.state.comms.promise(parent, maker, &mut self.state.recorder)
    }
    /// Binds the promised communicator of the request numbered last to its handle: now if the library has written it,
    /// else when the request completes.
    ///
    /// # Safety
    ///
    /// `place` is the call's output parameter.
    pub(crate) unsafe fn keep_promise(&mut self, place: Handles, comm: i64) {
        // SAFETY: the caller's promise.
        let handle = unsafe { place.get(0) };
        if handle != k::MPI_COMM_NULL() && !self.state.comms.knows(handle) {
            self.state.comms.bind(handle, comm);
        } else if let Some(Some(key)) = self.own().listed.last().copied() {
            self.state.requests.get(key).promise = Some(Promise { place: place.address(0), comm });
        }
    }
    /// Forgets a communicator.
    pub(crate) fn free_comm(&mut self, handle: u64) {
        self.state.comms.free(handle, &mut self.state.recorder);
    }
    /// Index of a group.
    pub(crate) fn group(&mut self, handle: u64) -> i64 {
        self.state.comms.group(handle, &mut self.state.recorder)
    }
    /// Registers a new group.
    pub(crate) fn new_group(&mut self, handle: u64) -> i64 {
        let maker = self.maker();
        self.state.comms.new_group(handle, maker, &mut self.state.recorder)
    }
    /// Forgets a group.
    pub(crate) fn free_group(&mut self, handle: u64) {
        self.state.comms.free_group(handle, &mut self.state.recorder);
    }

    // ---- datatypes and operations ----

    /// Index of a datatype.
    #[inline]
    pub(crate) fn datatype(&mut self, handle: u64) -> i64 {
        self.state.types.index(handle, &mut self.state.recorder)
    }
    /// Registers the type that the call has made.
    pub(crate) fn new_type(&mut self, handle: u64) -> i64 {
        let maker = self.maker();
        let words = std::mem::take(&mut self.own().words);
        let index = self.state.types.create(handle, maker, &words, &mut self.state.recorder);
        self.own().words = words;
        index
    }
    /// Forgets a datatype.
    pub(crate) fn free_type(&mut self, handle: u64) {
        self.state.types.free(handle, &mut self.state.recorder);
    }
    /// Index of an operation.
    pub(crate) fn op(&mut self, handle: u64) -> i64 {
        self.state.types.op(handle, &mut self.state.recorder)
    }
    /// Whether an operation is `MPI_NO_OP`.
    pub(crate) fn is_no_op(&self, handle: u64) -> bool {
        handle == k::MPI_NO_OP()
    }
    /// Registers a user's operation.
    pub(crate) fn new_op(&mut self, handle: u64, commutes: bool) -> i64 {
        let maker = self.maker();
        self.state.types.new_op(handle, commutes, maker, &mut self.state.recorder)
    }
    /// Forgets an operation.
    pub(crate) fn free_op(&mut self, handle: u64) {
        self.state.types.free_op(handle, &mut self.state.recorder);
    }

    /// What makes the call's objects.
    pub(crate) fn maker(&self) -> Maker<'static> {
        self.state.maker(self.call, self.site)
    }

    // ---- requests and messages ----

    /// A new request, kept at `place`; its number.
    ///
    /// # Safety
    ///
    /// `place` is the call's output parameter.
    pub(crate) unsafe fn new_request(&mut self, place: Handles, kind: RequestKind) -> i64 {
        // SAFETY: the caller's promise.
        let handle = unsafe { place.get(0) };
        if handle == k::MPI_REQUEST_NULL() {
            return NULL;
        }
        let State { requests, threads, .. } = &mut *self.state;
        let thread = &mut threads[self.thread];
        let key = requests.add(&mut thread.numbers, self.thread, handle, place.address(0), kind);
        thread.listed.push(Some(key));
        requests.number(key)
    }

    /// Number of the request that a handle stands for, which the call names. A handle that some unknown function made
    /// gets a number now.
    pub(crate) fn request(&mut self, handle: u64, place: Handles) -> i64 {
        self.own().listed_at = place.address(0);
        if handle == k::MPI_REQUEST_NULL() {
            self.own().listed.push(None);
            return NULL;
        }
        let State { requests, threads, .. } = &mut *self.state;
        let thread = &mut threads[self.thread];
        let at = made_at(0, place.address(0));
        let key = requests.claim_one(handle, at, self.thread).unwrap_or_else(|| {
            requests.add(&mut thread.numbers, self.thread, handle, at, RequestKind::default())
        });
        thread.listed.push(Some(key));
        requests.number(key)
    }

    /// Adds a list of the numbers of the `n` requests that the call names.
    ///
    /// # Safety
    ///
    /// There are so many.
    pub(crate) unsafe fn request_list(&mut self, named: Handles, n: usize) {
        // SAFETY: the caller's promise.
        let get = |i| unsafe { named.get(i) };
        let State { requests, threads, .. } = &mut *self.state;
        let thread = &mut threads[self.thread];
        thread.words.push(narrow(n));
        thread.open.clear();
        for i in 0..n {
            let handle = get(i);
            let null = handle == k::MPI_REQUEST_NULL();
            let meant =
                if null { Meant::Nothing } else { requests.claim(handle, made_at(i, named.address(i))) };
            if meant == Meant::OneOfSeveral {
                thread.open.push(i);
            }
            thread.listed.push(if let Meant::One(key) = meant { Some(key) } else { None });
        }
        if !thread.open.is_empty() {
            requests.claim_open(&mut thread.listed, &thread.open, get, self.thread);
        }
        for i in 0..n {
            let handle = get(i);
            if thread.listed[i].is_none() && handle != k::MPI_REQUEST_NULL() {
                let at = made_at(i, named.address(i));
                let key = requests.add(&mut thread.numbers, self.thread, handle, at, RequestKind::default());
                thread.listed[i] = Some(key);
            }
            thread.words.push(thread.listed[i].map_or(NULL, |key| requests.number(key)));
        }
    }

    /// Marks the requests that the call names as started.
    pub(crate) fn start_requests(&mut self) {
        let State { requests, threads, .. } = &mut *self.state;
        threads[self.thread].listed.iter().flatten().for_each(|key| requests.get(*key).active = true);
    }

    /// Forgets the request that the call names.
    pub(crate) fn free_request(&mut self) {
        if let Some(Some(key)) = self.own().listed.first().copied() {
            self.release(key);
        }
    }

    /// Forgets a request and gives its number back.
    pub(crate) fn release(&mut self, key: u32) {
        let (thread, number) = self.state.requests.remove(key);
        self.state.threads[thread].numbers.give(number);
    }

    /// A matched message; its number, taken from the requests' numbers.
    pub(crate) fn new_message(&mut self, handle: u64) -> i64 {
        if handle == k::MPI_MESSAGE_NULL() || handle == k::MPI_MESSAGE_NO_PROC() {
            return NULL;
        }
        let State { messages, threads, .. } = &mut *self.state;
        let key =
            messages.add(&mut threads[self.thread].numbers, self.thread, handle, 0, RequestKind::default());
        messages.number(key)
    }

    /// Number of a message that the call receives.
    pub(crate) fn take_message(&mut self, handle: u64) -> i64 {
        self.state.messages.begin();
        let Some(key) = self.state.messages.claim_one(handle, 0, self.thread) else { return NULL };
        let number = self.state.messages.number(key);
        let (thread, n) = self.state.messages.remove(key);
        self.state.threads[thread].numbers.give(n);
        number
    }
}
