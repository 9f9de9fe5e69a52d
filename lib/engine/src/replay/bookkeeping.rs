//! Local bookkeeping that is recorded by name only: made again with arguments and objects of the replay's own, since
//! nothing that the trace holds depends on it.
#![expect(unsafe_code, reason = "calls MPI")]

use std::ffi::{c_int, c_void};
use std::ptr;

use anyhow::{Context, Result};
use mpi::ffi;
use st_model::calls::names;
use st_model::values::FIRST_NAMED;
use st_replay::words::Words;

use crate::replay::call::mpi;
use crate::replay::constants::st_no_handler;
use crate::replay::state::{Handler, Replay};
use crate::replay::texts::{string, text};

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Comm_create_errhandler, |r, w| {
        let mut handler = r.k.errhandler_null;
        mpi!(MPI_Comm_create_errhandler(Some(st_no_handler), &raw mut handler))?;
        r.own.handlers.insert(w.word()?, handler);
        Ok(())
    }),
    // An error that the program's handler would see ends the replay all the same: each call's code is looked at.
    (names::MPI_Comm_set_errhandler, |r, w| {
        let comm = r.handles.comm(w.word()?)?.handle;
        let handler = handler(r, w.word()?)?;
        mpi!(MPI_Comm_set_errhandler(comm, handler))
    }),
    (names::MPI_Comm_get_errhandler, |r, w| {
        let comm = r.handles.comm(w.word()?)?.handle;
        let mut handler = r.k.errhandler_null;
        mpi!(MPI_Comm_get_errhandler(comm, &raw mut handler))?;
        r.own.handlers.insert(w.word()?, handler);
        Ok(())
    }),
    (names::MPI_Errhandler_free, |r, w| {
        let mut handler = handler(r, w.word()?)?;
        mpi!(MPI_Errhandler_free(&raw mut handler))
    }),
    (names::MPI_Error_class, |r, w| {
        let (code, mut class) = (code(r, w)?, 0);
        mpi!(MPI_Error_class(code, &raw mut class))
    }),
    (names::MPI_Error_string, |r, w| {
        let code = code(r, w)?;
        text(|message, n| mpi!(MPI_Error_string(code, message, n)))
    }),
    (names::MPI_Comm_create_keyval, |r, w| {
        let mut keyval = 0;
        mpi!(MPI_Comm_create_keyval(Some(no_copy), Some(no_delete), &raw mut keyval, ptr::null_mut()))?;
        r.own.keyvals.insert(w.word()?, keyval);
        Ok(())
    }),
    (names::MPI_Comm_free_keyval, |r, w| {
        let mut keyval = keyval(r, w.word()?)?;
        mpi!(MPI_Comm_free_keyval(&raw mut keyval))
    }),
    (names::MPI_Comm_set_attr, |r, w| {
        let (comm, keyval) = attribute(r, w)?;
        mpi!(MPI_Comm_set_attr(comm, keyval, ptr::null_mut()))
    }),
    (names::MPI_Comm_get_attr, |r, w| {
        let (comm, keyval) = attribute(r, w)?;
        let mut value: *mut c_void = ptr::null_mut();
        let mut flag = 0;
        mpi!(MPI_Comm_get_attr(comm, keyval, (&raw mut value).cast(), &raw mut flag))
    }),
    (names::MPI_Comm_delete_attr, |r, w| {
        let (comm, keyval) = attribute(r, w)?;
        mpi!(MPI_Comm_delete_attr(comm, keyval))
    }),
    (names::MPI_Type_get_name, |r, w| {
        let datatype = r.handles.datatype(w.word()?)?.handle;
        text(|name, n| mpi!(MPI_Type_get_name(datatype, name, n)))
    }),
    (names::MPI_Type_set_name, |r, w| {
        let datatype = r.handles.datatype(w.word()?)?.handle;
        let name = string(r, w)?;
        mpi!(MPI_Type_set_name(datatype, name.as_ptr()))
    }),
    (names::MPI_Type_get_envelope, |r, w| {
        let datatype = r.handles.datatype(w.word()?)?.handle;
        let (mut ints, mut addresses, mut types, mut combiner) = (0, 0, 0, 0);
        mpi!(MPI_Type_get_envelope(
            datatype,
            &raw mut ints,
            &raw mut addresses,
            &raw mut types,
            &raw mut combiner
        ))
    }),
];

/// Attributes are not copied with their object, a communicator, datatype or window.
pub(crate) unsafe extern "C" fn no_copy<H>(
    _object: H,
    _keyval: c_int,
    _state: *mut c_void,
    _from: *mut c_void,
    _to: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: MPI passes the place of the answer.
    unsafe { *flag = 0 };
    0
}

/// There is nothing to free with an attribute.
pub(crate) unsafe extern "C" fn no_delete<H>(_: H, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

/// A predefined object of which the words count down.
fn predefined<T: Copy>(of: &[T], word: i64) -> Option<T> {
    of.get(usize::try_from(FIRST_NAMED.checked_sub(word)?).ok()?).copied()
}

pub(crate) fn handler(r: &Replay<'_>, word: i64) -> Result<ffi::MPI_Errhandler> {
    let own = || r.own.handlers.get(&word).copied();
    predefined(&r.k.errhandlers, word).or_else(own).with_context(|| format!("no error handler {word}"))
}

pub(crate) fn keyval(r: &Replay<'_>, word: i64) -> Result<c_int> {
    let own = || r.own.keyvals.get(&word).copied();
    predefined(&r.k.keyvals, word).or_else(own).with_context(|| format!("no attribute key {word}"))
}

/// The communicator and key of an attribute.
fn attribute(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<(ffi::MPI_Comm, c_int)> {
    let comm = r.handles.comm(w.word()?)?.handle;
    Ok((comm, keyval(r, w.word()?)?))
}

/// A code of the class that a word names; success for one that this MPI has no constant of.
pub(crate) fn code(r: &Replay<'_>, w: &mut Words<'_>) -> Result<c_int> {
    let class = usize::try_from(w.word()?)?.checked_sub(1);
    Ok(class.and_then(|c| r.k.errors.get(c)).copied().filter(|&c| c > 0).unwrap_or(0))
}
