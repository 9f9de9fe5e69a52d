//! What sections of several ranks become together: one table of objects, sites and symbols, classes of ranks with equal
//! streams, times folded. Stages that put ranks together share it; how structure and parameters are put together is theirs.

mod classes;
mod tables;
mod times;

pub use classes::{Classes, Partitions};
pub use tables::{Renaming, United};
pub use times::{Summed, Times, one_path};
