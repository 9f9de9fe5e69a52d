//! What others have written, as a trace: each format is a module with its `SOURCE`, which hands calls to `st_import`.

mod dumpi;
mod formats;
mod json;
mod otf2;
mod run;
mod source;

pub(crate) use formats::{ENDING, ST, names};
pub(crate) use run::{Task, is_wanted, run};
