//! Who meets whom: [`communication`] says what a rank does with others, [`graph`] finds the messages and collective
//! operations of a trace, [`volume`] what its calls carry, [`leaks`] what is left at its end.

mod channel;
pub mod communication;
pub mod graph;
pub mod leaks;
pub mod standing;
mod unknown;
pub mod volume;

pub use channel::{Channel, NO_MESSAGE, PARTITIONED, UNKNOWN};
pub use unknown::Unknown;
