//! Writing traces in the formats of other tools, and reading what these have written (`import`).
//!
//! `walk` goes over the calls of all threads in the order of their times and hands each, with what it does with
//! others, to a `Format`, and each message once both of its ends are known. A format is a module in
//! `formats/` and its name in the list there.
//!
//! Other programs ask a [`Source`] for the tables that CSV and Parquet consist of.
//!
//! Memory: the trace as it is stored, and what is under way; not by its number of calls.

mod alike;
mod amounts;
pub mod args;
mod choice;
mod directory;
mod exchanges;
mod format;
mod formats;
mod frames;
mod groups;
mod import;
mod input;
mod level;
mod losses;
mod matters;
mod message;
mod numbering;
mod otf2;
mod phase;
mod phases;
mod profile;
mod requests;
mod run;
mod script;
mod selection;
mod series;
mod source;
mod strangers;
pub mod tables;
mod thread;
mod trace;
mod waits;
mod walk;
mod way;
mod window;
mod words;

pub use input::Input;
pub use level::Level;
pub use run::{main, run};
pub use selection::{Called, Selection};
pub use source::Source;
pub use walk::Tell;

/// Name of the program in what it says.
pub(crate) const NAME: &str = "st-convert";
