//! A shared mapping of a part of a file, allocated on disk before it is touched.

use crate::limits;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    at: *mut u8,
    length: usize,
}

// SAFETY: memory that belongs to the value; nothing about it is bound to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `length` bytes of a file from `offset`, a multiple of the page size.
    ///
    /// # Errors
    ///
    /// If the disk has no room for them, or the process none for the mapping.
    pub(crate) fn new(file: &File, offset: u64, length: usize) -> io::Result<Self> {
        let too_large = |_| limits::too_large();
        let end = offset.checked_add(u64::try_from(length).map_err(too_large)?);
        if !end.is_some_and(limits::file_may_have) {
            return Err(limits::too_large());
        }
        let (offset, size) = (
            libc::off_t::try_from(offset).map_err(too_large)?,
            libc::off_t::try_from(length).map_err(too_large)?,
        );
        // A page that has no block on disk when it is touched would raise SIGBUS on a full disk.
        // SAFETY: a call on an open descriptor.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), offset, size) } {
            0 => {}
            e => return Err(io::Error::from_raw_os_error(e)),
        }
        let (mode, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), length, mode, kind, file.as_raw_fd(), offset) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { at: at.cast(), length })
    }

    /// Address of the first byte.
    pub(crate) fn address(&self) -> *mut u8 {
        self.at
    }

    /// The bytes from `from` on.
    #[inline]
    pub(crate) fn rest(&mut self, from: usize) -> &mut [u8] {
        let from = from.min(self.length);
        // SAFETY: within the mapping, which lives as long as the borrow; nobody else of this process reaches it.
        unsafe { std::slice::from_raw_parts_mut(self.at.add(from), self.length - from) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and nothing points into it any longer.
        unsafe { libc::munmap(self.at.cast(), self.length) };
    }
}
