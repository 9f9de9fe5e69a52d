//! Communicators, groups, datatypes, operations, windows, files and texts: how they are named.
//!
//! Each object has a *name*, a 128-bit hash of its content and of the number of equal live copies on the rank, and
//! a *family*, a hash of what created it (function, call site, n-th live object of that creation, n-th content
//! seen there). Names are equal wherever the object is the same thing: all members of a communicator agree on
//! its name without communication, because they agree on the kind of creation, the parent's name, the members
//! and, since creations and releases of equal communicators are ordered alike on all members, on the copy.
//! Families are equal wherever the program text does the same thing: on merging, row communicators of
//! different rows become one entry, and calls on them stay equal between ranks.

mod joint;

pub use joint::{Joint, Text};

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::FixedState;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::calls::CallId;
use crate::ranks::RankSeq;

/// 128-bit identity of an object.
pub type Name = u128;

/// What an object of a kind is made of.
pub trait Content {
    /// Hash of everything that makes two objects the same thing.
    fn digest(&self) -> u128;
    /// Name for people, without the number of the copy: `MPI_INT`, `MPI_Comm_split-1a2b3c4d`.
    fn label(&self) -> String;
    /// Of a predefined object, what its family is made of: equal on all ranks, though the object may not be.
    fn origin(&self) -> u128 {
        self.digest()
    }
}

/// A communicator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Comm {
    /// `MPI_COMM_WORLD`, `MPI_COMM_SELF`, or the function that made it.
    pub kind: String,
    /// Name of the communicator that it was made from; 0 for world and self.
    pub parent: Name,
    /// World ranks of the members (local group), in rank order.
    pub members: RankSeq,
    /// World ranks of the remote group; empty for an intracommunicator.
    pub remote: RankSeq,
}

impl Comm {
    /// The group that ranks in calls on this communicator refer to.
    #[must_use]
    pub fn peers(&self) -> &RankSeq {
        if self.remote.is_empty() { &self.members } else { &self.remote }
    }
}

impl Content for Comm {
    fn digest(&self) -> u128 {
        let mut h = Xxh3::new();
        h.update(self.kind.as_bytes());
        h.update(&self.parent.to_le_bytes());
        // Both sides of an intercommunicator agree: the group with the lower first rank goes first.
        let (a, b) = if !self.remote.is_empty() && self.remote.get(0) < self.members.get(0) {
            (&self.remote, &self.members)
        } else {
            (&self.members, &self.remote)
        };
        for g in [a, b] {
            g.hash_into(&mut h);
        }
        h.digest128()
    }
    fn label(&self) -> String {
        if self.parent == 0 { self.kind.clone() } else { short(&self.kind, self.digest()) }
    }
    fn origin(&self) -> u128 {
        // One on each rank, and the same thing to the program's text.
        if self.kind == "MPI_COMM_SELF" { xxh3_128(self.kind.as_bytes()) } else { self.digest() }
    }
}

/// A group of processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// World ranks, in group order.
    pub members: RankSeq,
}

impl Content for Group {
    fn digest(&self) -> u128 {
        let mut h = Xxh3::new();
        h.update(b"group");
        self.members.hash_into(&mut h);
        h.digest128()
    }
    fn label(&self) -> String {
        if self.members.is_empty() { "MPI_GROUP_EMPTY".into() } else { short("group", self.digest()) }
    }
}

/// A datatype.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Type {
    /// Predefined name (`MPI_INT`), or the constructor.
    pub kind: String,
    /// The constructor's integer words (as in its call's slots), and the names of the types it is made of; empty for
    /// a predefined type.
    pub words: Vec<i64>,
    /// Names of the types that it is made of.
    pub parts: Vec<Name>,
    /// Bytes of data in one element.
    pub size: i64,
    /// Lower bound in bytes.
    pub lb: i64,
    /// Extent in bytes.
    pub extent: i64,
}

