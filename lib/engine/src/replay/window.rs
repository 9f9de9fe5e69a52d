//! Windows: their memory, and what is asked of them.
//!
//! Displacements in a dynamic window are addresses, of which the trace holds only how far they are from the first that
//! the rank used with that window and target. So each rank attaches one region, as large as all that it attached when
//! it was recorded, and tells the others where it is; the lowest displacement that a rank used lies at its beginning.
#![expect(unsafe_code, reason = "calls MPI")]

use std::ffi::{c_int, c_void};
use std::ptr;

use anyhow::{Context, Result};
use mpi::ffi;
use st_model::calls::names;
use st_model::values::NULL;
use st_replay::words::Words;

use crate::replay::buffers::{Block, Span};
use crate::replay::call::{apply, integer, mpi};
use crate::replay::info::{info, keep};
use crate::replay::objects::Window;
use crate::replay::state::{Handler, Replay};
use crate::replay::texts::{string, text};

type Create = unsafe extern "C" fn(
    ffi::MPI_Aint,
    c_int,
    ffi::MPI_Info,
    ffi::MPI_Comm,
    *mut c_void,
    *mut ffi::MPI_Win,
) -> c_int;

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Win_create, create),
    (names::MPI_Win_allocate, |r, w| allocate(r, w, ffi::MPI_Win_allocate)),
    (names::MPI_Win_allocate_shared, |r, w| allocate(r, w, ffi::MPI_Win_allocate_shared)),
    (names::MPI_Win_create_dynamic, create_dynamic),
    (names::MPI_Win_attach, attach),
    (names::MPI_Win_detach, detach),
    (names::MPI_Win_free, free),
    (names::MPI_Win_shared_query, |r, w| {
        let (win, rank) = (r.windows.handle(w.word()?)?, r.k.rank(w.word()?));
        let (mut size, mut unit, mut base): (ffi::MPI_Aint, c_int, *mut c_void) = (0, 0, ptr::null_mut());
        mpi!(MPI_Win_shared_query(win, rank, &raw mut size, &raw mut unit, (&raw mut base).cast()))
    }),
    (names::MPI_Win_get_group, |r, w| {
        let (win, mut group) = (r.windows.handle(w.word()?)?, r.k.group_null);
        mpi!(MPI_Win_get_group(win, &raw mut group))?;
        r.handles.bind_group(w.word()?, group);
        Ok(())
    }),
    (names::MPI_Win_set_name, |r, w| {
        let (win, name) = (r.windows.handle(w.word()?)?, string(r, w)?);
        mpi!(MPI_Win_set_name(win, name.as_ptr()))
    }),
    (names::MPI_Win_get_name, |r, w| {
        let win = r.windows.handle(w.word()?)?;
        text(|name, n| mpi!(MPI_Win_get_name(win, name, n)))
    }),
    (names::MPI_Win_set_info, |r, w| {
        let (win, info) = (r.windows.handle(w.word()?)?, info(r, w)?);
        mpi!(MPI_Win_set_info(win, info))
    }),
    (names::MPI_Win_get_info, |r, w| {
        let (win, mut info) = (r.windows.handle(w.word()?)?, r.k.info_null);
        mpi!(MPI_Win_get_info(win, &raw mut info))?;
        keep(r, w, info)
    }),
];

/// A window that has just been made gets its index.
fn made(r: &mut Replay<'_>, index: i64, handle: ffi::MPI_Win, memory: Vec<Block>) {
    let window = Window { handle, memory, attached: Vec::new(), regions: None };
    r.windows.live.insert(index, window);
}

fn create(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (size, unit, info) = (w.word()?, w.int()?, info(r, w)?);
    let comm = r.handles.comm(w.word()?)?.handle;
    let (block, base) = r.memory.lease(Span::bytes(size))?;
    let mut win = r.k.win_null;
    mpi!(MPI_Win_create(base, integer(size)?, unit, info, comm, &raw mut win))?;
    made(r, w.word()?, win, vec![block]);
    Ok(())
}

fn allocate(r: &mut Replay<'_>, w: &mut Words<'_>, function: Create) -> Result<()> {
    let (size, unit, info) = (w.word()?, w.int()?, info(r, w)?);
    let comm = r.handles.comm(w.word()?)?.handle;
    let (mut win, mut base): (_, *mut c_void) = (r.k.win_null, ptr::null_mut());
    apply!(function, (integer(size)?, unit, info, comm, (&raw mut base).cast(), &raw mut win))?;
    made(r, w.word()?, win, Vec::new());
    Ok(())
}

fn create_dynamic(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let info = info(r, w)?;
    let comm = r.handles.comm(w.word()?)?;
    let mut win = r.k.win_null;
    mpi!(MPI_Win_create_dynamic(info, comm.handle, &raw mut win))?;
    let index = w.word()?;
    let bytes = r.windows.used.get(&index).map_or(0, |used| used.bytes);
    let _hidden = r.pause.hide();
    let (mut memory, mut mine) = (Vec::new(), [0, bytes]);
    if bytes > 0 {
        let (block, base) = r.memory.lease(Span::bytes(bytes))?;
        mpi!(MPI_Win_attach(win, base, integer(bytes)?))?;
        let mut address = 0;
        mpi!(MPI_Get_address(base, &raw mut address))?;
        mine[0] = integer(address)?;
        memory.push(block);
    }
    let mut regions = vec![[0_i64; 2]; comm.members];
    let (n, byte) = (c_int::try_from(size_of_val(&mine))?, r.k.byte);
    mpi!(MPI_Allgather(mine.as_ptr().cast(), n, byte, regions.as_mut_ptr().cast(), n, byte, comm.handle))?;
    made(r, index, win, memory);
    r.windows.window(index)?.regions = Some(regions);
    Ok(())
}

/// Memory that nobody reaches: what is reached is attached already.
fn attach(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (index, size) = (w.word()?, w.word()?);
    let win = r.windows.handle(index)?;
    let (block, base) = r.memory.lease(Span::bytes(size))?;
    mpi!(MPI_Win_attach(win, base, integer(size)?))?;
    r.windows.window(index)?.attached.push((base, block));
    Ok(())
}

/// Which memory the trace does not say.
fn detach(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let window = r.windows.window(w.word()?)?;
    let (base, block) = window.attached.pop().context("nothing is attached")?;
    mpi!(MPI_Win_detach(window.handle, base))?;
    r.memory.release(block);
    Ok(())
}

fn free(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let index = w.word()?;
    let mut win = r.windows.handle(index)?;
    mpi!(MPI_Win_free(&raw mut win))?;
    if index != NULL
        && let Some(window) = r.windows.live.remove(&index)
    {
        let attached = window.attached.into_iter().map(|(_, block)| block);
        window.memory.into_iter().chain(attached).for_each(|b| r.memory.release(b));
    }
    Ok(())
}
