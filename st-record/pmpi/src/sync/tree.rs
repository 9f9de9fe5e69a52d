//! A rank's place among those that compare their clocks or reduce what they have.
//!
//! SAFETY, for the whole module: as in [`crate::sync`].
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use crate::constants as k;
use crate::ffi::Handle;
use crate::real;
use std::ffi::c_int;

/// A rank's place in one of the two trees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    pub(crate) comm: u64,
    pub(crate) rank: c_int,
    pub(crate) size: c_int,
}

impl Tree {
    /// The tree over a communicator, whose errors return from here on.
    pub(super) fn of(comm: Handle) -> Option<Self> {
        if comm.raw() == k::MPI_COMM_NULL() {
            return None;
        }
        let (mut rank, mut size) = (0, 0);
        unsafe {
            real::MPI_Comm_set_errhandler(comm, Handle::from_raw(k::MPI_ERRORS_RETURN()));
            real::MPI_Comm_rank(comm, &raw mut rank);
            real::MPI_Comm_size(comm, &raw mut size);
        }
        Some(Self { comm: comm.raw(), rank, size })
    }
}
