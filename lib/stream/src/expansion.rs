//! How far the exact times of a stream expand, and how long that may take.

use std::sync::atomic::{AtomicU64, Ordering};

/// Exact times of a stream expand to at most so many bytes, or to [`RATIO`] times what they take, whichever is more.
pub(super) const MEMORY: u64 = 1 << 29;
const RATIO: u64 = 64;

/// Bits of exact times that are coded by their chances, of which a million take some 7.5 ms: a stream has at most so many, and so many
/// for each byte that they take beside these. A bit that is nearly certain takes 1/2800 of a bit, so that a few bytes could
/// ask for any number; of times that were measured there are fewer than 16 to a byte.
pub(super) const ASKED: u64 = 1 << 28;
pub(super) const ASKED_EACH: u64 = 128;

/// Bits that times which take so many bytes may ask for.
pub(super) fn may_ask(stored: u64) -> u64 {
    ASKED.saturating_add(stored.saturating_mul(ASKED_EACH))
}

/// What the exact times of a stream take as they are stored, and what they have expanded to and asked so far, in any thread.
#[derive(Debug, Default)]
pub(super) struct Expansion {
    stored: AtomicU64,
    expanded: AtomicU64,
    asked: AtomicU64,
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

    /// So many bits more were coded by their chances; whether that is within the limit.
    pub(super) fn asks(&self, bits: u64) -> bool {
        let all = self.asked.fetch_add(bits, Ordering::Relaxed).saturating_add(bits);
        all <= may_ask(self.stored())
    }

    /// So many bytes more are there once they are expanded; whether that is within the limit.
    pub(super) fn holds(&self, expanded: u64) -> bool {
        let all = self.expanded.fetch_add(expanded, Ordering::Relaxed).saturating_add(expanded);
        all <= MEMORY.max(self.stored().saturating_mul(RATIO))
    }
}
