//! Kinds of MPI with a binary interface of their own: handles, constants, layout of statuses.

use std::ffi::c_int;

/// A kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    /// Open MPI.
    Openmpi,
    /// MPICH and what has its interface, as Intel MPI.
    Mpich,
    /// The interface that MPI 5 has standardised.
    Standard,
}

/// What this recorder is built for.
pub(crate) const OURS: Family = if cfg!(openmpi) {
    Family::Openmpi
} else if cfg!(mpich) {
    Family::Mpich
} else {
    Family::Standard
};

impl Family {
    /// Its number among recorders.
    pub(crate) fn number(self) -> c_int {
        match self {
            Self::Openmpi => 1,
            Self::Mpich => 2,
            Self::Standard => 3,
        }
    }

    /// As it is called in messages.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Openmpi => "Open MPI",
            Self::Mpich => "MPICH and its kin",
            Self::Standard => "the standard's binary interface",
        }
    }
}
