//! A closed standard output, which Rust's own runtime makes one that takes everything.
#![expect(unsafe_code, reason = "asks the system before the runtime starts")]

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Called by the loader before `main`: the runtime opens `/dev/null` in the place of descriptors that are closed.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: asking for a descriptor's flags changes nothing, whether or not it is open.
    let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } < 0;
    CLOSED.store(closed, Ordering::Relaxed);
}

/// Whether standard output was closed when the program started.
pub(crate) fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}
