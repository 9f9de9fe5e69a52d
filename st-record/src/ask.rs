//! What an MPI library says of itself. It is asked in a process of its own, that may not come back.
#![expect(unsafe_code, reason = "calls a function of a library that is opened")]

use libc::{c_char, c_int};
use std::env;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// Names the library to the process that asks.
pub(crate) const LIBRARY: &str = "ST_ASK_LIBRARY";

/// The function that is called: MPI allows it at any time.
const FUNCTION: &CStr = c"PMPI_Get_library_version";

/// The first line of what a library says of itself, `None` if it says nothing.
pub(crate) fn version(library: &Path) -> Option<String> {
    let us = env::current_exe().ok()?;
    let said = Command::new(us).env(LIBRARY, library).env_remove("LD_PRELOAD").output().ok()?;
    let text = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    (said.status.success() && !text.is_empty()).then_some(text)
}

/// What the process that asks has to say.
pub(crate) fn answer(library: &OsStr) -> Option<String> {
    let text = ask(&CString::new(library.as_bytes()).ok()?)?;
    let line = text.lines().next().unwrap_or_default();
    Some(line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n")
}

fn ask(library: &CStr) -> Option<String> {
    let mut text: [c_char; 8192] = [0; 8192];
    let mut n: c_int = 0;
    // SAFETY: the function has this type in every MPI, may be called at any time, and no MPI's text is longer.
    unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL);
        let function = if handle.is_null() { handle } else { libc::dlsym(handle, FUNCTION.as_ptr()) };
        if function.is_null() {
            return None;
        }
        let function: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int = std::mem::transmute(function);
        function(text.as_mut_ptr(), &raw mut n);
        Some(CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned())
    }
}
