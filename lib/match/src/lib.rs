//! Who meets whom: [`communication`] says what a rank does with others, [`fifo`] pairs the ends of messages. [`graph`] finds
//! the messages and collective operations of a trace rank by rank, [`messages`] its messages in the order of time. [`volume`]
//! is what its calls carry, [`leaks`] what is left at its end, [`wildcards`] what receives got that name no sender or
//! tag, and [`lookahead`] says it where they are posted.

mod balance;
mod channel;
pub mod communication;
pub mod fifo;
pub mod graph;
pub mod leaks;
pub mod lookahead;
pub mod messages;
pub mod standing;
pub mod unfreed;
mod unknown;
pub mod volume;
pub mod wildcards;

pub use channel::{Channel, NO_MESSAGE, PARTITIONED, UNKNOWN};
pub use unknown::Unknown;
