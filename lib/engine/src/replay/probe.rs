//! Probes, and receives of what matched probes found. Only successful probes are replayed; each names what it found.
#![expect(unsafe_code, reason = "calls MPI")]

use anyhow::{Result, bail};
use st_model::calls::names;
use st_replay::words::Words;
use std::ffi::c_int;

use mpi::ffi;

use crate::replay::call::mpi;
use crate::replay::p2p::resolved;
use crate::replay::requests::Kept;
use crate::replay::state::{Handler, Replay};

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Probe, probe),
    (names::MPI_Iprobe, iprobe),
    (names::MPI_Mprobe, mprobe),
    (names::MPI_Improbe, improbe),
    (names::MPI_Mrecv, mrecv),
    (names::MPI_Imrecv, imrecv),
];

fn probe(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (source, tag) = (w.word()?, w.word()?);
    let comm = r.handles.comm(w.word()?)?.handle;
    let (source, tag) = resolved(source, tag, w)?;
    let (source, tag) = (r.k.rank(source), r.k.tag(tag));
    let status = r.status();
    mpi!(MPI_Probe(source, tag, comm, status))
}

/// Polls, hidden from a recorder, until the message is there.
fn until_there(r: &mut Replay<'_>, source: c_int, tag: c_int, comm: ffi::MPI_Comm) -> Result<()> {
    let _hidden = r.pause.hide();
    let status = r.status();
    let mut flag = 0;
    loop {
        mpi!(MPI_Iprobe(source, tag, comm, &raw mut flag, status))?;
        if flag != 0 {
            return Ok(());
        }
        std::thread::yield_now();
    }
}

fn iprobe(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (source, tag) = (w.word()?, w.word()?);
    let comm = r.handles.comm(w.word()?)?.handle;
    w.word()?;
    let (source, tag) = resolved(source, tag, w)?;
    let (source, tag) = (r.k.rank(source), r.k.tag(tag));
    until_there(r, source, tag, comm)?;
    let mut flag = 0;
    let status = r.status();
    mpi!(MPI_Iprobe(source, tag, comm, &raw mut flag, status))?;
    found(flag)
}

fn mprobe(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (source, tag) = (w.word()?, w.word()?);
    let comm = r.handles.comm(w.word()?)?.handle;
    let slot = w.word()?;
    let (source, tag) = resolved(source, tag, w)?;
    let (source, tag) = (r.k.rank(source), r.k.tag(tag));
    let mut message = r.k.message_null;
    let status = r.status();
    mpi!(MPI_Mprobe(source, tag, comm, &raw mut message, status))?;
    r.requests.found(slot, message);
    Ok(())
}

fn improbe(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (source, tag) = (w.word()?, w.word()?);
    let comm = r.handles.comm(w.word()?)?.handle;
    w.word()?;
    let slot = w.word()?;
    let (source, tag) = resolved(source, tag, w)?;
    let (source, tag) = (r.k.rank(source), r.k.tag(tag));
    until_there(r, source, tag, comm)?;
    let mut message = r.k.message_null;
    let mut flag = 0;
    let status = r.status();
    mpi!(MPI_Improbe(source, tag, comm, &raw mut flag, &raw mut message, status))?;
    r.requests.found(slot, message);
    found(flag)
}

fn found(flag: c_int) -> Result<()> {
    if flag == 0 {
        bail!("a probe failed although its message is there");
    }
    Ok(())
}

fn mrecv(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let count = w.int()?;
    let datatype = r.handles.datatype(w.word()?)?;
    let mut message = r.requests.take_message(w.word()?, &r.k);
    let buffer = r.memory.sink(datatype.span(count.into())?)?;
    let status = r.status();
    mpi!(MPI_Mrecv(buffer, count, datatype.handle, &raw mut message, status))
}

fn imrecv(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let count = w.int()?;
    let datatype = r.handles.datatype(w.word()?)?;
    let mut message = r.requests.take_message(w.word()?, &r.k);
    let slot = w.word()?;
    let mut kept = Kept::default();
    let buffer = r.sink(datatype.span(count.into())?, Some(&mut kept))?;
    let request = r.requests.place(slot, &r.k)?;
    mpi!(MPI_Imrecv(buffer, count, datatype.handle, &raw mut message, request))?;
    r.requests.start(slot, false, kept);
    Ok(())
}
