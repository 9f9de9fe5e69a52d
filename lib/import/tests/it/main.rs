//! What others have recorded, read.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod dumpi;
mod json;
mod lines;
mod wrong;
