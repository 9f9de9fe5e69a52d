//! Calls of the replayer's own, hidden from a recorder that may be watching.
#![expect(unsafe_code, reason = "finds and calls the recorder's pause entry")]

use std::ffi::c_int;

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
        // SAFETY: a search by a terminated name over all loaded objects.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"st_pause".as_ptr()) };
        // SAFETY: the recorder defines the symbol as `void st_pause(int)`; null is `None`.
        Self(unsafe { std::mem::transmute::<*mut libc::c_void, Option<unsafe extern "C" fn(c_int)>>(found) })
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
