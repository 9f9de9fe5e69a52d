//! MPI's types, the same for every family: what is passed in a register is a machine word, and what pointers lead to is read as the
//! family of the program's MPI has it ([`crate::constants`]).

use crate::constants::mask;
use std::ffi::{c_int, c_void};

/// A handle as it is passed: Open MPI's are pointers, MPICH's `int`s, which leave the upper half of the register as it was.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Handle(u64);

impl Handle {
    /// As a word.
    #[inline]
    pub(crate) fn raw(self) -> u64 {
        self.0 & mask()
    }
    /// The handle again.
    #[inline]
    pub(crate) fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
}

/// A file's handle, a pointer in every family.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct File(u64);

impl File {
    /// As a word.
    #[inline]
    pub(crate) fn raw(self) -> u64 {
        self.0
    }
    /// The handle again.
    #[inline]
    pub(crate) fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
}

/// Where there is a handle, or an array of them.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handles(*mut c_void);

impl Handles {
    /// No place.
    pub(crate) const NOWHERE: Self = Self(std::ptr::null_mut());

    /// A handle of our own, for MPI to write. Of the word MPICH writes the lower half.
    #[inline]
    pub(crate) fn of(handle: &mut Handle) -> Self {
        Self((&raw mut *handle).cast())
    }

    /// Places at an address.
    #[inline]
    pub(crate) fn at(address: usize) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(address))
    }

    /// Whether it is no place.
    #[inline]
    pub(crate) fn is_nowhere(self) -> bool {
        self.0.is_null()
    }

    /// The address of the `i`-th.
    #[inline]
    pub(crate) fn address(self, i: usize) -> usize {
        self.place(i).expose_provenance()
    }

    /// The `i`-th, as a word.
    ///
    /// # Safety
    ///
    /// There are more than `i`.
    #[inline]
    pub(crate) unsafe fn get(self, i: usize) -> u64 {
        let place = self.place(i);
        // SAFETY: the caller's promise; handles are as wide as their family says.
        unsafe { if is_narrow() { u64::from(*place.cast::<u32>()) } else { *place.cast::<u64>() } }
    }

    #[inline]
    fn place(self, i: usize) -> *mut c_void {
        self.0.wrapping_byte_add(i * if is_narrow() { size_of::<u32>() } else { size_of::<u64>() })
    }
}

#[inline]
fn is_narrow() -> bool {
    mask() != u64::MAX
}

/// Where there is a file's handle.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Files(*mut File);

impl Files {
    /// The `i`-th, as a word.
    ///
    /// # Safety
    ///
    /// There are more than `i`.
    pub(crate) unsafe fn get(self, i: usize) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { *self.0.wrapping_add(i) }.raw()
    }
}

/// A status, whose size and layout are its family's.
#[repr(C)]
pub(crate) struct Status([u8; 0]);

/// An integer parameter as a word of the trace, whatever C type it has.
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

/// Whether a pointer is one of the library's marks (`MPI_IN_PLACE`, `MPI_STATUS_IGNORE`, …).
pub(crate) fn is_mark<T>(pointer: *const T, mark: u64) -> bool {
    pointer.cast::<c_void>().addr() as u64 == mark
}
