//! Names of call sites: the functions, files and lines of the addresses that sites consist of.
//!
//! They are looked up once, when a program has been recorded and its files are still what ran, and travel with the trace
//! from then on. An address is known by its module's [`key`](Module::key) and its offset, so that neither the numbering
//! of sites nor the place of a file matters.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use crate::modules::{Module, base_name};

/// Addresses of a trace that names are kept for, at most: some hundred times as many as large programs have.
pub const MOST: usize = 1 << 20;

/// Where an address is in the source; one of several if functions are inlined there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Location {
    /// Function, demangled.
    pub function: Option<Arc<str>>,
    /// Distance of the return address from the start of the function's symbol, where that is all that is known.
    pub displacement: Option<u64>,
    /// Source file with its path, as the compiler was given it.
    pub file: Option<Arc<str>>,
    /// Line in the file, from 1.
    pub line: Option<u32>,
}

impl Location {
    /// The location as text, for a frame of a module:
    ///
    /// | what is known of an address | how it reads |
    /// | --- | --- |
    /// | line information | `exchange stencil.c:120` |
    /// | a symbol that contains it, or the nearest before it | `exchange+0x2c (solver)` |
    /// | nothing | `solver+0x1234` |
    #[must_use]
    pub fn text(&self, module: &Module, offset: u64) -> String {
        let name = module.name();
        let mut out = self.function.as_deref().unwrap_or(name).to_owned();
        // Writing to a string does not fail.
        let _ = match (&self.function, self.source()) {
            (_, Some(source)) => write!(out, " {source}"),
            (Some(_), None) => match self.displacement {
                Some(distance) => write!(out, "+{distance:#x} ({name})"),
                None => write!(out, " ({name})"),
            },
            (None, None) => write!(out, "+{offset:#x}"),
        };
        out
    }

    /// `stencil.c:120`, or `stencil.c` where no line is known: the file without folders.
    #[must_use]
    pub fn source(&self) -> Option<String> {
        let file = base_name(self.file.as_deref()?);
        Some(self.line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}")))
    }
}

/// An address: the [key](Module::key) of its module, and the offset there.
pub type Address = (u64, u64);

/// What addresses are called. Cloning shares the content.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Names(Arc<BTreeMap<Address, Arc<[Location]>>>);

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").field("addresses", &self.0.len()).finish()
    }
}

impl Names {
    /// Number of addresses.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Whether both share their content: then they are equal, and nothing is compared.
    #[must_use]
    pub fn shares(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
    /// Addresses in ascending order, each with the function that it is in last and those inlined there before it.
    pub fn iter(&self) -> impl Iterator<Item = (Address, &[Location])> {
        self.0.iter().map(|(address, locations)| (*address, &**locations))
    }
    /// What an address is called: the functions inlined there, innermost first, then the one that it is in; nothing if that is
    /// not known.
    #[must_use]
    pub fn get(&self, address: Address) -> Option<&[Location]> {
        self.0.get(&address).map(|locations| &**locations)
    }
    /// Gives an address its names, unless it has some or there are too many ([`MOST`]).
    pub fn insert(&mut self, address: Address, locations: Vec<Location>) {
        if locations.is_empty() || self.0.len() >= MOST || self.0.contains_key(&address) {
            return;
        }
        Arc::make_mut(&mut self.0).insert(address, locations.into());
    }
    /// Gives an address these names in the place of those that it has.
    pub fn replace(&mut self, address: Address, locations: Vec<Location>) {
        Arc::make_mut(&mut self.0).remove(&address);
        self.insert(address, locations);
    }
    /// Adds the names of addresses that have none here.
    pub fn extend(&mut self, other: &Self) {
        if self.is_empty() {
            self.clone_from(other);
            return;
        }
        if self.shares(other) {
            return;
        }
        for (address, locations) in &*other.0 {
            if self.0.len() < MOST && !self.0.contains_key(address) {
                Arc::make_mut(&mut self.0).insert(*address, Arc::clone(locations));
            }
        }
    }
    /// The names of addresses that another has none for.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let new = self.0.iter().filter(|(address, _)| !other.0.contains_key(address));
        Self(Arc::new(new.map(|(address, locations)| (*address, Arc::clone(locations))).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_say_what_is_known() {
        let module = Module { path: "/opt/bin/solver".into(), build_id: String::new() };
        let all = Location {
            function: Some("exchange".into()),
            displacement: None,
            file: Some("/home/me/stencil.c".into()),
            line: Some(120),
        };
        let text = |location: &Location| location.text(&module, 0x1234);
        assert_eq!(text(&all), "exchange stencil.c:120");
        assert_eq!(text(&Location { line: None, ..all.clone() }), "exchange stencil.c");
        assert_eq!(text(&Location { function: None, ..all.clone() }), "solver stencil.c:120");
        let symbol = Location { displacement: Some(0x2c), file: None, line: None, ..all };
        assert_eq!(text(&symbol), "exchange+0x2c (solver)");
        assert_eq!(text(&Location::default()), "solver+0x1234");
    }

    #[test]
    fn names_are_kept_and_added() {
        let location = |name: &str| vec![Location { function: Some(name.into()), ..Location::default() }];
        let (mut a, mut b) = (Names::default(), Names::default());
        a.insert((1, 5), location("f"));
        a.insert((1, 5), location("other"));
        a.insert((1, 6), Vec::new());
        b.insert((1, 5), location("g"));
        b.insert((0, 9), location("h"));
        assert_eq!(b.without(&a).iter().map(|(address, _)| address).collect::<Vec<_>>(), [(0, 9)]);
        a.extend(&b);
        let all: Vec<_> = a.iter().map(|(address, l)| (address, l[0].function.as_deref().unwrap())).collect();
        assert_eq!(all, [((0, 9), "h"), ((1, 5), "f")]);
    }
}
