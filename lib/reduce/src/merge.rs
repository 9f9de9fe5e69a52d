//! Merges the traces of many ranks into one.
//!
//! Control is aligned into an elastic master tree: lists of events and bodies by their longest common subsequence,
//! whatever loops they lie in; what a rank does not execute has count 0 there. Where that takes more bytes than what ranks
//! execute does when it stands side by side, it stands side by side at the end ([`Layout`]). Parameters lie beside the
//! tree and are merged per (symbol, slot): ranks with equal streams form a class, peers, tags, counts and colours in the
//! symbolic form that leaves the fewest and shortest streams (counts also as products of block sizes). Nothing is dropped
//! unless asked for: reading a rank back from the merged trace gives its calls.
//!
//! Source: Wu, Mueller 2013, section 3.4 (loop-agnostic inter-node merge) and 3.1 (elastic data elements), in the
//! representation that a count-stream tree allows: an absent event is a count of zero, so ranklists are the classes of
//! its count stream. We differ in that parameters never take part in the alignment.

pub mod align;
pub mod alike;
mod callers;
mod error;
mod factor;
mod infer;
mod layout;
mod lists;
pub mod master;
mod merger;
mod merging;
mod params;
mod predicted;
mod products;
mod renumber;
mod siblings;
mod slots;
mod tags;
mod turns;

/// Who hears how much more is done, from several threads.
pub type Tell<'a> = &'a (dyn Fn(u64) + Sync);

pub use alike::Alike;
pub use error::Error;
pub use layout::Layout;
pub use merger::{Merger, merge};
pub use merging::Merging;
