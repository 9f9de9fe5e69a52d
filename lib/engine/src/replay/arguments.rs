//! The C arguments of collectives, and how their parts are read from a recorded call.

use std::ffi::{c_int, c_void};
use std::ptr;

use anyhow::{Context, Result};
use mpi::ffi;
use st_replay::words::Words;

use crate::replay::buffers::Span;
use crate::replay::constants::Constants;
use crate::replay::handles::{Handles, Type};

/// The C arguments of a collective; which of them count depends on the function.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) sendbuf: *mut c_void,
    pub(crate) sendcount: c_int,
    pub(crate) sendcounts: Vec<c_int>,
    pub(crate) sdispls: Vec<c_int>,
    /// Displacements in bytes.
    pub(crate) sendbytes: Vec<ffi::MPI_Aint>,
    pub(crate) sendtype: ffi::MPI_Datatype,
    pub(crate) sendtypes: Vec<ffi::MPI_Datatype>,
    pub(crate) recvbuf: *mut c_void,
    pub(crate) recvcount: c_int,
    pub(crate) recvcounts: Vec<c_int>,
    pub(crate) rdispls: Vec<c_int>,
    /// Displacements in bytes.
    pub(crate) recvbytes: Vec<ffi::MPI_Aint>,
    pub(crate) recvtype: ffi::MPI_Datatype,
    pub(crate) recvtypes: Vec<ffi::MPI_Datatype>,
    pub(crate) op: ffi::MPI_Op,
    pub(crate) root: c_int,
    pub(crate) comm: ffi::MPI_Comm,
}

/// One side of a collective before its buffer is chosen.
pub(crate) struct Side {
    pub(crate) count: c_int,
    pub(crate) datatype: Type,
}

impl Arguments {
    pub(crate) fn new(k: &Constants) -> Self {
        Self {
            sendbuf: ptr::null_mut(),
            sendcount: 0,
            sendcounts: Vec::new(),
            sdispls: Vec::new(),
            sendbytes: Vec::new(),
            sendtype: k.type_null,
            sendtypes: Vec::new(),
            recvbuf: ptr::null_mut(),
            recvcount: 0,
            recvcounts: Vec::new(),
            rdispls: Vec::new(),
            recvbytes: Vec::new(),
            recvtype: k.type_null,
            recvtypes: Vec::new(),
            op: k.op_null,
            root: 0,
            comm: k.comm_null,
        }
    }
}

/// A count and a type.
pub(crate) fn side(handles: &mut Handles<'_>, w: &mut Words<'_>) -> Result<Side> {
    let count = w.int()?;
    Ok(Side { count, datatype: handles.datatype(w.word()?)? })
}

/// Displacements; an empty list means that the blocks lie side by side.
pub(crate) fn displacements(recorded: &[i64], counts: &[c_int]) -> Result<Vec<c_int>> {
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
pub(crate) fn blocks(datatype: &Type, counts: &[c_int], displacements: &[c_int]) -> Result<Span> {
    counts
        .iter()
        .zip(displacements)
        .try_fold(Span::default(), |all, (&n, &d)| Ok(all.and(datatype.span_from(d.into(), n.into())?)))
}

/// What one block per rank touches.
pub(crate) fn for_each(s: &Side, ranks: usize) -> Result<Span> {
    let count = i64::from(s.count).checked_mul(i64::try_from(ranks)?);
    s.datatype.span(count.context("a message larger than the address space")?)
}

/// Types of `MPI_Alltoallw`, and what all its blocks touch; displacements are bytes.
pub(crate) fn typed_blocks(
    handles: &mut Handles<'_>,
    types: &[i64],
    counts: &[c_int],
    displacements: &[impl Copy + Into<i64>],
) -> Result<(Vec<ffi::MPI_Datatype>, Span)> {
    let mut all_types = Vec::with_capacity(types.len());
    let mut all = Span::default();
    for (i, &index) in types.iter().enumerate() {
        let datatype = handles.datatype(index)?;
        all_types.push(datatype.handle);
        if let (Some(&n), Some(&d)) = (counts.get(i), displacements.get(i)) {
            all = all.and(datatype.span(n.into())?.shifted(d.into())?);
        }
    }
    Ok((all_types, all))
}
