//! Local bookkeeping that is recorded by name only: made again with arguments and objects of the replay's own, since
//! nothing that the trace holds depends on it.
#![expect(unsafe_code, reason = "calls MPI")]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use anyhow::Result;
use mpi::ffi;

use crate::call::{apply, mpi};
use crate::constants::st_no_handler;
use crate::replay::{Handler, Replay};

type Bounds = unsafe extern "C" fn(ffi::MPI_Datatype, *mut ffi::MPI_Count, *mut ffi::MPI_Count) -> c_int;
type GetAttribute = unsafe extern "C" fn(ffi::MPI_Comm, c_int, *mut c_void, *mut c_int) -> c_int;

/// Objects that stand for the program's, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Own {
    handlers: Vec<ffi::MPI_Errhandler>,
    keyvals: Vec<c_int>,
}

/// Longest of the lengths of names, keys and messages under any MPI.
pub(crate) const LONGEST: usize = 4096;

pub(crate) const CALLS: &[(&str, Handler)] = &[
    ("MPI_Comm_create_errhandler", |r, _| new_handler(r).map(|handler| r.own.handlers.push(handler))),
    // Errors go on ending the replay.
    ("MPI_Comm_set_errhandler", |r, _| mpi!(MPI_Comm_set_errhandler(r.k.comm_self, r.k.errors_are_fatal))),
    ("MPI_Comm_get_errhandler", |r, _| {
        let mut handler = r.k.errhandler_null;
        mpi!(MPI_Comm_get_errhandler(r.k.comm_self, &raw mut handler))
    }),
    ("MPI_Errhandler_free", |r, _| {
        let mut handler = match r.own.handlers.pop() {
            Some(handler) => handler,
            None => hidden(r, new_handler)?,
        };
        mpi!(MPI_Errhandler_free(&raw mut handler))
    }),
    ("MPI_Error_class", |_, _| {
        let mut class = 0;
        mpi!(MPI_Error_class(0, &raw mut class))
    }),
    ("MPI_Error_string", |_, _| text(|message, n| mpi!(MPI_Error_string(0, message, n)))),
    ("MPI_Comm_create_keyval", |r, _| new_keyval(r).map(|keyval| r.own.keyvals.push(keyval))),
    ("MPI_Comm_free_keyval", |r, _| {
        let mut keyval = keyval(r)?;
        r.own.keyvals.pop();
        mpi!(MPI_Comm_free_keyval(&raw mut keyval))
    }),
    ("MPI_Comm_set_attr", |r, _| {
        let keyval = keyval(r)?;
        mpi!(MPI_Comm_set_attr(r.k.comm_self, keyval, ptr::null_mut()))
    }),
    ("MPI_Comm_get_attr", |r, _| attribute(r, ffi::MPI_Comm_get_attr)),
    ("MPI_Attr_get", |r, _| attribute(r, ffi::MPI_Attr_get)),
    ("MPI_Comm_delete_attr", |r, _| {
        let keyval = keyval(r)?;
        hidden(r, |r| mpi!(MPI_Comm_set_attr(r.k.comm_self, keyval, ptr::null_mut())))?;
        mpi!(MPI_Comm_delete_attr(r.k.comm_self, keyval))
    }),
    ("MPI_Type_get_name", |r, _| text(|name, n| mpi!(MPI_Type_get_name(r.k.byte, name, n)))),
    ("MPI_Type_set_name", |r, _| mpi!(MPI_Type_set_name(r.k.byte, c"MPI_BYTE".as_ptr()))),
    ("MPI_Type_get_envelope", |r, _| {
        let (mut ints, mut addresses, mut types, mut combiner) = (0, 0, 0, 0);
        mpi!(MPI_Type_get_envelope(
            r.k.byte,
            &raw mut ints,
            &raw mut addresses,
            &raw mut types,
            &raw mut combiner
        ))
    }),
    ("MPI_Type_get_extent_x", |r, _| bounds(r, ffi::MPI_Type_get_extent_x)),
    ("MPI_Type_get_true_extent_x", |r, _| bounds(r, ffi::MPI_Type_get_true_extent_x)),
];

/// Does something that the program did not do.
pub(crate) fn hidden<T>(r: &mut Replay<'_>, act: impl FnOnce(&mut Replay<'_>) -> Result<T>) -> Result<T> {
    let _hidden = r.pause.hide();
    act(r)
}

fn new_handler(r: &mut Replay<'_>) -> Result<ffi::MPI_Errhandler> {
    let mut handler = r.k.errhandler_null;
    mpi!(MPI_Comm_create_errhandler(Some(st_no_handler), &raw mut handler))?;
    Ok(handler)
}

/// Attributes are not copied with their communicator.
unsafe extern "C" fn no_copy(
    _comm: ffi::MPI_Comm,
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

unsafe extern "C" fn no_delete(_: ffi::MPI_Comm, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

fn new_keyval(_: &mut Replay<'_>) -> Result<c_int> {
    let mut keyval = 0;
    mpi!(MPI_Comm_create_keyval(Some(no_copy), Some(no_delete), &raw mut keyval, ptr::null_mut()))?;
    Ok(keyval)
}

/// The newest key of attributes, made now if there is none.
fn keyval(r: &mut Replay<'_>) -> Result<c_int> {
    if let Some(&keyval) = r.own.keyvals.last() {
        return Ok(keyval);
    }
    let keyval = hidden(r, new_keyval)?;
    r.own.keyvals.push(keyval);
    Ok(keyval)
}

fn attribute(r: &mut Replay<'_>, function: GetAttribute) -> Result<()> {
    let keyval = keyval(r)?;
    let mut value: *mut c_void = ptr::null_mut();
    let mut flag = 0;
    apply!(function, (r.k.comm_self, keyval, (&raw mut value).cast(), &raw mut flag))
}

fn bounds(r: &mut Replay<'_>, function: Bounds) -> Result<()> {
    let (mut lower, mut extent) = (0, 0);
    apply!(function, (r.k.byte, &raw mut lower, &raw mut extent))
}

/// Calls with room for a text and an integer.
pub(crate) fn text(call: impl FnOnce(*mut c_char, *mut c_int) -> Result<()>) -> Result<()> {
    let mut text: [c_char; LONGEST] = [0; LONGEST];
    let mut n = 0;
    call(text.as_mut_ptr(), &raw mut n)
}
