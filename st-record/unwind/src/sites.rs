//! The process's table of call sites and of the modules that their frames lie in.

use std::collections::HashMap;

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
    pub frames: Box<[SiteFrame]>,
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
    /// First site by hash, a power of two of them or none; and of each site its hash, and the next one of those that share a place.
    heads: Vec<u32>,
    links: Vec<(u32, u32)>,
}

const FIRST_HEADS: usize = 256;
const NONE: u32 = u32::MAX;

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
    /// Number of the site with these frames, added if new. *Cost:* they are hashed once, also when the table grows.
    pub fn intern(&mut self, frames: &[SiteFrame]) -> SiteId {
        let hash = hash_of(frames);
        let mut at = self.head(hash).map_or(NONE, |head| self.heads[head]);
        while let Some((index, &(own, next))) = place(at).and_then(|i| Some((i, self.links.get(i)?))) {
            if own == hash && self.sites.get(index).is_some_and(|site| *site.frames == *frames) {
                return SiteId(at);
            }
            at = next;
        }
        if self.sites.len() >= self.heads.len() {
            self.grow();
        }
        let id = SiteId(dense(self.sites.len()));
        self.sites.push(SiteRecord { frames: frames.into() });
        self.link(hash, id.0);
        id
    }
    /// The place of a hash, once there are any.
    fn head(&self, hash: u32) -> Option<usize> {
        self.heads.len().checked_sub(1).map(|mask| place(hash).unwrap_or_default() & mask)
    }
    /// Puts the next site first at its place.
    fn link(&mut self, hash: u32, id: u32) {
        let next = self.head(hash).map_or(NONE, |head| std::mem::replace(&mut self.heads[head], id));
        self.links.push((hash, next));
    }
    fn grow(&mut self) {
        self.heads = vec![NONE; (2 * self.heads.len()).max(FIRST_HEADS)];
        for (id, (hash, _)) in (0..).zip(std::mem::take(&mut self.links)) {
            self.link(hash, id);
        }
    }
}

/// A hash of frames, in which each counts as much as the others.
fn hash_of(frames: &[SiteFrame]) -> u32 {
    let add = |hash: u64, frame: &SiteFrame| {
        let word = frame.offset ^ u64::from(frame.module).rotate_left(48);
        (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    let [.., a, b, c, d] = frames.iter().fold(0, add).to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// As an index.
fn place(number: u32) -> Option<usize> {
    usize::try_from(number).ok()
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

    #[test]
    fn many_stacks_keep_their_numbers_while_the_table_grows() {
        let mut table = SiteInterner::new();
        let stack = |n: u32| -> Vec<SiteFrame> {
            (0..n % 7).map(|i| SiteFrame { module: i % 2, offset: (n / 7 * i).into() }).collect()
        };
        let mut known: HashMap<Vec<SiteFrame>, SiteId> = HashMap::new();
        for n in 0..20_000 {
            let next = SiteId(dense(known.len()));
            let id = *known.entry(stack(n)).or_insert(next);
            assert_eq!(table.intern(&stack(n)), id, "{n}");
            assert_eq!(*table.sites()[place(id.0).unwrap()].frames, stack(n));
        }
        assert_eq!(table.sites().len(), known.len());
        assert!(known.iter().all(|(frames, id)| table.intern(frames) == *id));
    }
}
