//! What MPI 4 adds to point to point: partitioned messages, and combined sends and receives with a request. Not every MPI
//! has them.
#![expect(unsafe_code, reason = "calls MPI")]

use st_model::calls::names;
use std::ffi::{c_int, c_void};

use anyhow::{Context, Result};
use mpi::ffi;
use st_replay::words::Words;

use crate::replay::call::{apply, integer};
use crate::replay::optional;
use crate::replay::requests::Kept;
use crate::replay::state::{Handler, Replay};

type Init = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    ffi::MPI_Count,
    ffi::MPI_Datatype,
    c_int,
    c_int,
    ffi::MPI_Comm,
    ffi::MPI_Info,
    *mut ffi::MPI_Request,
) -> c_int;
type Ready = unsafe extern "C" fn(c_int, ffi::MPI_Request) -> c_int;
type ReadyRange = unsafe extern "C" fn(c_int, c_int, ffi::MPI_Request) -> c_int;
type ReadyList = unsafe extern "C" fn(c_int, *const c_int, ffi::MPI_Request) -> c_int;
type Arrived = unsafe extern "C" fn(ffi::MPI_Request, c_int, *mut c_int) -> c_int;
type Exchange = unsafe extern "C" fn(
    *const c_void,
    c_int,
    ffi::MPI_Datatype,
    c_int,
    c_int,
    *mut c_void,
    c_int,
    ffi::MPI_Datatype,
    c_int,
    c_int,
    ffi::MPI_Comm,
    *mut ffi::MPI_Request,
) -> c_int;
type Replacement = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    ffi::MPI_Datatype,
    c_int,
    c_int,
    c_int,
    c_int,
    ffi::MPI_Comm,
    *mut ffi::MPI_Request,
) -> c_int;

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Psend_init, |r, w| init(r, w, names::MPI_Psend_init)),
    (names::MPI_Precv_init, |r, w| init(r, w, names::MPI_Precv_init)),
    (names::MPI_Pready, |r, w| {
        let (partition, request) = (w.int()?, r.requests.handle(w.word()?, &r.k)?);
        apply!(optional::find::<Ready>(names::MPI_Pready)?, (partition, request))
    }),
    (names::MPI_Pready_range, |r, w| {
        let (low, high, request) = (w.int()?, w.int()?, r.requests.handle(w.word()?, &r.k)?);
        apply!(optional::find::<ReadyRange>(names::MPI_Pready_range)?, (low, high, request))
    }),
    (names::MPI_Pready_list, |r, w| {
        let (n, partitions) = (w.int()?, w.ints()?);
        let request = r.requests.handle(w.word()?, &r.k)?;
        apply!(optional::find::<ReadyList>(names::MPI_Pready_list)?, (n, partitions.as_ptr(), request))
    }),
    (names::MPI_Parrived, arrived),
    (names::MPI_Isendrecv, sendrecv),
    (names::MPI_Isendrecv_replace, sendrecv_replace),
];

fn init(r: &mut Replay<'_>, w: &mut Words<'_>, name: &str) -> Result<()> {
    let function: Init = optional::find(name)?;
    let (partitions, count) = (w.int()?, w.word()?);
    let datatype = r.handles.datatype(w.word()?)?;
    let (peer, tag) = (r.k.rank(w.word()?), r.k.tag(w.word()?));
    let comm = r.handles.comm(w.word()?)?.handle;
    let slot = w.word()?;
    let all = count.checked_mul(partitions.into()).context("a message larger than the address space")?;
    let (span, mut kept) = (datatype.span(all)?, Kept::default());
    let buffer =
        if name == names::MPI_Psend_init { r.memory.source(span)? } else { r.sink(span, Some(&mut kept))? };
    let (count, info) = (integer(count)?, r.k.info_null);
    let request = r.requests.place(slot, &r.k)?;
    apply!(function, (buffer, partitions, count, datatype.handle, peer, tag, comm, info, request))?;
    r.requests.start(slot, true, kept);
    Ok(())
}

/// Only successful queries get here: asks, hidden from a recorder, until the partition is there.
fn arrived(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let function: Arrived = optional::find(names::MPI_Parrived)?;
    let request = r.requests.handle(w.word()?, &r.k)?;
    let (partition, mut flag) = (w.int()?, 0);
    {
        let _hidden = r.pause.hide();
        loop {
            apply!(function, (request, partition, &raw mut flag))?;
            if flag != 0 {
                break;
            }
            std::thread::yield_now();
        }
    }
    apply!(function, (request, partition, &raw mut flag))
}

fn sendrecv(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let function: Exchange = optional::find(names::MPI_Isendrecv)?;
    let sent = w.int()?;
    let sendtype = r.handles.datatype(w.word()?)?;
    let (dest, sendtag) = (r.k.rank(w.word()?), r.k.tag(w.word()?));
    let received = w.int()?;
    let recvtype = r.handles.datatype(w.word()?)?;
    let (source, tag) = (w.word()?, w.word()?);
    let comm = r.handles.comm(w.word()?)?.handle;
    let slot = w.word()?;
    let (source, tag) = r.named(source, tag)?;
    let mut kept = Kept::default();
    let from = r.memory.source(sendtype.span(sent.into())?)?;
    let to = r.sink(recvtype.span(received.into())?, Some(&mut kept))?;
    let (sendtype, recvtype) = (sendtype.handle, recvtype.handle);
    let request = r.requests.place(slot, &r.k)?;
    apply!(
        function,
        (from, sent, sendtype, dest, sendtag, to, received, recvtype, source, tag, comm, request)
    )?;
    r.requests.start(slot, false, kept);
    Ok(())
}

fn sendrecv_replace(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let function: Replacement = optional::find(names::MPI_Isendrecv_replace)?;
    let count = w.int()?;
    let datatype = r.handles.datatype(w.word()?)?;
    let (dest, sendtag) = (r.k.rank(w.word()?), r.k.tag(w.word()?));
    let (source, tag) = (w.word()?, w.word()?);
    let comm = r.handles.comm(w.word()?)?.handle;
    let slot = w.word()?;
    let (source, tag) = r.named(source, tag)?;
    let mut kept = Kept::default();
    let buffer = r.sink(datatype.span(count.into())?, Some(&mut kept))?;
    let request = r.requests.place(slot, &r.k)?;
    apply!(function, (buffer, count, datatype.handle, dest, sendtag, source, tag, comm, request))?;
    r.requests.start(slot, false, kept);
    Ok(())
}
