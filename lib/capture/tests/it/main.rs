//! What is recorded, folded and recovered, read back.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod damaged;
mod flat;
mod fold;
mod journal;
mod recorder;
#[path = "../../../stream/tests/it/sections.rs"]
mod sections;
mod shapes;
