//! The next definitions of the functions that we interpose: another tool's, or the MPI's. Those by `PMPI` names are functions here,
//! for calls of our own.

use crate::library;
use crate::loaded_files::base;
pub(crate) use generated::*;
use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    clippy::allow_attributes,
    dead_code,
    missing_docs,
    non_snake_case,
    reason = "generated for all functions alike: names and shapes are the standard's"
)]
mod generated {
    use super::next;
    use crate::ffi::*;

    include!(concat!(env!("OUT_DIR"), "/real.rs"));
}

static NEXT: [AtomicUsize; N] = [const { AtomicUsize::new(0) }; N];

/// The `i`-th name.
pub(crate) fn name(i: usize) -> &'static CStr {
    // All are NUL-terminated (see build/wrappers.rs).
    CStr::from_bytes_with_nul(NAMES[i].as_bytes()).unwrap_or_default()
}

/// Address of the next definition of `NAMES[i]`.
#[inline]
pub(crate) fn next(i: usize) -> usize {
    match NEXT[i].load(Ordering::Relaxed) {
        0 => resolve(i),
        address => address,
    }
}

/// Whether there is a next definition of `NAMES[i]`.
pub(crate) fn has(i: usize) -> bool {
    NEXT[i].load(Ordering::Relaxed) != 0 || find(i) != 0
}

/// Whether calls are forwarded to the file that begins at this address: it is the MPI, or a tool that stands before it.
pub(crate) fn leads_to(file: usize) -> bool {
    let known = NEXT.iter().map(|next| next.load(Ordering::Relaxed)).filter(|address| *address != 0);
    known.map(std::ptr::without_provenance).any(|address| base(address) == Some(file))
}

#[cold]
fn resolve(i: usize) -> usize {
    match find(i) {
        0 => library::lacking(name(i), 0),
        address => address,
    }
}

fn find(i: usize) -> usize {
    let address = library::find(name(i)).expose_provenance();
    NEXT[i].store(address, Ordering::Relaxed);
    address
}
