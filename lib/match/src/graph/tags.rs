//! Tags that tell apart what is no message between two calls.

/// Tag of the pairs of collective operations, which no message has.
pub(super) const PAIR: i64 = i64::MIN + 1;
/// Tags of posts and of completions, which no message has.
pub(super) const POSTED: i64 = i64::MIN + 2;
pub(super) const COMPLETED: i64 = i64::MIN + 3;
