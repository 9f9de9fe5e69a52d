//! The kernels on paper, and the program as its users meet it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cli;
mod paper;
