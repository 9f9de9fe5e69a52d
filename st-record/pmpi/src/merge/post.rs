//! Messages between ranks that never wait for longer than they are told.
//!
//! Bytes go in pieces that every MPI sends without waiting for the receiver to ask for them: what has been sent when a rank
//! goes on does not keep `MPI_Finalize` from ending, whether or not it is received. (That a send is complete may be heard of
//! later: Open MPI's shared memory says so of 400 bytes only once the receiver is in MPI. Nothing here waits for it for long.)
//!
//! SAFETY, for the whole module: MPI is initialised and not finalised; buffers that operations may still use are never
//! freed; results go to variables.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use crate::clock::Reader;
use crate::constants as k;
use crate::ffi::{Handle, Handles};
use crate::real;
use crate::statuses::StatusBuffer;
use crate::sync::{byte, completes, naps};
use st_model::num::narrow;
use std::ffi::c_int;

/// Bytes of a piece: the least of what MPIs send at once (4,096 with what they add, in Open MPI's shared memory).
const PIECE: usize = 3_968;

/// How long a rank waits until what it has sent has left, or what has begun to come is there, ns. Mostly it has, and is.
const LEAVE: i64 = 200_000_000;

/// A communicator of our own, and a clock.
#[derive(Clone, Copy)]
pub(super) struct Post {
    comm: u64,
    clock: Reader,
}

/// Pieces on their way, and the memory that they are read from or written to.
struct Pieces {
    requests: Vec<Handle>,
    at: *mut u8,
    length: usize,
}

/// What is sent.
#[must_use = "settle"]
pub(super) struct Sent(Pieces);

/// What is to be received; `None`: it could not be posted.
#[must_use = "wait, or cancel"]
pub(super) struct Receive(Pieces);

impl Post {
    pub(super) fn new(comm: u64, clock: Reader) -> Self {
        Self { comm, clock }
    }

    /// Begins to send bytes.
    pub(super) fn send(&self, to: c_int, tag: c_int, bytes: Vec<u8>) -> Sent {
        let comm = Handle::from_raw(self.comm);
        Sent(Pieces::begin(bytes, |at, n, request| unsafe {
            real::MPI_Isend(at.cast(), n, byte(), to, tag, comm, request)
        }))
    }

    /// Begins to receive so many bytes.
    pub(super) fn receive(&self, from: c_int, tag: c_int, length: usize) -> Receive {
        let comm = Handle::from_raw(self.comm);
        Receive(Pieces::begin(vec![0; length], |at, n, request| unsafe {
            real::MPI_Irecv(at.cast(), n, byte(), from, tag, comm, request)
        }))
    }

    /// Takes in what has come with a tag, from whomever, and forgets it. A sender that has stopped half-way is not waited for.
    pub(super) fn discard(&self, tag: c_int) {
        let comm = Handle::from_raw(self.comm);
        loop {
            let mut flag = 0;
            let mut status = StatusBuffer::default();
            let any = k::MPI_ANY_SOURCE();
            let looked = unsafe { real::MPI_Iprobe(any, tag, comm, &raw mut flag, status.as_mut()) };
            if looked != 0 || flag == 0 {
                return;
            }
            let piece = self.receive(unsafe { status.source() }, tag, PIECE);
            if piece.wait(self, self.clock.now() + LEAVE).is_none() {
                return;
            }
        }
    }
}

impl Pieces {
    /// Begins an operation on each piece, with its address and length; it returns 0 if it has begun.
    fn begin(bytes: Vec<u8>, mut start: impl FnMut(*mut u8, c_int, Handles) -> c_int) -> Self {
        let length = bytes.len();
        let at = Box::into_raw(bytes.into_boxed_slice()).cast::<u8>();
        let mut requests = Vec::with_capacity(length.div_ceil(PIECE));
        for from in (0..length).step_by(PIECE) {
            let n = narrow(PIECE.min(length - from));
            let mut request = Handle::from_raw(k::MPI_REQUEST_NULL());
            if start(unsafe { at.add(from) }, n, Handles::of(&mut request)) != 0 {
                break;
            }
            requests.push(request);
        }
        Self { requests, at, length }
    }

    /// The bytes, if all operations complete in time. Otherwise those that have not stay in `requests`.
    fn complete(&mut self, post: &Post, until: i64) -> Option<Vec<u8>> {
        let begun = self.requests.len() == self.length.div_ceil(PIECE);
        let mut all = self.requests.iter_mut();
        if !begun || !all.all(|request| completes(request, post.clock, until, naps())) {
            self.requests.retain(|request| request.raw() != k::MPI_REQUEST_NULL());
            return None;
        }
        self.requests.clear();
        let bytes = std::ptr::slice_from_raw_parts_mut(self.at, self.length);
        Some(unsafe { Box::from_raw(bytes) }.into_vec())
    }
}

impl Sent {
    /// Waits a moment for what was sent to leave. What has not left then stays in memory.
    pub(super) fn settle(mut self, post: &Post) {
        if self.0.complete(post, post.clock.now() + LEAVE).is_none() {
            for mut request in self.0.requests {
                unsafe { real::MPI_Request_free(Handles::of(&mut request)) };
            }
        }
    }
}

impl Receive {
    /// What is received; nothing if it does not come in time.
    pub(super) fn wait(mut self, post: &Post, until: i64) -> Option<Vec<u8>> {
        let bytes = self.0.complete(post, until);
        if bytes.is_none() {
            self.cancel();
        }
        bytes
    }

    /// Receives nothing. The memory stays: a message may just be coming in.
    pub(super) fn cancel(self) {
        for mut request in self.0.requests {
            unsafe {
                real::MPI_Cancel(Handles::of(&mut request));
                real::MPI_Request_free(Handles::of(&mut request));
            }
        }
    }
}
