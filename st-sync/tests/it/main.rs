//! The program, and the logical clock, from outside.
#![expect(clippy::unwrap_used, clippy::needless_range_loop, reason = "tests; indices are ranks and points")]

mod author;
mod clc;
mod cli;
mod clocks;
mod drift;
mod malformed;
mod matching;
#[path = "../../../lib/match/tests/it/program.rs"]
mod program;
mod script;
mod shared;
mod simulated;
mod sketches;
mod stated;
