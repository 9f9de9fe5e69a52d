//! Replay of recorded MPI programs.
//!
//! This crate is the part without MPI: the command line, what is checked before the start ([`preflight`]), the launch
//! ([`launch`]), and what the engine asks while it interprets a rank's calls: their words ([`words`]), what dynamic
//! windows are for ([`dynamic`]), requests that are not there ([`unstarted`]), what threads wait for ([`threads`]) and the time between calls ([`pace`], [`drawn`], [`order`], [`coupling`]), and
//! how far it has come ([`progress`]), and at the end what it came to ([`outcome`]). The engine itself, which links MPI,
//! is the crate `st-engine`.

pub mod args;
pub mod check;
pub mod classes;
pub mod coupling;
pub mod cut;
pub mod drawn;
pub mod dynamic;
pub mod factor;
pub mod groups;
pub mod launch;
pub mod load;
pub mod operations;
pub mod order;
pub mod outcome;
pub mod pace;
pub mod places;
pub mod preflight;
pub mod progress;
pub mod sampled_messages;
pub mod scaling;
pub mod supported;
pub mod threads;
pub mod unstarted;
pub mod watchdog;
pub mod whatif;
pub mod words;

pub use launch::main;

/// Name of the program in messages.
pub const TOOL: &str = "st-replay";
