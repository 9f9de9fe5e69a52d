//! The st trace model and its stream.
//!
//! A trace says what an MPI program did: which calls, in which order, with which parameters, from where, and when.
//! Its size follows the program's structure. The notions, bottom up:
//!
//! * [`calls`]: the call table. What each MPI function's parameters mean.
//! * [`ints`]: integer streams, compressed online; [`tree`] and [`fold`]: the count-stream tree and its folding.
//! * [`section`]: the model, [`form`]: its values as functions of the caller's rank. [`record`] builds it for one rank,
//!   [`project`] reads one rank back, [`check`] proves it.
//! * [`journal`]: what a recorder leaves of a rank whatever ends its process.
//! * [`stream`]: the framed, versioned form; [`text`]: the form for people and for `diff`.
//!
//! The crate knows no stage, opens no path and needs no MPI.

pub mod anonymise;
pub mod calls;
pub mod check;
pub mod columns;
pub mod expr;
pub mod fold;
pub mod form;
pub mod frequencies;
pub mod graph;
pub mod groups;
pub mod header;

pub mod ints;

pub mod journal;
pub mod json;
pub mod lanes;
pub mod lowest;
mod modules;
pub mod names;
pub mod objects;
pub mod project;
pub mod proof;
pub mod rank_times;
pub mod ranklist;
pub mod ranklist_notation;
pub mod ranks;
pub mod record;
pub mod requests;
pub mod section;
pub mod sites;
pub mod sketch;
mod steps;
pub mod stream;

pub mod text;
pub mod tree;
pub mod unite;
pub mod values;
pub mod varint;
pub mod volume;
