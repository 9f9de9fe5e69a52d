//! Files and directories under temporary names: what is not finished does not stay behind a program that is ended.

use crate::{UsageError, identity, signals};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, openat, unlinkat};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is under temporary names, for [`remove`], by where it will be.
static ALL: Mutex<BTreeMap<PathBuf, Temporary>> = Mutex::new(BTreeMap::new());

struct Temporary {
    /// As the system takes it: asking for memory is not allowed where it is removed.
    path: CString,
    replaces: Replaces,
}

/// What an output may take the place of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Replaces {
    /// Of a file that the command does not read.
    NoInput,
    Any,
}

impl Temporary {
    /// Whether it may still get its name: what has that, or was given up, is not under its temporary name any more.
    fn is_open(&self) -> bool {
        Path::new(OsStr::from_bytes(self.path.as_bytes())).exists()
    }
}

fn all() -> MutexGuard<'static, BTreeMap<PathBuf, Temporary>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether something is written that will be at this place.
pub(crate) fn is_open(place: &Path) -> bool {
    all().get(place).is_some_and(Temporary::is_open)
}

/// From now on what is at `path`, and will be at `place`, is removed before a signal ends the program.
pub(crate) fn goes_before_end(place: PathBuf, path: &Path, replaces: Replaces) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    all().insert(place, Temporary { path, replaces });
    signals::before_end(remove);
    Ok(())
}

/// From now on a directory that will be at `place` is removed with all in it before a signal ends the program.
///
/// # Errors
///
/// If its path has a NUL in it.
pub fn directory_goes_before_end(place: &Path, directory: &Path) -> io::Result<()> {
    goes_before_end(place.to_owned(), directory, Replaces::Any)
}

/// Refuses an input whose place an output that is open would take.
pub(crate) fn refuse_input(input: &Path) -> Result<(), UsageError> {
    let all = all();
    let mut outputs = all.iter().filter(|(_, to)| to.replaces == Replaces::NoInput && to.is_open());
    match outputs.find(|(place, _)| identity::is_same_file(place, input)) {
        Some((place, _)) => Err(identity::refused(&place.display().to_string(), input)),
        None => Ok(()),
    }
}

/// Removes what is not finished, where nothing is dropped any more. Asks for no memory, and does not wait for a lock.
pub(crate) fn remove() {
    if let Ok(all) = ALL.try_lock() {
        all.values().for_each(|temporary| remove_from(CWD, &temporary.path));
    }
}

/// How often a directory is gone through, into which other threads go on writing.
const ATTEMPTS: usize = 16;

/// Removes a file, or a directory with all in it.
fn remove_from(parent: impl AsFd, name: &CStr) {
    if unlinkat(&parent, name, AtFlags::empty()).is_ok() {
        return;
    }
    for _ in 0..ATTEMPTS {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(directory) = openat(&parent, name, flags, Mode::empty()) else { return };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut entries = RawDir::new(&directory, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            if ![c".", c".."].contains(&entry.file_name()) {
                remove_from(&directory, entry.file_name());
            }
        }
        if unlinkat(&parent, name, AtFlags::REMOVEDIR).is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_directory_goes_with_all_in_it() {
        let beside = tempfile::tempdir().unwrap();
        let path = beside.path().join(".app.otf2.tmp");
        fs::create_dir_all(path.join("traces/more")).unwrap();
        for n in 0..1000 {
            fs::write(path.join(format!("traces/events-{n}")), "0").unwrap();
        }
        fs::write(path.join("traces/more/one"), "1").unwrap();
        let kept = beside.path().join("kept");
        fs::write(&kept, "2").unwrap();
        std::os::unix::fs::symlink(beside.path(), path.join("link")).unwrap();
        remove_from(CWD, &CString::new(path.as_os_str().as_bytes()).unwrap());
        assert!(!path.exists() && kept.exists());
    }
}
