//! Neighbourhood collectives: as collectives, with blocks for and from the neighbours in the communicator's topology.
#![expect(unsafe_code, reason = "calls MPI")]

use st_model::calls::names;
use std::ffi::{c_int, c_void};

use anyhow::{Result, bail};
use mpi::ffi;
use st_replay::words::Words;

use crate::replay::arguments::{Arguments, blocks, displacements, for_each, side, typed_blocks};
use crate::replay::buffers::Span;
use crate::replay::call::{apply, mpi};
use crate::replay::collective::collective;
use crate::replay::handles::Comm;
use crate::replay::requests::{Kept, Later};
use crate::replay::state::{Handler, Replay};

collective!(allgather, iallgather, allgather_init, read_allgather, MPI_Neighbor_allgather, MPI_Ineighbor_allgather,
    MPI_Neighbor_allgather_init: sendbuf sendcount sendtype recvbuf recvcount recvtype comm);
collective!(allgatherv, iallgatherv, allgatherv_init, read_allgatherv, MPI_Neighbor_allgatherv,
    MPI_Ineighbor_allgatherv, MPI_Neighbor_allgatherv_init:
    sendbuf sendcount sendtype recvbuf recvcounts rdispls recvtype comm);
collective!(alltoall, ialltoall, alltoall_init, read_alltoall, MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall,
    MPI_Neighbor_alltoall_init: sendbuf sendcount sendtype recvbuf recvcount recvtype comm);
collective!(alltoallv, ialltoallv, alltoallv_init, read_alltoallv, MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv,
    MPI_Neighbor_alltoallv_init: sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype comm);
collective!(alltoallw, ialltoallw, alltoallw_init, read_alltoallw, MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw,
    MPI_Neighbor_alltoallw_init: sendbuf sendcounts sendbytes sendtypes recvbuf recvcounts recvbytes recvtypes comm);

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Neighbor_allgather, allgather),
    (names::MPI_Ineighbor_allgather, iallgather),
    (names::MPI_Neighbor_allgather_init, allgather_init),
    (names::MPI_Neighbor_allgatherv, allgatherv),
    (names::MPI_Ineighbor_allgatherv, iallgatherv),
    (names::MPI_Neighbor_allgatherv_init, allgatherv_init),
    (names::MPI_Neighbor_alltoall, alltoall),
    (names::MPI_Ineighbor_alltoall, ialltoall),
    (names::MPI_Neighbor_alltoall_init, alltoall_init),
    (names::MPI_Neighbor_alltoallv, alltoallv),
    (names::MPI_Ineighbor_alltoallv, ialltoallv),
    (names::MPI_Neighbor_alltoallv_init, alltoallv_init),
    (names::MPI_Neighbor_alltoallw, alltoallw),
    (names::MPI_Ineighbor_alltoallw, ialltoallw),
    (names::MPI_Neighbor_alltoallw_init, alltoallw_init),
];

