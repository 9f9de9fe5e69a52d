//! Statistics of a trace: a summary, calls per function and call site, where the bytes go, and how two traces differ.

pub mod args;
mod at;
mod calls;
mod causes;
mod clusters;
pub mod diff;
mod ended;
mod explain;
mod input;
mod leaks;
pub mod mape;
mod matrix;
mod messages;
mod moment;
pub mod normal;
mod phases;
mod picture;
pub mod profile;
mod run;
mod sizes;
mod summary;
pub mod table;
mod topology;
mod unlike;
mod violations;
mod why;

pub use run::{main, run};
