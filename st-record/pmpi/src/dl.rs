//! The dynamic linker's own `dlsym`: the program's is ours ([`crate::lookup`]).
//!
//! SAFETY, for the whole module: names are NUL-terminated; functions have the types that they are known by.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::ptr::null;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What it is called where the dynamic linker has it: since glibc 2.34, and before.
const VERSIONS: [&CStr; 2] = [c"GLIBC_2.34", c"GLIBC_2.2.5"];

static REAL: AtomicUsize = AtomicUsize::new(0);

/// Address of the dynamic linker's `dlsym`; 0 if it cannot be found.
pub(crate) fn function() -> usize {
    match REAL.load(Ordering::Relaxed) {
        0 => {
            // Nothing but `dlvsym` may be called: a sanitizer's runtime asks for the functions that it stands before, `dlopen` among them,
            // when it is not ready to be called itself.
            let of = |version: &&CStr| unsafe {
                libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()).expose_provenance()
            };
            let found = VERSIONS.iter().map(of).find(|address| *address != 0).unwrap_or(0);
            REAL.store(found, Ordering::Relaxed);
            found
        }
        address => address,
    }
}

/// `dlsym` itself; with `RTLD_NEXT`, of what comes after us.
///
/// # Safety
///
/// The handle is one.
pub(crate) unsafe fn real(handle: *mut c_void, name: &CStr) -> *const c_void {
    type Function = unsafe extern "C" fn(*mut c_void, *const c_char) -> *const c_void;
    match function() {
        0 => null(),
        address => unsafe { transmute::<usize, Function>(address)(handle, name.as_ptr()) },
    }
}

/// The definition that comes after ours in the program's scope; null if there is none.
pub(crate) fn next(name: &CStr) -> *const c_void {
    unsafe { real(libc::RTLD_NEXT, name) }
}
