//! What is written for others and read from them, compared with the trace.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
mod cube;
mod damaged;
mod import;
mod levels;
mod otf2;
mod otf2_import;
mod paraver;
mod phases;
mod profiles;
mod round;
mod simulators;
mod source;
mod strict;
mod tables;
mod told;
mod viewers;
mod wire;
