//! MPI-IO, on scratch files: each name that was recorded stands for a file of its own in a directory of this replay's,
//! which is removed at the end.
#![expect(unsafe_code, reason = "calls MPI")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use mpi::ffi;
use st_cli::Mpi;
use st_model::calls::Row;
use st_model::calls::names;
use st_replay::words::Words;

use crate::replay::buffers::Span;
use crate::replay::call::{apply, integer, mpi};
use crate::replay::constants::Constants;
use crate::replay::info::{info, keep};
use crate::replay::pause::Pause;
use crate::replay::requests::Kept;
use crate::replay::state::{Handler, Replay, hidden, started};
use crate::replay::texts::string;

/// The replay's directory: known to whatever ends this process.
static SCRATCH: OnceLock<PathBuf> = OnceLock::new();

/// Length of what is read of a file that was there before the program: nothing but a hole. Smaller ones are tried where
/// the file system has no room for numbers.
const LENGTHS: [u64; 3] = [1 << 40, 1 << 32, 1 << 30];

/// Makes a directory for this replay below `parent`, the same for all ranks.
pub(crate) fn prepare(parent: &Path, rank: u32, pause: Pause) -> Result<()> {
    let _hidden = pause.hide();
    let k = Constants::load();
    let mut number = std::process::id();
    if rank == 0 {
        while !taken(&at(parent, number))? {
            number = number.wrapping_add(1);
        }
    }
    let n = c_int::try_from(size_of_val(&number))?;
    mpi!(MPI_Bcast((&raw mut number).cast(), n, k.byte, 0, k.comm_world))?;
    let directory = at(parent, number);
    // On another node it may be missing.
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    SCRATCH.get_or_init(|| directory);
    Ok(())
}

fn at(parent: &Path, number: u32) -> PathBuf {
    parent.join(format!("st-replay-{number}"))
}

/// Whether the directory could be made: `false` if there is one already.
fn taken(directory: &Path) -> Result<bool> {
    match fs::create_dir(directory) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(e).with_context(|| directory.display().to_string()),
    }
}

/// No rank opens files any more: waits until that is so.
pub(crate) fn all_done(pause: Pause) -> Result<()> {
    if SCRATCH.get().is_none() {
        return Ok(());
    }
    let _hidden = pause.hide();
    mpi!(MPI_Barrier(Constants::load().comm_world))
}

/// Removes the replay's directory, if there is one.
pub(crate) fn remove() {
    if let Some(directory) = SCRATCH.get() {
        // Other ranks on this node do the same.
        let _ = fs::remove_dir_all(directory);
    }
}

/// The file of the next word.
pub(crate) fn file(r: &Replay<'_>, w: &mut Words<'_>) -> Result<ffi::MPI_File> {
    let index = w.word()?;
    if index == st_model::values::NULL {
        return Ok(r.k.file_null);
    }
    let file = r.files.live.get(&index).copied();
    file.with_context(|| format!("file {index} is used but was not opened by a replayed call"))
}

/// Whether a call that failed is replayed too: that it failed on one rank does not say that others did not take part.
pub(crate) fn settles(row: &Row) -> bool {
    row.base() == names::MPI_File_set_atomicity
}

/// The scratch file that stands for the name of the next word.
fn path(r: &Replay<'_>, w: &mut Words<'_>) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    string(r, w)?.hash(&mut hasher);
    let directory = SCRATCH.get().context("no directory for files")?;
    Ok(directory.join(format!("{:016x}", hasher.finish())))
}

fn c_path(path: &Path) -> Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Sees to it that a file is there that the program found.
fn provide(path: &Path) -> Result<()> {
    let made = OpenOptions::new().write(true).create_new(true).open(path);
    match made {
        Ok(file) => {
            let grown = LENGTHS.iter().any(|&n| file.set_len(n).is_ok());
            grown.then_some(()).with_context(|| format!("{}: cannot be made longer", path.display()))
        }
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e).with_context(|| path.display().to_string()),
    }
}

