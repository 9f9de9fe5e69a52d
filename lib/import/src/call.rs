//! A call as a source tells it.

use serde_json::{Map, Value};

/// Where a call is made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Site<'a> {
    /// A call site that was [added](crate::Importer::site), by the number that the source has for it.
    Number(u32),
    /// A text, as `solver.c:12`; callers behind ` < `.
    Text(&'a str),
    /// Not told.
    Unknown,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// World rank.
    pub rank: u32,
    /// Whatever number the source has for its thread.
    pub thread: u64,
    /// The function.
    pub name: &'a str,
    /// Where it is called.
    pub site: Site<'a>,
    /// Error class, 0 for success.
    pub error: u32,
    /// Enter and exit, ns, if they are known.
    pub times: Option<(i64, i64)>,
    /// Parameters by the names of the call table, as [`crate::json`] has them.
    pub parameters: &'a Map<String, Value>,
    /// The source may lack parameters that a call must have: ranks, communicators and requests are null then. A name of a request is
    /// its rank's, not its thread's, of whose threads calls come in the order of their times if one completes what another has begun.
    pub partial: bool,
}

/// Where a thread stopped, of a rank that did not come to its end.
#[derive(Clone, Copy, Debug)]
pub struct Stop<'a> {
    /// World rank.
    pub rank: u32,
    /// Whatever number the source has for its thread.
    pub thread: u64,
    /// The function that it was in, from where that was called, and when, ns; `None` if it was in none.
    pub inside: Option<(&'a str, Site<'a>, i64)>,
}
