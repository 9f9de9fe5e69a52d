//! Recorders of other families. This one has been preloaded, and the program has loaded an MPI that it is not built for: then it opens
//! that family's recorder, which finds the library's functions through it, and whose wrappers its symbols lead to.
//!
//! SAFETY, for the whole module: what recorders ask each other has the types that [`crate::jumps`] exports.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use crate::dl::real;
use crate::family::Family;
use crate::loaded_files::base;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::os::unix::ffi::OsStringExt;
use std::ptr::null;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Names the recorders that there are, separated by colons.
const RECORDERS: &str = "ST_RECORDERS";

/// How a function is found.
pub(crate) type Find = extern "C" fn(*const c_char) -> *const c_void;

/// How the recorder that was preloaded finds functions, if this is another one; else 0.
static FIND: AtomicUsize = AtomicUsize::new(0);

/// Functions are found by this from now on.
pub(crate) fn adopt(find: Find) {
    FIND.store(find as usize, Ordering::Relaxed);
}

/// What the recorder that was preloaded finds by a name, if this is another one.
pub(crate) fn given(name: &CStr) -> Option<*const c_void> {
    match FIND.load(Ordering::Relaxed) {
        0 => None,
        find => Some(unsafe { transmute::<usize, Find>(find) }(name.as_ptr())),
    }
}

/// Whether calls of a function come to this recorder: not if it is another one that has been preloaded, and does not have it.
pub(crate) fn reached(name: &str) -> bool {
    let find = FIND.load(Ordering::Relaxed);
    let Ok(name) = CString::new(name) else { return false };
    find == 0 || {
        let first = unsafe { real(libc::RTLD_DEFAULT, &name) };
        base(first).is_some_and(|b| Some(b) == base(std::ptr::without_provenance(find)))
    }
}

/// How another recorder is asked for what records a function's calls, and told how it finds functions.
type Wrapper = unsafe extern "C" fn(*const c_char) -> *const c_void;
type Adopt = extern "C" fn(Find);

/// Another recorder.
#[derive(Debug)]
pub(crate) struct Other {
    wrapper: Wrapper,
    adopt: Adopt,
}

impl Other {
    /// What records the calls of a function; null if nothing does.
    pub(crate) fn wrapper(&self, name: &CStr) -> *const c_void {
        unsafe { (self.wrapper)(name.as_ptr()) }
    }

    /// Lets it find functions by ours.
    pub(crate) fn begin(&self, find: Find) {
        (self.adopt)(find);
    }
}

/// The recorder of a family, if there is one.
pub(crate) fn other(family: Family) -> Option<Other> {
    let paths = std::env::var_os(RECORDERS)?.into_vec();
    paths.split(|b| *b == b':').find_map(|path| open(&CString::new(path).ok()?, family))
}

fn open(path: &CStr, family: Family) -> Option<Other> {
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return None;
    }
    let [of, wrapper, adopt] =
        [c"st_family", c"st_wrapper", c"st_adopt"].map(|name| unsafe { real(handle, name) });
    if [of, wrapper, adopt].contains(&null()) {
        return None;
    }
    unsafe {
        let of: extern "C" fn() -> c_int = transmute(of);
        if of() != family.number() {
            libc::dlclose(handle);
            return None;
        }
        let wrapper = transmute::<*const c_void, Wrapper>(wrapper);
        Some(Other { wrapper, adopt: transmute::<*const c_void, Adopt>(adopt) })
    }
}
