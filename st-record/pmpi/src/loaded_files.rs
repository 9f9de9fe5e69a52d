//! The files that the process has loaded, and what they define.
//!
//! SAFETY, for the whole module: the dynamic linker is asked by names that are NUL-terminated, and for addresses that it only
//! compares.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use crate::dl::real;
use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::null;

/// What every MPI defines, and no tool that stands in front of one.
pub(crate) const LANDMARK: &CStr = c"PMPI_Init";

/// What every recorder defines.
const RECORDER: &CStr = c"st_recorder";

/// A file that was loaded.
#[derive(Debug)]
pub(crate) struct Object {
    /// As the dynamic linker calls it; empty for the program.
    name: CString,
    /// Where it begins in memory.
    base: usize,
    /// By what the dynamic linker is asked about it; null if it cannot be.
    handle: *mut c_void,
}

impl Object {
    fn new(name: CString, base: usize) -> Self {
        let file = if name.is_empty() { null() } else { name.as_ptr() };
        // It is loaded already, so that nothing of it runs.
        let handle = unsafe { libc::dlopen(file, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        Self { name, base, handle }
    }

    /// It need not stay loaded for us.
    pub(crate) fn release(self) {
        type Function = unsafe extern "C" fn(*mut c_void) -> c_int;
        let close = unsafe { real(libc::RTLD_NEXT, c"dlclose") };
        if !close.is_null() && !self.handle.is_null() {
            unsafe { std::mem::transmute::<*const c_void, Function>(close)(self.handle) };
        }
    }

    /// Its file.
    pub(crate) fn path(&self) -> PathBuf {
        if self.name.is_empty() {
            return std::env::current_exe().unwrap_or_default();
        }
        OsStr::from_bytes(self.name.to_bytes()).into()
    }

    /// What it, or what it needs, defines by this name; null if they do not.
    pub(crate) fn symbol_in_scope(&self, name: &CStr) -> *const c_void {
        // The program's own scope has us in it.
        if self.handle.is_null() || self.name.is_empty() {
            return null();
        }
        unsafe { real(self.handle, name) }
    }

    /// What it defines itself; null if it does not.
    pub(crate) fn symbol(&self, name: &CStr) -> *const c_void {
        let found = self.symbol_in_scope(name);
        if self.holds(found) { found } else { null() }
    }

    /// Whether this address is in it.
    pub(crate) fn holds(&self, address: *const c_void) -> bool {
        base(address) == Some(self.base)
    }

    /// Whether it is an MPI.
    pub(crate) fn is_mpi(&self) -> bool {
        !self.symbol(LANDMARK).is_null() && self.symbol(RECORDER).is_null()
    }
}

/// All of them but the program.
pub(crate) fn loaded() -> Vec<Object> {
    let mut all: Vec<(CString, usize)> = Vec::new();
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut all).cast()) };
    // Not while the dynamic linker goes through its list.
    all.into_iter().map(|(name, base)| Object::new(name, base)).collect()
}

unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, all: *mut c_void) -> c_int {
    let (info, all) = unsafe { (&*info, &mut *all.cast::<Vec<(CString, usize)>>()) };
    if !info.dlpi_name.is_null() && unsafe { *info.dlpi_name } != 0 {
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let inside = headers.iter().find(|h| h.p_type == libc::PT_LOAD).map(|h| info.dlpi_addr + h.p_vaddr);
        // Its lowest address, as the dynamic linker gives it for any within.
        let first = inside.and_then(|address| usize::try_from(address).ok());
        if let Some((_, base)) = first.and_then(|address| place(std::ptr::without_provenance(address))) {
            all.push((unsafe { CStr::from_ptr(info.dlpi_name) }.to_owned(), base));
        }
    }
    0
}

/// The file that an address is in.
pub(crate) fn containing(address: *const c_void) -> Option<Object> {
    let (name, base) = place(address)?;
    Some(Object::new(name, base))
}

/// Where the file begins in memory that an address is in.
pub(crate) fn base(address: *const c_void) -> Option<usize> {
    place(address).map(|(_, base)| base)
}

/// Name and beginning of the file that an address is in.
pub(crate) fn place(address: *const c_void) -> Option<(CString, usize)> {
    let mut info = libc::Dl_info {
        dli_fname: null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let found = !address.is_null() && unsafe { libc::dladdr(address, &raw mut info) } != 0;
    if !found || info.dli_fname.is_null() {
        return None;
    }
    Some((unsafe { CStr::from_ptr(info.dli_fname) }.to_owned(), info.dli_fbase.addr()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_loaded_is_known_by_name_and_by_address() {
        let libc = |o: &Object| o.path().file_name().is_some_and(|n| n.as_bytes().starts_with(b"libc.so"));
        let all = loaded();
        let found = all.iter().find(|o| libc(o)).expect("the C library is loaded");
        let function = found.symbol(c"getpid");
        assert!(!function.is_null() && found.holds(function));
        assert!(libc(&containing(function).expect("a function is in its library")));
        // Another's functions are in its scope, and not its own; what nobody has is nowhere.
        assert!(
            found.symbol(c"no_such_function").is_null()
                && found.symbol_in_scope(c"no_such_function").is_null()
        );
        assert!(containing(null()).is_none() && containing(std::ptr::without_provenance(1)).is_none());
        // No library here is an MPI.
        assert!(!all.iter().any(Object::is_mpi));
    }
}
