//! Tags that tell apart what is no message between two calls.

/// Tag of the pairs of collective operations, which no message has.
pub(super) const PAIR: i64 = i64::MIN + 1;
/// Tag of posts of windows, which no message has.
pub const POSTED: i64 = i64::MIN + 2;
/// Tag of completed accesses to windows, which no message has.
pub const COMPLETED: i64 = i64::MIN + 3;
