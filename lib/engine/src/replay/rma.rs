//! One-sided communication, and what synchronises it. What is read lands in memory that is never given back: it may
//! arrive until the epoch ends.
#![expect(unsafe_code, reason = "calls MPI")]

use st_model::calls::names;
use std::ffi::{c_int, c_void};

use anyhow::Result;
use mpi::ffi;
use st_replay::words::Words;

use crate::replay::call::{apply, mpi};
use crate::replay::handles::Type;
use crate::replay::requests::Kept;
use crate::replay::state::{Handler, Replay, started};

type OfWin = unsafe extern "C" fn(ffi::MPI_Win) -> c_int;
type OfTarget = unsafe extern "C" fn(c_int, ffi::MPI_Win) -> c_int;
type OfGroup = unsafe extern "C" fn(ffi::MPI_Group, c_int, ffi::MPI_Win) -> c_int;

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Put, |r, w| {
        let a = access(r, w)?;
        let from = r.memory.source(a.local.datatype.span(a.local.count.into())?)?;
        mpi!(MPI_Put(
            from,
            a.local.count,
            a.local.datatype.handle,
            a.rank,
            a.disp,
            a.count,
            a.datatype,
            a.win
        ))
    }),
    (names::MPI_Rput, |r, w| {
        let a = access(r, w)?;
        let from = r.memory.source(a.local.datatype.span(a.local.count.into())?)?;
        let (n, local) = (a.local.count, a.local.datatype.handle);
        started(r, w, Kept::default(), |q| {
            mpi!(MPI_Rput(from, n, local, a.rank, a.disp, a.count, a.datatype, a.win, q))
        })
    }),
    (names::MPI_Get, |r, w| {
        let a = access(r, w)?;
        let to = r.memory.landing(a.local.datatype.span(a.local.count.into())?)?;
        mpi!(MPI_Get(to, a.local.count, a.local.datatype.handle, a.rank, a.disp, a.count, a.datatype, a.win))
    }),
    (names::MPI_Rget, |r, w| {
        let a = access(r, w)?;
        let to = r.memory.landing(a.local.datatype.span(a.local.count.into())?)?;
        let (n, local) = (a.local.count, a.local.datatype.handle);
        started(r, w, Kept::default(), |q| {
            mpi!(MPI_Rget(to, n, local, a.rank, a.disp, a.count, a.datatype, a.win, q))
        })
    }),
    (names::MPI_Accumulate, |r, w| {
        let (local, target) = (part(r, w)?, target(w)?);
        let op = r.handles.op(w.word()?)?;
        let a = place(r, w, local, &target)?;
        let from = r.memory.source(local.datatype.span(local.count.into())?)?;
        let (n, local) = (local.count, local.datatype.handle);
        mpi!(MPI_Accumulate(from, n, local, a.rank, a.disp, a.count, a.datatype, op, a.win))
    }),
    (names::MPI_Raccumulate, |r, w| {
        let (local, target) = (part(r, w)?, target(w)?);
        let op = r.handles.op(w.word()?)?;
        let a = place(r, w, local, &target)?;
        let from = r.memory.source(local.datatype.span(local.count.into())?)?;
        let (n, local) = (local.count, local.datatype.handle);
        started(r, w, Kept::default(), |q| {
            mpi!(MPI_Raccumulate(from, n, local, a.rank, a.disp, a.count, a.datatype, op, a.win, q))
        })
    }),
    (names::MPI_Get_accumulate, |r, w| {
        let g = get_accumulate(r, w)?;
        let (a, result) = (&g.access, g.result);
        let (n, local) = (a.local.count, a.local.datatype.handle);
        mpi!(MPI_Get_accumulate(
            g.from,
            n,
            local,
            g.to,
            result.count,
            result.datatype.handle,
            a.rank,
            a.disp,
            a.count,
            a.datatype,
            g.op,
            a.win
        ))
    }),
    (names::MPI_Rget_accumulate, |r, w| {
        let g = get_accumulate(r, w)?;
        let (a, result) = (&g.access, g.result);
        let (n, local) = (a.local.count, a.local.datatype.handle);
        started(r, w, Kept::default(), |q| {
            mpi!(MPI_Rget_accumulate(
                g.from,
                n,
                local,
                g.to,
                result.count,
                result.datatype.handle,
                a.rank,
                a.disp,
                a.count,
                a.datatype,
                g.op,
                a.win,
                q
            ))
        })
    }),
    (names::MPI_Fetch_and_op, |r, w| {
        let datatype = r.handles.datatype(w.word()?)?;
        let (rank, disp) = (w.word()?, w.word()?);
        let op = r.handles.op(w.word()?)?;
        let one = single(r, w, datatype, rank, disp)?;
        mpi!(MPI_Fetch_and_op(one.from, one.to, datatype.handle, one.rank, one.disp, op, one.win))
    }),
    (names::MPI_Compare_and_swap, |r, w| {
        let datatype = r.handles.datatype(w.word()?)?;
        let (rank, disp) = (w.word()?, w.word()?);
        let one = single(r, w, datatype, rank, disp)?;
        mpi!(MPI_Compare_and_swap(one.from, one.from, one.to, datatype.handle, one.rank, one.disp, one.win))
    }),
    (names::MPI_Win_fence, |r, w| {
        let (assert, win) = (r.k.assert(w.word()?), r.windows.handle(w.word()?)?);
        mpi!(MPI_Win_fence(assert, win))
    }),
    (names::MPI_Win_post, |r, w| of_group(r, w, ffi::MPI_Win_post)),
    (names::MPI_Win_start, |r, w| of_group(r, w, ffi::MPI_Win_start)),
    (names::MPI_Win_complete, |r, w| of_win(r, w, ffi::MPI_Win_complete)),
    (names::MPI_Win_wait, |r, w| of_win(r, w, ffi::MPI_Win_wait)),
    (names::MPI_Win_test, test),
    (names::MPI_Win_lock, |r, w| {
        let (kind, rank) = (r.k.lock_type(w.word()?), r.k.rank(w.word()?));
        let (assert, win) = (r.k.assert(w.word()?), r.windows.handle(w.word()?)?);
        mpi!(MPI_Win_lock(kind, rank, assert, win))
    }),
    (names::MPI_Win_lock_all, |r, w| {
        let (assert, win) = (r.k.assert(w.word()?), r.windows.handle(w.word()?)?);
        mpi!(MPI_Win_lock_all(assert, win))
    }),
    (names::MPI_Win_unlock, |r, w| of_target(r, w, ffi::MPI_Win_unlock)),
    (names::MPI_Win_unlock_all, |r, w| of_win(r, w, ffi::MPI_Win_unlock_all)),
    (names::MPI_Win_flush, |r, w| of_target(r, w, ffi::MPI_Win_flush)),
    (names::MPI_Win_flush_all, |r, w| of_win(r, w, ffi::MPI_Win_flush_all)),
    (names::MPI_Win_flush_local, |r, w| of_target(r, w, ffi::MPI_Win_flush_local)),
    (names::MPI_Win_flush_local_all, |r, w| of_win(r, w, ffi::MPI_Win_flush_local_all)),
    (names::MPI_Win_sync, |r, w| of_win(r, w, ffi::MPI_Win_sync)),
];

