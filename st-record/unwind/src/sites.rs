//! The process's table of call sites and of the modules that their frames lie in.

use std::collections::HashMap;
use std::sync::Arc;

/// Number of a call site in its [`SiteInterner`]: dense, from 0, in order of first appearance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SiteId(pub u32);

/// A return address in a module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SiteFrame {
    /// Index into [`SiteInterner::modules`].
    pub module: u32,
    /// Return address minus the module's load bias; 0 in code that belongs to no module.
    pub offset: u64,
}

/// A call site: its frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SiteRecord {
    /// Frames, innermost (the caller of the MPI function) first, recursion kept. Empty if the stack could not be
    /// read at all.
    pub frames: Arc<[SiteFrame]>,
}

/// An executable or shared library that frames lie in.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ModuleRecord {
    /// Path as the loader knew it, absolute; `[unknown]` for code in no module (generated at run time).
    pub path: String,
    /// GNU build-id in hexadecimal; empty if the module has none.
    pub build_id: String,
}

/// Gives equal stacks equal numbers. One per process, shared by its threads' unwinders behind a mutex that is
/// taken only when a thread meets a stack for the first time.
#[derive(Debug, Default)]
pub struct SiteInterner {
    modules: Vec<ModuleRecord>,
    by_module: HashMap<ModuleRecord, u32>,
    sites: Vec<SiteRecord>,
    by_frames: HashMap<Arc<[SiteFrame]>, SiteId, foldhash::fast::FixedState>,
}

impl SiteInterner {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// All sites, by [`SiteId`].
    #[must_use]
    pub fn sites(&self) -> &[SiteRecord] {
        &self.sites
    }
    /// The modules that frames refer to, in order of first appearance.
    #[must_use]
    pub fn modules(&self) -> &[ModuleRecord] {
        &self.modules
    }
    /// Index of a module, added if new. A library closed and opened again, elsewhere, is the same module.
    pub fn module(&mut self, record: &ModuleRecord) -> u32 {
        if let Some(&i) = self.by_module.get(record) {
            return i;
        }
        let i = dense(self.modules.len());
        self.modules.push(record.clone());
        self.by_module.insert(record.clone(), i);
        i
    }
    /// Number of the site with these frames, added if new.
    pub fn intern(&mut self, frames: &[SiteFrame]) -> SiteId {
        if let Some(&id) = self.by_frames.get(frames) {
            return id;
        }
        let id = SiteId(dense(self.sites.len()));
        let frames: Arc<[SiteFrame]> = frames.into();
        self.sites.push(SiteRecord { frames: Arc::clone(&frames) });
        self.by_frames.insert(frames, id);
        id
    }
}

/// Index as `u32`; memory ends long before the type does.
fn dense(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_share_a_number_and_reopened_modules_an_index() {
        let mut table = SiteInterner::new();
        let app = ModuleRecord { path: "/bin/app".into(), build_id: "ab".into() };
        let lib = ModuleRecord { path: "/lib/x.so".into(), build_id: String::new() };
        let (a, b) = (table.module(&app), table.module(&lib));
        assert_eq!((a, b, table.module(&app)), (0, 1, 0));
        let one = [SiteFrame { module: a, offset: 16 }, SiteFrame { module: b, offset: 8 }];
        let two = [SiteFrame { module: a, offset: 16 }, SiteFrame { module: a, offset: 8 }];
        assert_eq!(table.intern(&one), SiteId(0));
        assert_eq!(table.intern(&two), SiteId(1));
        assert_eq!(table.intern(&one), SiteId(0));
        assert_eq!(&*table.sites()[1].frames, &two);
        assert_eq!(table.modules(), &[app, lib]);
    }
}
