//! Collectives: blocking ones, and their non-blocking forms with a request at the end.
#![expect(unsafe_code, reason = "calls MPI")]

use std::ffi::{c_int, c_void};
use std::ptr;

use anyhow::{Context, Result};
use mpi::ffi;
use st_replay::words::Words;
use st_trace::values::NULL;

use crate::buffers::Span;
use crate::call::mpi;
use crate::handles::Type;
use crate::replay::{Handler, Replay};
use crate::requests::Kept;

/// The C arguments of a collective; which of them count depends on the function.
#[derive(Debug)]
pub(crate) struct Arguments {
    sendbuf: *mut c_void,
    sendcount: c_int,
    sendcounts: Vec<c_int>,
    sdispls: Vec<c_int>,
    sendtype: ffi::MPI_Datatype,
    sendtypes: Vec<ffi::MPI_Datatype>,
    recvbuf: *mut c_void,
    recvcount: c_int,
    recvcounts: Vec<c_int>,
    rdispls: Vec<c_int>,
    recvtype: ffi::MPI_Datatype,
    recvtypes: Vec<ffi::MPI_Datatype>,
    op: ffi::MPI_Op,
    root: c_int,
    comm: ffi::MPI_Comm,
}

/// One side of a collective before its buffer is chosen.
struct Side {
    count: c_int,
    datatype: Type,
}

impl Arguments {
    fn new(r: &Replay<'_>) -> Self {
        let k = &r.k;
        Self {
            sendbuf: ptr::null_mut(),
            sendcount: 0,
            sendcounts: Vec::new(),
            sdispls: Vec::new(),
            sendtype: k.type_null,
            sendtypes: Vec::new(),
            recvbuf: ptr::null_mut(),
            recvcount: 0,
            recvcounts: Vec::new(),
            rdispls: Vec::new(),
            recvtype: k.type_null,
            recvtypes: Vec::new(),
            op: k.op_null,
            root: 0,
            comm: k.comm_null,
        }
    }
}

/// Two handlers: the function, and its non-blocking form. `$read` makes the arguments, memory included.
macro_rules! collective {
    ($now:ident, $later:ident, $read:ident, $Now:ident, $Later:ident: $($field:ident)*) => {
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
    };
    (@ $a:ident sendcounts) => { $a.sendcounts.as_ptr() };
    (@ $a:ident recvcounts) => { $a.recvcounts.as_ptr() };
    (@ $a:ident sdispls) => { $a.sdispls.as_ptr() };
    (@ $a:ident rdispls) => { $a.rdispls.as_ptr() };
    (@ $a:ident sendtypes) => { $a.sendtypes.as_ptr() };
    (@ $a:ident recvtypes) => { $a.recvtypes.as_ptr() };
    (@ $a:ident $field:ident) => { $a.$field };
}

collective!(barrier, ibarrier, read_barrier, MPI_Barrier, MPI_Ibarrier: comm);
collective!(bcast, ibcast, read_bcast, MPI_Bcast, MPI_Ibcast: recvbuf recvcount recvtype root comm);
collective!(gather, igather, read_gather, MPI_Gather, MPI_Igather:
    sendbuf sendcount sendtype recvbuf recvcount recvtype root comm);
collective!(gatherv, igatherv, read_gatherv, MPI_Gatherv, MPI_Igatherv:
    sendbuf sendcount sendtype recvbuf recvcounts rdispls recvtype root comm);
collective!(scatter, iscatter, read_scatter, MPI_Scatter, MPI_Iscatter:
    sendbuf sendcount sendtype recvbuf recvcount recvtype root comm);
collective!(scatterv, iscatterv, read_scatterv, MPI_Scatterv, MPI_Iscatterv:
    sendbuf sendcounts sdispls sendtype recvbuf recvcount recvtype root comm);
collective!(allgather, iallgather, read_allgather, MPI_Allgather, MPI_Iallgather:
    sendbuf sendcount sendtype recvbuf recvcount recvtype comm);
collective!(allgatherv, iallgatherv, read_allgatherv, MPI_Allgatherv, MPI_Iallgatherv:
    sendbuf sendcount sendtype recvbuf recvcounts rdispls recvtype comm);
collective!(alltoall, ialltoall, read_alltoall, MPI_Alltoall, MPI_Ialltoall:
    sendbuf sendcount sendtype recvbuf recvcount recvtype comm);
collective!(alltoallv, ialltoallv, read_alltoallv, MPI_Alltoallv, MPI_Ialltoallv:
    sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype comm);
collective!(alltoallw, ialltoallw, read_alltoallw, MPI_Alltoallw, MPI_Ialltoallw:
    sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes comm);
collective!(reduce, ireduce, read_reduce, MPI_Reduce, MPI_Ireduce:
    sendbuf recvbuf recvcount recvtype op root comm);
