//! Calls that others have recorded, as a trace like any other.
//!
//! An [`Importer`] is handed calls one by one, each as the fields of a JSON line ([`json`]), whatever format they are read from. It
//! does what a recorder does inside the program: it numbers objects and requests, folds loops and enters times. What the source
//! does not tell it puts in the simplest way, and counts ([`Importer::finish`]).
//!
//! The crate opens no path. Memory: that of the ranks' recorders, by what ranks do and by the exact times of their calls, which
//! take some bytes each; never more than a small multiple of what has been read.

mod amounts;
mod call;
pub mod dumpi;
mod error;
mod escaped;
mod importer;
pub mod json;
mod left;
mod numbers;
mod objects;
mod own;
mod partners;
mod predefined;
mod rank;
mod requests;
mod shape;
mod words;

pub use call::{Call, Site, Stop};
pub use error::Error;
pub use importer::Importer;
pub use left::Left;
pub use objects::Definition;
