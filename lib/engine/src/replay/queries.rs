//! Questions that need no other process. Their answers are not looked at; made again because the program made them.
#![expect(unsafe_code, reason = "calls MPI")]

use std::ffi::{c_char, c_int, c_void};

use anyhow::Result;
use mpi::ffi;
use st_model::calls::names;
use st_model::values::UNDEFINED;
use st_replay::words::Words;

use crate::replay::buffers::Span;
use crate::replay::call::{apply, integer, mpi};
use crate::replay::state::{Handler, Replay};

type OfComm = unsafe extern "C" fn(ffi::MPI_Comm, *mut c_int) -> c_int;
type Bounds = unsafe extern "C" fn(ffi::MPI_Datatype, *mut ffi::MPI_Aint, *mut ffi::MPI_Aint) -> c_int;

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Comm_rank, |r, w| of_comm(r, w, ffi::MPI_Comm_rank)),
    (names::MPI_Comm_size, |r, w| of_comm(r, w, ffi::MPI_Comm_size)),
    (names::MPI_Comm_remote_size, |r, w| of_comm(r, w, ffi::MPI_Comm_remote_size)),
    (names::MPI_Comm_test_inter, |r, w| of_comm(r, w, ffi::MPI_Comm_test_inter)),
    (names::MPI_Topo_test, |r, w| of_comm(r, w, ffi::MPI_Topo_test)),
    (names::MPI_Cartdim_get, |r, w| of_comm(r, w, ffi::MPI_Cartdim_get)),
    (names::MPI_Comm_compare, comm_compare),
    (names::MPI_Comm_get_name, comm_get_name),
    (names::MPI_Comm_get_parent, comm_get_parent),
    (names::MPI_Type_size, type_size),
    (names::MPI_Type_size_x, type_size_x),
    (names::MPI_Type_get_extent, |r, w| bounds(r, w, ffi::MPI_Type_get_extent)),
    (names::MPI_Type_get_true_extent, |r, w| bounds(r, w, ffi::MPI_Type_get_true_extent)),
    (names::MPI_Get_count, get_count),
    (names::MPI_Get_elements, get_elements),
    (names::MPI_Get_elements_x, get_elements_x),
    (names::MPI_Test_cancelled, test_cancelled),
    (names::MPI_Pack, pack),
    (names::MPI_Unpack, unpack),
    (names::MPI_Pack_size, pack_size),
    (names::MPI_Get_address, get_address),
    (names::MPI_Op_commutative, op_commutative),
];

/// Longest of `MPI_MAX_OBJECT_NAME` under any MPI.
const LONGEST_NAME: usize = 1024;

fn of_comm(r: &mut Replay<'_>, w: &mut Words<'_>, function: OfComm) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let mut out = 0;
    apply!(function, (comm, &raw mut out))
}

fn comm_compare(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (a, b) = (r.handles.comm(w.word()?)?.handle, r.handles.comm(w.word()?)?.handle);
    let mut out = 0;
    mpi!(MPI_Comm_compare(a, b, &raw mut out))
}

fn comm_get_name(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let mut text: [c_char; LONGEST_NAME] = [0; LONGEST_NAME];
    let mut length = 0;
    mpi!(MPI_Comm_get_name(comm, text.as_mut_ptr(), &raw mut length))
}

fn comm_get_parent(r: &mut Replay<'_>, _: &mut Words<'_>) -> Result<()> {
    let mut parent = r.k.comm_null;
    mpi!(MPI_Comm_get_parent(&raw mut parent))
}

fn type_size(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let datatype = r.handles.datatype(w.word()?)?.handle;
    let mut size = 0;
    mpi!(MPI_Type_size(datatype, &raw mut size))
}

fn type_size_x(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let datatype = r.handles.datatype(w.word()?)?.handle;
    let mut size = 0;
    mpi!(MPI_Type_size_x(datatype, &raw mut size))
}

fn bounds(r: &mut Replay<'_>, w: &mut Words<'_>, function: Bounds) -> Result<()> {
    let datatype = r.handles.datatype(w.word()?)?.handle;
    let (mut lower, mut extent) = (0, 0);
    apply!(function, (datatype, &raw mut lower, &raw mut extent))
}

