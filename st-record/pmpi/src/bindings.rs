//! The language bindings that calls came through, from the modules at the ends of their call sites.

use st_model::sites::{Frame, SiteTable};
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_int, c_void};
use std::path::Path;

/// The bindings of all call sites so far.
pub(crate) fn seen(sites: &SiteTable) -> BTreeSet<&'static str> {
    // Modules are few, call sites many.
    let modules: Vec<Module> = sites.modules().iter().map(|m| Module::of(&m.path)).collect();
    let layer = |frame: &Frame| {
        let path = |i: usize| sites.modules().get(i).map(|m| m.path.as_str());
        match modules.get(frame.module as usize)? {
            Module::Other => None,
            Module::One(binding) => Some(*binding),
            Module::Fortran => Some(fortran(path(frame.module as usize)?, frame.offset)),
        }
    };
    sites.sites().iter().filter_map(|s| of(layer, &s.frames)).collect()
}

/// The binding of a call, by the layers of its frames, innermost first.
fn of(layer: impl Fn(&Frame) -> Option<&'static str>, frames: &[Frame]) -> Option<&'static str> {
    let first = layer(frames.first()?);
    let above = frames.get(1).and_then(layer);
    Some(match (first, above) {
        // Open MPI's mpi_f08 calls its mpif.h.
        (Some(FORTRAN), Some(F08)) => F08,
        (Some(layer), _) => layer,
        (None, _) => "C",
    })
}

/// Whether a file is a layer through which programs of a compiled language call MPI.
pub(crate) fn is_layer(path: &str) -> bool {
    match Module::of(path) {
        Module::One(binding) => binding != PYTHON,
        Module::Fortran => true,
        Module::Other => false,
    }
}

const PYTHON: &str = "Python";
const FORTRAN: &str = "Fortran:mpif.h/mpi";
const F08: &str = "Fortran:mpi_f08";

/// Whose own code a module has.
enum Module {
    /// No binding's.
    Other,
    /// That of one.
    One(&'static str),
    /// That of all of Fortran's.
    Fortran,
}

impl Module {
    fn of(path: &str) -> Self {
        let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match name {
            n if n.starts_with("libmpi_usempif08") => Self::One(F08),
            n if n.starts_with("libmpi_mpifh") || n.starts_with("libmpi_usempi") => Self::One(FORTRAN),
            n if n.starts_with("libmpichfort") || n.starts_with("libmpifort") => Self::Fortran,
            n if n.starts_with("libmpi_cxx") || n.starts_with("libmpichcxx") => Self::One("C++"),
            n if n.starts_with("MPI.") && n.contains("cpython") => Self::One(PYTHON),
            _ => Self::Other,
        }
    }
}

/// The binding that code belongs to in a library for all of Fortran's.
fn fortran(path: &str, offset: u64) -> &'static str {
    let f08 = function(path, offset).is_some_and(|f| f.contains("f08") || f.contains("cdesc"));
    if f08 { F08 } else { FORTRAN }
}

/// The function at an offset of a loaded library.
fn function(path: &str, offset: u64) -> Option<String> {
    let path = CString::new(path).ok()?;
    let mut wanted = Wanted { path: &path, base: None };
    // SAFETY: the callback gets the structure that is passed here, during this call.
    unsafe { libc::dl_iterate_phdr(Some(compare), (&raw mut wanted).cast()) };
    let address = wanted.base?.wrapping_add(usize::try_from(offset).ok()?);
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: any address may be asked for; a name that is found belongs to the loaded library.
    unsafe {
        let found = libc::dladdr(std::ptr::without_provenance(address), &raw mut info) != 0;
        (found && !info.dli_sname.is_null())
            .then(|| CStr::from_ptr(info.dli_sname).to_string_lossy().into_owned())
    }
}

/// A library that is looked for, and where it was loaded.
struct Wanted<'a> {
    path: &'a CStr,
    base: Option<usize>,
}

unsafe extern "C" fn compare(info: *mut libc::dl_phdr_info, _: usize, wanted: *mut c_void) -> c_int {
    // SAFETY: dl_iterate_phdr's promise, and `function`'s.
    unsafe {
        let wanted = &mut *wanted.cast::<Wanted<'_>>();
        let name = (*info).dlpi_name;
        if !name.is_null() && CStr::from_ptr(name) == wanted.path {
            wanted.base = usize::try_from((*info).dlpi_addr).ok();
        }
        c_int::from(wanted.base.is_some())
    }
}
