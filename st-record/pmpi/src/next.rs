//! The next definitions of the functions that we interpose: another tool's, or the MPI's.

use crate::generated::{N, NAMES};
use std::sync::atomic::{AtomicUsize, Ordering};

static NEXT: [AtomicUsize; N] = [const { AtomicUsize::new(0) }; N];

/// Address of the next definition of `NAMES[i]`.
#[inline]
pub(crate) fn next(i: usize) -> usize {
    match NEXT[i].load(Ordering::Relaxed) {
        0 => resolve(i),
        address => address,
    }
}

#[cold]
fn resolve(i: usize) -> usize {
    let name = NAMES[i];
    // SAFETY: `name` is NUL-terminated (see build/wrappers.rs).
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast()) }.addr();
    if address == 0 {
        // The program calls a function that its MPI does not have: without us it would not have been linked.
        crate::message::say(&format!("{} is not in the MPI library", name.trim_end_matches('\0')));
        std::process::abort();
    }
    NEXT[i].store(address, Ordering::Relaxed);
    address
}