impl Content for Type {
    fn digest(&self) -> u128 {
        let mut h = Xxh3::new();
        h.update(self.kind.as_bytes());
        for w in &self.words {
            h.update(&w.to_le_bytes());
        }
        for p in &self.parts {
            h.update(&p.to_le_bytes());
        }
        h.digest128()
    }
    fn label(&self) -> String {
        if self.parts.is_empty() { self.kind.clone() } else { short(&self.kind, self.digest()) }
    }
}

/// A reduction operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Op {
    /// Predefined name (`MPI_SUM`), or `MPI_Op_create`.
    pub kind: String,
    /// Whether it commutes.
    pub commutes: bool,
}

impl Content for Op {
    fn digest(&self) -> u128 {
        let mut h = Xxh3::new();
        h.update(self.kind.as_bytes());
        h.update(&[u8::from(self.commutes)]);
        h.digest128()
    }
    fn label(&self) -> String {
        // User operations differ by more than the function that made them.
        if self.kind == "MPI_Op_create" { short(&self.kind, self.digest()) } else { self.kind.clone() }
    }
}

/// `kind-xxxxxxxx` from the digest's first four bytes.
fn short(kind: &str, digest: u128) -> String {
    format!("{kind}-{:08x}", digest >> 96)
}

/// An object with its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named<T> {
    /// Identity: hash of content and copy.
    pub name: Name,
    /// Number of equal live objects on the rank when it was made.
    pub copy: u32,
    /// What it is.
    pub content: T,
}

impl<T: Content> Named<T> {
    /// Name for people; a copy adds `#n`.
    pub fn label(&self) -> String {
        let l = self.content.label();
        if self.copy == 0 { l } else { format!("{l}#{}", self.copy) }
    }
    /// The word that proof lanes hash for this object: the low half of its name.
    #[expect(clippy::cast_possible_truncation, reason = "the low half of a hash")]
    pub fn lane_word(&self) -> u64 {
        self.name as u64
    }
}

/// Name of the `copy`-th live object with this digest.
#[must_use]
pub fn name_of(digest: u128, copy: u32) -> Name {
    if copy == 0 {
        return digest;
    }
    let mut h = Xxh3::new();
    h.update(&digest.to_le_bytes());
    h.update(&copy.to_le_bytes());
    h.digest128()
}

/// Family of a predefined object, which nothing made.
#[must_use]
pub fn family_of_predefined(content: &impl Content) -> u128 {
    xxh3_128(&content.origin().to_le_bytes())
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
    live_copies: HashMap<u128, BTreeSet<u32>, FixedState>,
    live_family: HashMap<u128, BTreeSet<u32>, FixedState>,
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
        self.live_copies.entry(name).or_default().insert(0);
        self.add(family, family, Named { name, copy: 0, content })
    }

    /// Registers an object made by `call` at `site` and returns its index.
    pub fn create(&mut self, call: CallId, site: u128, content: T) -> i64 {
        let digest = content.digest();
        let copies = self.live_copies.entry(digest).or_default();
        let copy = lowest_free(copies);
        copies.insert(copy);
        let name = name_of(digest, copy);

        let mut h = Xxh3::new();
        h.update(&call.0.to_le_bytes());
        h.update(&site.to_le_bytes());
        let creation = h.digest128();
        let live = self.live_family.entry(creation).or_default();
        let nth = lowest_free(live);
        live.insert(nth);
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
                usize::try_from(self.add(base, family, Named { name, copy, content })).unwrap_or(usize::MAX)
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
            c.remove(&copy);
        }
        if let Some(c) = self.live_family.get_mut(&creation) {
            c.remove(&nth);
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

    fn add(&mut self, base: u128, family: u128, object: Named<T>) -> i64 {
        let i = self.entries.len();
        self.index.insert((base, object.name), i);
        self.entries.push(Registered { family, object });
        word(i)
    }
}

fn lowest_free(used: &BTreeSet<u32>) -> u32 {
    // The set is dense from 0 in all but odd orders of release, so the first gap is near the front.
    let mut n = 0;
    for &u in used {
        if u != n {
            break;
        }
        n += 1;
    }
    n
}

fn word(i: usize) -> i64 {
    i64::try_from(i).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

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