collective!(allreduce, iallreduce, read_allreduce, MPI_Allreduce, MPI_Iallreduce:
    sendbuf recvbuf recvcount recvtype op comm);
collective!(reduce_scatter, ireduce_scatter, read_reduce_scatter, MPI_Reduce_scatter, MPI_Ireduce_scatter:
    sendbuf recvbuf recvcounts recvtype op comm);
collective!(reduce_block, ireduce_block, read_reduce_block, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block:
    sendbuf recvbuf recvcount recvtype op comm);
collective!(scan, iscan, read_allreduce, MPI_Scan, MPI_Iscan: sendbuf recvbuf recvcount recvtype op comm);
collective!(exscan, iexscan, read_allreduce, MPI_Exscan, MPI_Iexscan: sendbuf recvbuf recvcount recvtype op comm);

pub(crate) const CALLS: &[(&str, Handler)] = &[
    ("MPI_Barrier", barrier),
    ("MPI_Ibarrier", ibarrier),
    ("MPI_Bcast", bcast),
    ("MPI_Ibcast", ibcast),
    ("MPI_Gather", gather),
    ("MPI_Igather", igather),
    ("MPI_Gatherv", gatherv),
    ("MPI_Igatherv", igatherv),
    ("MPI_Scatter", scatter),
    ("MPI_Iscatter", iscatter),
    ("MPI_Scatterv", scatterv),
    ("MPI_Iscatterv", iscatterv),
    ("MPI_Allgather", allgather),
    ("MPI_Iallgather", iallgather),
    ("MPI_Allgatherv", allgatherv),
    ("MPI_Iallgatherv", iallgatherv),
    ("MPI_Alltoall", alltoall),
    ("MPI_Ialltoall", ialltoall),
    ("MPI_Alltoallv", alltoallv),
    ("MPI_Ialltoallv", ialltoallv),
    ("MPI_Alltoallw", alltoallw),
    ("MPI_Ialltoallw", ialltoallw),
    ("MPI_Reduce", reduce),
    ("MPI_Ireduce", ireduce),
    ("MPI_Allreduce", allreduce),
    ("MPI_Iallreduce", iallreduce),
    ("MPI_Reduce_scatter", reduce_scatter),
    ("MPI_Ireduce_scatter", ireduce_scatter),
    ("MPI_Reduce_scatter_block", reduce_block),
    ("MPI_Ireduce_scatter_block", ireduce_block),
    ("MPI_Scan", scan),
    ("MPI_Iscan", iscan),
    ("MPI_Exscan", exscan),
    ("MPI_Iexscan", iexscan),
    ("MPI_Reduce_local", reduce_local),
];

type Later<'k> = Option<&'k mut Kept>;

