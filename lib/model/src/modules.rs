//! What the addresses of call sites lie in: executables and libraries, and functions of Python programs.

use xxhash_rust::xxh3::xxh3_64;

/// An executable or shared library that frames lie in.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Module {
    /// Path as the loader knew it.
    pub path: String,
    /// GNU build-id in hexadecimal; empty if the module has none.
    pub build_id: String,
}

/// How the path of a module begins that is a function of a Python program.
const PYTHON: &str = "python:";

impl Module {
    /// A function of a Python program, in the place of a module; the offsets of its frames are lines.
    #[must_use]
    pub fn python(file: &str, function: &str) -> Self {
        Self { path: format!("{PYTHON}{file}::{function}"), build_id: String::new() }
    }
    /// File name, without folders.
    #[must_use]
    pub fn name(&self) -> &str {
        base_name(&self.path)
    }
    /// What the module is known by wherever its file lies: the build-id, or of a module without one the file name.
    #[must_use]
    pub fn identity(&self) -> &str {
        if self.build_id.is_empty() { self.name() } else { &self.build_id }
    }
    /// Hash of the [identity](Self::identity), by which names are found.
    #[must_use]
    pub fn key(&self) -> u64 {
        xxh3_64(self.identity().as_bytes())
    }
}

/// File and function of a module's path that stands for a function of a Python program, see [`Module::python`].
#[must_use]
pub fn python_function(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix(PYTHON)?.rsplit_once("::")
}

/// Last part of a path.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
