//! Collectives: blocking ones, and their non-blocking forms with a request at the end.
#![expect(unsafe_code, reason = "calls MPI")]

use std::ffi::{c_int, c_void};

use anyhow::Result;
use mpi::ffi;
use st_model::calls::names;
use st_model::values::NULL;
use st_replay::words::Words;

use crate::replay::arguments::{Arguments, Side, blocks, displacements, for_each, side, typed_blocks};
use crate::replay::buffers::Span;
use crate::replay::call::{apply, mpi};
use crate::replay::requests::{Kept, Later};
use crate::replay::state::{Handler, Replay};

/// Three handlers: the function, its non-blocking form, and its persistent form, which not every MPI has. `$read` makes
/// the arguments, memory included.
macro_rules! collective {
    ($now:ident, $later:ident, $init:ident, $read:ident, $Now:ident, $Later:ident, $Init:ident: $($field:ident)*) => {
        fn $now(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
            let a = $read(r, w, None)?;
            mpi!($Now($(collective!(@ a $field)),*))
        }
        fn $later(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
            let mut kept = Kept::default();
            let a = Box::new($read(r, w, Some(&mut kept))?);
            let slot = w.word()?;
            let request = r.requests.place(slot, &r.k)?;
            mpi!($Later($(collective!(@ a $field)),*, request))?;
            kept.arguments = Some(a);
            r.requests.start(slot, false, kept);
            Ok(())
        }
        fn $init(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
            type Function = unsafe extern "C" fn(
                $(collective!(@type $field)),*, ffi::MPI_Info, *mut ffi::MPI_Request
            ) -> c_int;
            let function: Function = crate::replay::optional::find(names::$Init)?;
            let mut kept = Kept::default();
            let a = Box::new($read(r, w, Some(&mut kept))?);
            let slot = w.word()?;
            let request = r.requests.place(slot, &r.k)?;
            apply!(function, ($(collective!(@ a $field)),*, r.k.info_null, request))?;
            kept.arguments = Some(a);
            r.requests.start(slot, true, kept);
            Ok(())
        }
    };
    (@type sendbuf) => { *const c_void };
    (@type recvbuf) => { *mut c_void };
    (@type sendcount) => { c_int };
    (@type recvcount) => { c_int };
    (@type root) => { c_int };
    (@type sendtype) => { ffi::MPI_Datatype };
    (@type recvtype) => { ffi::MPI_Datatype };
    (@type sendtypes) => { *const ffi::MPI_Datatype };
    (@type recvtypes) => { *const ffi::MPI_Datatype };
    (@type sendbytes) => { *const ffi::MPI_Aint };
    (@type recvbytes) => { *const ffi::MPI_Aint };
    (@type op) => { ffi::MPI_Op };
    (@type comm) => { ffi::MPI_Comm };
    (@type $list:ident) => { *const c_int };
    (@ $a:ident sendbytes) => { $a.sendbytes.as_ptr() };
    (@ $a:ident recvbytes) => { $a.recvbytes.as_ptr() };
    (@ $a:ident sendcounts) => { $a.sendcounts.as_ptr() };
    (@ $a:ident recvcounts) => { $a.recvcounts.as_ptr() };
    (@ $a:ident sdispls) => { $a.sdispls.as_ptr() };
    (@ $a:ident rdispls) => { $a.rdispls.as_ptr() };
    (@ $a:ident sendtypes) => { $a.sendtypes.as_ptr() };
    (@ $a:ident recvtypes) => { $a.recvtypes.as_ptr() };
    (@ $a:ident $field:ident) => { $a.$field };
}

collective!(barrier, ibarrier, barrier_init, read_barrier, MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init: comm);
collective!(bcast, ibcast, bcast_init, read_bcast, MPI_Bcast, MPI_Ibcast, MPI_Bcast_init: recvbuf recvcount recvtype root comm);
collective!(gather, igather, gather_init, read_gather, MPI_Gather, MPI_Igather, MPI_Gather_init:
    sendbuf sendcount sendtype recvbuf recvcount recvtype root comm);
