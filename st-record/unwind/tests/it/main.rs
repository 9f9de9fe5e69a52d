//! The walker beside the C runtime's unwinder, and in a library of a C program.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod against_backtrace;
mod in_a_library;
#[expect(unsafe_code, reason = "opens a library of C")]
mod native;
