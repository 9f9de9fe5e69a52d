//! Streams, as bytes, text and JSON: what is written is read.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod derived;
mod full;
mod json;
mod sections;
mod stream;
mod text;
mod waits;
mod whole;
mod words;
