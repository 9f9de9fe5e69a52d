//! What is found out about traces without MPI.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod check;
mod cli;
mod cut;
mod imbalance;
mod sampled_messages;
mod script;
mod simulator;
