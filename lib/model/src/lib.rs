//! The trace model: what an MPI program did, which calls, in which order, with which parameters, from where, and when.
//!
//! A trace's size follows the program's structure. The notions, bottom up:
//!
//! * [`calls`]: the call table. What each MPI function's parameters mean.
//! * [`ints`]: integer streams, compressed online; [`tree`]: the count-stream tree.
//! * [`section`]: the model, [`form`]: its values as functions of the caller's rank. [`event`] reads one rank's calls with what
//!   they mean, and is where a program that reads traces begins; [`project`] is below it and has words alone, [`folded`] the calls
//!   without their order, [`check`] proves them.
//! * [`sites`] and [`names`]: where calls are made from, and what that is called: [`sites::CallSites`], as programs print it.
//!
//! What builds a rank's trace is `st_capture`, its form on disk `st_stream`, who meets whom `st_match`. The crate knows no
//! stage, opens no path and needs no MPI.

pub mod anew;
pub mod anonymise;
pub mod calls;
pub mod check;
pub mod columns;
pub mod event;
pub mod explanation;
pub mod expr;
pub mod folded;
pub mod form;
pub mod frequencies;
pub mod groups;
pub mod header;
pub mod ints;
pub mod lanes;
pub mod lead;
pub mod lowest;
mod modules;
pub mod names;
pub mod num;
pub mod objects;
pub mod paused;
pub mod project;
pub mod proof;
pub mod quantity;
pub mod rank_times;
pub mod ranklist;
pub mod ranklist_notation;
pub mod ranks;
pub mod requests;
pub mod section;
pub mod sites;
pub mod sketch;
pub mod slow;
pub mod spread;
pub mod steps;
pub mod tree;
pub mod unite;
pub mod unknown_order;
pub mod values;
pub mod varint;
