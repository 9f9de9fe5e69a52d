//! Statuses, and what completions complete.
//!
//! SAFETY, for the whole module: pointers are the program's, or our own stand-ins, with as many elements as the call
//! takes; they are read after the call that fills them has succeeded.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use super::CallEncoder;
use crate::constants as k;
use crate::ffi::{Handles, Status, is_mark};
use crate::requests::Key;
use crate::statuses::{bytes, is_cancelled, nth, size, source_and_tag, write_status};
use st_model::num::{narrow, saturate};
use st_model::values::{CANCELLED, NONE};
use std::ffi::c_int;

impl CallEncoder<'_> {
    /// The program's status, or ours if it ignores it.
    pub(crate) fn own_status(&mut self, status: *mut Status) -> *mut Status {
        self.stand_in(status, 1)
    }

    /// The statuses of a call that completes up to `n` requests; its lists are owed from here on.
    pub(crate) fn own_statuses(&mut self, statuses: *mut Status, n: i64) -> *mut Status {
        self.own().owes_lists = true;
        self.stand_in(statuses, saturate(n))
    }

    /// As [`CallEncoder::own_status`]; not every library sets the status of every read and write.
    pub(crate) fn own_iostatus(&mut self, status: *mut Status) -> *mut Status {
        let own = self.stand_in(status, 1);
        if !std::ptr::eq(own, status) {
            unsafe { own.cast::<u8>().write_bytes(0, size()) };
        }
        own
    }

    fn stand_in(&mut self, theirs: *mut Status, n: usize) -> *mut Status {
        if !is_mark(theirs, k::MPI_STATUS_IGNORE()) && !is_mark(theirs, k::MPI_STATUSES_IGNORE()) {
            return theirs;
        }
        let ours = &mut self.own().statuses;
        let words = (n * size()).div_ceil(size_of::<u64>());
        if ours.len() < words {
            ours.resize(words.next_power_of_two(), 0);
        }
        ours.as_mut_ptr().cast()
    }

    /// Fills the three words of a receive's or probe's status.
    pub(crate) unsafe fn status(&mut self, at: usize, status: *const Status, wildcard: bool) {
        unsafe { write_status(&mut self.own().words[at..], status, wildcard) };
    }

    /// Fills the word of a read's or write's status.
    pub(crate) unsafe fn iostatus(&mut self, at: usize, status: *const Status) {
        let n = unsafe { bytes(status) };
        self.set(at, n);
    }

    /// All requests of the call are complete.
    pub(crate) unsafe fn completed_all(&mut self, statuses: *const Status) {
        for i in 0..self.own().listed.len() {
            unsafe { self.one(i, nth(statuses, i)) };
        }
        self.completed_none();
    }

    /// The requests at `n` positions are complete; statuses in the order of the positions.
    pub(crate) unsafe fn completed_some(&mut self, positions: *const c_int, n: i64, statuses: *const Status) {
        for i in 0..saturate(n) {
            // MPI_UNDEFINED is negative: there was no active request.
            if let Ok(position) = usize::try_from(unsafe { *positions.wrapping_add(i) }) {
                unsafe { self.one(position, nth(statuses, i)) };
            }
        }
        self.completed_none();
    }

    /// Writes the lists of what is complete (nothing, if nothing was noted).
    pub(crate) fn completed_none(&mut self) {
        let t = self.own();
        if !std::mem::take(&mut t.owes_lists) {
            return;
        }
        let n = t.completed.len();
        let at = t.words.len();
        // One for each list, and the number of elements before each.
        t.words.resize(at + 4 * (n + 1), narrow(n));
        let (first, rest) = t.words[at..].split_at_mut(n + 1);
        let (second, rest) = rest.split_at_mut(n + 1);
        let (third, fourth) = rest.split_at_mut(n + 1);
        let places =
            first[1..].iter_mut().zip(&mut second[1..]).zip(third[1..].iter_mut().zip(&mut fourth[1..]));
        for (c, ((a, b), (d, e))) in t.completed.iter().zip(places) {
            [*a, *b, *d, *e] = *c;
        }
        t.completed.clear();
    }

    /// Writes what a failed call left unwritten.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if self.own().owes_lists {
            self.completed_none();
        }
    }

    /// Notes the completion of the request at a position.
    unsafe fn one(&mut self, position: usize, status: *const Status) {
        let Some(Some(key)) = self.own().listed.get(position).copied() else { return };
        let slot = self.state.requests.get(key);
        if !slot.active {
            return;
        }
        let (receive, sized) = (slot.kind.receive, slot.kind.sized);
        let (source, tag, size) = unsafe {
            if !receive {
                (NONE, NONE, if sized { bytes(status) } else { NONE })
            } else if is_cancelled(status) {
                (NONE, NONE, CANCELLED)
            } else {
                let [source, tag] = source_and_tag(status);
                (source, tag, bytes(status))
            }
        };
        self.own().completed.push([narrow(position), source, tag, size]);
        unsafe { self.complete(position, key) };
    }

    /// A completed request is gone, or inactive if the program still has its handle (persistent ones).
    unsafe fn complete(&mut self, position: usize, key: Key) {
        let at = self.own().listed_at;
        let slot = self.state.requests.get(key);
        if let Some(promise) = slot.promise.take() {
            let handle = unsafe { Handles::at(promise.place).get(0) };
            self.state.comms.bind(handle, promise.comm);
        }
        let slot = self.state.requests.get(key);
        if unsafe { Handles::at(at).get(position) } == k::MPI_REQUEST_NULL() {
            self.release(key);
        } else {
            slot.active = false;
        }
    }

    /// After a completion that returned an error some requests may be gone all the same.
    pub(crate) fn failed_completion(&mut self) {
        if !self.own().owes_lists {
            return;
        }
        for position in 0..self.own().listed.len() {
            if let Some(Some(key)) = self.own().listed.get(position).copied() {
                let at = self.own().listed_at;
                if unsafe { Handles::at(at).get(position) } == k::MPI_REQUEST_NULL() {
                    self.release(key);
                }
            }
        }
    }
}
