//! What records of windows and files say of calls.

use serde_json::{Map, Value};
use st_model::calls::{Kind, Row};
use st_model::num::Exact as _;
use st_model::values::LOCK_TYPE;

use super::definitions::{Definitions, Shared};
use crate::otf2::{Access, Opening, Record, UNDEFINED};

/// Parameters of a call.
type Parameters = Map<String, Value>;

/// `OTF2_IoOperationMode`.
const READ: u8 = 0;

/// Adds what a record of a window or file says of a call of a function.
pub(super) fn add(of: &Definitions, row: &Row, record: &Record, to: &mut Parameters) {
    match *record {
        Record::WinCreate(win) => made(row, "newwin", of.window(win), to),
        Record::WinDestroy(win) => {
            name(row, "freewin", of.window(win), to);
        }
        Record::Put(access) | Record::Get(access) | Record::Atomic(access, _) => moved(of, row, access, to),
        Record::RequestLock(win, remote, kind) => {
            target(of, row, win, remote, to);
            if let Some(kind) = LOCK_TYPE.get(usize::from(kind)).filter(|_| row.slot("locktype").is_some()) {
                to.insert("locktype".into(), (*kind).into());
            }
        }
        Record::ReleaseLock(win, remote) => target(of, row, win, remote, to),
        Record::FenceEnd(win) => {
            name(row, "win", of.window(win), to);
        }
        Record::GroupSync(win, _, group) => {
            name(row, "win", of.window(win), to);
            if let Some(group) = of.group_name(group).filter(|_| row.slot("group").is_some()) {
                to.insert("group".into(), group.into());
            }
        }
        Record::FileOpen { handle, mode } => {
            let file = of.file(handle);
            made(row, "newfile", file, to);
            if let Some(file) = file.filter(|_| row.slot("filename").is_some()) {
                to.insert("filename".into(), file.path.clone().into());
                to.insert("amode".into(), amode(mode).into());
            }
        }
        Record::FileClose(handle) => {
            name(row, "freefile", of.file(handle), to);
        }
        Record::OperationBegin { handle, bytes, .. } => transferred(of, row, handle, "count", bytes, to),
        Record::OperationComplete(handle, bytes, _) => transferred(of, row, handle, "bytes", bytes, to),
        _ => {}
    }
}

/// What a call synchronises whose accesses are complete with it, of which one is to this rank.
pub(super) fn synchronised(of: &Definitions, row: &Row, win: u32, remote: Option<u32>, to: &mut Parameters) {
    if row.slot("win").is_some() && row.slot("request").is_none() && !to.contains_key("win") {
        target(of, row, win, remote.unwrap_or(UNDEFINED), to);
    }
}

/// A name in the place of a parameter that the function has; whether there is one.
fn name(row: &Row, key: &str, of: Option<&Shared>, to: &mut Parameters) -> bool {
    let Some(of) = of.filter(|_| row.slot(key).is_some() || row.params.iter().any(|p| p.name == key)) else {
        return false;
    };
    to.insert(key.into(), of.name.clone().into());
    true
}

fn made(row: &Row, key: &str, of: Option<&Shared>, to: &mut Parameters) {
    if name(row, key, of, to)
        && let Some(comm) = of.and_then(|of| of.comm.clone())
    {
        to.insert("comm".into(), comm.into());
    }
}

/// An operation on a file, and the parameter that says how much it moves.
fn transferred(of: &Definitions, row: &Row, handle: u32, key: &str, bytes: u64, to: &mut Parameters) {
    if name(row, "file", of.file(handle), to) && row.slot(key).is_some() {
        to.insert(key.into(), bytes.into());
    }
}

fn target(of: &Definitions, row: &Row, win: u32, remote: u32, to: &mut Parameters) {
    let window = of.window(win);
    name(row, "win", window, to);
    let known = window.is_some_and(|window| remote.to_usize() < window.members);
    if known && row.slot("target").is_some() {
        to.insert("target".into(), remote.into());
    }
}

fn moved(of: &Definitions, row: &Row, access: Access, to: &mut Parameters) {
    target(of, row, access.win, access.remote, to);
    let Access { sent, received, .. } = access;
    let bytes = if row.kind == Kind::Get { received } else { sent };
    let counts = [("origincount", bytes), ("resultcount", received), ("targetcount", bytes.max(received))];
    for (key, count) in counts.into_iter().filter(|(key, _)| row.slot(key).is_some()) {
        to.insert(key.into(), count.into());
    }
    // Of calls that move one element its type says how many bytes that are; what is compared is sent, too.
    let size = if received > 0 { received } else { sent };
    let kind = TYPES.iter().find(|(of, _)| *of == size).filter(|_| row.slot("type").is_some());
    to.extend(kind.map(|(_, kind)| ("type".into(), (*kind).into())));
}

/// Datatypes that stand for elements of so many bytes.
const TYPES: [(u64, &str); 4] = [(1, "MPI_BYTE"), (2, "MPI_INT16_T"), (4, "MPI_INT32_T"), (8, "MPI_INT64_T")];

/// The mode that a file was opened with.
fn amode(mode: Opening) -> String {
    let access = match mode.access {
        READ => "MPI_MODE_RDONLY",
        1 => "MPI_MODE_WRONLY",
        _ => "MPI_MODE_RDWR",
    };
    let flags = [
        (mode.creation & 1, "MPI_MODE_CREATE"),
        (mode.creation >> 3 & 1, "MPI_MODE_EXCL"),
        (mode.creation >> 10 & 1, "MPI_MODE_UNIQUE_OPEN"),
        (mode.status >> 1 & 1, "MPI_MODE_APPEND"),
        (mode.status >> 8 & 1, "MPI_MODE_DELETE_ON_CLOSE"),
    ];
    let set = flags.iter().filter(|(bit, _)| *bit != 0).map(|(_, name)| *name);
    std::iter::once(access).chain(set).collect::<Vec<_>>().join("|")
}
