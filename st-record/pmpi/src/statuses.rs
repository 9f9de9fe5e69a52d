//! What a status says.

use crate::ffi::MPI_Status;
#[cfg(standard)]
use crate::ffi::{Handle, MPI_Datatype, constants as k};
use crate::normal;
#[cfg(standard)]
use crate::real;

/// Writes the three words of a receive's or probe's status.
///
/// # Safety
///
/// The status has been written.
pub(crate) unsafe fn write_status(words: &mut [i64], status: *const MPI_Status, wildcard: bool) {
    // SAFETY: the caller's promise.
    let status = unsafe { &*status };
    if wildcard {
        words[0] = normal::rank(status.MPI_SOURCE);
        words[1] = normal::tag(status.MPI_TAG);
    }
    words[2] = bytes(status);
}

/// Bytes that a receive got.
#[cfg(openmpi)]
pub(crate) fn bytes(status: &MPI_Status) -> i64 {
    i64::try_from(status._ucount).unwrap_or(st_model::values::NONE)
}
/// Whether an operation was cancelled.
#[cfg(openmpi)]
pub(crate) fn is_cancelled(status: &MPI_Status) -> bool {
    status._cancelled != 0
}

/// Bytes that a receive got: 31 bits in one field, 31 above the flag of the next.
#[cfg(mpich)]
pub(crate) fn bytes(status: &MPI_Status) -> i64 {
    let low = i64::from(status.count_lo.cast_unsigned());
    let high = i64::from(status.count_hi_and_cancelled.cast_unsigned() >> 1);
    (high << 32) | low
}
/// Whether an operation was cancelled.
#[cfg(mpich)]
pub(crate) fn is_cancelled(status: &MPI_Status) -> bool {
    status.count_hi_and_cancelled & 1 != 0
}

/// Bytes that a receive got. The layout is the library's own affair.
#[cfg(standard)]
pub(crate) fn bytes(status: &MPI_Status) -> i64 {
    let mut n = 0;
    // SAFETY: the status has been written by the library, and the result goes to a variable.
    unsafe { real::MPI_Get_count_c(status, MPI_Datatype::from_raw(k::st_MPI_BYTE()), &raw mut n) };
    n
}
/// Whether an operation was cancelled.
#[cfg(standard)]
pub(crate) fn is_cancelled(status: &MPI_Status) -> bool {
    let mut flag = 0;
    // SAFETY: as in `bytes`.
    unsafe { real::MPI_Test_cancelled(status, &raw mut flag) };
    flag != 0
}
