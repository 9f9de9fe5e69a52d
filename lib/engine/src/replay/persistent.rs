//! Persistent operations, and requests as such.
#![expect(unsafe_code, reason = "calls MPI")]

use anyhow::Result;
use mpi::ffi;
use st_model::calls::names;
use st_replay::words::Words;

use crate::replay::call::mpi;
use crate::replay::completion::until_complete;
use crate::replay::p2p::{ireceive, isend};
use crate::replay::state::{Handler, Replay};

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Send_init, |r, w| isend(r, w, ffi::MPI_Send_init, true)),
    (names::MPI_Bsend_init, |r, w| isend(r, w, ffi::MPI_Bsend_init, true)),
    (names::MPI_Ssend_init, |r, w| isend(r, w, ffi::MPI_Ssend_init, true)),
    (names::MPI_Rsend_init, |r, w| isend(r, w, ffi::MPI_Rsend_init, true)),
    (names::MPI_Recv_init, |r, w| ireceive(r, w, names::MPI_Recv_init, ffi::MPI_Recv_init)),
    (names::MPI_Start, start),
    (names::MPI_Startall, start_all),
    (names::MPI_Request_free, free),
    (names::MPI_Cancel, cancel),
    (names::MPI_Request_get_status, get_status),
];

// Handles of persistent requests do not change when they are started: what MPI writes back is what was there.

fn start(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let slot = w.word()?;
    let request = r.requests.live(slot)?;
    mpi!(MPI_Start(request))?;
    r.requests.restart(slot);
    Ok(())
}

fn start_all(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let n = w.int()?;
    let slots = w.list()?;
    let _named = r.load(slots)?;
    mpi!(MPI_Startall(n, r.array.as_mut_ptr()))?;
    slots.iter().for_each(|&slot| r.requests.restart(slot));
    Ok(())
}

fn free(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let slot = w.word()?;
    let request = r.requests.live(slot)?;
    mpi!(MPI_Request_free(request))?;
    if let Some(kept) = r.requests.abandon(slot) {
        kept.blocks.into_iter().for_each(|b| r.memory.release(b));
    }
    Ok(())
}

fn cancel(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let request = r.requests.live(w.word()?)?;
    mpi!(MPI_Cancel(request))
}

/// Only successful queries get here.
fn get_status(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let slot = w.word()?;
    until_complete(r, &[slot])?;
    let _named = r.load(&[slot])?;
    let request = r.requests.handle(slot, &r.k)?;
    let mut flag = 0;
    let status = r.status();
    mpi!(MPI_Request_get_status(request, &raw mut flag, status))
}
