//! Properties of the trace and its parts.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod ints;
mod proof;
mod quantiles;
mod rank_times;
mod seek;
mod standard;
mod steps;
