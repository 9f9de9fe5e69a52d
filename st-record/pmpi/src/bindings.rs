//! The language bindings that calls came through, from the modules at the ends of their call sites.

use st_model::sites::{Frame, SiteTable};
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_int, c_void};
use std::path::Path;

/// The bindings of all call sites so far.
pub(crate) fn seen(sites: &SiteTable) -> BTreeSet<&'static str> {
    sites.sites().iter().filter_map(|s| of(sites, &s.frames)).collect()
}

/// The binding of a call, by its frames, innermost first.
pub(crate) fn of(sites: &SiteTable, frames: &[Frame]) -> Option<&'static str> {
    let first = layer(sites, frames.first()?);
    let above = frames.get(1).and_then(|f| layer(sites, f));
    Some(match (first, above) {
        // Open MPI's mpi_f08 calls its mpif.h.
        (Some(FORTRAN), Some(F08)) => F08,
        (Some(layer), _) => layer,
        (None, _) => "C",
    })
}

const FORTRAN: &str = "Fortran:mpif.h/mpi";
const F08: &str = "Fortran:mpi_f08";

/// The binding whose own code a frame is in.
fn layer(sites: &SiteTable, frame: &Frame) -> Option<&'static str> {
    let path = &sites.modules().get(frame.module as usize)?.path;
    let name = Path::new(path).file_name()?.to_str()?;
    match name {
        n if n.starts_with("libmpi_usempif08") => Some(F08),
        n if n.starts_with("libmpi_mpifh") || n.starts_with("libmpi_usempi") => Some(FORTRAN),
        // One library for all three.
        n if n.starts_with("libmpichfort") || n.starts_with("libmpifort") => {
            let f08 = function(path, frame.offset).is_some_and(|f| f.contains("f08") || f.contains("cdesc"));
            Some(if f08 { F08 } else { FORTRAN })
        }
        n if n.starts_with("libmpi_cxx") || n.starts_with("libmpichcxx") => Some("C++"),
        n if n.starts_with("MPI.") && n.contains("cpython") => Some("Python"),
        _ => None,
    }
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