/// A read or write: `now` with a status, `later` with a request, in halves, and with (`at`) or without an offset. `$memory`
/// gives its buffer.
macro_rules! transfer {
    (now $name:ident $memory:ident) => {
        (stringify!($name), |r, w| {
            let (file, t) = (file(r, w)?, elements(r, w)?);
            let (buffer, status) = (r.memory.$memory(t.span)?, r.status());
            mpi!($name(file, buffer, t.count, t.datatype, status))
        })
    };
    (now at $name:ident $memory:ident) => {
        (stringify!($name), |r, w| {
            let (file, offset, t) = (file(r, w)?, integer(w.word()?)?, elements(r, w)?);
            let (buffer, status) = (r.memory.$memory(t.span)?, r.status());
            mpi!($name(file, offset, buffer, t.count, t.datatype, status))
        })
    };
    (later $name:ident $memory:ident) => {
        (stringify!($name), |r, w| {
            let (file, t) = (file(r, w)?, elements(r, w)?);
            let (buffer, kept) = $memory(r, t.span)?;
            started(r, w, kept, |q| mpi!($name(file, buffer, t.count, t.datatype, q)))
        })
    };
    (later at $name:ident $memory:ident) => {
        (stringify!($name), |r, w| {
            let (file, offset, t) = (file(r, w)?, integer(w.word()?)?, elements(r, w)?);
            let (buffer, kept) = $memory(r, t.span)?;
            started(r, w, kept, |q| mpi!($name(file, offset, buffer, t.count, t.datatype, q)))
        })
    };
    (begin $name:ident $memory:ident) => {
        (stringify!($name), |r, w| {
            let (index, file, t) = (w.clone().word()?, file(r, w)?, elements(r, w)?);
            let buffer = r.memory.$memory(t.span)?;
            r.files.parted.insert(index, buffer);
            mpi!($name(file, buffer, t.count, t.datatype))
        })
    };
    (begin at $name:ident $memory:ident) => {
        (stringify!($name), |r, w| {
            let index = w.clone().word()?;
            let (file, offset, t) = (file(r, w)?, integer(w.word()?)?, elements(r, w)?);
            let buffer = r.memory.$memory(t.span)?;
            r.files.parted.insert(index, buffer);
            mpi!($name(file, offset, buffer, t.count, t.datatype))
        })
    };
    (end $name:ident) => {
        (stringify!($name), |r, w| {
            let (index, file) = (w.clone().word()?, file(r, w)?);
            let buffer = r.files.parted.remove(&index).unwrap_or(ptr::null_mut());
            let status = r.status();
            mpi!($name(file, buffer, status))
        })
    };
}

pub(crate) const TRANSFERS: &[(&str, Handler)] = &[
    transfer!(now MPI_File_read sink),
    transfer!(now MPI_File_read_all sink),
    transfer!(now MPI_File_read_shared sink),
    transfer!(now MPI_File_read_ordered sink),
    transfer!(now at MPI_File_read_at sink),
    transfer!(now at MPI_File_read_at_all sink),
    transfer!(now MPI_File_write source),
    transfer!(now MPI_File_write_all source),
    transfer!(now MPI_File_write_shared source),
    transfer!(now MPI_File_write_ordered source),
    transfer!(now at MPI_File_write_at source),
    transfer!(now at MPI_File_write_at_all source),
    transfer!(later MPI_File_iread to_read),
    transfer!(later MPI_File_iread_all to_read),
    transfer!(later MPI_File_iread_shared to_read),
    transfer!(later at MPI_File_iread_at to_read),
    transfer!(later at MPI_File_iread_at_all to_read),
    transfer!(later MPI_File_iwrite to_write),
    transfer!(later MPI_File_iwrite_all to_write),
    transfer!(later MPI_File_iwrite_shared to_write),
    transfer!(later at MPI_File_iwrite_at to_write),
    transfer!(later at MPI_File_iwrite_at_all to_write),
    transfer!(begin MPI_File_read_all_begin landing),
    transfer!(begin MPI_File_read_ordered_begin landing),
    transfer!(begin at MPI_File_read_at_all_begin landing),
    transfer!(begin MPI_File_write_all_begin source),
    transfer!(begin MPI_File_write_ordered_begin source),
    transfer!(begin at MPI_File_write_at_all_begin source),
    transfer!(end MPI_File_read_all_end),
    transfer!(end MPI_File_read_ordered_end),
    transfer!(end MPI_File_read_at_all_end),
    transfer!(end MPI_File_write_all_end),
    transfer!(end MPI_File_write_ordered_end),
    transfer!(end MPI_File_write_at_all_end),
];

