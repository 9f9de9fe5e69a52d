//! Signals that end a program: what is not finished does not stay behind.
#![expect(unsafe_code, reason = "signal handlers have no safe interface in std")]

use std::sync::OnceLock;

use libc::c_int;

/// Those that ask a program to end, and the one for a limit of processor time.
const ENDING: [c_int; 5] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGXCPU];

/// What is done first.
static FIRST: OnceLock<fn()> = OnceLock::new();

extern "C" fn end(signal: c_int) {
    FIRST.get().iter().for_each(|first| first());
    // SAFETY: may be called in a handler. The signal does again what it does by default, and comes when this returns.
    unsafe { libc::raise(signal) };
}

/// From now on a signal that ends the process does `first` before, which must neither ask for memory nor wait for a lock. What is
/// ignored, or somebody else handles, stays so.
pub(crate) fn before_end(first: fn()) {
    if FIRST.set(first).is_err() {
        return;
    }
    for signal in ENDING {
        // SAFETY: zero is a valid sigaction; the handler does what handlers may.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &raw mut before) != 0
                || before.sa_sigaction != libc::SIG_DFL
            {
                continue;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = end as *const () as usize;
            action.sa_flags = libc::SA_RESETHAND;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}