fn of_win(r: &mut Replay<'_>, w: &mut Words<'_>, function: OfWin) -> Result<()> {
    let win = r.windows.handle(w.word()?)?;
    apply!(function, (win))
}

fn of_target(r: &mut Replay<'_>, w: &mut Words<'_>, function: OfTarget) -> Result<()> {
    let (rank, win) = (r.k.rank(w.word()?), r.windows.handle(w.word()?)?);
    apply!(function, (rank, win))
}

fn of_group(r: &mut Replay<'_>, w: &mut Words<'_>, function: OfGroup) -> Result<()> {
    let (group, assert) = (r.handles.group(w.word()?)?, r.k.assert(w.word()?));
    let win = r.windows.handle(w.word()?)?;
    apply!(function, (group, assert, win))
}

/// Only successful tests get here. One that succeeds ends the epoch, so there is no asking beforehand: it is repeated.
fn test(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let win = r.windows.handle(w.word()?)?;
    let mut flag = 0;
    loop {
        mpi!(MPI_Win_test(win, &raw mut flag))?;
        if flag != 0 {
            return Ok(());
        }
        std::thread::yield_now();
    }
}

/// Elements on the caller's side.
#[derive(Clone, Copy)]
struct Elements {
    count: c_int,
    datatype: Type,
}

fn part(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<Elements> {
    let count = w.int()?;
    Ok(Elements { count, datatype: r.handles.datatype(w.word()?)? })
}

/// `target targetdisp targetcount targettype`, as recorded.
struct Target {
    rank: i64,
    disp: i64,
    count: c_int,
    datatype: i64,
}

fn target(w: &mut Words<'_>) -> Result<Target> {
    Ok(Target { rank: w.word()?, disp: w.word()?, count: w.int()?, datatype: w.word()? })
}

/// The arguments that all accesses have.
struct Access {
    local: Elements,
    rank: c_int,
    disp: ffi::MPI_Aint,
    count: c_int,
    datatype: ffi::MPI_Datatype,
    win: ffi::MPI_Win,
}

/// The window is the next word.
fn place(r: &mut Replay<'_>, w: &mut Words<'_>, local: Elements, target: &Target) -> Result<Access> {
    let index = w.word()?;
    let datatype = r.handles.datatype(target.datatype)?;
    let span = datatype.span(target.count.into())?;
    Ok(Access {
        local,
        rank: r.k.rank(target.rank),
        disp: r.windows.displacement(index, target.rank, target.disp, span)?,
        count: target.count,
        datatype: datatype.handle,
        win: r.windows.handle(index)?,
    })
}

fn access(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<Access> {
    let (local, target) = (part(r, w)?, target(w)?);
    place(r, w, local, &target)
}

struct GetAccumulate {
    access: Access,
    result: Elements,
    op: ffi::MPI_Op,
    from: *mut c_void,
    to: *mut c_void,
}

fn get_accumulate(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<GetAccumulate> {
    let mut local = part(r, w)?;
    if local.datatype.handle == r.k.type_null {
        // Not looked at: the operation is MPI_NO_OP.
        local.datatype = r.handles.insignificant_type();
    }
    let (result, target) = (part(r, w)?, target(w)?);
    let op = r.handles.op(w.word()?)?;
    let access = place(r, w, local, &target)?;
    let from = r.memory.source(local.datatype.span(local.count.into())?)?;
    let to = r.memory.landing(result.datatype.span(result.count.into())?)?;
    Ok(GetAccumulate { access, result, op, from, to })
}

/// An access to one element.
struct Single {
    from: *mut c_void,
    to: *mut c_void,
    rank: c_int,
    disp: ffi::MPI_Aint,
    win: ffi::MPI_Win,
}

/// The window is the next word.
fn single(r: &mut Replay<'_>, w: &mut Words<'_>, datatype: Type, rank: i64, disp: i64) -> Result<Single> {
    let index = w.word()?;
    let span = datatype.span(1)?;
    Ok(Single {
        from: r.memory.source(span)?,
        to: r.memory.landing(span)?,
        rank: r.k.rank(rank),
        disp: r.windows.displacement(index, rank, disp, span)?,
        win: r.windows.handle(index)?,
    })
}
