//! MPI mini-programs, written once over a small [`Communicator`] trait.
//!
//! The trait has two implementations. The real one (in the crate `st-engine`) makes each call exactly once through MPI;
//! the one on [`paper`] only logs what the calls would be, for any rank of any number of ranks, without MPI. A
//! kernel decides nothing from message content or time, so the two agree call by call; what it would learn from
//! other ranks it states as a forecast, which the real communicator ignores. The exception is `workers`, whose
//! master takes messages in the order they come: its trace on paper is one order of many.
//!
//! Every kernel also computes: buffers are filled and digested, so that the checksum at the end shows whether all
//! messages arrived where they should.

mod args;
mod chance;
mod communicator;
mod grid;
mod job;
mod kernel;
mod kernels;
mod launch;
pub mod paper;
mod program;

pub use args::{Args, Options, PaperArgs, Slow, SlowRanks};
pub use chance::{Digest, content, draw};
pub use communicator::{
    ANY_SOURCE, ANY_TAG, Arrival, Communicator, Envelope, Kind, Op, Part, Receive, nested,
};
pub use job::{Job, Unfit};
pub use kernel::Kernel;
pub use launch::main;
pub use program::{Outcome, execute};
