//! Attributes and error handlers of datatypes, windows and files, as `bookkeeping` has those of communicators.
#![expect(unsafe_code, reason = "calls MPI")]

use st_model::calls::names;
use std::ffi::{c_int, c_void};
use std::ptr;

use anyhow::Result;
use mpi::ffi;
use st_replay::words::Words;

use crate::replay::bookkeeping::{code, handler, keyval, no_copy, no_delete};
use crate::replay::call::{apply, integer, mpi};
use crate::replay::constants::{st_no_file_handler, st_no_win_handler};
use crate::replay::files::file;
use crate::replay::state::{Handler, Replay};
use crate::replay::texts::string;

/// A bound of a type, by functions that MPI 3 has removed.
type Bound = unsafe extern "C" fn(ffi::MPI_Datatype, *mut ffi::MPI_Aint) -> c_int;

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Type_create_keyval, |r, w| {
        let mut keyval = 0;
        mpi!(MPI_Type_create_keyval(Some(no_copy), Some(no_delete), &raw mut keyval, ptr::null_mut()))?;
        r.own.keyvals.insert(w.word()?, keyval);
        Ok(())
    }),
    (names::MPI_Type_free_keyval, |r, w| {
        let mut keyval = keyval(r, w.word()?)?;
        mpi!(MPI_Type_free_keyval(&raw mut keyval))
    }),
    (names::MPI_Type_set_attr, |r, w| {
        let (datatype, keyval) = (r.handles.datatype(w.word()?)?.handle, keyval(r, w.word()?)?);
        mpi!(MPI_Type_set_attr(datatype, keyval, ptr::null_mut()))
    }),
    (names::MPI_Type_get_attr, |r, w| {
        let (datatype, keyval) = (r.handles.datatype(w.word()?)?.handle, keyval(r, w.word()?)?);
        value(|value, flag| mpi!(MPI_Type_get_attr(datatype, keyval, value, flag)))
    }),
    (names::MPI_Type_delete_attr, |r, w| {
        let (datatype, keyval) = (r.handles.datatype(w.word()?)?.handle, keyval(r, w.word()?)?);
        mpi!(MPI_Type_delete_attr(datatype, keyval))
    }),
    (names::MPI_Win_create_keyval, |r, w| {
        let mut keyval = 0;
        let (copy, delete) = (no_copy, no_delete);
        mpi!(MPI_Win_create_keyval(Some(copy), Some(delete), &raw mut keyval, ptr::null_mut()))?;
        r.own.keyvals.insert(w.word()?, keyval);
        Ok(())
    }),
    (names::MPI_Win_free_keyval, |r, w| {
        let mut keyval = keyval(r, w.word()?)?;
        mpi!(MPI_Win_free_keyval(&raw mut keyval))
    }),
    (names::MPI_Win_set_attr, |r, w| {
        let (win, keyval) = (r.windows.handle(w.word()?)?, keyval(r, w.word()?)?);
        mpi!(MPI_Win_set_attr(win, keyval, ptr::null_mut()))
    }),
    (names::MPI_Win_get_attr, |r, w| {
        let (win, keyval) = (r.windows.handle(w.word()?)?, keyval(r, w.word()?)?);
        value(|value, flag| mpi!(MPI_Win_get_attr(win, keyval, value, flag)))
    }),
    (names::MPI_Win_delete_attr, |r, w| {
        let (win, keyval) = (r.windows.handle(w.word()?)?, keyval(r, w.word()?)?);
        mpi!(MPI_Win_delete_attr(win, keyval))
    }),
    (names::MPI_Win_create_errhandler, |r, w| {
        let mut handler = r.k.errhandler_null;
        mpi!(MPI_Win_create_errhandler(Some(st_no_win_handler), &raw mut handler))?;
        r.own.handlers.insert(w.word()?, handler);
        Ok(())
    }),
    (names::MPI_Win_set_errhandler, |r, w| {
        let (win, handler) = (r.windows.handle(w.word()?)?, handler(r, w.word()?)?);
        mpi!(MPI_Win_set_errhandler(win, handler))
    }),
    (names::MPI_Win_get_errhandler, |r, w| {
        let (win, mut handler) = (r.windows.handle(w.word()?)?, r.k.errhandler_null);
        mpi!(MPI_Win_get_errhandler(win, &raw mut handler))?;
        r.own.handlers.insert(w.word()?, handler);
        Ok(())
    }),
    (names::MPI_Win_call_errhandler, |r, w| {
        let (win, code) = (r.windows.handle(w.word()?)?, code(r, w)?);
        mpi!(MPI_Win_call_errhandler(win, code))
    }),
    (names::MPI_File_create_errhandler, |r, w| {
        let mut handler = r.k.errhandler_null;
        mpi!(MPI_File_create_errhandler(Some(st_no_file_handler), &raw mut handler))?;
        r.own.handlers.insert(w.word()?, handler);
        Ok(())
    }),
    (names::MPI_File_set_errhandler, |r, w| {
        let (file, handler) = (file(r, w)?, handler(r, w.word()?)?);
        mpi!(MPI_File_set_errhandler(file, handler))
    }),
    (names::MPI_File_get_errhandler, |r, w| {
        let (file, mut handler) = (file(r, w)?, r.k.errhandler_null);
        mpi!(MPI_File_get_errhandler(file, &raw mut handler))?;
        r.own.handlers.insert(w.word()?, handler);
        Ok(())
    }),
    (names::MPI_File_call_errhandler, |r, w| {
        let (file, code) = (file(r, w)?, code(r, w)?);
        mpi!(MPI_File_call_errhandler(file, code))
    }),
    (names::MPI_Comm_call_errhandler, |r, w| {
        let (comm, code) = (r.handles.comm(w.word()?)?.handle, code(r, w)?);
        mpi!(MPI_Comm_call_errhandler(comm, code))
    }),
    (names::MPI_Type_extent, |r, w| bound(r, w, names::MPI_Type_extent)),
    (names::MPI_Type_lb, |r, w| bound(r, w, names::MPI_Type_lb)),
    (names::MPI_Type_ub, |r, w| bound(r, w, names::MPI_Type_ub)),
    (names::MPI_Pack_external, |r, w| {
        let (format, count) = (string(r, w)?, w.int()?);
        let datatype = r.handles.datatype(w.word()?)?;
        let size = w.word()?;
        let from = r.memory.source(datatype.span(count.into())?)?;
        let to = r.memory.sink(crate::replay::buffers::Span::bytes(size))?;
        let mut at = 0;
        let (size, datatype) = (integer(size)?, datatype.handle);
        mpi!(MPI_Pack_external(format.as_ptr(), from, count, datatype, to, size, &raw mut at))
    }),
    (names::MPI_Unpack_external, |r, w| {
        let (format, size, count) = (string(r, w)?, w.word()?, w.int()?);
        let datatype = r.handles.datatype(w.word()?)?;
        let from = r.memory.source(crate::replay::buffers::Span::bytes(size))?;
        let to = r.memory.sink(datatype.span(count.into())?)?;
        let mut at = 0;
        let (size, datatype) = (integer(size)?, datatype.handle);
        mpi!(MPI_Unpack_external(format.as_ptr(), from, size, &raw mut at, to, count, datatype))
    }),
    (names::MPI_Pack_external_size, |r, w| {
        let (format, count) = (string(r, w)?, w.int()?);
        let (datatype, mut size) = (r.handles.datatype(w.word()?)?.handle, 0);
        mpi!(MPI_Pack_external_size(format.as_ptr(), count, datatype, &raw mut size))
    }),
];

/// Calls that give an attribute.
fn value(call: impl FnOnce(*mut c_void, *mut c_int) -> Result<()>) -> Result<()> {
    let mut value: *mut c_void = ptr::null_mut();
    let mut flag = 0;
    call((&raw mut value).cast(), &raw mut flag)
}

fn bound(r: &mut Replay<'_>, w: &mut Words<'_>, name: &str) -> Result<()> {
    let (datatype, mut out) = (r.handles.datatype(w.word()?)?.handle, 0);
    apply!(crate::replay::optional::find::<Bound>(name)?, (datatype, &raw mut out))
}
