//! The text form: a faithful dump of a trace, one thing a line, stable and made for `diff`; and its reader.
//!
//! [`write()`] and [`parse()`] mirror each other: parsing what was written gives an equal trace. Lines that begin with `#` are
//! for people and are not read: they hold the papers' leaf list of each tree (see [`flat`]).
//!
//! ```text
//! st 1.0 level 19
//! header {"world":4, …}
//! step {"tool":"st-record", …}
//! section <1 0 4 1>
//!  host "node1" <1 0 4 1>
//!  module "/home/me/app" "1a2b…"
//!  site 8d0c… 0+0x11e9 0+0x1207            identity; module+offset, innermost first
//!  comm 77aa…                              family, then the object on each set of ranks
//!   on <1 0 4 1> 99e2… 0 "MPI_COMM_WORLD" 0 [0:1:4] []
//!  symbol MPI_Send site 0 error 0
//!  partition <1 0 4 1>                     classes, separated by |
//!  thread <1 0 4 1>
//!   lanes 40 0 5f1e… … …                   calls, voided lanes as bits, hashes
//!   loop P0 10 @<1 0 4 1>                  counts per visit of the parent, as ⟨values @ranks⟩ pairs
//!     s0 MPI_Send P0 1 @<1 0 4 1>
//!   of s0 MPI_Send
//!    count P0 100 @<1 0 4 1>
//!    dest P0~ 1 @<1 0 4 1>                 ~ marks endpoints relative to the caller
//! waits {"ranks":"<1 0 4 1>", …}         what is kept of wait states, if that is
//! end
//! ```
//!
//! A stream of integers is `-` (never read), a constant, or elements in brackets: `5` one value, `0:1:9` first value, step
//! and number of further values, `<3x20>` the last 3 elements over again for 20 values; `*` for a number is "for ever".

mod fields;
pub mod flat;
mod ints;
mod parse;
mod words;
mod write;

pub use ints::print as stream;
pub use parse::{TextError, parse};
pub use write::write;

/// Levels of indentation that are shown; deeper lines say their depth.
const DEEPEST: usize = 40;
