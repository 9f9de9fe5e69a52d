//! Call sites: the stack of return addresses of an MPI call, independent of address randomisation.
//!
//! A site is a list of (module, offset) frames, innermost first. Its identity is a 128-bit hash over the modules'
//! build-ids (or file names, where a module has none) and offsets, so the same call in the same program is the
//! same site on every rank and in every run. What its addresses are called is known by [`Names`]; [`CallSites`] numbers the
//! sites of a whole trace and says where each is in the program.

mod abbreviated;
mod layers;
mod naming;
mod similar;

pub use naming::{CallSites, Meaning};
pub use similar::{AddressRange, Representatives, Similar};

use crate::num::narrow;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use xxhash_rust::xxh3::xxh3_128;

pub use crate::modules::{Module, python_function};
use crate::names::Names;

/// A return address in a module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    /// Index into [`SiteTable::modules`].
    pub module: u32,
    /// Return address minus the module's load bias.
    pub offset: u64,
}

/// A call site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// Identity.
    pub id: u128,
    /// Frames, innermost first. Empty for a site known by its label only.
    pub frames: Vec<Frame>,
    /// Text of a site that is not a stack (synthetic traces); empty otherwise.
    pub label: String,
}

/// The call sites of a trace. Cloning shares the content: most ranks of a program have the same.
///
/// Tables are equal if their modules and sites are, whatever these are called.
#[derive(Clone, Debug, Default)]
pub struct SiteTable(Arc<Content>, Names, Space);

/// Room for what is hashed, kept from one site to the next; empty between them.
#[derive(Debug, Default)]
struct Space(Vec<u8>);

impl Clone for Space {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for SiteTable {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&*self.0, &*other.0);
        self.shares(other) || (a.modules == b.modules && a.sites == b.sites)
    }
}

impl Eq for SiteTable {}

#[derive(Clone, Debug, Default)]
struct Content {
    modules: Vec<Module>,
    sites: Vec<Site>,
    /// Of each site whether its identity was made here, of its frames.
    hashed: Vec<bool>,
    by_id: HashMap<u128, u32, FixedState>,
    by_module: HashMap<Module, u32>,
}

