//! Whether all ranks are ready.
#![expect(unsafe_code, reason = "calls MPI")]

use std::ffi::c_int;

use anyhow::{Context, Result};
use mpi::ffi;

use crate::replay::call::mpi;
use crate::replay::constants::{Constants, predefined_op, predefined_type};

/// Whether all ranks are ready.
pub(super) fn all_ready(ready: bool) -> Result<bool> {
    let world = Constants::load().comm_world;
    let int = predefined("MPI_INT")?;
    let mine = c_int::from(ready);
    let mut all: c_int = 0;
    mpi!(MPI_Allreduce((&raw const mine).cast(), (&raw mut all).cast(), 1, int, op("MPI_MIN")?, world))?;
    Ok(all != 0)
}

fn predefined(name: &str) -> Result<ffi::MPI_Datatype> {
    predefined_type(name, Constants::load().type_null).with_context(|| format!("this MPI has no {name}"))
}

fn op(name: &str) -> Result<ffi::MPI_Op> {
    let null = Constants::load().op_null;
    predefined_op(name, null).with_context(|| format!("this MPI has no {name}"))
}
