//! One rank's trace while its program runs: [`fold`] finds loops, [`record`] builds a section call by call, and
//! [`journal`] is what a recorder leaves of a rank whatever ends its process.

pub mod fold;
pub mod journal;
pub mod record;
