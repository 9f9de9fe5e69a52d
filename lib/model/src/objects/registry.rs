//! A rank's objects, as its program makes and frees them.

use crate::num::narrow;
use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use xxhash_rust::xxh3::Xxh3;

use super::{Comm, Content, Group, Name, Named, Op, SharedObject, Text, Type, family_of_predefined, name_of};
use crate::calls::{CallId, Object};
use crate::lowest::Lowest;

/// The objects of a rank under construction, by kind.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// Communicators. Register world first (index 0), then self (index 1).
    pub comms: Registry<Comm>,
    /// Groups.
    pub groups: Registry<Group>,
    /// Datatypes.
    pub types: Registry<Type>,
    /// Reduction operations.
    pub ops: Registry<Op>,
    /// Windows.
    pub wins: Registry<SharedObject>,
    /// Files.
    pub files: Registry<SharedObject>,
    /// Texts that calls are given or return.
    pub texts: Registry<Text>,
}

impl Objects {
    /// What the lanes hash for an object: 0 for null, and the complement of the index if it is unknown.
    pub(crate) fn lane_word(&self, object: Object, index: i64) -> u64 {
        match object {
            Object::Comm => self.comms.lane_word(index),
            Object::Group => self.groups.lane_word(index),
            Object::Type => self.types.lane_word(index),
            Object::Op => self.ops.lane_word(index),
            Object::Win => self.wins.lane_word(index),
            Object::File => self.files.lane_word(index),
            Object::Text => self.texts.lane_word(index),
        }
    }

    /// What the lanes hash for each object, in order.
    #[inline]
    pub fn words(&self) -> impl Fn(Object, i64) -> u64 {
        |object, index| self.lane_word(object, index)
    }

    /// Number of objects ever registered. *Cost:* a few loads.
    #[inline]
    pub fn registered(&self) -> usize {
        self.comms.entries.len()
            + self.groups.entries.len()
            + self.types.entries.len()
            + self.ops.entries.len()
            + self.wins.entries.len()
            + self.files.entries.len()
            + self.texts.entries.len()
    }
}

/// One object of a single rank's table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registered<T> {
    /// What made it: equal on all ranks that did the same.
    pub family: u128,
    /// The object.
    pub object: Named<T>,
}

/// Per-rank table under construction: names objects as the program makes and frees them.
///
/// An object that is freed and made again with the same content from the same place takes its old index, so a
/// loop that makes and frees an object stays a loop. *Cost:* O(log live copies) per creation.
#[derive(Clone, Debug)]
pub struct Registry<T> {
    entries: Vec<Registered<T>>,
    /// (family base, name) → index.
    index: HashMap<(u128, Name), usize, FixedState>,
    /// Contents seen per family base.
    seen: HashMap<u128, u32, FixedState>,
    live_copies: HashMap<u128, Lowest, FixedState>,
    live_family: HashMap<u128, Lowest, FixedState>,
    /// Live entries: index → (digest, creation hash, n-th live of that creation).
    live: BTreeMap<usize, (u128, u128, u32)>,
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            index: HashMap::default(),
            seen: HashMap::default(),
            live_copies: HashMap::default(),
            live_family: HashMap::default(),
            live: BTreeMap::new(),
        }
    }
}

impl<T: Content> Registry<T> {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Index of a predefined object (known by its kind alone), added if new. Never freed.
    pub fn predefined(&mut self, content: T) -> i64 {
        let name = content.digest();
        let family = family_of_predefined(&content);
        if let Some(&i) = self.index.get(&(family, name)) {
            return word(i);
        }
        self.live_copies.entry(name).or_default().take_first();
        self.add(family, family, Named { name, copy: 0, content })
    }

