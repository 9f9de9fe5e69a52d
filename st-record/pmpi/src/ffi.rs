//! The MPI's types and constants, from its headers.

use std::ffi::{c_char, c_int, c_void};

/// bindgen's output.
#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    clippy::allow_attributes,
    dead_code,
    missing_docs,
    missing_debug_implementations,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unnameable_types,
    unreachable_pub,
    reason = "generated from mpi.h, in the header's names; each MPI's has other faults"
)]
mod types {
    include!(concat!(env!("OUT_DIR"), "/types.rs"));
}
pub(crate) use types::*;

/// A row of the shim's tables of predefined objects; the last one's name is null.
#[repr(C)]
pub(crate) struct PredefinedName {
    pub(crate) name: *const c_char,
    pub(crate) handle: u64,
}

/// The shim's constants.
#[allow(
    dead_code,
    non_snake_case,
    non_upper_case_globals,
    clippy::allow_attributes,
    clippy::cast_possible_truncation,
    reason = "generated, in the header's names"
)]
pub(crate) mod constants {
    use super::PredefinedName;
    include!(concat!(env!("OUT_DIR"), "/constants.rs"));
}

/// A handle as a machine word: Open MPI's are pointers, MPICH's are `int`s.
pub(crate) trait Handle: Copy {
    /// The word.
    fn raw(self) -> u64;
    /// The handle again.
    fn from_raw(raw: u64) -> Self;
}

impl<T> Handle for *mut T {
    fn raw(self) -> u64 {
        self.addr() as u64
    }
    #[expect(clippy::cast_possible_truncation, reason = "made from a pointer")]
    fn from_raw(raw: u64) -> Self {
        std::ptr::with_exposed_provenance_mut(raw as usize)
    }
}

impl Handle for c_int {
    fn raw(self) -> u64 {
        u64::from(self.cast_unsigned())
    }
    #[expect(clippy::cast_possible_truncation, reason = "made from an int")]
    fn from_raw(raw: u64) -> Self {
        (raw as u32).cast_signed()
    }
}

/// An integer parameter as a word of the trace, whatever C type the header gives it.
pub(crate) trait Integer: Copy {
    /// The word.
    fn word(self) -> i64;
}

impl Integer for c_int {
    fn word(self) -> i64 {
        i64::from(self)
    }
}

impl Integer for i64 {
    fn word(self) -> i64 {
        self
    }
}

impl Integer for isize {
    fn word(self) -> i64 {
        self as i64
    }
}

/// Whether a pointer is one of the library's marks (`MPI_IN_PLACE`, `MPI_STATUS_IGNORE`, …).
pub(crate) fn is_mark<T>(pointer: *const T, mark: usize) -> bool {
    pointer.cast::<c_void>().addr() == mark
}
