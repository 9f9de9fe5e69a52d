//! Blocking and non-blocking point-to-point calls.
#![expect(unsafe_code, reason = "calls MPI")]

use std::ffi::{c_int, c_void};

use anyhow::Result;
use mpi::ffi;
use st_model::calls::names;
use st_model::values::{ANY_SOURCE, ANY_TAG};
use st_replay::words::Words;

use crate::replay::buffers::Span;
use crate::replay::call::{apply, mpi};
use crate::replay::requests::Kept;
use crate::replay::state::{Handler, Replay};

type Send =
    unsafe extern "C" fn(*const c_void, c_int, ffi::MPI_Datatype, c_int, c_int, ffi::MPI_Comm) -> c_int;
type Isend = unsafe extern "C" fn(
    *const c_void,
    c_int,
    ffi::MPI_Datatype,
    c_int,
    c_int,
    ffi::MPI_Comm,
    *mut ffi::MPI_Request,
) -> c_int;
type Ireceive = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    ffi::MPI_Datatype,
    c_int,
    c_int,
    ffi::MPI_Comm,
    *mut ffi::MPI_Request,
) -> c_int;

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Send, |r, w| send(r, w, ffi::MPI_Send)),
    (names::MPI_Bsend, |r, w| send(r, w, ffi::MPI_Bsend)),
    (names::MPI_Ssend, |r, w| send(r, w, ffi::MPI_Ssend)),
    (names::MPI_Rsend, |r, w| send(r, w, ffi::MPI_Rsend)),
    (names::MPI_Recv, receive),
    (names::MPI_Sendrecv, sendrecv),
    (names::MPI_Sendrecv_replace, sendrecv_replace),
    (names::MPI_Buffer_attach, buffer_attach),
    (names::MPI_Buffer_detach, buffer_detach),
    (names::MPI_Isend, |r, w| isend(r, w, ffi::MPI_Isend, false)),
    (names::MPI_Ibsend, |r, w| isend(r, w, ffi::MPI_Ibsend, false)),
    (names::MPI_Issend, |r, w| isend(r, w, ffi::MPI_Issend, false)),
    (names::MPI_Irsend, |r, w| isend(r, w, ffi::MPI_Irsend, false)),
    (names::MPI_Irecv, |r, w| ireceive(r, w, names::MPI_Irecv, ffi::MPI_Irecv)),
];

/// `count type peer tag comm`, as most calls have it.
struct Message {
    count: c_int,
    datatype: ffi::MPI_Datatype,
    peer: i64,
    tag: i64,
    comm: ffi::MPI_Comm,
    span: Span,
}

fn message(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<Message> {
    let count = w.int()?;
    let datatype = r.handles.datatype(w.word()?)?;
    let (peer, tag) = (w.word()?, w.word()?);
    let comm = r.handles.comm(w.word()?)?.handle;
    Ok(Message { count, datatype: datatype.handle, peer, tag, comm, span: datatype.span(count.into())? })
}

fn send(r: &mut Replay<'_>, w: &mut Words<'_>, function: Send) -> Result<()> {
    let m = message(r, w)?;
    let (peer, tag) = (r.k.rank(m.peer), r.k.tag(m.tag));
    let buffer = r.memory.source(m.span)?;
    apply!(function, (buffer, m.count, m.datatype, peer, tag, m.comm))
}

/// The source and tag to name so that the call gets what it got: `rsource` and `rtag` where it named wildcards.
pub(crate) fn resolved(source: i64, tag: i64, w: &mut Words<'_>) -> Result<(i64, i64)> {
    let (rsource, rtag) = (w.word()?, w.word()?);
    let source = if source == ANY_SOURCE && rsource >= 0 { rsource } else { source };
    let tag = if tag == ANY_TAG && rtag >= 0 { rtag } else { tag };
    Ok((source, tag))
}

fn receive(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let m = message(r, w)?;
    let (source, tag) = resolved(m.peer, m.tag, w)?;
    let (source, tag) = (r.k.rank(source), r.k.tag(tag));
    let buffer = r.memory.sink(m.span)?;
    let status = r.status();
    mpi!(MPI_Recv(buffer, m.count, m.datatype, source, tag, m.comm, status))
}

fn sendrecv(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let count = w.int()?;
    let datatype = r.handles.datatype(w.word()?)?;
    let (dest, sendtag) = (r.k.rank(w.word()?), r.k.tag(w.word()?));
    let m = message(r, w)?;
    let (source, tag) = resolved(m.peer, m.tag, w)?;
    let (source, tag) = (r.k.rank(source), r.k.tag(tag));
    let out = r.memory.source(datatype.span(count.into())?)?;
    let buffer = r.memory.sink(m.span)?;
    let status = r.status();
    mpi!(MPI_Sendrecv(
        out,
        count,
        datatype.handle,
        dest,
        sendtag,
        buffer,
        m.count,
        m.datatype,
        source,
        tag,
        m.comm,
        status
    ))
}

fn sendrecv_replace(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let count = w.int()?;
    let datatype = r.handles.datatype(w.word()?)?;
    let (dest, sendtag) = (r.k.rank(w.word()?), r.k.tag(w.word()?));
    let (source, tag) = (w.word()?, w.word()?);
    let comm = r.handles.comm(w.word()?)?.handle;
    let (source, tag) = resolved(source, tag, w)?;
    let (source, tag) = (r.k.rank(source), r.k.tag(tag));
    let buffer = r.memory.sink(datatype.span(count.into())?)?;
    let status = r.status();
    mpi!(MPI_Sendrecv_replace(buffer, count, datatype.handle, dest, sendtag, source, tag, comm, status))
}

fn buffer_attach(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let size = w.int()?;
    r.attached = vec![0; usize::try_from(size)?.div_ceil(size_of::<u128>())];
    let buffer: *mut c_void = r.attached.as_mut_ptr().cast();
    mpi!(MPI_Buffer_attach(buffer, size))
}

fn buffer_detach(r: &mut Replay<'_>, _: &mut Words<'_>) -> Result<()> {
    let mut buffer: *mut c_void = std::ptr::null_mut();
    let mut size = 0;
    mpi!(MPI_Buffer_detach((&raw mut buffer).cast(), &raw mut size))?;
    r.attached = Vec::new();
    Ok(())
}

/// Starts a send, or makes a persistent one.
pub(crate) fn isend(r: &mut Replay<'_>, w: &mut Words<'_>, function: Isend, persistent: bool) -> Result<()> {
    let m = message(r, w)?;
    let slot = w.word()?;
    let (peer, tag) = (r.k.rank(m.peer), r.k.tag(m.tag));
    let buffer = r.memory.source(m.span)?;
    let request = r.requests.place(slot, &r.k)?;
    apply!(function, (buffer, m.count, m.datatype, peer, tag, m.comm, request))?;
    r.requests.start(slot, persistent, Kept::default());
    Ok(())
}

/// Starts a receive, or makes a persistent one. A wildcard is replaced by what the receive got.
pub(crate) fn ireceive(r: &mut Replay<'_>, w: &mut Words<'_>, name: &str, function: Ireceive) -> Result<()> {
    let m = message(r, w)?;
    let slot = w.word()?;
    let (peer, tag) = r.named(m.peer, m.tag)?;
    let mut kept = Kept::default();
    let buffer = r.sink(m.span, Some(&mut kept))?;
    let request = r.requests.place(slot, &r.k)?;
    apply!(function, (buffer, m.count, m.datatype, peer, tag, m.comm, request))?;
    r.requests.start(slot, name == names::MPI_Recv_init, kept);
    Ok(())
}
