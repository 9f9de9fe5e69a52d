//! Statistics of a trace: a summary, calls per function and call site, where time and bytes go, and how two traces differ.

pub mod args;
mod at;
mod calls;
mod causes;
pub mod changes;
mod clusters;
mod compare;
pub mod diff;
mod ended;
mod explain;
mod hist;
mod input;
pub mod judge;
mod leaks;
mod levels;
pub mod mape;
mod matrix;
mod messages;
mod moment;
pub mod normal;
mod phases;
mod picture;
mod predict;
pub mod profile;
mod report;
mod run;
mod sizes;
mod summary;
pub mod table;
mod timeline;
pub mod times;
mod topology;
mod unlike;
mod violations;
mod why;

pub use run::{main, run};
