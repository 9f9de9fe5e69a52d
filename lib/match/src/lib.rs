//! Who meets whom: [`communication`] says what a rank does with others, [`graph`] finds the messages and collective
//! operations of a trace, [`volume`] what its calls carry.

mod channel;
pub mod communication;
pub mod graph;
pub mod standing;
pub mod volume;

pub use channel::{Channel, NO_MESSAGE, PARTITIONED, UNKNOWN};
