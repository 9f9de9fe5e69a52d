//! Groups.
#![expect(unsafe_code, reason = "calls MPI")]

use st_model::calls::names;
use std::ffi::c_int;

use anyhow::Result;
use mpi::ffi;
use st_replay::words::Words;

use crate::replay::call::{apply, mpi};
use crate::replay::state::{Handler, Replay};

type Number = unsafe extern "C" fn(ffi::MPI_Group, *mut c_int) -> c_int;
type Pair = unsafe extern "C" fn(ffi::MPI_Group, ffi::MPI_Group, *mut ffi::MPI_Group) -> c_int;
type Choice = unsafe extern "C" fn(ffi::MPI_Group, c_int, *const c_int, *mut ffi::MPI_Group) -> c_int;
type Ranges = unsafe extern "C" fn(ffi::MPI_Group, c_int, *mut [c_int; 3], *mut ffi::MPI_Group) -> c_int;

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Comm_group, |r, w| {
        let comm = r.handles.comm(w.word()?)?.handle;
        made(r, w, |new| mpi!(MPI_Comm_group(comm, new)))
    }),
    (names::MPI_Comm_remote_group, |r, w| {
        let comm = r.handles.comm(w.word()?)?.handle;
        made(r, w, |new| mpi!(MPI_Comm_remote_group(comm, new)))
    }),
    (names::MPI_Group_size, |r, w| number(r, w, ffi::MPI_Group_size)),
    (names::MPI_Group_rank, |r, w| number(r, w, ffi::MPI_Group_rank)),
    (names::MPI_Group_translate_ranks, translate),
    (names::MPI_Group_compare, compare),
    (names::MPI_Group_union, |r, w| pair(r, w, ffi::MPI_Group_union)),
    (names::MPI_Group_intersection, |r, w| pair(r, w, ffi::MPI_Group_intersection)),
    (names::MPI_Group_difference, |r, w| pair(r, w, ffi::MPI_Group_difference)),
    (names::MPI_Group_incl, |r, w| choice(r, w, ffi::MPI_Group_incl)),
    (names::MPI_Group_excl, |r, w| choice(r, w, ffi::MPI_Group_excl)),
    (names::MPI_Group_range_incl, |r, w| ranges(r, w, ffi::MPI_Group_range_incl)),
    (names::MPI_Group_range_excl, |r, w| ranges(r, w, ffi::MPI_Group_range_excl)),
    (names::MPI_Group_free, |r, w| {
        let mut group = r.handles.take_group(w.word()?)?;
        mpi!(MPI_Group_free(&raw mut group))
    }),
];

/// Makes a group, whose index is the next word.
fn made(
    r: &mut Replay<'_>,
    w: &mut Words<'_>,
    make: impl FnOnce(&mut ffi::MPI_Group) -> Result<()>,
) -> Result<()> {
    let mut new = r.k.group_null;
    make(&mut new)?;
    r.handles.bind_group(w.word()?, new);
    Ok(())
}

fn number(r: &mut Replay<'_>, w: &mut Words<'_>, function: Number) -> Result<()> {
    let group = r.handles.group(w.word()?)?;
    let mut out = 0;
    apply!(function, (group, &raw mut out))
}

fn translate(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let group = r.handles.group(w.word()?)?;
    let n = w.int()?;
    let ranks = w.ints()?;
    let other = r.handles.group(w.word()?)?;
    let mut out = vec![0; ranks.len()];
    mpi!(MPI_Group_translate_ranks(group, n, ranks.as_ptr(), other, out.as_mut_ptr()))
}

fn compare(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (a, b) = (r.handles.group(w.word()?)?, r.handles.group(w.word()?)?);
    let mut out = 0;
    mpi!(MPI_Group_compare(a, b, &raw mut out))
}

fn pair(r: &mut Replay<'_>, w: &mut Words<'_>, function: Pair) -> Result<()> {
    let (a, b) = (r.handles.group(w.word()?)?, r.handles.group(w.word()?)?);
    made(r, w, |new| apply!(function, (a, b, new)))
}

fn choice(r: &mut Replay<'_>, w: &mut Words<'_>, function: Choice) -> Result<()> {
    let group = r.handles.group(w.word()?)?;
    let n = w.int()?;
    let ranks = w.ints()?;
    made(r, w, |new| apply!(function, (group, n, ranks.as_ptr(), new)))
}

fn ranges(r: &mut Replay<'_>, w: &mut Words<'_>, function: Ranges) -> Result<()> {
    let group = r.handles.group(w.word()?)?;
    let n = w.int()?;
    let flat = w.ints()?;
    let (triples, _) = flat.as_chunks::<3>();
    let mut triples = triples.to_vec();
    made(r, w, |new| apply!(function, (group, n, triples.as_mut_ptr(), new)))
}
