//! Functions that only some MPIs have: found by name in the running program, not linked.
#![expect(unsafe_code, reason = "finds functions of MPI by name")]

use std::ffi::{CString, c_void};
use std::ptr;

use anyhow::{Result, bail};

/// Address of a function; null if this MPI has none. Open MPI 4 has some of MPI 4 under names that begin with `MPIX_`.
fn address(name: &str) -> *mut c_void {
    let experimental = name.replacen("MPI_", "MPIX_", 1);
    for name in [name, &experimental] {
        let Ok(name) = CString::new(name) else { continue };
        // SAFETY: a search by a terminated name over all loaded objects.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if !found.is_null() {
            return found;
        }
    }
    ptr::null_mut()
}

/// Whether this MPI has a function.
#[must_use]
pub fn exists(name: &str) -> bool {
    !address(name).is_null()
}

/// A function by its name. `F` is its type: a function pointer.
pub(crate) fn find<F: Copy>(name: &str) -> Result<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let found = address(name);
    if found.is_null() {
        bail!("this MPI has no {name}");
    }
    // SAFETY: an address of the size of `F`, which by contract is the type that MPI gives the function.
    Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
}
