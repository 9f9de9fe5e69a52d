//! The columns of STRUCT.

use st_model::calls::{Lane, Meaning, Slot};

pub(super) const CALL: usize = 0;
pub(super) const SITE: usize = 1;
pub(super) const ERROR: usize = 2;
pub(super) const PARTITION: usize = 3;
pub(super) const NODE: usize = 4;
pub(super) const BELOW: usize = 5;
pub(super) const PRESENT: usize = 6;
pub(super) const SHAPE: usize = 7;
pub(super) const FORM: usize = 8;
/// First of the pairs (heads, values) of streams.
pub(super) const STREAMS: usize = 9;
/// Streams: counts, lengths, then [`role`].
pub(super) const ROLES: usize = 13;
pub(super) const COLUMNS: usize = STREAMS + 2 * ROLES;

pub(super) const COUNTS: usize = 0;
pub(super) const LENGTHS: usize = 1;

/// Column pair of a slot's values: streams of one meaning are alike.
pub(super) fn role(slot: &Slot) -> usize {
    match (slot.meaning, slot.lane) {
        (Meaning::Rank, _) => 2,
        (Meaning::Tag, _) => 3,
        (Meaning::Count, Lane::Count) => 4,
        (Meaning::Count, _) => 5,
        (Meaning::Ref(_), Lane::Count) => 6,
        (Meaning::Ref(_), _) => 7,
        (Meaning::Request | Meaning::Info, _) => 8,
        (Meaning::Position, _) => 9,
        (Meaning::Flag, _) => 10,
        (Meaning::Times, _) => 11,
        (Meaning::Int, _) => 12,
    }
}
