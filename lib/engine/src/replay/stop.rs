//! A replay that ends before its trace does: everybody learns where, and leaves nothing unfinished.
#![expect(unsafe_code, reason = "calls MPI")]

use std::collections::BTreeMap;
use std::ffi::c_int;

use anyhow::{Context, Result};
use mpi::ffi;
use st_replay::cut::{Left, Stop};

use crate::replay::buffers::Span;
use crate::replay::call::mpi;
use crate::replay::constants::predefined_type;
use crate::replay::state::Replay;

/// Rank 0 knows where each rank stops, and tells it.
pub(crate) fn share(r: &Replay<'_>, stops: Option<&BTreeMap<u32, Stop>>) -> Result<Stop> {
    let _hidden = r.pause.hide();
    let word = predefined_type("MPI_INT64_T", r.k.type_null).context("this MPI has no MPI_INT64_T")?;
    let world = r.k.comm_world;
    let (mut counts, mut starts, mut words) = (Vec::<c_int>::new(), Vec::<c_int>::new(), Vec::<i64>::new());
    for stop in stops.into_iter().flat_map(BTreeMap::values) {
        let mine = stop.to_words();
        starts.push(c_int::try_from(words.len())?);
        counts.push(c_int::try_from(mine.len())?);
        words.extend(mine);
    }
    let lengths: Vec<i64> = counts.iter().map(|n| i64::from(*n)).collect();
    let mut n: i64 = 0;
    mpi!(MPI_Scatter(lengths.as_ptr().cast(), 1, word, (&raw mut n).cast(), 1, word, 0, world))?;
    let mut mine = vec![0i64; usize::try_from(n)?];
    mpi!(MPI_Scatterv(
        words.as_ptr().cast(),
        counts.as_ptr(),
        starts.as_ptr(),
        word,
        mine.as_mut_ptr().cast(),
        c_int::try_from(n)?,
        word,
        0,
        world
    ))?;
    Stop::from_words(&mine).context("no place to stop")
}

/// Receives what is on its way, and completes what is running.
pub(crate) fn finish(r: &mut Replay<'_>, left: &[Left]) -> Result<()> {
    let _hidden = r.pause.hide();
    let byte = predefined_type("MPI_BYTE", r.k.type_null).context("this MPI has no MPI_BYTE")?;
    let mut requests = r.requests.all();
    let mut blocks = Vec::new();
    for message in left {
        let comm = message.comms.iter().rev().find_map(|c| r.handles.comm(*c).ok());
        let comm = comm.context("a message on a communicator that is not there")?.handle;
        let (block, address) = r.memory.lease(Span::bytes(message.bytes))?;
        let (source, tag) = (r.k.rank(message.source), r.k.tag(message.tag));
        let mut request: ffi::MPI_Request = r.k.request_null;
        let n = c_int::try_from(message.bytes)?;
        mpi!(MPI_Irecv(address, n, byte, source, tag, comm, &raw mut request))?;
        requests.push(request);
        blocks.push(block);
    }
    let n = c_int::try_from(requests.len())?;
    // SAFETY: a status is a structure of integers.
    let mut statuses: Vec<ffi::MPI_Status> = vec![unsafe { std::mem::zeroed() }; requests.len()];
    mpi!(MPI_Waitall(n, requests.as_mut_ptr(), statuses.as_mut_ptr()))?;
    blocks.into_iter().for_each(|b| r.memory.release(b));
    Ok(())
}