collective!(gatherv, igatherv, gatherv_init, read_gatherv, MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init:
    sendbuf sendcount sendtype recvbuf recvcounts rdispls recvtype root comm);
collective!(scatter, iscatter, scatter_init, read_scatter, MPI_Scatter, MPI_Iscatter, MPI_Scatter_init:
    sendbuf sendcount sendtype recvbuf recvcount recvtype root comm);
collective!(scatterv, iscatterv, scatterv_init, read_scatterv, MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init:
    sendbuf sendcounts sdispls sendtype recvbuf recvcount recvtype root comm);
collective!(allgather, iallgather, allgather_init, read_allgather, MPI_Allgather, MPI_Iallgather, MPI_Allgather_init:
    sendbuf sendcount sendtype recvbuf recvcount recvtype comm);
collective!(allgatherv, iallgatherv, allgatherv_init, read_allgatherv, MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init:
    sendbuf sendcount sendtype recvbuf recvcounts rdispls recvtype comm);
collective!(alltoall, ialltoall, alltoall_init, read_alltoall, MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init:
    sendbuf sendcount sendtype recvbuf recvcount recvtype comm);
collective!(alltoallv, ialltoallv, alltoallv_init, read_alltoallv, MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init:
    sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype comm);
collective!(alltoallw, ialltoallw, alltoallw_init, read_alltoallw, MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init:
    sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes comm);
collective!(reduce, ireduce, reduce_init, read_reduce, MPI_Reduce, MPI_Ireduce, MPI_Reduce_init:
    sendbuf recvbuf recvcount recvtype op root comm);
collective!(allreduce, iallreduce, allreduce_init, read_allreduce, MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init:
    sendbuf recvbuf recvcount recvtype op comm);
collective!(reduce_scatter, ireduce_scatter, reduce_scatter_init, read_reduce_scatter, MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_Reduce_scatter_init:
    sendbuf recvbuf recvcounts recvtype op comm);
collective!(reduce_block, ireduce_block, reduce_block_init, read_reduce_block, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init:
    sendbuf recvbuf recvcount recvtype op comm);
collective!(scan, iscan, scan_init, read_allreduce, MPI_Scan, MPI_Iscan, MPI_Scan_init: sendbuf recvbuf recvcount recvtype op comm);
collective!(exscan, iexscan, exscan_init, read_allreduce, MPI_Exscan, MPI_Iexscan, MPI_Exscan_init: sendbuf recvbuf recvcount recvtype op comm);

pub(crate) use collective;

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Barrier, barrier),
    (names::MPI_Ibarrier, ibarrier),
    (names::MPI_Barrier_init, barrier_init),
    (names::MPI_Bcast, bcast),
    (names::MPI_Ibcast, ibcast),
    (names::MPI_Bcast_init, bcast_init),
    (names::MPI_Gather, gather),
    (names::MPI_Igather, igather),
    (names::MPI_Gather_init, gather_init),
    (names::MPI_Gatherv, gatherv),
    (names::MPI_Igatherv, igatherv),
    (names::MPI_Gatherv_init, gatherv_init),
    (names::MPI_Scatter, scatter),
    (names::MPI_Iscatter, iscatter),
    (names::MPI_Scatter_init, scatter_init),
    (names::MPI_Scatterv, scatterv),
    (names::MPI_Iscatterv, iscatterv),
    (names::MPI_Scatterv_init, scatterv_init),
    (names::MPI_Allgather, allgather),
    (names::MPI_Iallgather, iallgather),
    (names::MPI_Allgather_init, allgather_init),
    (names::MPI_Allgatherv, allgatherv),
    (names::MPI_Iallgatherv, iallgatherv),
    (names::MPI_Allgatherv_init, allgatherv_init),
    (names::MPI_Alltoall, alltoall),
    (names::MPI_Ialltoall, ialltoall),
    (names::MPI_Alltoall_init, alltoall_init),
    (names::MPI_Alltoallv, alltoallv),
    (names::MPI_Ialltoallv, ialltoallv),
    (names::MPI_Alltoallv_init, alltoallv_init),
    (names::MPI_Alltoallw, alltoallw),
    (names::MPI_Ialltoallw, ialltoallw),
    (names::MPI_Alltoallw_init, alltoallw_init),
    (names::MPI_Reduce, reduce),
    (names::MPI_Ireduce, ireduce),
    (names::MPI_Reduce_init, reduce_init),
    (names::MPI_Allreduce, allreduce),
    (names::MPI_Iallreduce, iallreduce),
    (names::MPI_Allreduce_init, allreduce_init),
    (names::MPI_Reduce_scatter, reduce_scatter),
    (names::MPI_Ireduce_scatter, ireduce_scatter),
    (names::MPI_Reduce_scatter_init, reduce_scatter_init),
    (names::MPI_Reduce_scatter_block, reduce_block),
    (names::MPI_Ireduce_scatter_block, ireduce_block),
    (names::MPI_Reduce_scatter_block_init, reduce_block_init),
    (names::MPI_Scan, scan),
    (names::MPI_Iscan, iscan),
    (names::MPI_Scan_init, scan_init),
    (names::MPI_Exscan, exscan),
    (names::MPI_Iexscan, iexscan),
    (names::MPI_Exscan_init, exscan_init),
    (names::MPI_Reduce_local, reduce_local),
];

