//! Who meets whom: [`graph`] finds the messages and collective operations of a trace, [`volume`] what its calls carry.

pub mod graph;
pub mod volume;
