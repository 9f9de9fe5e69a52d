//! Times at places that one thread writes, and others read when all have been written.

use std::sync::atomic::{AtomicI64, Ordering};

/// The time of what has not happened.
pub(super) const NEVER: i64 = i64::MIN;

/// Each place is written by one stream, and read when all streams have been read.
pub(super) fn set(places: &[AtomicI64], place: usize, t: i64) {
    places[place].store(t, Ordering::Relaxed);
}

pub(super) fn get(places: &[AtomicI64], place: usize) -> Option<i64> {
    Some(places[place].load(Ordering::Relaxed)).filter(|t| *t != NEVER)
}
