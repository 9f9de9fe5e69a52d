//! What a status says.

use crate::constants as k;
use crate::family::Family;
use crate::ffi::{Handle, Status};
use crate::{normal, real};
use st_model::num::saturate;
use st_model::values::NONE;
use std::ffi::c_int;

/// Size of a status, in bytes.
#[inline]
pub(crate) fn size() -> usize {
    saturate(k::sizeof_MPI_Status())
}

/// The `i`-th status of an array.
#[inline]
pub(crate) fn nth(first: *const Status, i: usize) -> *const Status {
    first.wrapping_byte_add(i * size())
}

/// A field of a status.
///
/// # Safety
///
/// The status has been written, and has the field.
#[inline]
unsafe fn field<T: Copy>(status: *const Status, offset: c_int) -> T {
    // SAFETY: the caller's promise.
    unsafe { *status.wrapping_byte_add(saturate(offset)).cast::<T>() }
}

/// Source and tag of what was received.
///
/// # Safety
///
/// The status has been written.
#[inline]
pub(crate) unsafe fn source_and_tag(status: *const Status) -> [i64; 2] {
    // SAFETY: the caller's promise; every family has these fields.
    unsafe {
        let source: c_int = field(status, k::offsetof_MPI_Status_MPI_SOURCE());
        let tag: c_int = field(status, k::offsetof_MPI_Status_MPI_TAG());
        [normal::rank(source), normal::tag(tag)]
    }
}

/// The error code of one of several operations that a call completes.
///
/// # Safety
///
/// A call that returned `MPI_ERR_IN_STATUS` has written the status.
pub(crate) unsafe fn error(status: *const Status) -> c_int {
    // SAFETY: the caller's promise; every family has this field.
    unsafe { field(status, k::offsetof_MPI_Status_MPI_ERROR()) }
}

/// Writes the three words of a receive's or probe's status.
///
/// # Safety
///
/// The status has been written.
pub(crate) unsafe fn write_status(words: &mut [i64], status: *const Status, wildcard: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        if wildcard {
            words[..2].copy_from_slice(&source_and_tag(status));
        }
        words[2] = bytes(status);
    }
}

/// Bytes that a receive got.
///
/// # Safety
///
/// The status has been written.
pub(crate) unsafe fn bytes(status: *const Status) -> i64 {
    // SAFETY: the caller's promise; the fields are the family's.
    unsafe {
        match k::family() {
            Family::Openmpi => {
                let count: u64 = field(status, k::offsetof_MPI_Status__ucount());
                i64::try_from(count).unwrap_or(NONE)
            }
            // 31 bits in one field, 31 above the flag of the next.
            Family::Mpich => {
                let low: u32 = field(status, k::offsetof_MPI_Status_count_lo());
                let high: u32 = field(status, k::offsetof_MPI_Status_count_hi_and_cancelled());
                (i64::from(high >> 1) << 32) | i64::from(low)
            }
            // The layout is the library's own affair.
            Family::Standard => {
                let mut n = 0;
                real::MPI_Get_count_c(status.cast_mut(), Handle::from_raw(k::MPI_BYTE()), &raw mut n);
                n
            }
        }
    }
}

/// Whether an operation was cancelled.
///
/// # Safety
///
/// The status has been written.
pub(crate) unsafe fn is_cancelled(status: *const Status) -> bool {
    // SAFETY: the caller's promise; the fields are the family's.
    unsafe {
        match k::family() {
            Family::Openmpi => field::<c_int>(status, k::offsetof_MPI_Status__cancelled()) != 0,
            Family::Mpich => field::<u32>(status, k::offsetof_MPI_Status_count_hi_and_cancelled()) & 1 != 0,
            Family::Standard => {
                let mut flag = 0;
                real::MPI_Test_cancelled(status.cast_mut(), &raw mut flag);
                flag != 0
            }
        }
    }
}

/// Room for a status of any family.
#[repr(C, align(8))]
#[derive(Default)]
pub(crate) struct StatusBuffer([u64; 4]);

impl StatusBuffer {
    /// For MPI to write.
    pub(crate) fn as_mut(&mut self) -> *mut Status {
        (&raw mut self.0).cast()
    }

    /// The rank that a message came from, as MPI numbers it.
    ///
    /// # Safety
    ///
    /// The status has been written.
    pub(crate) unsafe fn source(&self) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { field((&raw const self.0).cast(), k::offsetof_MPI_Status_MPI_SOURCE()) }
    }
}
