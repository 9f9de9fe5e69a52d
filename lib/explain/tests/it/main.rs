//! Programs on a parallel machine in memory, and what is found in them.
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

mod causes;
mod kept;
mod leads;
mod noise;
mod planted;
mod predict;
mod reasons;
mod room;
mod simulator;
mod waits;
