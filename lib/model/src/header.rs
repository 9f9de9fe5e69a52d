//! What a stream says about the run as a whole: its header and the chain of tools that made it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_128;

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
    /// The run's identity: 32 hexadecimal digits that all ranks of a job have, and no other job; empty if it is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run: String,
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

/// The identity of a run of which nothing is known but what tells it apart.
#[must_use]
pub fn run_of(facts: &str) -> String {
    format!("{:032x}", xxh3_128(facts.as_bytes()))
}

impl Header {
    /// The program and its arguments, as one line.
    #[must_use]
    pub fn command(&self) -> String {
        std::iter::once(&self.program).chain(&self.args).map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// The header of a job, from those of its ranks in their order: the first one's, with all bindings, the time of the
    /// earliest, and all programs, as on a launcher's command line. `None` of none.
    pub fn of_job(ranks: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut whole: Option<Self> = None;
        let mut programs = Vec::new();
        for mine in ranks {
            let whole = whole.get_or_insert_with(|| mine.clone());
            whole.started = whole.started.min(mine.started);
            for b in mine.bindings {
                if !whole.bindings.contains(&b) {
                    whole.bindings.push(b);
                }
            }
            if !programs.contains(&mine.program) {
                if !programs.is_empty() {
                    whole.args.extend([":".to_owned(), mine.program.clone()]);
                    whole.args.extend(mine.args);
                }
                programs.push(mine.program);
            }
        }
        whole
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_of_several_programs_has_one_header() {
        let of = |program: &str, arg: &str, started, binding: &str| Header {
            program: program.into(),
            args: vec![arg.into()],
            started,
            bindings: vec![binding.into()],
            ..Header::default()
        };
        assert_eq!(Header::of_job([]), None);
        let ranks = [of("a", "1", 5, "c"), of("b", "2", 3, "mpif.h"), of("a", "1", 4, "c")];
        let whole = Header::of_job(ranks).unwrap();
        assert_eq!((whole.program.as_str(), whole.started), ("a", 3));
        assert_eq!((whole.args.join(" "), whole.bindings.join(" ")), ("1 : b 2".into(), "c mpif.h".into()));
    }
}
