//! Replay of recorded MPI programs.
//!
//! This crate is the part without MPI: the command line, what is checked before the start ([`preflight`]), the launch
//! ([`launch`]), and what the engine asks while it interprets a rank's calls: their words ([`words`]), the outcome of
//! receives that lie ahead ([`lookahead`]) and the time between calls ([`pace`]). The engine itself, which links MPI,
//! is the crate `st-replay-engine`.

pub mod args;
pub mod check;
pub mod cut;
pub mod deeds;
pub mod factor;
pub mod groups;
pub mod launch;
pub mod load;
pub mod lookahead;
pub mod pace;
pub mod parts;
pub mod places;
pub mod preflight;
pub mod probable;
pub mod scaling;
pub mod watchdog;
pub mod whatif;
pub mod words;

/// Name of the program in messages.
pub const TOOL: &str = "st-replay";
