//! Puts ranks that behave alike into clusters: the program over [`st_reduce::cluster`].

pub mod args;
mod run;
mod table;

pub use run::{NAME, main, run, run_in};
