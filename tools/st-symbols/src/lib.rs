//! Names for call sites: function, file and line of return addresses given as (module, build-id, offset).
//!
//! Traces hold addresses only; this is where readers turn them into text, on the machine they run on. A module that
//! is not there, or has another build-id than the traced one, is not an error: its frames read `module+0xoffset`.
//!
//! ```
//! use st_symbols::{Frame, Resolver};
//!
//! let mut resolver = Resolver::new();
//! let frames = [Frame { module: "/opt/app/bin/solver", build_id: "17c3f2", offset: 0x1234 }];
//! assert_eq!(resolver.describe(&frames), "solver+0x1234");
//! ```
//!
//! | what is known of an address | how it reads |
//! | --- | --- |
//! | line information | `exchange stencil.c:120` |
//! | a symbol that contains it | `exchange+0x2c (solver)` |
//! | nothing | `solver+0x1234` |
//!
//! A return address is behind its call, perhaps already in the next line or function, so one less is looked up.
//! Inlined functions are frames of their own. Debug files are looked for in the module itself and under
//! `/usr/lib/debug/.build-id`.

mod module;
mod program;

use module::Module;
use std::collections::HashMap;
use std::fmt;

/// A return address in a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// Path of the executable or shared library.
    pub module: &'a str,
    /// Its build-id in hexadecimal; empty if unknown, then any file at the path is believed.
    pub build_id: &'a str,
    /// Return address minus the module's load bias.
    pub offset: u64,
}

/// Where a frame is in the source; one of several if functions are inlined there.
///
/// Its text is that of the table in the [crate's documentation](crate); with `{:#}` files have their full paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// File name of the module, without folders.
    pub module: String,
    /// Return address minus the module's load bias.
    pub offset: u64,
    /// Function, demangled.
    pub function: Option<String>,
    /// Distance of the return address from the start of the function's symbol, where that is all that is known.
    pub displacement: Option<u64>,
    /// Source file with its path, as the compiler was given it.
    pub file: Option<String>,
    /// Line in the file, from 1.
    pub line: Option<u32>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.function, &self.file) {
            (function, Some(file)) => {
                let name = if f.alternate() { file } else { base_name(file) };
                let function = function.as_deref().unwrap_or(&self.module);
                write!(f, "{function} {name}")?;
                self.line.map_or(Ok(()), |line| write!(f, ":{line}"))
            }
            (Some(function), None) => match self.displacement {
                Some(distance) => write!(f, "{function}+{distance:#x} ({})", self.module),
                None => write!(f, "{function} ({})", self.module),
            },
            (None, None) => write!(f, "{}+{:#x}", self.module, self.offset),
        }
    }
}

/// Resolves frames; opens every module once.
#[derive(Debug, Default)]
pub struct Resolver {
    /// By path and build-id; nothing for modules that are not on this machine.
    modules: HashMap<(String, String), Option<Module>>,
}

impl Resolver {
    /// A resolver that knows no module yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where a frame is: the function that the address is in last, functions inlined there before it. Never empty.
    pub fn resolve(&mut self, frame: &Frame<'_>) -> Vec<Location> {
        let key = (frame.module.to_owned(), frame.build_id.to_owned());
        let module = self.modules.entry(key).or_insert_with(|| Module::open(frame.module, frame.build_id));
        let found = module.as_mut().map(|m| m.locations(base_name(frame.module), frame.offset));
        found.filter(|locations| !locations.is_empty()).unwrap_or_else(|| {
            vec![Location {
                module: base_name(frame.module).to_owned(),
                offset: frame.offset,
                function: None,
                displacement: None,
                file: None,
                line: None,
            }]
        })
    }

    /// The place in the user's program that a call site (innermost frame first) stands for: its innermost function
    /// that belongs neither to the MPI library and its language bindings, nor to the C, C++, Fortran or Rust
    /// runtime, nor to a tracer. If there is none, the innermost function. Empty for a site without frames.
    pub fn describe(&mut self, frames: &[Frame<'_>]) -> String {
        let of_user = frames.iter().filter(|f| program::is_user_module(f.module));
        let mut first = None;
        for frame in of_user.chain(frames.first()) {
            let locations = self.resolve(frame);
            let chosen = locations.iter().find(|l| program::is_user_function(l.function.as_deref()));
            if let Some(chosen) = chosen {
                return chosen.to_string();
            }
            first = first.or_else(|| locations.first().cloned());
        }
        first.map(|location| location.to_string()).unwrap_or_default()
    }

    /// All functions of a call site, innermost first, one per line of text, inlined ones included.
    pub fn stack(&mut self, frames: &[Frame<'_>]) -> Vec<String> {
        frames.iter().flat_map(|frame| self.resolve(frame)).map(|location| location.to_string()).collect()
    }
}

/// Last part of a path.
fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
