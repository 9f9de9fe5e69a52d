//! Compiles `frames.c` with the machine's C compiler and opens it.

use std::ffi::{CString, c_int, c_void};
use std::path::PathBuf;
use std::process::Command;

/// Called at the bottom of a stack.
pub(crate) type Visitor = unsafe extern "C-unwind" fn(*mut c_void);
/// A shape of stack without a parameter.
pub(crate) type Plain = unsafe extern "C-unwind" fn(Visitor, *mut c_void) -> c_int;

/// `frames.c` as an opened shared library.
pub(crate) struct Library(*mut c_void);

impl Library {
    /// Compiles with these flags and opens the result.
    pub(crate) fn build(name: &str, flags: &[&str]) -> Self {
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/native/frames.c");
        let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("lib{name}.so"));
        let status = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
            .args(["-shared", "-fPIC", "-pthread", "-o"])
            .args([&library, &source])
            .args(flags)
            .status()
            .expect("a C compiler");
        assert!(status.success());
        let path = CString::new(library.to_str().unwrap()).unwrap();
        // SAFETY: opens a library without constructors.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        Self(handle)
    }
    /// Address of a function.
    pub(crate) fn function(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: the handle is open.
        let function = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!function.is_null(), "{name:?}");
        function
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle is open and closed once.
        unsafe { libc::dlclose(self.0) };
    }
}