/// The communicator whose index is the next word, and its numbers of incoming and outgoing edges at this rank.
fn neighbourhood(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<(Comm, usize, usize)> {
    let comm = r.handles.comm(w.word()?)?;
    let _hidden = r.pause.hide();
    let (mut kind, mut rank, mut incoming, mut outgoing, mut weighted) = (0, 0, 0, 0, 0);
    mpi!(MPI_Topo_test(comm.handle, &raw mut kind))?;
    let [graph, cart, adjacent] = r.k.topologies;
    if kind == cart {
        mpi!(MPI_Cartdim_get(comm.handle, &raw mut incoming))?;
        incoming *= 2;
        outgoing = incoming;
    } else if kind == graph {
        mpi!(MPI_Comm_rank(comm.handle, &raw mut rank))?;
        mpi!(MPI_Graph_neighbors_count(comm.handle, rank, &raw mut incoming))?;
        outgoing = incoming;
    } else if kind == adjacent {
        let (from, to) = (&raw mut incoming, &raw mut outgoing);
        mpi!(MPI_Dist_graph_neighbors_count(comm.handle, from, to, &raw mut weighted))?;
    } else {
        bail!("the communicator has no topology");
    }
    Ok((comm, usize::try_from(incoming)?, usize::try_from(outgoing)?))
}

fn read_allgather(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let (send, receive) = (side(&mut r.handles, w)?, side(&mut r.handles, w)?);
    let (comm, incoming, _) = neighbourhood(r, w)?;
    Ok(Arguments {
        comm: comm.handle,
        sendcount: send.count,
        sendtype: send.datatype.handle,
        recvcount: receive.count,
        recvtype: receive.datatype.handle,
        sendbuf: r.memory.source(send.datatype.span(send.count.into())?)?,
        recvbuf: r.sink(for_each(&receive, incoming)?, later)?,
        ..Arguments::new(&r.k)
    })
}

fn read_allgatherv(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let send = side(&mut r.handles, w)?;
    let recvcounts = w.ints()?;
    let rdispls = displacements(w.list()?, &recvcounts)?;
    let receive = r.handles.datatype(w.word()?)?;
    Ok(Arguments {
        comm: r.handles.comm(w.word()?)?.handle,
        sendcount: send.count,
        sendtype: send.datatype.handle,
        recvtype: receive.handle,
        sendbuf: r.memory.source(send.datatype.span(send.count.into())?)?,
        recvbuf: r.sink(blocks(&receive, &recvcounts, &rdispls)?, later)?,
        recvcounts,
        rdispls,
        ..Arguments::new(&r.k)
    })
}

fn read_alltoall(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let (send, receive) = (side(&mut r.handles, w)?, side(&mut r.handles, w)?);
    let (comm, incoming, outgoing) = neighbourhood(r, w)?;
    Ok(Arguments {
        comm: comm.handle,
        sendcount: send.count,
        sendtype: send.datatype.handle,
        recvcount: receive.count,
        recvtype: receive.datatype.handle,
        sendbuf: r.memory.source(for_each(&send, outgoing)?)?,
        recvbuf: r.sink(for_each(&receive, incoming)?, later)?,
        ..Arguments::new(&r.k)
    })
}

fn read_alltoallv(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let sendcounts = w.ints()?;
    let sdispls = displacements(w.list()?, &sendcounts)?;
    let send = r.handles.datatype(w.word()?)?;
    let recvcounts = w.ints()?;
    let rdispls = displacements(w.list()?, &recvcounts)?;
    let receive = r.handles.datatype(w.word()?)?;
    Ok(Arguments {
        comm: r.handles.comm(w.word()?)?.handle,
        sendtype: send.handle,
        recvtype: receive.handle,
        sendbuf: r.memory.source(blocks(&send, &sendcounts, &sdispls)?)?,
        recvbuf: r.sink(blocks(&receive, &recvcounts, &rdispls)?, later)?,
        sendcounts,
        sdispls,
        recvcounts,
        rdispls,
        ..Arguments::new(&r.k)
    })
}

/// One side of an exchange by types: counts, displacements in bytes, types, and what all blocks touch.
type Typed = (Vec<c_int>, Vec<ffi::MPI_Aint>, Vec<ffi::MPI_Datatype>, Span);

fn typed(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<Typed> {
    let (counts, bytes) = (w.ints()?, w.list()?);
    let (types, span) = typed_blocks(&mut r.handles, w.list()?, &counts, bytes)?;
    let bytes = bytes.iter().map(|&b| crate::replay::call::integer(b)).collect::<Result<_>>()?;
    Ok((counts, bytes, types, span))
}

fn read_alltoallw(r: &mut Replay<'_>, w: &mut Words<'_>, later: Later<'_>) -> Result<Arguments> {
    let (sendcounts, sendbytes, sendtypes, sent) = typed(r, w)?;
    let (recvcounts, recvbytes, recvtypes, received) = typed(r, w)?;
    Ok(Arguments {
        comm: r.handles.comm(w.word()?)?.handle,
        sendbuf: r.memory.source(sent)?,
        recvbuf: r.sink(received, later)?,
        sendcounts,
        sendbytes,
        sendtypes,
        recvcounts,
        recvbytes,
        recvtypes,
        ..Arguments::new(&r.k)
    })
}