impl SiteTable {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// The sites of several tables, in the order in which these have them, with all names.
    pub fn united<'a>(tables: impl IntoIterator<Item = &'a Self>) -> Self {
        let (mut all, mut last) = (Self::new(), None);
        for table in tables {
            // Most sections share the table of the one before.
            if !last.is_some_and(|last: &Self| last.shares(table)) {
                all.unite(table);
                last = Some(table);
            }
        }
        all
    }
    /// Adds the sites and names of another table.
    pub fn unite(&mut self, other: &Self) {
        self.add_names(other.names());
        for site in other.sites() {
            self.adopt(other, site);
        }
    }
    /// Whether both share their content: then they are equal, and nothing is compared. Equal tables need not.
    #[must_use]
    pub fn shares(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
    /// What the sites' addresses are called, as far as it is known.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.1
    }
    /// Adds to what addresses are called.
    pub fn add_names(&mut self, names: &Names) {
        self.1.extend(names);
    }
    /// Sets what addresses are called.
    pub fn set_names(&mut self, names: Names) {
        self.1 = names;
    }
    /// The module of a frame.
    #[must_use]
    pub fn module_of(&self, frame: &Frame) -> Option<&Module> {
        self.0.modules.get(usize::try_from(frame.module).ok()?)
    }
    /// All modules.
    #[must_use]
    pub fn modules(&self) -> &[Module] {
        &self.0.modules
    }
    /// All sites, by index.
    #[must_use]
    pub fn sites(&self) -> &[Site] {
        &self.0.sites
    }
    /// Index of the site with this identity.
    #[must_use]
    pub fn number(&self, id: u128) -> Option<u32> {
        self.0.by_id.get(&id).copied()
    }
    /// The site at an index.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&Site> {
        self.0.sites.get(usize::try_from(index).ok()?)
    }
    /// Index of a module, added if new.
    pub fn module(&mut self, module: Module) -> u32 {
        if let Some(&i) = self.0.by_module.get(&module) {
            return i;
        }
        let to = Arc::make_mut(&mut self.0);
        let i = narrow(to.modules.len());
        to.modules.push(module.clone());
        to.by_module.insert(module, i);
        i
    }
    /// Index of the site with these frames (modules must be in the table), added if new.
    pub fn stack(&mut self, frames: Vec<Frame>) -> u32 {
        let mut space = std::mem::take(&mut self.2);
        let id = self.stack_id_in(&frames, &mut space.0);
        self.2 = space;
        self.put(Site { id, frames, label: String::new() }, true)
    }
    /// Index of a site known by its text only, added if new.
    pub fn label(&mut self, label: &str) -> u32 {
        let id = Self::label_id(label);
        self.insert(Site { id, frames: Vec::new(), label: label.to_owned() })
    }
    /// Identity of a site known by its text only.
    #[must_use]
    pub fn label_id(label: &str) -> u128 {
        xxh3_128(label.as_bytes())
    }
    /// Index in this table of a site of another table, added if new.
    pub fn adopt(&mut self, other: &Self, site: &Site) -> u32 {
        if let Some(&i) = self.0.by_id.get(&site.id) {
            return i;
        }
        let frames = site
            .frames
            .iter()
            .map(|f| {
                let module = other.0.modules.get(f.module as usize).cloned().unwrap_or_default();
                Frame { module: self.module(module), offset: f.offset }
            })
            .collect();
        self.insert(Site { id: site.id, frames, label: site.label.clone() })
    }
    /// Adds a decoded site as it is.
    pub fn insert(&mut self, site: Site) -> u32 {
        self.put(site, false)
    }
    fn put(&mut self, site: Site, hashed: bool) -> u32 {
        if let Some(&i) = self.0.by_id.get(&site.id) {
            return i;
        }
        let to = Arc::make_mut(&mut self.0);
        let i = narrow(to.sites.len());
        to.by_id.insert(site.id, i);
        to.sites.push(site);
        to.hashed.push(hashed);
        i
    }
    /// Whether the site at an index is a stack and nothing else: it has no label, and its identity is the
    /// [hash](SiteTable::stack_id) of its frames. *Cost:* O(1) for what [`SiteTable::stack`] has added, else that of the hash.
    #[must_use]
    pub fn is_stack(&self, index: usize) -> bool {
        let hashed = self.0.hashed.get(index).copied().unwrap_or_default();
        hashed
            || self.0.sites.get(index).is_some_and(|s| s.label.is_empty() && s.id == self.stack_id(&s.frames))
    }
    /// Identity of a list of frames of this table's modules.
    #[must_use]
    pub fn stack_id(&self, frames: &[Frame]) -> u128 {
        self.stack_id_in(frames, &mut Vec::new())
    }
    fn stack_id_in(&self, frames: &[Frame], all: &mut Vec<u8>) -> u128 {
        // Hashing all at once takes a quarter of what hashing piece by piece does.
        all.reserve(64 * frames.len());
        for f in frames {
            if let Some(m) = self.0.modules.get(f.module as usize) {
                all.extend_from_slice(m.identity().as_bytes());
            }
            all.push(0);
            all.extend_from_slice(&f.offset.to_le_bytes());
        }
        let id = xxh3_128(all);
        all.clear();
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::Exact;

    #[test]
    fn identity_is_the_hash_of_all_frames_after_each_other() {
        let mut table = SiteTable::new();
        for i in 0..3 {
            table.module(Module { path: format!("/x/{i}"), build_id: "0b".repeat(7 * i) });
        }
        for length in 0..40 {
            let frames: Vec<Frame> = (0..length).map(|i| Frame { module: i % 4, offset: i.into() }).collect();
            let mut hash = xxhash_rust::xxh3::Xxh3::new();
            for frame in &frames {
                hash.update(table.module_of(frame).map_or("", Module::identity).as_bytes());
                hash.update(&[0]);
                hash.update(&frame.offset.to_le_bytes());
            }
            assert_eq!(table.stack_id(&frames), hash.digest128(), "{length} frames");
        }
    }
    #[test]
    fn identity_does_not_depend_on_table_order() {
        let a = Module { path: "/x/a".into(), build_id: "01".into() };
        let b = Module { path: "/x/libb.so".into(), build_id: String::new() };
        let mut t = SiteTable::new();
        let mut u = SiteTable::new();
        let (ta, tb) = (t.module(a.clone()), t.module(b.clone()));
        let (ub, ua) = (u.module(Module { path: "/elsewhere/libb.so".into(), ..b }), u.module(a));
        let i = t.stack(vec![Frame { module: ta, offset: 1 }, Frame { module: tb, offset: 2 }]);
        let j = u.stack(vec![Frame { module: ua, offset: 1 }, Frame { module: ub, offset: 2 }]);
        assert_eq!(t.get(i).unwrap().id, u.get(j).unwrap().id);
        let k = u.stack(vec![Frame { module: ub, offset: 2 }, Frame { module: ua, offset: 1 }]);
        assert_ne!(u.get(j).unwrap().id, u.get(k).unwrap().id);
        assert_eq!(u.adopt(&t, t.get(i).unwrap()), j);
    }

    #[test]
    fn a_stack_is_one_wherever_its_identity_was_made() {
        let mut table = SiteTable::new();
        let module = table.module(Module { path: "/x/a".into(), build_id: "01".into() });
        let frames = |offset| vec![Frame { module, offset }];
        let label = table.label("somewhere");
        let own = table.stack(frames(1));
        let id = table.stack_id(&frames(2));
        let decoded = table.insert(Site { id, frames: frames(2), label: String::new() });
        let other = table.insert(Site { id: 7, frames: frames(3), label: String::new() });
        let named =
            table.insert(Site { id: table.stack_id(&frames(4)), frames: frames(4), label: "x".into() });
        let is_stack = [label, own, decoded, other, named].map(|i| table.is_stack(i.to_usize()));
        assert_eq!(is_stack, [false, true, true, false, false]);
        // Nor does it make tables differ.
        let mut copy = SiteTable::new();
        copy.module(table.modules()[0].clone());
        for s in table.sites() {
            copy.insert(s.clone());
        }
        assert!(copy == table && copy.is_stack(own.to_usize()));
    }

    #[test]
    fn functions_of_python_are_modules() {
        let m = Module::python("/a/b::c.py", "Solver.step.<locals>.<lambda>");
        assert_eq!(python_function(&m.path), Some(("/a/b::c.py", "Solver.step.<locals>.<lambda>")));
        assert_eq!(python_function("/a/python"), None);
    }
}
