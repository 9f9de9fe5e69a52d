//! Nothing: its manifest asks for the features of dependencies in which selections of our crates differ.
//!
//! Cargo builds a dependency anew, and all that depends on it, where other features of it are asked for. With st-model, and so every
//! crate of ours, asking for these, the programs, the crates that link MPI and the tests share what they depend on.
