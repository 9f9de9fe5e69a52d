//! Calls of the replayer's own, hidden from a recorder that may be watching, and what it is told of the others.
#![expect(unsafe_code, reason = "finds and calls the recorder's entries")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use mpi::ffi::MPI_Request;

/// A symbol of any object in this process; null if there is none.
fn find(name: &CStr) -> *mut c_void {
    // SAFETY: a search by a terminated name over all loaded objects.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// The recorder's `st_made_at`, if the replay is being recorded: where requests were made that are named elsewhere. Several may
/// share a handle, and then a recorder tells them apart by their places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MadeAt(Option<unsafe extern "C" fn(*const *const MPI_Request, usize)>);

/// While this lives, the recorder knows where the requests that are named were made.
#[must_use]
#[derive(Debug)]
pub(crate) struct Named(MadeAt);

impl MadeAt {
    /// Looks for a recorder in this process.
    pub(crate) fn find() -> Self {
        let found = find(c"st_made_at");
        // SAFETY: the recorder defines the symbol with these parameters; null is `None`.
        Self(unsafe { std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn(_, _)>>(found) })
    }

    /// Tells the variables in which requests were made, by position in the list that the next call names. They are read in that call.
    pub(crate) fn tell(self, places: &[*const MPI_Request]) -> Named {
        self.set(places.as_ptr(), places.len());
        Named(self)
    }

    fn set(self, places: *const *const MPI_Request, n: usize) {
        if let Some(made_at) = self.0 {
            // SAFETY: so many places are there until the recorder is told that there are none.
            unsafe { made_at(places, n) };
        }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.0.set(ptr::null(), 0);
    }
}

/// The recorder's `st_pause`, if the replay is being recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause(Option<unsafe extern "C" fn(c_int)>);

/// While this lives, calls of this thread are not recorded.
#[must_use]
#[derive(Debug)]
pub(crate) struct Hidden(Pause);

impl Pause {
    /// Looks for a recorder in this process.
    pub(crate) fn find() -> Self {
        let found = find(c"st_pause");
        // SAFETY: the recorder defines the symbol as `void st_pause(int)`; null is `None`.
        Self(unsafe { std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn(c_int)>>(found) })
    }

    /// Hides calls until the returned value is dropped.
    pub(crate) fn hide(self) -> Hidden {
        self.set(1);
        Hidden(self)
    }

    fn set(self, paused: c_int) {
        if let Some(pause) = self.0 {
            // SAFETY: the entry takes any integer, at any time, from any thread.
            unsafe { pause(paused) };
        }
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        self.0.set(0);
    }
}
