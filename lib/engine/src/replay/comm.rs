//! Making and freeing communicators. What a call makes gets the index that it had.
#![expect(unsafe_code, reason = "calls MPI")]

use anyhow::{Result, bail};
use mpi::ffi;
use st_model::calls::names;
use st_model::values::{NONE, UNDEFINED};
use st_replay::words::Words;

use crate::replay::call::mpi;
use crate::replay::info::{info, keep};
use crate::replay::requests::Kept;
use crate::replay::state::{Handler, Replay};

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Comm_dup, dup),
    (names::MPI_Comm_dup_with_info, dup_with_info),
    (names::MPI_Comm_idup, idup),
    (names::MPI_Comm_set_info, |r, w| {
        let (comm, info) = (r.handles.comm(w.word()?)?.handle, info(r, w)?);
        mpi!(MPI_Comm_set_info(comm, info))
    }),
    (names::MPI_Comm_get_info, |r, w| {
        let (comm, mut info) = (r.handles.comm(w.word()?)?.handle, r.k.info_null);
        mpi!(MPI_Comm_get_info(comm, &raw mut info))?;
        keep(r, w, info)
    }),
    (names::MPI_Comm_create, create),
    (names::MPI_Comm_create_group, create_group),
    (names::MPI_Comm_split, split),
    (names::MPI_Comm_split_type, split_type),
    (names::MPI_Comm_free, free),
    (names::MPI_Comm_disconnect, disconnect),
    (names::MPI_Intercomm_create, intercomm_create),
    (names::MPI_Intercomm_merge, intercomm_merge),
    (names::MPI_Comm_set_name, set_name),
];

/// Makes a communicator, whose index is the next word.
pub(crate) fn made(
    r: &mut Replay<'_>,
    w: &mut Words<'_>,
    make: impl FnOnce(&mut ffi::MPI_Comm) -> Result<()>,
) -> Result<()> {
    let mut new = r.k.comm_null;
    make(&mut new)?;
    r.handles.bind_comm(w.word()?, new)
}

fn dup(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    made(r, w, |new| mpi!(MPI_Comm_dup(comm, new)))
}

/// Without the hints, which are not recorded.
fn dup_with_info(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let info = r.k.info_null;
    made(r, w, |new| mpi!(MPI_Comm_dup_with_info(comm, info, new)))
}

fn idup(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let (index, slot) = (w.word()?, w.word()?);
    let mut new = Box::new(r.k.comm_null);
    let request = r.requests.place(slot, &r.k)?;
    mpi!(MPI_Comm_idup(comm, &raw mut *new, request))?;
    r.requests.start(slot, false, Kept { newcomm: Some((index, new)), ..Kept::default() });
    Ok(())
}

fn create(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let group = r.handles.group(w.word()?)?;
    made(r, w, |new| mpi!(MPI_Comm_create(comm, group, new)))
}

fn create_group(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let group = r.handles.group(w.word()?)?;
    let tag = r.k.tag(w.word()?);
    made(r, w, |new| mpi!(MPI_Comm_create_group(comm, group, tag, new)))
}

fn split(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let color = r.k.plain(w.word()?)?;
    let key = r.k.plain(w.word()?)?;
    made(r, w, |new| mpi!(MPI_Comm_split(comm, color, key, new)))
}

fn split_type(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let kind = match w.word()? {
        0 => r.k.split_shared,
        UNDEFINED => r.k.undefined,
        NONE => bail!("a kind of split that only the recorded MPI library knows"),
        other => bail!("an unknown kind of split, {other}"),
    };
    let key = r.k.plain(w.word()?)?;
    let info = r.k.info_null;
    made(r, w, |new| mpi!(MPI_Comm_split_type(comm, kind, key, info, new)))
}

fn free(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let mut comm = r.handles.take_comm(w.word()?)?.handle;
    mpi!(MPI_Comm_free(&raw mut comm))
}

fn disconnect(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let mut comm = r.handles.take_comm(w.word()?)?.handle;
    mpi!(MPI_Comm_disconnect(&raw mut comm))
}

fn intercomm_create(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let leader = r.k.rank(w.word()?);
    // Significant at the leader only, null elsewhere.
    let peers = r.handles.comm(w.word()?)?.handle;
    let remote_leader = r.k.rank(w.word()?);
    let tag = r.k.tag(w.word()?);
    made(r, w, |new| mpi!(MPI_Intercomm_create(comm, leader, peers, remote_leader, tag, new)))
}

fn intercomm_merge(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let high = w.int()?;
    made(r, w, |new| mpi!(MPI_Intercomm_merge(comm, high, new)))
}

fn set_name(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let name = crate::replay::texts::string(r, w)?;
    mpi!(MPI_Comm_set_name(comm, name.as_ptr()))
}
