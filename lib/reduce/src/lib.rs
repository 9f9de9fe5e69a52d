//! Many ranks' traces into few, or into one: what st-cluster and st-merge are programs of.

pub mod cluster;
mod codes;
pub mod distributions;
pub mod kept;
pub mod lossy;
pub mod merge;
#[cfg(feature = "options")]
pub mod options;
pub mod rank_sums;
pub mod slow;
pub mod tree;
pub mod user;
mod who;
