//! Names for call sites: function, file and line of return addresses given as (module, build-id, offset).
//!
//! st-record looks names up when a program has ended, and stores them in its trace; programs that print a trace look up
//! what is not in it, if the module is there and has the build-id of the one that was recorded. How a site is called
//! then is [`st_model::sites::CallSites`]' to say.
//!
//! ```
//! use st_symbols::Resolver;
//! use st_model::sites::{CallSites, Frame, Module, SiteTable};
//!
//! let mut sites = SiteTable::new();
//! let module = sites.module(Module { path: "/opt/app/bin/solver".into(), build_id: "17c3f2".into() });
//! sites.stack(vec![Frame { module, offset: 0x1234 }]);
//! let mut resolver = Resolver::default();
//! resolver.name(&mut sites);
//! assert_eq!(CallSites::of([&sites]).place(0), "solver+0x1234");
//! assert_eq!(resolver.missing(), ["/opt/app/bin/solver: is not there; its call sites have no names"]);
//! ```
//!
//! A return address is behind its call, perhaps already in the next line or function, so one less is looked up.
//! Inlined functions are locations of their own. Of a module without line information the symbol table says in which
//! function an address is; of a stripped one the table for dynamic linking, which is the nearest symbol there
//! is, if one is near. Debug information is looked for in the directories given, beside the module, and under `/usr/lib/debug/.build-id`.

mod debug;
mod module;

use module::Opened;
use st_model::names::{Address, Location};
use st_model::sites::{Frame, Module, SiteTable};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

pub use module::Missing;

/// Looks up names; opens every module once.
#[derive(Debug, Default)]
pub struct Resolver {
    /// Where debug information is looked for first.
    directories: Vec<PathBuf>,
    /// Modules without build-id are believed if they were there then, and have not changed since.
    recorded: Option<SystemTime>,
    modules: BTreeMap<Module, Result<Opened, Missing>>,
}

impl Resolver {
    /// A resolver that looks for modules and their debug information in these directories first: as `.build-id/xx/yyyy.debug`, under
    /// the module's path, its file name, and its file name with `.debug` after it.
    #[must_use]
    pub fn with(directories: Vec<PathBuf>) -> Self {
        Self { directories, ..Self::default() }
    }

    /// Also believes modules without build-id, if their files are older than this.
    #[must_use]
    pub fn recorded_at(self, started: SystemTime) -> Self {
        Self { recorded: Some(started), ..self }
    }

    /// What an address is called: the functions inlined there, then the one that it is in. Empty if nothing is known of it.
    pub fn resolve(&mut self, module: &Module, offset: u64) -> Vec<Location> {
        let (directories, recorded) = (&self.directories, self.recorded);
        let opened =
            self.modules.entry(module.clone()).or_insert_with(|| Opened::find(module, directories, recorded));
        opened.as_mut().map_or_else(|_| Vec::new(), |m| m.locations(offset))
    }

    /// Looks up what the addresses of call sites are called that have no names yet; where there are directories to look
    /// in, also of those whose files and lines are not known.
    pub fn name(&mut self, sites: &mut SiteTable) {
        let mut names = sites.names().clone();
        self.look_up(sites, |address, found| names.replace(address, found));
        sites.set_names(names);
    }

    /// Hands on what addresses are called, as [`Resolver::name`] would name them: those of the program's own modules first.
    pub fn look_up(&mut self, sites: &SiteTable, mut take: impl FnMut(Address, Vec<Location>)) {
        let mut frames: Vec<Frame> = sites.sites().iter().flat_map(|s| s.frames.iter().copied()).collect();
        frames
            .sort_by_cached_key(|f| (sites.module_of(f).is_none_or(Module::is_library), f.module, f.offset));
        frames.dedup();
        for frame in frames {
            let Some(module) = sites.module_of(&frame) else { continue };
            let address = (module.key(), frame.offset);
            let known = sites.names().get(address);
            let has_lines = |all: &[Location]| all.iter().any(|l| l.file.is_some());
            if known.is_some_and(|all| self.directories.is_empty() || has_lines(all)) {
                continue;
            }
            let found = self.resolve(module, frame.offset);
            if known.is_none() && !found.is_empty() || has_lines(&found) {
                take(address, found);
            }
        }
    }

    /// The modules of the program that were asked for and could not be used, each as a sentence that says why. Libraries below it
    /// ([`Module::is_library`]) tell no sites apart.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let why = |(module, opened): (&Module, &Result<Opened, Missing>)| {
            // What is no path is part of the kernel, or of a trace that does not say.
            let path = &module.path;
            let missing = opened.as_ref().err().filter(|_| path.starts_with('/') && !module.is_library())?;
            Some(format!("{path}: {missing}; its call sites have no names"))
        };
        self.modules.iter().filter_map(why).collect()
    }
}
