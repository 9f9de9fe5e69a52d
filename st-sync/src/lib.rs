//! Corrects the clocks of a trace.
//!
//! Ranks on different nodes read different clocks, so that messages seem to arrive before they were sent. Three methods, one
//! after the other: [`offsets`] interpolates between measured offsets to rank 0, `clocks` follows clocks by what messages
//! allow, and [`clc`] moves what still contradicts the messages, which [`st_match::graph`] finds in the streams themselves.
//!
//! All of it is done by one process, or by several that share the ranks ([`team`]). What links MPI to that end is the
//! crate `st-engine`.

pub mod args;
mod bounds;
pub mod clc;
mod clocks;
mod lags;
pub mod offsets;
mod pack;
mod passes;
mod plot;
mod report;
mod run;
mod share;
mod survey;
mod surveyed;
mod taut_string;
pub mod team;
mod trace;
mod write;

pub use run::{NAME, main, run, run_in};
