//! Corrects the clocks of a trace.
//!
//! Ranks on different nodes read different clocks, so that messages seem to arrive before they were sent. Two methods, one
//! after the other: [`offsets`] interpolates between measured offsets to rank 0, and [`clc`] moves what still
//! contradicts the messages, which [`st_trace::graph`] finds in the streams themselves.

pub mod args;
pub mod clc;
pub mod offsets;
mod plot;
mod report;
mod run;
pub mod team;
mod trace;

pub use run::run;
