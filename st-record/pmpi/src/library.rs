//! The MPI library of the program: found when it is first called, however the program has come by it. We link none.
//!
//! A function is looked up among the libraries that the program's own references are bound to (the next definition after ours, which
//! may be another tool's); else, where the MPI was loaded for one module alone (Python's wheels do), in the one library of MPI
//! that is loaded at all.

use crate::dl::{next, real};
use crate::family::{Family, OURS};
use crate::loaded_files::{LANDMARK, Object, containing, loaded};
use crate::message::{refuse, say};
use crate::others::{Other, given, other};
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
    /// The recorder of another family has them.
    Other(&'static Other),
    /// They go to the library.
    Pass,
    /// There is no MPI, or there are several: each goes where its caller would have it.
    Unknown,
}

/// What was found out.
struct Decision {
    mpi: Library,
    other: Option<Other>,
}

static DECISION: AtomicPtr<Decision> = AtomicPtr::new(std::ptr::null_mut());

fn decided() -> Option<&'static Decision> {
    // SAFETY: null, or leaked by `decide`.
    unsafe { DECISION.load(Ordering::Acquire).as_ref() }
}

/// The program's MPI; `None` as long as there is none, or more than one.
pub(crate) fn library() -> Option<&'static Library> {
    decided().or_else(decide).map(|d| &d.mpi)
}

/// What is done with calls.
pub(crate) fn mode() -> Mode {
    match decided().or_else(decide) {
        None => Mode::Unknown,
        Some(Decision { mpi, .. }) if mpi.family == Some(OURS) => Mode::Record,
        Some(Decision { other: Some(other), .. }) => Mode::Other(other),
        Some(_) => Mode::Pass,
    }
}

/// Finds the library, and who records its calls. Takes no lock: the dynamic linker, which is asked, has its own.
#[cold]
fn decide() -> Option<&'static Decision> {
    let mpi = find_library()?;
    let family = mpi.family;
    let mut decision = Box::new(Decision { mpi, other: None });
    if let Some(family) = family.filter(|family| *family != OURS) {
        decision.other = other(family);
    }
    let new = Box::into_raw(decision);
    match DECISION.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => begin(),
        // SAFETY: it was made above, and nobody else has it.
        Err(_) => drop(unsafe { Box::from_raw(new) }),
    }
    decided()
}

/// What is done once, when the library is known.
fn begin() {
    let Some(Decision { mpi, other }) = decided() else { return };
    match mpi.family {
        Some(family) if family == OURS => {
            fill();
        }
        family => {
            if let Some(other) = other {
                return other.begin(symbol);
            }
            let what = family.map_or("an MPI that is not known", Family::words);
            let (path, ours) = (mpi.path.display(), OURS.words());
            refuse(&format!(
                "{path} is {what}, for which there is no recorder here (this one is for {ours})"
            ));
        }
    }
}

/// Learns what the library's headers give as addresses.
pub(crate) fn fill() {
    // SAFETY: the shim stores what `data` says, in variables of its own.
    unsafe { crate::ffi::constants::st_fill(data) };
}

/// The address of the library's data of a name, for the shim: where the program has it, which the linker may have given a copy.
extern "C" fn data(name: *const c_char) -> *const c_void {
    // SAFETY: the shim passes constants.
    let first = unsafe { real(libc::RTLD_DEFAULT, CStr::from_ptr(name)) };
    if first.is_null() { symbol(name) } else { first }
}

/// The address of the function, in the library or a tool before it, that is called so: for another recorder.
extern "C" fn symbol(name: *const c_char) -> *const c_void {
    // SAFETY: the shim and other recorders pass constants.
    find(unsafe { CStr::from_ptr(name) })
}

fn find_library() -> Option<Library> {
    let first = before(LANDMARK);
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
        let next = before(name);
        if next.is_null() { object.symbol_in_scope(name) } else { next }
    };
    let text = version(&find);
    let family = family(&find, &text);
    Some(Library { path: object.path(), family, text, object })
}

/// What is found without a look at the libraries that are loaded for one module alone.
fn before(name: &CStr) -> *const c_void {
    given(name).unwrap_or_else(|| next(name))
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
    let mut text: [c_char; 8192] = [0; 8192];
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
    let first = before(name);
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
