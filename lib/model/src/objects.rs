//! Communicators, groups, datatypes, operations, windows, files and texts: how they are named.
//!
//! Each object has a *name*, a 128-bit hash of its content and of the number of equal live copies on the rank, and
//! a *family*, a hash of what created it (function, call site, n-th live object of that creation, n-th content
//! seen there). Names are equal wherever the object is the same thing: all members of a communicator agree on
//! its name without communication, because they agree on the kind of creation, the parent's name, the members
//! and, since creations and releases of equal communicators are ordered alike on all members, on the copy.
//! Families are equal wherever the program text does the same thing: on merging, row communicators of
//! different rows become one entry, and calls on them stay equal between ranks.

mod registry;
mod shared;

pub use registry::{Objects, Registered, Registry};
pub use shared::{SharedObject, Text};

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::calls::names;
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
        if self.kind == names::MPI_Op_create { short(&self.kind, self.digest()) } else { self.kind.clone() }
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