type Number = unsafe extern "C" fn(ffi::MPI_File, *mut ffi::MPI_Offset) -> c_int;
type Size = unsafe extern "C" fn(ffi::MPI_File, ffi::MPI_Offset) -> c_int;
type Flag = unsafe extern "C" fn(ffi::MPI_File, *mut c_int) -> c_int;
type Seek = unsafe extern "C" fn(ffi::MPI_File, ffi::MPI_Offset, c_int) -> c_int;

pub(crate) const CALLS: &[(&str, Handler)] = &[
    (names::MPI_File_open, open),
    (names::MPI_File_close, |r, w| {
        let (index, mut file) = (w.clone().word()?, file(r, w)?);
        mpi!(MPI_File_close(&raw mut file))?;
        r.files.live.remove(&index);
        Ok(())
    }),
    (names::MPI_File_delete, |r, w| {
        let (path, info) = (path(r, w)?, info(r, w)?);
        provide(&path)?;
        let name = c_path(&path)?;
        mpi!(MPI_File_delete(name.as_ptr(), info))
    }),
    (names::MPI_File_set_size, |r, w| size(r, w, ffi::MPI_File_set_size)),
    (names::MPI_File_preallocate, |r, w| size(r, w, ffi::MPI_File_preallocate)),
    (names::MPI_File_get_size, |r, w| number(r, w, ffi::MPI_File_get_size)),
    (names::MPI_File_get_position, |r, w| number(r, w, ffi::MPI_File_get_position)),
    (names::MPI_File_get_position_shared, |r, w| number(r, w, ffi::MPI_File_get_position_shared)),
    (names::MPI_File_get_amode, |r, w| flag(r, w, ffi::MPI_File_get_amode)),
    (names::MPI_File_get_atomicity, |r, w| flag(r, w, ffi::MPI_File_get_atomicity)),
    (names::MPI_File_seek, |r, w| seek(r, w, ffi::MPI_File_seek)),
    (names::MPI_File_seek_shared, |r, w| seek(r, w, ffi::MPI_File_seek_shared)),
    (names::MPI_File_set_atomicity, |r, w| {
        // It compares the ranks' flags, and in Open MPI 4.1 fails on some of them after MPI_File_preallocate, other ones in
        // each run. All take part, or those that do not would take part in the next comparison; what it says is not needed.
        if let Ok(file) = file(r, w) {
            let atomic = w.int()?;
            // SAFETY: a live file, or the null one, which is refused.
            unsafe { ffi::MPI_File_set_atomicity(file, atomic) };
        }
        Ok(())
    }),
    (names::MPI_File_sync, |r, w| {
        let file = file(r, w)?;
        mpi!(MPI_File_sync(file))
    }),
    (names::MPI_File_get_group, |r, w| {
        let (file, mut group) = (file(r, w)?, r.k.group_null);
        mpi!(MPI_File_get_group(file, &raw mut group))?;
        r.handles.bind_group(w.word()?, group);
        Ok(())
    }),
    (names::MPI_File_set_info, |r, w| {
        let (file, info) = (file(r, w)?, info(r, w)?);
        mpi!(MPI_File_set_info(file, info))
    }),
    (names::MPI_File_get_info, |r, w| {
        let (file, mut info) = (file(r, w)?, r.k.info_null);
        mpi!(MPI_File_get_info(file, &raw mut info))?;
        keep(r, w, info)
    }),
    (names::MPI_File_get_byte_offset, |r, w| {
        let (file, offset, mut at) = (file(r, w)?, integer(w.word()?)?, 0);
        mpi!(MPI_File_get_byte_offset(file, offset, &raw mut at))
    }),
    (names::MPI_File_get_type_extent, |r, w| {
        let (file, datatype, mut extent) = (file(r, w)?, r.handles.datatype(w.word()?)?.handle, 0);
        mpi!(MPI_File_get_type_extent(file, datatype, &raw mut extent))
    }),
    (names::MPI_File_set_view, |r, w| {
        let (file, at) = (file(r, w)?, integer(w.word()?)?);
        let (etype, filetype) = (r.handles.datatype(w.word()?)?, r.handles.datatype(w.word()?)?);
        let (representation, info) = (string(r, w)?, info(r, w)?);
        mpi!(MPI_File_set_view(file, at, etype.handle, filetype.handle, representation.as_ptr(), info))
    }),
    (names::MPI_File_get_view, get_view),
    (names::MPI_Register_datarep, |r, w| {
        let name = string(r, w)?;
        mpi!(MPI_Register_datarep(name.as_ptr(), None, None, Some(extent_of), ptr::null_mut()))
    }),
];

