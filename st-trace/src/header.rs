//! What a stream says about the run as a whole: its header and the chain of tools that made it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Facts of the run that no section holds.
///
/// Written as JSON. Fields that this version does not know are kept in [`Header::more`] and written back.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Number of ranks of the job's world, whether or not the stream holds them all.
    pub world: u32,
    /// The MPI that the program ran under.
    pub mpi: Mpi,
    /// The program, as it was started.
    pub program: String,
    /// Its arguments, without the program.
    pub args: Vec<String>,
    /// When the first rank started, ns since 1970-01-01 UTC.
    pub started: u64,
    /// The clock of all times.
    pub clock: Clock,
    /// Every setting of the recorder, by option name.
    pub options: BTreeMap<String, Value>,
    /// Language bindings that calls came through: `c`, `mpif.h`, `mpi_f08`, ….
    pub bindings: Vec<String>,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// An MPI library.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Mpi {
    /// `openmpi`, `mpich`, or what a synthetic trace calls itself.
    pub flavour: String,
    /// The library's version, as `4.1.4`.
    pub version: String,
    /// Version of the standard, as `3.1`.
    pub standard: String,
}

/// A clock.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// Its name, as `CLOCK_MONOTONIC`.
    pub source: String,
    /// Its resolution in ns.
    pub resolution: u64,
}

/// A tool that had a hand in a stream. Each tool appends one.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// Name of the program.
    pub tool: String,
    /// Its version.
    pub version: String,
    /// Its arguments, without the program.
    pub args: Vec<String>,
}