/// A count and a type that are not significant on all ranks of a rooted collective: recorded as 0 and null where they
/// are not. Libraries look at them all the same: Open MPI checks the type, and takes a count of 0 for a collective
/// that does nothing, which it then leaves out of step with the other ranks.
fn root_side(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<Side> {
    let mut s = side(&mut r.handles, w)?;
    if s.datatype.handle == r.k.type_null {
        s = Side { count: 1, datatype: r.handles.insignificant_type() };
    }
    Ok(s)
}

/// The part of a rooted collective that the root may keep in place.
fn unless_in_place(r: &mut Replay<'_>, w: &mut Words<'_>, inplace: i64) -> Result<Side> {
    if inplace == 0 { root_side(r, w) } else { side(&mut r.handles, w) }
}

/// Address to send from, or the mark that the call works in place.
fn source(r: &mut Replay<'_>, inplace: i64, span: impl FnOnce() -> Result<Span>) -> Result<*mut c_void> {
    if inplace == 0 { r.memory.source(span()?) } else { Ok(r.k.in_place) }
}

fn read_barrier(r: &mut Replay<'_>, w: &mut Words<'_>, _: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    a.comm = r.handles.comm(w.word()?)?.handle;
    Ok(a)
}

fn read_bcast(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    let s = root_side(r, w)?;
    a.root = r.k.rank(w.word()?);
    a.comm = r.handles.comm(w.word()?)?.handle;
    (a.recvcount, a.recvtype) = (s.count, s.datatype.handle);
    a.recvbuf = r.sink(s.datatype.span(s.count.into())?, later)?;
    Ok(a)
}

fn read_gather(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    let inplace = w.word()?;
    let (send, receive) = (unless_in_place(r, w, inplace)?, root_side(r, w)?);
    a.root = r.k.rank(w.word()?);
    let comm = r.handles.comm(w.word()?)?;
    a.comm = comm.handle;
    (a.sendcount, a.sendtype) = (send.count, send.datatype.handle);
    (a.recvcount, a.recvtype) = (receive.count, receive.datatype.handle);
    a.sendbuf = source(r, inplace, || send.datatype.span(send.count.into()))?;
    a.recvbuf = r.sink(for_each(&receive, comm.peers)?, later)?;
    Ok(a)
}

fn read_gatherv(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    let inplace = w.word()?;
    let send = unless_in_place(r, w, inplace)?;
    a.recvcounts = w.ints()?;
    a.rdispls = displacements(w.list()?, &a.recvcounts)?;
    let mut receive = r.handles.datatype(w.word()?)?;
    if receive.handle == r.k.type_null {
        receive = r.handles.insignificant_type();
    }
    a.root = r.k.rank(w.word()?);
    a.comm = r.handles.comm(w.word()?)?.handle;
    (a.sendcount, a.sendtype) = (send.count, send.datatype.handle);
    a.recvtype = receive.handle;
    a.sendbuf = source(r, inplace, || send.datatype.span(send.count.into()))?;
    a.recvbuf = r.sink(blocks(&receive, &a.recvcounts, &a.rdispls)?, later)?;
    Ok(a)
}

fn read_scatter(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    let send = root_side(r, w)?;
    let inplace = w.word()?;
    let receive = unless_in_place(r, w, inplace)?;
    a.root = r.k.rank(w.word()?);
    let comm = r.handles.comm(w.word()?)?;
    a.comm = comm.handle;
    (a.sendcount, a.sendtype) = (send.count, send.datatype.handle);
    (a.recvcount, a.recvtype) = (receive.count, receive.datatype.handle);
    a.sendbuf = r.memory.source(for_each(&send, comm.peers)?)?;
    a.recvbuf = scattered(r, inplace, &receive, later)?;
    Ok(a)
}

/// Address that a scatter receives at, or the mark that the root keeps its part in place.
fn scattered(r: &mut Replay<'_>, inplace: i64, receive: &Side, later: Later<'_>) -> Result<*mut c_void> {
    if inplace == 0 { r.sink(receive.datatype.span(receive.count.into())?, later) } else { Ok(r.k.in_place) }
}

fn read_scatterv(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    a.sendcounts = w.ints()?;
    a.sdispls = displacements(w.list()?, &a.sendcounts)?;
    let mut send = r.handles.datatype(w.word()?)?;
    if send.handle == r.k.type_null {
        send = r.handles.insignificant_type();
    }
    let inplace = w.word()?;
    let receive = unless_in_place(r, w, inplace)?;
    a.root = r.k.rank(w.word()?);
    a.comm = r.handles.comm(w.word()?)?.handle;
    a.sendtype = send.handle;
    (a.recvcount, a.recvtype) = (receive.count, receive.datatype.handle);
    a.sendbuf = r.memory.source(blocks(&send, &a.sendcounts, &a.sdispls)?)?;
    a.recvbuf = scattered(r, inplace, &receive, later)?;
    Ok(a)
}

fn read_allgather(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    let inplace = w.word()?;
    let (send, receive) = (side(&mut r.handles, w)?, side(&mut r.handles, w)?);
    let comm = r.handles.comm(w.word()?)?;
    a.comm = comm.handle;
    (a.sendcount, a.sendtype) = (send.count, send.datatype.handle);
    (a.recvcount, a.recvtype) = (receive.count, receive.datatype.handle);
    a.sendbuf = source(r, inplace, || send.datatype.span(send.count.into()))?;
    a.recvbuf = r.sink(for_each(&receive, comm.peers)?, later)?;
    Ok(a)
}

fn read_allgatherv(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    let inplace = w.word()?;
    let send = side(&mut r.handles, w)?;
    a.recvcounts = w.ints()?;
    a.rdispls = displacements(w.list()?, &a.recvcounts)?;
    let receive = r.handles.datatype(w.word()?)?;
    a.comm = r.handles.comm(w.word()?)?.handle;
    (a.sendcount, a.sendtype, a.recvtype) = (send.count, send.datatype.handle, receive.handle);
    a.sendbuf = source(r, inplace, || send.datatype.span(send.count.into()))?;
    a.recvbuf = r.sink(blocks(&receive, &a.recvcounts, &a.rdispls)?, later)?;
    Ok(a)
}

fn read_alltoall(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    let inplace = w.word()?;
    let (send, receive) = (side(&mut r.handles, w)?, side(&mut r.handles, w)?);
    let comm = r.handles.comm(w.word()?)?;
    a.comm = comm.handle;
    (a.sendcount, a.sendtype) = (send.count, send.datatype.handle);
    (a.recvcount, a.recvtype) = (receive.count, receive.datatype.handle);
    a.sendbuf = source(r, inplace, || for_each(&send, comm.peers))?;
    a.recvbuf = r.sink(for_each(&receive, comm.peers)?, later)?;
    Ok(a)
}

fn read_alltoallv(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    let inplace = w.word()?;
    a.sendcounts = w.ints()?;
    a.sdispls = displacements(w.list()?, &a.sendcounts)?;
    let send = r.handles.datatype(w.word()?)?;
    a.recvcounts = w.ints()?;
    a.rdispls = displacements(w.list()?, &a.recvcounts)?;
    let receive = r.handles.datatype(w.word()?)?;
    a.comm = r.handles.comm(w.word()?)?.handle;
    (a.sendtype, a.recvtype) = (send.handle, receive.handle);
    a.sendbuf = source(r, inplace, || blocks(&send, &a.sendcounts, &a.sdispls))?;
    a.recvbuf = r.sink(blocks(&receive, &a.recvcounts, &a.rdispls)?, later)?;
    Ok(a)
}

fn read_alltoallw(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    let inplace = w.word()?;
    (a.sendcounts, a.sdispls) = (w.ints()?, w.ints()?);
    let (types, span) = typed_blocks(&mut r.handles, w.list()?, &a.sendcounts, &a.sdispls)?;
    a.sendtypes = types;
    a.sendbuf = source(r, inplace, || Ok(span))?;
    (a.recvcounts, a.rdispls) = (w.ints()?, w.ints()?);
    let (types, span) = typed_blocks(&mut r.handles, w.list()?, &a.recvcounts, &a.rdispls)?;
    a.recvtypes = types;
    a.recvbuf = r.sink(span, later)?;
    a.comm = r.handles.comm(w.word()?)?.handle;
    Ok(a)
}

fn read_reduce(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    let inplace = w.word()?;
    let s = root_side(r, w)?;
    a.op = r.handles.op(w.word()?)?;
    if a.op == r.k.op_null {
        a.op = r.handles.insignificant_op()?;
    }
    a.root = r.k.rank(w.word()?);
    a.comm = r.handles.comm(w.word()?)?.handle;
    (a.recvcount, a.recvtype) = (s.count, s.datatype.handle);
    a.sendbuf = source(r, inplace, || s.datatype.span(s.count.into()))?;
    a.recvbuf = r.sink(s.datatype.span(s.count.into())?, later)?;
    Ok(a)
}

/// Also the arguments of scans.
fn read_allreduce(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    let inplace = w.word()?;
    let s = side(&mut r.handles, w)?;
    a.op = r.handles.op(w.word()?)?;
    a.comm = r.handles.comm(w.word()?)?.handle;
    (a.recvcount, a.recvtype) = (s.count, s.datatype.handle);
    a.sendbuf = source(r, inplace, || s.datatype.span(s.count.into()))?;
    a.recvbuf = r.sink(s.datatype.span(s.count.into())?, later)?;
    Ok(a)
}

fn read_reduce_scatter(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    let inplace = w.word()?;
    a.recvcounts = w.ints()?;
    let datatype = r.handles.datatype(w.word()?)?;
    a.op = r.handles.op(w.word()?)?;
    a.comm = r.handles.comm(w.word()?)?.handle;
    a.recvtype = datatype.handle;
    // In place, the input of all ranks' parts lies where one part is received.
    let all = datatype.span(a.recvcounts.iter().map(|&n| i64::from(n)).sum())?;
    a.sendbuf = source(r, inplace, || Ok(all))?;
    a.recvbuf = r.sink(all, later)?;
    Ok(a)
}

fn read_reduce_block(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(&r.k);
    let inplace = w.word()?;
    let s = side(&mut r.handles, w)?;
    a.op = r.handles.op(w.word()?)?;
    let comm = r.handles.comm(w.word()?)?;
    a.comm = comm.handle;
    (a.recvcount, a.recvtype) = (s.count, s.datatype.handle);
    // On an intercommunicator each rank sends as many parts as its own group has members.
    let all = for_each(&s, comm.peers.max(comm.members))?;
    a.sendbuf = source(r, inplace, || Ok(all))?;
    a.recvbuf = r.sink(all, later)?;
    Ok(a)
}

fn reduce_local(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let s = side(&mut r.handles, w)?;
    let op = w.word()?;
    let op = if op == NULL { r.k.op_null } else { r.handles.op(op)? };
    let span = s.datatype.span(s.count.into())?;
    let (from, to) = (r.memory.source(span)?, r.memory.sink(span)?);
    mpi!(MPI_Reduce_local(from, to, s.count, s.datatype.handle, op))
}
