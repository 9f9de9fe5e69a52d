//! The MPI library of the program: found when it is first called, however the program has come by it. We link none.
//!
//! A function is looked up among the libraries that the program's own references are bound to (the next definition after ours, which
//! may be another tool's); else, where the MPI was loaded for one module alone (Python's wheels do), in the one library of MPI
//! that is loaded at all.

use crate::constants;
use crate::dl::{next, real};
use crate::family::Family;
use crate::loaded_files::{LANDMARK, Object, containing, loaded};
use crate::message::{refuse, say};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr::null;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The library.
#[derive(Debug)]
pub(crate) struct Library {
    /// Its file.
    pub(crate) path: PathBuf,
    /// `None` if it is of a kind that is not known.
    family: Option<Family>,
    /// What it says of itself.
    pub(crate) text: String,
    object: Object,
}

impl Library {
    /// Whether an address is in it.
    pub(crate) fn holds(&self, address: *const c_void) -> bool {
        self.object.holds(address)
    }
}

/// What is done with calls.
pub(crate) enum Mode {
    /// They are recorded.
    Record,
    /// They go to the library.
    Pass,
    /// There is no MPI, or there are several: each goes where its caller would have it.
    Unknown,
}

static FOUND: AtomicPtr<Library> = AtomicPtr::new(std::ptr::null_mut());

fn found() -> Option<&'static Library> {
    // SAFETY: null, or leaked by `decide`.
    unsafe { FOUND.load(Ordering::Acquire).as_ref() }
}

/// The program's MPI; `None` as long as there is none, or more than one.
pub(crate) fn library() -> Option<&'static Library> {
    found().or_else(decide)
}

/// What is done with calls.
pub(crate) fn mode() -> Mode {
    match library() {
        None => Mode::Unknown,
        Some(Library { family: Some(_), .. }) => Mode::Record,
        Some(_) => Mode::Pass,
    }
}

/// Finds the library, and learns its family's constants before anyone else sees it. Takes no lock: the dynamic linker, which is asked,
/// has its own; two threads that come here at once find the same.
#[cold]
fn decide() -> Option<&'static Library> {
    let mpi = find_library()?;
    if let Some(family) = mpi.family {
        let data = |name: &CStr| data(name, &mpi.object);
        // SAFETY: what is found is the library's, or the program's copy of it.
        unsafe { constants::select(family, data) };
    }
    let new = Box::into_raw(Box::new(mpi));
    match FOUND.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => begin(),
        // SAFETY: it was made above, and nobody else has it.
        Err(_) => drop(unsafe { Box::from_raw(new) }),
    }
    found()
}

/// What is done once, when the library is known.
fn begin() {
    if let Some(Library { family: None, path, .. }) = found() {
        refuse(&format!(
            "{} is an MPI that is not known: neither Open MPI, nor MPICH's kin, nor of the standard's binary interface",
            path.display()
        ));
    }
}

/// The address of the library's data of a name: where the program has it, which the linker may have given a copy.
fn data(name: &CStr, library: &Object) -> *const c_void {
    // SAFETY: the handle is the whole program's.
    let first = unsafe { real(libc::RTLD_DEFAULT, name) };
    if first.is_null() { library.symbol_in_scope(name) } else { first }
}

fn find_library() -> Option<Library> {
    let first = next(LANDMARK);
    let object = if first.is_null() {
        let mut all = loaded().into_iter().filter(Object::is_mpi);
        let object = all.next()?;
        let others: Vec<_> = all.collect();
        if !others.is_empty() {
            several(&object, &others);
            return None;
        }
        object
    } else {
        containing(first)?
    };
    let find = |name: &CStr| {
        let there = next(name);
        if there.is_null() { object.symbol_in_scope(name) } else { there }
    };
    let text = version(&find);
    let family = family(&find, &text);
    Some(Library { path: object.path(), family, text, object })
}

fn several(one: &Object, others: &[Object]) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        let names: Vec<_> =
            std::iter::once(one).chain(others).map(|o| o.path().display().to_string()).collect();
        refuse(&format!("the process has loaded several MPIs ({})", names.join(", ")));
    });
}

