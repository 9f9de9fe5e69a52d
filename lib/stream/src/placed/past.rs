//! What the chances of a number depend on: the last ones, and how long ago numbers were long.

use super::super::times::hash;
use st_model::num::Exact as _;

/// Contexts of a number.
pub(in super::super) const CONTEXTS: usize = 2;
/// Rows of chances per context, 2 to the power of: a sixteenth of the events, within these bounds.
const FEWEST: u32 = 6;
const MOST: u32 = 12;
/// No more numbers are counted since a long one.
const LONG_AGO: u64 = 63;

/// Rows of chances per context, of so many events: a power of 2.
pub(in super::super) fn rows(events: u32) -> usize {
    1 << events.max(1).ilog2().saturating_sub(4).clamp(FEWEST, MOST)
}

/// By kind of number, 0 for a gap and 1 for a duration: the leaf of the last one, and how many there were since a long one.
#[derive(Default, Debug)]
pub(in super::super) struct Past {
    last: [u64; 2],
    since: [u64; 2],
}

impl Past {
    /// Contexts of the next number of a kind, hashed: by how long ago numbers were long, and by the last ones.
    #[inline(always)]
    pub(in super::super) fn contexts(&self, kind: usize) -> [u64; CONTEXTS] {
        let [gap, duration] = self.since;
        let (other, same, k) = (self.last[1 - kind], self.last[kind], kind.to_u64());
        [hash(gap | duration << 6 | k << 36, 5), hash(other | same << 12 | gap << 24 | k << 36, 6)]
    }

    /// A number of a kind, by its leaf and whether it is long.
    #[inline(always)]
    pub(in super::super) fn add(&mut self, kind: usize, leaf: usize, long: bool) {
        self.last[kind] = leaf.to_u64();
        self.since[kind] = if long { 0 } else { LONG_AGO.min(self.since[kind] + 1) };
    }
}