fn open(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let comm = r.handles.comm(w.word()?)?.handle;
    let (path, mode) = (path(r, w)?, r.k.amode(w.word()?));
    let info = info(r, w)?;
    if mode & r.k.amodes[0] == 0 {
        provide(&path)?;
    }
    let (name, mut file) = (c_path(&path)?, r.k.file_null);
    mpi!(MPI_File_open(comm, name.as_ptr(), mode, info, &raw mut file))?;
    r.files.live.insert(w.word()?, file);
    Ok(())
}

fn size(r: &mut Replay<'_>, w: &mut Words<'_>, function: Size) -> Result<()> {
    let (file, size) = (file(r, w)?, integer(w.word()?)?);
    apply!(function, (file, size))
}

fn number(r: &mut Replay<'_>, w: &mut Words<'_>, function: Number) -> Result<()> {
    let (file, mut out) = (file(r, w)?, 0);
    apply!(function, (file, &raw mut out))
}

fn flag(r: &mut Replay<'_>, w: &mut Words<'_>, function: Flag) -> Result<()> {
    let (file, mut out) = (file(r, w)?, 0);
    apply!(function, (file, &raw mut out))
}

fn seek(r: &mut Replay<'_>, w: &mut Words<'_>, function: Seek) -> Result<()> {
    let (file, offset, whence) = (file(r, w)?, integer(w.word()?)?, r.k.whence(w.word()?));
    apply!(function, (file, offset, whence))
}

/// The types that it gives get the indices that they had, if those are new.
fn get_view(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<()> {
    let (file, mut at) = (file(r, w)?, 0);
    let (mut etype, mut filetype) = (r.k.type_null, r.k.type_null);
    let mut representation: [c_char; crate::replay::texts::LONGEST] = [0; crate::replay::texts::LONGEST];
    let name = representation.as_mut_ptr();
    mpi!(MPI_File_get_view(file, &raw mut at, &raw mut etype, &raw mut filetype, name))?;
    w.word()?;
    for handle in [etype, filetype] {
        let index = w.word()?;
        hidden(r, |r| {
            if r.handles.datatype(index).is_err() { r.handles.bind_type(index, handle) } else { Ok(()) }
        })?;
    }
    Ok(())
}

/// Extents in a representation of the program's own: those in memory.
unsafe extern "C" fn extent_of(
    datatype: ffi::MPI_Datatype,
    extent: *mut ffi::MPI_Aint,
    _state: *mut c_void,
) -> c_int {
    let mut lower = 0;
    // SAFETY: MPI passes a live type and the place of the answer.
    unsafe { ffi::MPI_Type_get_extent(datatype, &raw mut lower, extent) }
}

/// `count type`.
struct Elements {
    count: c_int,
    datatype: ffi::MPI_Datatype,
    span: Span,
}

fn elements(r: &mut Replay<'_>, w: &mut Words<'_>) -> Result<Elements> {
    let count = w.int()?;
    let datatype = r.handles.datatype(w.word()?)?;
    Ok(Elements { count, datatype: datatype.handle, span: datatype.span(count.into())? })
}

/// MPICH moves requests of files only where they are tested or waited for.
const SILENT: bool = matches!(crate::MPI, Mpi::Mpich);

fn to_read(r: &mut Replay<'_>, span: Span) -> Result<(*mut c_void, Kept)> {
    let mut kept = Kept { silent: SILENT, ..Kept::default() };
    Ok((r.sink(span, Some(&mut kept))?, kept))
}

fn to_write(r: &mut Replay<'_>, span: Span) -> Result<(*mut c_void, Kept)> {
    Ok((r.memory.source(span)?, Kept { silent: SILENT, ..Kept::default() }))
}