/// What the library says of itself, in its first line.
fn version(find: &impl Fn(&CStr) -> *const c_void) -> String {
    let ask = find(c"PMPI_Get_library_version");
    if ask.is_null() {
        return String::new();
    }
    // Not on the stack, which may be a coroutine's.
    let mut text: Vec<c_char> = vec![0; 8192];
    let mut n: c_int = 0;
    // SAFETY: the function of this name, which may be called at any time; no MPI's text is longer.
    unsafe {
        let ask: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int = std::mem::transmute(ask);
        ask(text.as_mut_ptr(), &raw mut n);
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    }
}

fn family(find: &impl Fn(&CStr) -> *const c_void, text: &str) -> Option<Family> {
    let ask = find(c"PMPI_Abi_get_version");
    let (mut major, mut minor): (c_int, c_int) = (0, 0);
    if !ask.is_null() {
        // SAFETY: the function of this name, which may be called at any time.
        unsafe {
            let ask: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int = std::mem::transmute(ask);
            ask(&raw mut major, &raw mut minor);
        }
    }
    if major > 0 {
        return Some(Family::Standard);
    }
    if !find(c"ompi_mpi_comm_world").is_null() {
        return Some(Family::Openmpi);
    }
    let kin = ["MPICH", "Intel(R) MPI", "MVAPICH"];
    kin.iter().any(|name| text.contains(name)).then_some(Family::Mpich)
}

/// The address of what the program's MPI calls so, or a tool before it; null if there is none.
pub(crate) fn find(name: &CStr) -> *const c_void {
    let first = next(name);
    if first.is_null() { library().map_or(null(), |l| l.object.symbol_in_scope(name)) } else { first }
}

/// The same for a call that comes from `caller`, even if there is no MPI, or more than one.
pub(crate) fn find_for(name: &CStr, caller: usize) -> *const c_void {
    let found = find(name);
    if !found.is_null() {
        return found;
    }
    containing(std::ptr::without_provenance(caller)).map_or(null(), |o| o.symbol_in_scope(name))
}

/// The program calls what its MPI does not have: it gets what it would get without us.
pub(crate) fn lacking(name: &CStr, caller: usize) -> ! {
    let from = containing(std::ptr::without_provenance(caller)).map(|o| o.path());
    let from = from.map_or_else(String::new, |path| format!("{}: ", path.display()));
    let library = library().map_or_else(
        || "no MPI library is loaded".to_owned(),
        |l| format!("{} does not have it", l.path.display()),
    );
    say(&format!("{from}symbol lookup error: undefined symbol: {} ({library})", name.to_string_lossy()));
    // SAFETY: as the dynamic linker ends a process for this reason.
    unsafe { libc::_exit(127) }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn standard(major: *mut c_int, minor: *mut c_int) -> c_int {
        // SAFETY: as `family` calls it.
        unsafe { (*major, *minor) = (1, 0) };
        0
    }
    unsafe extern "C" fn own(major: *mut c_int, minor: *mut c_int) -> c_int {
        // SAFETY: as `family` calls it.
        unsafe { (*major, *minor) = (-1, -1) };
        0
    }

    #[test]
    fn the_family_is_told_by_what_the_library_has_and_says() {
        type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
        let of = |version: Option<Version>, world: bool, text: &str| {
            let find = |name: &CStr| match name.to_bytes() {
                b"PMPI_Abi_get_version" => version.map_or(null(), |f| f as *const c_void),
                b"ompi_mpi_comm_world" if world => own as *const c_void,
                _ => null(),
            };
            family(&find, text)
        };
        assert_eq!(of(Some(standard), false, "MPICH Version: 5.0.2"), Some(Family::Standard));
        assert_eq!(of(Some(own), false, "MPICH Version: 5.0.2"), Some(Family::Mpich));
        assert_eq!(of(None, false, "Intel(R) MPI Library 2021.18"), Some(Family::Mpich));
        assert_eq!(of(None, true, "Open MPI v4.1.4"), Some(Family::Openmpi));
        assert_eq!(of(Some(standard), true, "Open MPI v6.0.0"), Some(Family::Standard));
        assert_eq!(of(None, false, "SMPI"), None);
    }

    #[test]
    fn without_an_mpi_nothing_is_found() {
        assert!(library().is_none() && matches!(mode(), Mode::Unknown));
    }
}