fn side(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<Side> {
    let count = w.int()?;
    Ok(Side { count, datatype: r.handles.datatype(w.word()?)? })
}

/// A count and a type that are not significant on all ranks of a rooted collective: recorded as 0 and null where they
/// are not. Libraries look at them all the same: Open MPI checks the type, and takes a count of 0 for a collective
/// that does nothing, which it then leaves out of step with the other ranks.
fn root_side(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<Side> {
    let mut s = side(r, w)?;
    if s.datatype.handle == r.k.type_null {
        s = Side { count: 1, datatype: r.handles.insignificant_type() };
    }
    Ok(s)
}

/// The part of a rooted collective that the root may keep in place.
fn unless_in_place(r: &mut Replay<'_>, w: &mut Words<'_>, inplace: i64) -> Result<Side> {
    if inplace == 0 { root_side(r, w) } else { side(r, w) }
}

/// Displacements; an empty list means that the blocks lie side by side.
fn displacements(recorded: &[i64], counts: &[c_int]) -> Result<Vec<c_int>> {
    if recorded.len() == counts.len() {
        return recorded.iter().map(|&d| Ok(c_int::try_from(d)?)).collect();
    }
    let mut next: c_int = 0;
    let mut side_by_side = |n: c_int| {
        let at = next;
        next = next.checked_add(n).context("displacements beyond a C int")?;
        Ok(at)
    };
    counts.iter().map(|&n| side_by_side(n)).collect()
}

/// What all blocks of a v-collective's side touch.
fn blocks(datatype: &Type, counts: &[c_int], displacements: &[c_int]) -> Result<Span> {
    counts
        .iter()
        .zip(displacements)
        .try_fold(Span::default(), |all, (&n, &d)| Ok(all.and(datatype.span_from(d.into(), n.into())?)))
}

/// What one block per rank touches.
fn for_each(s: &Side, ranks: usize) -> Result<Span> {
    let count = i64::from(s.count).checked_mul(i64::try_from(ranks)?);
    s.datatype.span(count.context("a message larger than the address space")?)
}

/// Address to send from, or the mark that the call works in place.
fn source(r: &mut Replay<'_>, inplace: i64, span: impl FnOnce() -> Result<Span>) -> Result<*mut c_void> {
    if inplace == 0 { r.memory.source(span()?) } else { Ok(r.k.in_place) }
}

fn read_barrier(r: &mut Replay<'_>, w: &mut Words<'_>, _: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(r);
    a.comm = r.handles.comm(w.word()?)?.handle;
    Ok(a)
}

fn read_bcast(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(r);
    let s = root_side(r, w)?;
    a.root = r.k.rank(w.word()?);
    a.comm = r.handles.comm(w.word()?)?.handle;
    (a.recvcount, a.recvtype) = (s.count, s.datatype.handle);
    a.recvbuf = r.sink(s.datatype.span(s.count.into())?, later)?;
    Ok(a)
}

fn read_gather(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(r);
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
    let mut a = Arguments::new(r);
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
    let mut a = Arguments::new(r);
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
    let mut a = Arguments::new(r);
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
    let mut a = Arguments::new(r);
    let inplace = w.word()?;
    let (send, receive) = (side(r, w)?, side(r, w)?);
    let comm = r.handles.comm(w.word()?)?;
    a.comm = comm.handle;
    (a.sendcount, a.sendtype) = (send.count, send.datatype.handle);
    (a.recvcount, a.recvtype) = (receive.count, receive.datatype.handle);
    a.sendbuf = source(r, inplace, || send.datatype.span(send.count.into()))?;
    a.recvbuf = r.sink(for_each(&receive, comm.peers)?, later)?;
    Ok(a)
}

fn read_allgatherv(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(r);
    let inplace = w.word()?;
    let send = side(r, w)?;
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
    let mut a = Arguments::new(r);
    let inplace = w.word()?;
    let (send, receive) = (side(r, w)?, side(r, w)?);
    let comm = r.handles.comm(w.word()?)?;
    a.comm = comm.handle;
    (a.sendcount, a.sendtype) = (send.count, send.datatype.handle);
    (a.recvcount, a.recvtype) = (receive.count, receive.datatype.handle);
    a.sendbuf = source(r, inplace, || for_each(&send, comm.peers))?;
    a.recvbuf = r.sink(for_each(&receive, comm.peers)?, later)?;
    Ok(a)
}

fn read_alltoallv(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(r);
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

/// Types of `MPI_Alltoallw`, and what all its blocks touch; displacements are bytes.
fn typed_blocks(
    r: &mut Replay<'_>,
    types: &[i64],
    counts: &[c_int],
    displacements: &[c_int],
) -> Result<(Vec<ffi::MPI_Datatype>, Span)> {
    let mut handles = Vec::with_capacity(types.len());
    let mut all = Span::default();
    for (i, &index) in types.iter().enumerate() {
        let datatype = r.handles.datatype(index)?;
        handles.push(datatype.handle);
        if let (Some(&n), Some(&d)) = (counts.get(i), displacements.get(i)) {
            all = all.and(datatype.span(n.into())?.shifted(d.into())?);
        }
    }
    Ok((handles, all))
}

fn read_alltoallw(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(r);
    let inplace = w.word()?;
    (a.sendcounts, a.sdispls) = (w.ints()?, w.ints()?);
    let (types, span) = typed_blocks(r, w.list()?, &a.sendcounts, &a.sdispls)?;
    a.sendtypes = types;
    a.sendbuf = source(r, inplace, || Ok(span))?;
    (a.recvcounts, a.rdispls) = (w.ints()?, w.ints()?);
    let (types, span) = typed_blocks(r, w.list()?, &a.recvcounts, &a.rdispls)?;
    a.recvtypes = types;
    a.recvbuf = r.sink(span, later)?;
    a.comm = r.handles.comm(w.word()?)?.handle;
    Ok(a)
}

fn read_reduce(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(r);
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
    let mut a = Arguments::new(r);
    let inplace = w.word()?;
    let s = side(r, w)?;
    a.op = r.handles.op(w.word()?)?;
    a.comm = r.handles.comm(w.word()?)?.handle;
    (a.recvcount, a.recvtype) = (s.count, s.datatype.handle);
    a.sendbuf = source(r, inplace, || s.datatype.span(s.count.into()))?;
    a.recvbuf = r.sink(s.datatype.span(s.count.into())?, later)?;
    Ok(a)
}

fn read_reduce_scatter(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let mut a = Arguments::new(r);
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
    let mut a = Arguments::new(r);
    let inplace = w.word()?;
    let s = side(r, w)?;
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
    let s = side(r, w)?;
    let op = w.word()?;
    let op = if op == NULL { r.k.op_null } else { r.handles.op(op)? };
    let span = s.datatype.span(s.count.into())?;
    let (from, to) = (r.memory.source(span)?, r.memory.sink(span)?);
    mpi!(MPI_Reduce_local(from, to, s.count, s.datatype.handle, op))
}