    /// Registers an object made by `call` at `site` and returns its index.
    pub fn create(&mut self, call: CallId, site: u128, content: T) -> i64 {
        let digest = content.digest();
        let copy = self.live_copies.entry(digest).or_default().take();
        let name = name_of(digest, copy);

        let mut h = Xxh3::new();
        h.update(&call.0.to_le_bytes());
        h.update(&site.to_le_bytes());
        let creation = h.digest128();
        let nth = self.live_family.entry(creation).or_default().take();
        h.update(&nth.to_le_bytes());
        let base = h.digest128();

        let i = match self.index.get(&(base, name)) {
            Some(&i) => i,
            None => {
                let n = self.seen.entry(base).or_insert(0);
                let mut h = Xxh3::new();
                h.update(&base.to_le_bytes());
                h.update(&n.to_le_bytes());
                *n += 1;
                let family = h.digest128();
                narrow(self.add(base, family, Named { name, copy, content }))
            }
        };
        self.live.insert(i, (digest, creation, nth));
        word(i)
    }

    /// Marks an object as freed. Predefined objects, null and unknown indices are left alone.
    pub fn free(&mut self, index: i64) {
        let Ok(i) = usize::try_from(index) else { return };
        let Some((digest, creation, nth)) = self.live.remove(&i) else { return };
        let copy = self.entries[i].object.copy;
        if let Some(c) = self.live_copies.get_mut(&digest) {
            c.give(copy);
        }
        if let Some(c) = self.live_family.get_mut(&creation) {
            c.give(nth);
        }
    }

    /// The object at an index.
    #[must_use]
    pub fn get(&self, index: i64) -> Option<&Named<T>> {
        self.entries.get(usize::try_from(index).ok()?).map(|e| &e.object)
    }

    /// Adds an object as another registry had it, at the next index. Nothing can be freed or found again here.
    pub fn adopt(&mut self, family: u128, object: Named<T>) -> i64 {
        self.add(family, family, object)
    }

    /// All objects ever registered, by index.
    #[must_use]
    pub fn entries(&self) -> &[Registered<T>] {
        &self.entries
    }

    /// As [`Objects::lane_word`]. Not inlined: few words that change are objects.
    #[inline(never)]
    fn lane_word(&self, index: i64) -> u64 {
        if index < 0 { 0 } else { self.get(index).map_or(!index.unsigned_abs(), Named::lane_word) }
    }

    fn add(&mut self, base: u128, family: u128, object: Named<T>) -> i64 {
        let i = self.entries.len();
        self.index.insert((base, object.name), i);
        self.entries.push(Registered { family, object });
        word(i)
    }
}

fn word(i: usize) -> i64 {
    narrow(i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::RankSeq;

    fn op(kind: &str) -> Op {
        Op { kind: kind.into(), commutes: true }
    }

    #[test]
    fn a_loop_that_makes_and_frees_reuses_its_entry() {
        let mut r = Registry::new();
        let a = r.create(CallId(1), 7, op("x"));
        r.free(a);
        assert_eq!(r.create(CallId(1), 7, op("x")), a);
        let b = r.create(CallId(1), 7, op("x"));
        assert_ne!(a, b);
        assert_eq!(r.get(b).unwrap().copy, 1);
    }

    #[test]
    fn each_ranks_own_communicator_is_of_one_family() {
        let comm = |kind: &str, of: [u32; 1]| Comm {
            kind: kind.into(),
            parent: 0,
            members: RankSeq::from_iter(of),
            remote: RankSeq::default(),
        };
        for (kind, same) in [("MPI_COMM_SELF", true), ("MPI_COMM_WORLD", false)] {
            let (mut r, mut s) = (Registry::new(), Registry::new());
            r.predefined(comm(kind, [1]));
            s.predefined(comm(kind, [2]));
            assert_ne!(r.entries()[0].object.name, s.entries()[0].object.name);
            assert_eq!(r.entries()[0].family == s.entries()[0].family, same, "{kind}");
        }
    }

    #[test]
    fn same_text_same_family_other_content_other_name() {
        let group = |m: u32| Group { members: RankSeq::from_iter([m]) };
        let (mut r, mut s) = (Registry::new(), Registry::new());
        let i = r.create(CallId(1), 7, group(1));
        // An extra object from another place shifts indices, not families.
        s.create(CallId(1), 8, group(9));
        let j = s.create(CallId(1), 7, group(2));
        let (e, f) = (&r.entries()[usize::try_from(i).unwrap()], &s.entries()[usize::try_from(j).unwrap()]);
        assert_eq!(e.family, f.family);
        assert_ne!(e.object.name, f.object.name);
    }
}
