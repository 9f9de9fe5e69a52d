//! What every st program shares: exit status, opening and renaming, common options, talk on standard
//! error, and what the launcher of an MPI job says.
//!
//! A program's `main` parses, runs and reports, and nothing else:
//!
//! ```no_run
//! # fn run() -> anyhow::Result<st_cli::Status> { Ok(st_cli::Status::Ok) }
//! fn main() -> std::process::ExitCode {
//!     st_cli::report("st-merge", run())
//! }
//! ```
//!
//! Data goes to standard output, talk to standard error. The option groups in [`options`] are small on purpose:
//! a program flattens those that it honours, so that no option is accepted and ignored.

mod batches;
pub mod engine;
mod help;
mod identity;
mod input;
mod memory;
mod mpi;
pub mod options;
mod output;
mod progress;
pub mod quantity;
pub mod recording;
mod roll;
mod screen;
mod share;
mod signals;
mod status;
mod stdout;
mod symbols;
mod temporary;
mod traces;
pub mod transport;
mod units;

pub use batches::{Batch, each_batch};
pub use identity::is_same_file;
pub use input::{Input, expand, reads, streams_in};
pub use memory::{ByName, Memory};
pub use mpi::{Launch, Mpi, find_common, find_common_for};
pub use output::{Destination, Finished, Output, free_name, refuse_terminal};
pub use progress::{Amount, Progress};
pub use roll::Roll;
pub use screen::{Screen, counted, grouped, typed, wrapped};
pub use share::Share;
pub use status::{
    Elsewhere, FailedCheck, InvalidStream, Status, UsageError, line_and_code, reader_left, report,
};
pub use symbols::{Symbols, call_sites};
pub use temporary::directory_goes_before_end;
pub use traces::{Whole, each_section, each_section_of, each_stored_of, step};
pub use units::{bytes, duration};
