//! The one place where MPI functions are called.

use anyhow::{Context, Result, bail};
use std::ffi::c_int;

/// Calls an MPI function by its name and turns an error code into an error.
macro_rules! mpi {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: addresses come from `buffers`, sized for what the call transfers, or are of locals and lists of the
        // length that the other arguments say; what outlives the call is kept by `requests`. Handles come from
        // `handles`, where only live ones are.
        let code = unsafe { ::mpi::ffi::$function($($argument),*) };
        crate::replay::call::checked(stringify!($function), code)
    }};
}

/// Calls an MPI function given as a value: functions of one signature share their code.
macro_rules! apply {
    ($function:expr, ($($argument:expr),* $(,)?)) => {{
        // SAFETY: as for `mpi!`.
        let code = unsafe { $function($($argument),*) };
        crate::replay::call::checked("the call", code)
    }};
}

pub(crate) use {apply, mpi};

/// `MPI_SUCCESS` is 0 under every MPI.
pub(crate) fn checked(name: &str, code: c_int) -> Result<()> {
    if code != 0 {
        bail!("{name} failed with code {code}");
    }
    Ok(())
}

/// An integer of one of MPI's types as another: which C types they are differs between libraries.
pub(crate) fn integer<A: TryInto<B>, B>(value: A) -> Result<B> {
    value.try_into().ok().context("an integer that this MPI has no room for")
}
