//! The next definitions of the functions that we interpose: another tool's, or the MPI's. Those by `PMPI` names are functions here,
//! for calls of our own.

use crate::message::say;
pub(crate) use generated::*;
use std::sync::atomic::{AtomicUsize, Ordering};

#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    clippy::allow_attributes,
    dead_code,
    missing_docs,
    non_snake_case,
    reason = "generated for all functions alike: names and shapes are the header's"
)]
mod generated {
    use super::next;
    use crate::ffi::*;

    include!(concat!(env!("OUT_DIR"), "/real.rs"));
}

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
        say(&format!("{} is not in the MPI library", name.trim_end_matches('\0')));
        std::process::abort();
    }
    NEXT[i].store(address, Ordering::Relaxed);
    address
}
