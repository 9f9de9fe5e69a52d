//! Calls that are taken for barriers.

/// Which calls, beyond those of the standard's collective operations, are taken to synchronise their communicator.
///
/// The standard does not promise it, the libraries do it. `MPI_Finalize` is left out by default: a recording may end
/// before the library's own part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Barriers {
    /// `MPI_Init`.
    pub init: bool,
    /// `MPI_Finalize`.
    pub finalize: bool,
    /// Functions that make communicators, windows and files, or free the latter two. (Those that free communicators are
    /// local in practice, as the standard expects: MPI 3.1, section 6.4.3.)
    pub creation: bool,
    /// `MPI_Win_fence` where it ends an epoch.
    pub fence: bool,
}

impl Default for Barriers {
    /// Init, creation and fences.
    fn default() -> Self {
        Self { init: true, finalize: false, creation: true, fence: true }
    }
}
