//! Process topologies.
#![expect(unsafe_code, reason = "calls MPI")]

use st_model::calls::names;
use st_model::num::saturate;
use std::ffi::c_int;

use anyhow::Result;
use st_model::values::UNWEIGHTED;
use st_replay::words::Words;

use crate::replay::call::mpi;
use crate::replay::comm::made;
use crate::replay::constants::Constants;
use crate::replay::state::{Handler, Replay};

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Cart_create, cart_create),
    (names::MPI_Cart_sub, cart_sub),
    (names::MPI_Cart_get, cart_get),
    (names::MPI_Cart_rank, cart_rank),
    (names::MPI_Cart_coords, cart_coords),
    (names::MPI_Cart_shift, cart_shift),
    (names::MPI_Cart_map, cart_map),
    (names::MPI_Dims_create, dims_create),
    (names::MPI_Graph_create, graph_create),
    (names::MPI_Graphdims_get, graphdims_get),
    (names::MPI_Graph_neighbors_count, graph_neighbors_count),
    (names::MPI_Graph_neighbors, graph_neighbors),
    (names::MPI_Dist_graph_create, dist_graph_create),
    (names::MPI_Dist_graph_create_adjacent, dist_graph_create_adjacent),
    (names::MPI_Dist_graph_neighbors_count, dist_graph_neighbors_count),
    (names::MPI_Dist_graph_neighbors, dist_graph_neighbors),
    (names::MPI_Graph_get, graph_get),
    (names::MPI_Graph_map, graph_map),
];

/// Room for a list that is written and not looked at.
fn room(n: c_int) -> Vec<c_int> {
    vec![0; saturate::<usize>(n).max(1)]
}

fn cart_create(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let n = w.int()?;
    let (dims, periods) = (w.ints()?, w.ints()?);
    let reorder = w.int()?;
    made(r, w, |new| mpi!(MPI_Cart_create(comm, n, dims.as_ptr(), periods.as_ptr(), reorder, new)))
}

fn cart_sub(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let remain = w.ints()?;
    made(r, w, |new| mpi!(MPI_Cart_sub(comm, remain.as_ptr(), new)))
}

fn cart_get(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let n = w.int()?;
    let (mut dims, mut periods, mut coords) = (room(n), room(n), room(n));
    mpi!(MPI_Cart_get(comm, n, dims.as_mut_ptr(), periods.as_mut_ptr(), coords.as_mut_ptr()))
}

fn cart_rank(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let coords = w.ints()?;
    let mut rank = 0;
    mpi!(MPI_Cart_rank(comm, coords.as_ptr(), &raw mut rank))
}

fn cart_coords(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let rank = r.k.rank(w.word()?);
    let n = w.int()?;
    let mut coords = room(n);
    mpi!(MPI_Cart_coords(comm, rank, n, coords.as_mut_ptr()))
}

fn cart_shift(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let (direction, displacement) = (w.int()?, w.int()?);
    let (mut source, mut dest) = (0, 0);
    mpi!(MPI_Cart_shift(comm, direction, displacement, &raw mut source, &raw mut dest))
}

fn cart_map(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let n = w.int()?;
    let (dims, periods) = (w.ints()?, w.ints()?);
    let mut rank = 0;
    mpi!(MPI_Cart_map(comm, n, dims.as_ptr(), periods.as_ptr(), &raw mut rank))
}

/// The recorded dimensions are the answer: asked again with all of them given, MPI gives the same.
fn dims_create(_: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (nodes, n) = (w.int()?, w.int()?);
    let mut dims = w.ints()?;
    mpi!(MPI_Dims_create(nodes, n, dims.as_mut_ptr()))
}

fn graph_create(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let nodes = w.int()?;
    let (index, edges) = (w.ints()?, w.ints()?);
    let reorder = w.int()?;
    made(r, w, |new| mpi!(MPI_Graph_create(comm, nodes, index.as_ptr(), edges.as_ptr(), reorder, new)))
}

fn graphdims_get(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let (mut nodes, mut edges) = (0, 0);
    mpi!(MPI_Graphdims_get(comm, &raw mut nodes, &raw mut edges))
}

fn graph_neighbors_count(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let rank = r.k.rank(w.word()?);
    let mut n = 0;
    mpi!(MPI_Graph_neighbors_count(comm, rank, &raw mut n))
}

fn graph_neighbors(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let rank = r.k.rank(w.word()?);
    let n = w.int()?;
    let mut neighbors = room(n);
    mpi!(MPI_Graph_neighbors(comm, rank, n, neighbors.as_mut_ptr()))
}

/// Weights as they were given: a list, `MPI_UNWEIGHTED`, or `MPI_WEIGHTS_EMPTY` where there is no edge.
fn weights(list: &[c_int], k: &Constants) -> *const c_int {
    match list {
        [] => k.weights_empty,
        [only] if i64::from(*only) == UNWEIGHTED => k.unweighted,
        _ => list.as_ptr(),
    }
}

/// Without the hints, which are not recorded.
fn dist_graph_create(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let n = w.int()?;
    let (sources, degrees, destinations, list) = (w.ints()?, w.ints()?, w.ints()?, w.ints()?);
    let reorder = w.int()?;
    let (weights, info) = (weights(&list, &r.k), r.k.info_null);
    made(r, w, |new| {
        mpi!(MPI_Dist_graph_create(
            comm,
            n,
            sources.as_ptr(),
            degrees.as_ptr(),
            destinations.as_ptr(),
            weights,
            info,
            reorder,
            new
        ))
    })
}

/// Without the hints, which are not recorded.
fn dist_graph_create_adjacent(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let indegree = w.int()?;
    let (sources, from) = (w.ints()?, w.ints()?);
    let outdegree = w.int()?;
    let (destinations, to) = (w.ints()?, w.ints()?);
    let reorder = w.int()?;
    let (from_weights, to_weights, info) = (weights(&from, &r.k), weights(&to, &r.k), r.k.info_null);
    made(r, w, |new| {
        mpi!(MPI_Dist_graph_create_adjacent(
            comm,
            indegree,
            sources.as_ptr(),
            from_weights,
            outdegree,
            destinations.as_ptr(),
            to_weights,
            info,
            reorder,
            new
        ))
    })
}

fn dist_graph_neighbors_count(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let (mut from, mut to, mut weighted) = (0, 0, 0);
    mpi!(MPI_Dist_graph_neighbors_count(comm, &raw mut from, &raw mut to, &raw mut weighted))
}

fn dist_graph_neighbors(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let from = w.int()?;
    w.list()?;
    let to = w.int()?;
    let (mut sources, mut from_weights) = (room(from), room(from));
    let (mut destinations, mut to_weights) = (room(to), room(to));
    mpi!(MPI_Dist_graph_neighbors(
        comm,
        from,
        sources.as_mut_ptr(),
        from_weights.as_mut_ptr(),
        to,
        destinations.as_mut_ptr(),
        to_weights.as_mut_ptr()
    ))
}

fn graph_get(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let (nodes, edges) = (w.int()?, w.int()?);
    let (mut index, mut list) = (room(nodes), room(edges));
    mpi!(MPI_Graph_get(comm, nodes, edges, index.as_mut_ptr(), list.as_mut_ptr()))
}

fn graph_map(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let nodes = w.int()?;
    let (index, edges) = (w.ints()?, w.ints()?);
    let mut rank = 0;
    mpi!(MPI_Graph_map(comm, nodes, index.as_ptr(), edges.as_ptr(), &raw mut rank))
}
