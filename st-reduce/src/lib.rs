//! Many ranks' traces into few, or into one: what st-cluster and st-merge are programs of.

pub mod cluster;
pub mod merge;
pub mod tree;
mod who;
