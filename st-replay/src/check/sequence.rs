//! The collective operations of a communicator, in the order in which each of its members must call them.

use std::collections::HashSet;

use st_model::calls::CallId;

use crate::places::PlaceId;

/// One member's collective operations on a communicator, to which the others' are compared.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    pub(super) runs: Vec<(Agreement, u64)>,
    /// The rank that they are of, and whether it is sure that there are no more.
    pub(super) of: u32,
    pub(super) closed: bool,
    /// Ranks that have taken part.
    pub(super) seen: HashSet<u32>,
    /// It is told what is wrong, or it cannot be judged.
    pub(super) done: bool,
}

/// What members agree on, and where they say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Agreement {
    pub(super) function: CallId,
    pub(super) root: Option<(u8, u32)>,
    pub(super) bytes: Option<i64>,
    pub(super) op: Option<u64>,
    pub(super) place: PlaceId,
}

/// How far the rank at hand is in a sequence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    pub(super) run: usize,
    pub(super) within: u64,
    pub(super) total: u64,
    pub(super) thread: usize,
}

impl Sequence {
    /// At the end of a run, to the next one; at the open end of the sequence the cursor stays.
    pub(super) fn advance(&self, cursor: &mut Cursor) {
        let at_end = self.runs.get(cursor.run).is_some_and(|r| cursor.within == r.1);
        if at_end {
            (cursor.run, cursor.within) = (cursor.run + 1, 0);
        }
    }

    /// Where the n-th operation is called.
    pub(super) fn at(&self, n: u64) -> Option<PlaceId> {
        let mut left = n;
        self.runs.iter().find_map(|(a, times)| {
            let here = left < *times;
            left = left.saturating_sub(*times);
            here.then_some(a.place)
        })
    }
}

/// What two members do not agree on.
pub(super) fn differ(a: &Agreement, b: &Agreement) -> Option<String> {
    let both = |x: Option<i64>, y: Option<i64>| x.zip(y).filter(|(x, y)| x != y);
    if a.function != b.function {
        return Some("another function".into());
    }
    if let Some((x, y)) = a.root.zip(b.root).filter(|(x, y)| x != y) {
        return Some(format!("root {} and {}", x.1, y.1));
    }
    if let Some((x, y)) = both(a.bytes, b.bytes) {
        let lists = x.max(y) > 1 << 48;
        return Some(if lists { "other sizes".into() } else { format!("{x} and {y} bytes") });
    }
    a.op.zip(b.op).filter(|(x, y)| x != y).map(|_| "another operation".into())
}
