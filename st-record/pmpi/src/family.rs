//! Kinds of MPI with a binary interface of their own: handles, constants, layout of statuses.

/// A kind, as a column of `families.txt`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    /// Open MPI.
    Openmpi,
    /// MPICH and what has its interface, as Intel MPI.
    Mpich,
    /// The interface that MPI 5 has standardised.
    Standard,
}
