//! Statuses, and what completions complete.
//!
//! SAFETY, for the whole module: pointers are the program's, or our own stand-ins, with as many elements as the call
//! takes; they are read after the call that fills them has succeeded, or has returned an error with which it fills them, too.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use super::CallEncoder;
use crate::constants as k;
use crate::ffi::{Handles, Status, is_mark};
use crate::normal;
use crate::requests::Key;
use crate::statuses::{bytes, error, is_cancelled, nth, size, source_and_tag, write_status};
use st_model::calls::roles::{Action, Role};
use st_model::num::{narrow, saturate};
use st_model::values::{CANCELLED, NONE, error_class};
use std::ffi::c_int;

/// What becomes of a request that a call names which returned an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It is still under way.
    Pending,
    /// It is complete, and its status says how.
    Told,
    /// It is complete, and its message was longer than the buffer: how much of it is there is not known.
    CutOff,
    /// It is complete, and nothing else is known.
    Untold,
}

impl Fate {
    /// Of a request that the program no longer has (`gone`) or keeps for good, whose status has this class of error.
    fn of(gone: bool, persistent: bool, class: u32) -> Self {
        match error_class(class) {
            _ if !gone && !persistent => Self::Pending,
            None if class == 0 => Self::Told,
            Some(TRUNCATE) => Self::CutOff,
            Some("MPI_ERR_PENDING") if !gone => Self::Pending,
            _ => Self::Untold,
        }
    }
}

/// A message was longer than its receive: it is received all the same.
const TRUNCATE: &str = "MPI_ERR_TRUNCATE";

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
        if self.own().error != 0 {
            // How much of it is there, MPIs say in different ways, or not at all.
            self.set(at + 2, -1);
        }
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
        if t.error != 0 {
            self.complete_gone();
        }
        let t = self.own();
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
        let (receive, sized, persistent) = (slot.kind.receive, slot.kind.sized, slot.kind.persistent);
        let fate = unsafe { self.fate(position, persistent, status) };
        if fate == Fate::Pending {
            return;
        }
        let (source, tag, size) = unsafe {
            if fate == Fate::Untold {
                (NONE, NONE, NONE)
            } else if !receive {
                (NONE, NONE, if sized { bytes(status) } else { NONE })
            } else if fate != Fate::CutOff && is_cancelled(status) {
                (NONE, NONE, CANCELLED)
            } else {
                let [source, tag] = source_and_tag(status);
                (source, tag, if fate == Fate::CutOff { NONE } else { bytes(status) })
            }
        };
        self.own().completed.push([narrow(position), source, tag, size]);
        unsafe { self.complete(position, key, fate == Fate::Told) };
        if self.own().error != 0 {
            self.own().listed[position] = None;
        }
    }

    unsafe fn fate(&mut self, position: usize, persistent: bool, status: *const Status) -> Fate {
        let class = match self.own().error {
            0 => return Fate::Told,
            // Only statuses of several requests have errors of their own (MPI 4.1, section 3.2.5).
            class if error_class(class) == Some(TRUNCATE) => class,
            _ => match unsafe { error(status) } {
                code @ 1.. => normal::class_of(code.into()),
                _ => 0,
            },
        };
        Fate::of(self.is_gone(position), persistent, class)
    }

    /// Whether the library has taken the request at a position from the program.
    fn is_gone(&mut self, position: usize) -> bool {
        let at = self.own().listed_at;
        unsafe { Handles::at(at).get(position) == k::MPI_REQUEST_NULL() }
    }

    /// A completed request is gone, or inactive if the program still has its handle (persistent ones); what it has promised is there if
    /// it succeeded.
    unsafe fn complete(&mut self, position: usize, key: Key, succeeded: bool) {
        let slot = self.state.requests.get(key);
        if let Some(promise) = slot.promise.take().filter(|_| succeeded) {
            let handle = unsafe { Handles::at(promise.place).get(0) };
            self.state.comms.bind(handle, promise.comm);
        }
        if self.is_gone(position) {
            self.release(key);
        } else {
            self.state.requests.get(key).active = false;
        }
    }

    /// Reads what a call that returned an error of this class has done all the same: of requests that it completes others may be
    /// complete, and a receive whose message was too long has received it.
    pub(crate) fn failed(&mut self, class: u32, read: impl FnOnce(&mut Self)) {
        let told = match Role::of_call(self.call).action.after(class) {
            Action::Complete => matches!(error_class(class), Some("MPI_ERR_IN_STATUS" | TRUNCATE)),
            action => action != Action::Internal,
        };
        self.own().error = class;
        if told {
            read(self);
        }
        self.settle();
        self.own().error = 0;
    }

    /// Notes the completion of what the program no longer has, after a call that returned an error.
    fn complete_gone(&mut self) {
        for position in 0..self.own().listed.len() {
            let Some(Some(key)) = self.own().listed.get(position).copied() else { continue };
            if !self.is_gone(position) {
                continue;
            }
            if self.state.requests.get(key).active {
                self.own().completed.push([narrow(position), NONE, NONE, NONE]);
            }
            self.release(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_model::values::ERROR_CLASSES;

    #[test]
    fn a_call_that_failed_completes_what_its_statuses_say() {
        let class = |name| narrow::<u32>(ERROR_CLASSES.iter().position(|c| *c == name).unwrap()) + 1;
        let [truncate, pending, other] =
            [class(TRUNCATE), class("MPI_ERR_PENDING"), class("MPI_ERR_PROC_ABORTED")];
        // (the program no longer has it, persistent)
        for (gone, persistent, fates) in [
            (true, false, [Fate::Told, Fate::CutOff, Fate::Untold, Fate::Untold]),
            (false, true, [Fate::Told, Fate::CutOff, Fate::Pending, Fate::Untold]),
            (false, false, [Fate::Pending; 4]),
        ] {
            assert_eq!([0, truncate, pending, other].map(|class| Fate::of(gone, persistent, class)), fates);
        }
    }
}
