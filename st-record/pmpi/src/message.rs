//! The few lines that the recorder prints.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

/// World rank; `u32::MAX` while unknown.
static RANK: AtomicU32 = AtomicU32::new(u32::MAX);

/// Prints `st-record: text` on standard error.
pub(crate) fn say(text: &str) {
    // One write, so that lines of many ranks do not mix. A closed standard error must not stop the program.
    let _ = std::io::stderr().write_all(format!("st-record: {text}\n").as_bytes());
}

/// This is the rank that [`warn`] speaks of from now on.
pub(crate) fn set_rank(rank: u32) {
    RANK.store(rank, Ordering::Relaxed);
}

/// Says something of this rank.
pub(crate) fn warn(what: &str) {
    let rank = match RANK.load(Ordering::Relaxed) {
        u32::MAX => String::new(),
        r => format!("rank {r}: "),
    };
    say(&format!("{rank}{what}"));
}
