//! How far the exact times of a stream expand.

use std::sync::atomic::{AtomicU64, Ordering};

/// Exact times of a stream expand to at most so many bytes, or to [`RATIO`] times what they take, whichever is more.
pub(super) const MEMORY: u64 = 1 << 29;
const RATIO: u64 = 64;

/// What the exact times of a stream take as they are stored, and what they have expanded to so far, in any thread.
#[derive(Debug, Default)]
pub(super) struct Expansion {
    stored: AtomicU64,
    expanded: AtomicU64,
}

impl Expansion {
    /// So many bytes more have been read.
    pub(super) fn read(&self, stored: u64) {
        self.stored.fetch_add(stored, Ordering::Relaxed);
    }

    /// Bytes that have been read.
    pub(super) fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// So many bytes more are there once they are expanded; whether that is within the limit.
    pub(super) fn holds(&self, expanded: u64) -> bool {
        let all = self.expanded.fetch_add(expanded, Ordering::Relaxed).saturating_add(expanded);
        all <= MEMORY.max(self.stored().saturating_mul(RATIO))
    }
}
