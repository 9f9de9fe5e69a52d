//! Signals that end a program: what is not finished does not stay behind.
#![expect(unsafe_code, reason = "signal handlers have no safe interface in std")]

use std::sync::Once;

use libc::c_int;

use crate::output::remove_temporary;

/// Those that ask a program to end, and the one for a limit of processor time.
const ENDING: [c_int; 5] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGXCPU];

/// Asks for no memory; a lock that is held is not waited for.
extern "C" fn end(signal: c_int) {
    remove_temporary();
    // SAFETY: may be called in a handler. The signal does again what it does by default, and comes when this returns.
    unsafe { libc::raise(signal) };
}

/// From now on a signal that ends the process removes files under temporary names first, and ends it all the same. What is
/// ignored, or somebody else handles, stays so.
pub(crate) fn remove_temporary_at_end() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
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
    });
}
