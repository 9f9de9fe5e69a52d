//! Programs by chance, and what is found in them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod little_mpi;
mod matching;
mod messages;
#[expect(dead_code, reason = "tests of st-sync use the rest")]
mod program;
mod volume;
mod wildcards;
