//! Puts ranks that behave alike into clusters.
//!
//! Ranks with equal call paths are a *main cluster*; those of them with equal parameters are a *sub-cluster*. A main cluster
//! becomes one section of the stream: its structure is that of its lowest rank, each parameter has one stream per class of
//! ranks, mostly one, and times and proofs are those of all ranks, folded. Nothing is lost unless asked for: reading a rank
//! back from its cluster gives its calls. What comes after, the merge, then sees a handful of sections instead of one
//! per rank.
//!
//! Source: Bahmani, Mueller 2014 (signatures, two levels, lowest rank as head). We differ in signatures without collisions
//! in practice ([`signature`]; the published ones are in [`paper`]), in parameters that are compared in the first symbolic
//! form that makes all ranks of a main cluster equal, and in that a representative stands for its members exactly.

mod clusters;
mod forms;
mod options;
pub mod paper;
mod rank_view;
mod representative;
pub mod signature;
mod slot;
mod tolerance;

pub use clusters::{Clusterer, Clustering, Clusters, Error, alone};
pub use options::{Options, Signatures};
pub use representative::keep_lowest;
pub use slot::{Rules, Stand};
pub use tolerance::{NoTolerance, Tolerance};
