//! What the members of a communicator make together, and texts that calls hold.

use xxhash_rust::xxh3::Xxh3;

use super::{Content, Name, short};
use crate::ranks::RankSeq;

/// A window or an open file.
///
/// Its members agree on its name without communication: they made it together from one communicator, and its copies are
/// counted in the order in which that communicator's members make and free them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedObject {
    /// The function that made it (`MPI_Win_create`, `MPI_File_open`).
    pub kind: String,
    /// Name of the communicator that it was made on; 0 if that is not known.
    pub comm: Name,
    /// World ranks of the members, in the order that ranks in calls refer to.
    pub members: RankSeq,
}

impl Content for SharedObject {
    fn digest(&self) -> u128 {
        let mut h = Xxh3::new();
        h.update(self.kind.as_bytes());
        h.update(&self.comm.to_le_bytes());
        self.members.hash_into(&mut h);
        h.digest128()
    }
    fn label(&self) -> String {
        short(&self.kind, self.digest())
    }
}

/// A text that a call was given or has returned: a file's name, the key or value of a hint.
///
/// A text has no life of its own: it is registered and freed at once, so that equal texts from one place have one entry,
/// and different texts that the ranks give in one place (a file per rank) have one family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text(pub String);

impl Content for Text {
    fn digest(&self) -> u128 {
        let mut h = Xxh3::new();
        h.update(b"text");
        h.update(self.0.as_bytes());
        h.digest128()
    }
    fn label(&self) -> String {
        self.0.clone()
    }
}
