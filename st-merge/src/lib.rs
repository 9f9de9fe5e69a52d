//! Merges the traces of many ranks into one: the program over [`st_reduce::merge`].

pub mod args;
mod run;

pub use run::{NAME, main, run, run_in};
