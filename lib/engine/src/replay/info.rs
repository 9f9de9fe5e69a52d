//! Info objects, and memory from MPI.
#![expect(unsafe_code, reason = "calls MPI")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use anyhow::Result;
use mpi::ffi;
use st_model::calls::names;
use st_model::values::{INFO_ENV, NULL};
use st_replay::words::Words;

use crate::replay::call::{apply, integer, mpi};
use crate::replay::state::{Handler, Replay, hidden};
use crate::replay::texts::{string, text};

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_Info_create, |r, w| {
        let mut info = r.k.info_null;
        mpi!(MPI_Info_create(&raw mut info))?;
        keep(r, w, info)
    }),
    (names::MPI_Info_dup, |r, w| {
        let (info, mut copy) = (info(r, w)?, r.k.info_null);
        mpi!(MPI_Info_dup(info, &raw mut copy))?;
        keep(r, w, copy)
    }),
    (names::MPI_Info_free, |r, w| {
        let number = w.clone().word()?;
        let mut info = info(r, w)?;
        r.infos.live.remove(&number);
        mpi!(MPI_Info_free(&raw mut info))
    }),
    (names::MPI_Info_set, |r, w| {
        let (info, key, value) = (info(r, w)?, string(r, w)?, string(r, w)?);
        mpi!(MPI_Info_set(info, key.as_ptr(), value.as_ptr()))
    }),
    (names::MPI_Info_delete, |r, w| {
        let (info, key) = (info(r, w)?, string(r, w)?);
        // The program's key may have come from the library.
        let (mut n, mut flag) = (0, 0);
        hidden(r, |_| mpi!(MPI_Info_get_valuelen(info, key.as_ptr(), &raw mut n, &raw mut flag)))?;
        if flag == 0 {
            hidden(r, |_| mpi!(MPI_Info_set(info, key.as_ptr(), c"st".as_ptr())))?;
        }
        mpi!(MPI_Info_delete(info, key.as_ptr()))
    }),
    (names::MPI_Info_get, |r, w| {
        let (info, key, n) = (info(r, w)?, string(r, w)?, w.int()?);
        let mut room = vec![0; usize::try_from(n.max(0))? + 1];
        let mut flag = 0;
        mpi!(MPI_Info_get(info, key.as_ptr(), n, room.as_mut_ptr(), &raw mut flag))
    }),
    (names::MPI_Info_get_valuelen, |r, w| {
        let (info, key) = (info(r, w)?, string(r, w)?);
        let (mut n, mut flag) = (0, 0);
        mpi!(MPI_Info_get_valuelen(info, key.as_ptr(), &raw mut n, &raw mut flag))
    }),
    (names::MPI_Info_get_nkeys, |r, w| {
        let (info, mut n) = (info(r, w)?, 0);
        mpi!(MPI_Info_get_nkeys(info, &raw mut n))
    }),
    (names::MPI_Info_get_nthkey, |r, w| {
        let (info, n) = (info(r, w)?, w.int()?);
        has_keys(r, info, n)?;
        text(|key, _| mpi!(MPI_Info_get_nthkey(info, n, key)))
    }),
    // What MPI 4 replaces MPI_Info_get by, which not every MPI has.
    (names::MPI_Info_get_string, |r, w| {
        type Function =
            unsafe extern "C" fn(ffi::MPI_Info, *const c_char, *mut c_int, *mut c_char, *mut c_int) -> c_int;
        let function: Function = crate::replay::optional::find(names::MPI_Info_get_string)?;
        let (info, key, mut n) = (info(r, w)?, string(r, w)?, w.int()?);
        let mut room = vec![0; usize::try_from(n.max(0))? + 1];
        let mut flag = 0;
        apply!(function, (info, key.as_ptr(), &raw mut n, room.as_mut_ptr(), &raw mut flag))
    }),
    (names::MPI_Alloc_mem, |r, w| {
        let (size, info) = (w.word()?, info(r, w)?);
        let memory = allocate(size, info)?;
        r.infos.memory.push(memory);
        Ok(())
    }),
    // Which memory the trace does not say.
    (names::MPI_Free_mem, |r, _| {
        let memory = match r.infos.memory.pop() {
            Some(memory) => memory,
            None => hidden(r, |r| allocate(64, r.k.info_null))?,
        };
        mpi!(MPI_Free_mem(memory))
    }),
];

fn allocate(size: i64, info: ffi::MPI_Info) -> Result<*mut c_void> {
    let mut memory: *mut c_void = ptr::null_mut();
    mpi!(MPI_Alloc_mem(integer(size)?, info, (&raw mut memory).cast()))?;
    Ok(memory)
}

/// Sees to it that an object that stands for a library's has an `n`-th key.
fn has_keys(r: &mut Replay<'_>, info: ffi::MPI_Info, n: i32) -> Result<()> {
    let mut keys = 0;
    hidden(r, |_| mpi!(MPI_Info_get_nkeys(info, &raw mut keys)))?;
    for i in keys..=n {
        let key = CString::new(format!("st{i}"))?;
        hidden(r, |_| mpi!(MPI_Info_set(info, key.as_ptr(), key.as_ptr())))?;
    }
    Ok(())
}

/// The object made last, under the number that the call has recorded.
pub(crate) fn keep(r: &mut Replay<'_>, w: &mut Words<'_>, info: ffi::MPI_Info) -> Result<()> {
    r.infos.live.insert(w.word()?, info);
    Ok(())
}

/// The object of the next word, made now if the program's came from a call that is not replayed.
pub(crate) fn info(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<ffi::MPI_Info> {
    let number = w.word()?;
    match number {
        NULL => return Ok(r.k.info_null),
        INFO_ENV => return Ok(r.k.info_env),
        _ => {}
    }
    if let Some(&info) = r.infos.live.get(&number) {
        return Ok(info);
    }
    let mut info = r.k.info_null;
    hidden(r, |_| mpi!(MPI_Info_create(&raw mut info)))?;
    r.infos.live.insert(number, info);
    Ok(info)
}