/// Prepares a status from which the recorded number of elements follows.
fn holding(r: &mut Replay<'_>, datatype: ffi::MPI_Datatype, elements: i64) -> Result<*mut ffi::MPI_Status> {
    let status = r.status();
    let _hidden = r.pause.hide();
    mpi!(MPI_Status_set_elements_x(status, datatype, integer::<i64, ffi::MPI_Count>(elements)?))?;
    Ok(status)
}

fn get_count(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let datatype = r.handles.datatype(w.word()?)?;
    let count = w.word()?;
    // One byte is no whole number of elements of any larger type.
    let bytes = if count == UNDEFINED { 1 } else { count.saturating_mul(datatype.size) };
    let byte = r.k.byte;
    let status = holding(r, byte, bytes)?;
    let mut out = 0;
    mpi!(MPI_Get_count(status, datatype.handle, &raw mut out))
}

/// The status and type for a number of basic elements; one byte if the number is undefined.
fn elements(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<(*mut ffi::MPI_Status, ffi::MPI_Datatype)> {
    let datatype = r.handles.datatype(w.word()?)?;
    let count = w.word()?;
    let byte = r.k.byte;
    if count == UNDEFINED {
        return Ok((holding(r, byte, 1)?, datatype.handle));
    }
    let status = holding(r, datatype.handle, count)?;
    let mut got = 0;
    {
        let _hidden = r.pause.hide();
        mpi!(MPI_Get_elements_x(status, datatype.handle, &raw mut got))?;
    }
    let got: i64 = integer(got)?;
    if got > 0 && got != count {
        // MPICH takes the number for one of whole elements: from its answer follow the bytes of a basic one.
        let bytes = i128::from(count) * i128::from(count) * i128::from(datatype.size) / i128::from(got);
        holding(r, byte, integer(bytes)?)?;
    }
    Ok((status, datatype.handle))
}

fn get_elements(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (status, datatype) = elements(r, w)?;
    let mut out = 0;
    mpi!(MPI_Get_elements(status, datatype, &raw mut out))
}

fn get_elements_x(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (status, datatype) = elements(r, w)?;
    let mut out = 0;
    mpi!(MPI_Get_elements_x(status, datatype, &raw mut out))
}

fn test_cancelled(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let cancelled = w.int()?;
    let status = r.status();
    {
        let _hidden = r.pause.hide();
        mpi!(MPI_Status_set_cancelled(status, cancelled))?;
    }
    let mut flag = 0;
    mpi!(MPI_Test_cancelled(status, &raw mut flag))
}

fn pack(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let count = w.int()?;
    let datatype = r.handles.datatype(w.word()?)?;
    let size = w.int()?;
    let comm = r.handles.comm(w.word()?)?.handle;
    let from = r.memory.source(datatype.span(count.into())?)?;
    let to = r.memory.sink(Span::bytes(size.into()))?;
    let mut position = 0;
    mpi!(MPI_Pack(from, count, datatype.handle, to, size, &raw mut position, comm))
}

fn unpack(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let size = w.int()?;
    let count = w.int()?;
    let datatype = r.handles.datatype(w.word()?)?;
    let comm = r.handles.comm(w.word()?)?.handle;
    let from = r.memory.source(Span::bytes(size.into()))?;
    let to = r.memory.sink(datatype.span(count.into())?)?;
    let mut position = 0;
    mpi!(MPI_Unpack(from, size, &raw mut position, to, count, datatype.handle, comm))
}

fn pack_size(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let count = w.int()?;
    let datatype = r.handles.datatype(w.word()?)?.handle;
    let comm = r.handles.comm(w.word()?)?.handle;
    let mut size = 0;
    mpi!(MPI_Pack_size(count, datatype, comm, &raw mut size))
}

fn get_address(r: &mut Replay<'_>, _: &mut Words<'_>) -> Result<()> {
    let place: *mut c_void = r.memory.source(Span::bytes(1))?;
    let mut address = 0;
    mpi!(MPI_Get_address(place, &raw mut address))
}

fn op_commutative(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let op = r.handles.op(w.word()?)?;
    let mut commutes = 0;
    mpi!(MPI_Op_commutative(op, &raw mut commutes))
}
