//! Ranks that are put together, and each read back.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod budget;
mod common;
mod coordinates;
mod damage;
mod distributions;
mod exchanges;
mod kernels;
mod loops;
mod partition;
mod products;
mod projection;
mod rank_sums;
mod receives;
mod requests;
mod tags;
mod tree;
mod user;
