//! What a stream says about the run as a whole: its header and the chain of tools that made it.

use std::collections::BTreeMap;

use crate::num::narrow;
use crate::ranklist_notation::{parse_any, print};
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
    /// By node of the ranks: numbers of the processors that they were allowed when they began MPI, as `0-3,8` or a ranklist.
    /// Empty once the ranks' streams are one: then [`Header::processors`] knows them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub allowed: BTreeMap<String, String>,
    /// Of a whole job: how many nodes allow its ranks so many processors.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub processors: BTreeMap<u32, u32>,
    /// Of a whole job: how long ranks had no processor, where the kernel says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<Queued>,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// How long ranks were ready to run between `MPI_Init` and `MPI_Finalize` while others had their processors: of the thread that
/// called these, as Linux counts it (`/proc/thread-self/schedstat`, the second number).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Queued {
    /// All ranks together, ns.
    pub ns: u64,
    /// Ranks that said so.
    pub ranks: u32,
    /// The most that one had, ns.
    pub longest_ns: u64,
    /// Which.
    pub longest_rank: u32,
}

impl Queued {
    /// Adds a rank.
    pub fn add(&mut self, rank: u32, ns: u64) {
        (self.ns, self.ranks) = (self.ns.saturating_add(ns), self.ranks.saturating_add(1));
        if self.ranks == 1 || ns > self.longest_ns {
            (self.longest_ns, self.longest_rank) = (ns, rank);
        }
    }
}

/// In [`Header::options`], of which events each rank's total times are kept, where that is not of all.
pub const RANK_SUMS: &str = "rank-sums";

/// In [`Header::options`], how far durations at fixed ranks may be from the distributions that they stand for, in percent of the
/// sum, where that is not the usual.
pub const SKETCH_ERROR: &str = "sketch-error";

/// In [`Header::options`], bytes of exact times that each rank was allowed.
pub const TIME_BUDGET: &str = "time-budget";

/// In [`Header::options`], of how many threads only the first calls had exact times when these were folded.
pub const SPENT: &str = "time-budget-spent";

/// In [`Header::options`], the functions of the program's MPI that the recorder does not have.
pub const UNRECORDED: &str = "unrecorded";

/// In [`Header::options`], values of predefined attributes of `MPI_COMM_WORLD` that all ranks have, by their keys.
pub const ATTRIBUTES: &str = "attributes";

/// In [`Header::options`], how many calls of each function the program has made inside of other calls, which are not recorded.
pub const INSIDE: &str = "inside";

/// The identity of a run of which nothing is known but what tells it apart.
#[must_use]
pub fn run_of(facts: &str) -> String {
    format!("{:032x}", xxh3_128(facts.as_bytes()))
}

impl Header {
    /// Bytes of exact times that each rank was allowed, before compression; none of traces that no recorder made.
    #[must_use]
    pub fn time_budget(&self) -> Option<u64> {
        self.options.get(TIME_BUDGET)?.as_u64()
    }

    /// How many calls of each function the program has made inside of other calls: they are not recorded.
    #[must_use]
    pub fn inside(&self) -> BTreeMap<&str, u64> {
        let calls = self.options.get(INSIDE).and_then(|calls| calls.as_object());
        calls.into_iter().flatten().filter_map(|(name, n)| Some((name.as_str(), n.as_u64()?))).collect()
    }

    /// The program and its arguments, as one line. A terminal would obey control characters: they are escaped.
    #[must_use]
    pub fn command(&self) -> String {
        let (program, args) = self.typed();
        let words: Vec<&str> = std::iter::once(program).chain(args.iter().map(String::as_str)).collect();
        let mut line = String::new();
        for c in words.join(" ").chars() {
            if c.is_control() {
                line.extend(c.escape_default());
            } else {
                line.push(c);
            }
        }
        line
    }

    /// The program and its arguments without what a replay adds: st-replay starts its engine with options before those that were typed.
    fn typed(&self) -> (&str, &[String]) {
        let args = &self.args[..];
        let args = args.strip_prefix(&["--unchecked".to_owned()]).unwrap_or(args);
        match args.strip_prefix(&["--said".to_owned()]) {
            Some(typed) => ("st-replay", typed.strip_prefix(&["--progress".to_owned()]).unwrap_or(typed)),
            None => (&self.program, &self.args),
        }
    }

    /// Adds what another rank of the job knows that is the same for all of them: the time of the earliest, and processors.
    pub fn join(&mut self, other: &Self) {
        self.started = self.started.min(other.started);
        for (node, theirs) in &other.allowed {
            match self.allowed.get_mut(node) {
                Some(ours) => *ours = united(ours, theirs),
                None => drop(self.allowed.insert(node.clone(), theirs.clone())),
            }
        }
    }

    /// Whether this is the header of the same rank or of another one of the job, but for what [`Header::join`] unites.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        Self { started: self.started, allowed: self.allowed.clone(), ..other.clone() } == *self
    }

    /// Adds the programs of others of the job, as they stand on a command line, to those that are there.
    pub fn add_programs(&mut self, program: &str, args: &[String]) {
        let words: Vec<&str> = std::iter::once(program).chain(args.iter().map(String::as_str)).collect();
        for words in words.split(|word| *word == ":") {
            let Some(program) = words.first() else { continue };
            let follows = |pair: &[String]| pair[0] == ":" && pair[1] == **program;
            if self.program != **program && !self.args.windows(2).any(follows) {
                self.args.extend([":"].iter().chain(words).map(|word| (*word).to_owned()));
            }
        }
    }

    /// The header of a job, from those of its ranks in their order: the first one's, with all bindings, the time of the
    /// earliest, all processors, and all programs, as on a launcher's command line. `None` of none.
    pub fn of_job(ranks: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut whole: Option<Self> = None;
        for mine in ranks {
            let whole = whole.get_or_insert_with(|| mine.clone());
            whole.join(&mine);
            for b in &mine.bindings {
                if !whole.bindings.contains(b) {
                    whole.bindings.push(b.clone());
                }
            }
            whole.add_programs(&mine.program, &mine.args);
        }
        if let Some(whole) = &mut whole {
            for list in std::mem::take(&mut whole.allowed).into_values() {
                let n = parse_any(&list).map_or(0, |set| set.len());
                *whole.processors.entry(narrow(n)).or_default() += 1;
            }
        }
        whole
    }
}

/// Two sets of processors as one; the first where the other is none.
fn united(a: &str, b: &str) -> String {
    match (parse_any(a), parse_any(b)) {
        (Ok(a), Ok(b)) if a != b => print(&a.union(&b)),
        _ => a.to_owned(),
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

impl Mpi {
    /// The library by its name and version, as people call it. Intel MPI counts as MPICH, whose interface it has: its versions are years.
    #[must_use]
    pub fn called(&self) -> String {
        let year =
            self.version.split('.').next().and_then(|n| n.parse::<u32>().ok()).is_some_and(|n| n >= 2_000);
        let name = if self.flavour == "mpich" && year { "Intel MPI" } else { &self.flavour };
        format!("{name} {}", self.version).trim().to_owned()
    }
}

/// What [`Clock::source`] is of traces that were made without a run.
pub const SIMULATED: &str = "simulated";

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
    fn a_command_is_one_line_that_no_terminal_obeys() {
        let args = ["\u{1b}[31mred", "two\nlines", "Größe"].map(str::to_owned).to_vec();
        let header = Header { program: "app".into(), args, ..Header::default() };
        assert_eq!(header.command(), "app \\u{1b}[31mred two\\nlines Größe");
    }

    #[test]
    fn a_replay_is_called_as_it_was_typed() {
        let called = |args: &str| {
            let args = args.split(' ').map(str::to_owned).collect();
            Header { program: "/lib/st/openmpi/st-engine".into(), args, ..Header::default() }.command()
        };
        for before in ["--said", "--unchecked --said", "--unchecked --said --progress"] {
            assert_eq!(called(&format!("{before} --unchecked -q a.st")), "st-replay --unchecked -q a.st");
        }
        assert_eq!(called("--unchecked a.st"), "/lib/st/openmpi/st-engine --unchecked a.st");
    }

    #[test]
    fn intel_mpi_is_called_so() {
        let called = |flavour: &str, version: &str| {
            Mpi { flavour: flavour.into(), version: version.into(), ..Mpi::default() }.called()
        };
        assert_eq!(called("mpich", "2021.18"), "Intel MPI 2021.18");
        assert_eq!(called("mpich", "4.0.2"), "mpich 4.0.2");
        assert_eq!(called("openmpi", "4.1.4"), "openmpi 4.1.4");
        assert_eq!(called("paper", ""), "paper");
    }

    #[test]
    fn processors_of_a_node_are_united() {
        let of = |node: &str, list: &str| Header {
            allowed: BTreeMap::from([(node.into(), list.into())]),
            ..Header::default()
        };
        let ranks = [of("a", "0"), of("b", "0-3"), of("a", "1,4"), of("a", "1"), of("c", "0-3")];
        assert!(ranks[0].is_like(&ranks[1]));
        let whole = Header::of_job(ranks).unwrap();
        assert_eq!(whole.processors, BTreeMap::from([(3, 1), (4, 2)]));
        assert!(whole.allowed.is_empty());
    }

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
        // Parts of it may have been joined before.
        let parts = [of("a", "1", 5, "c"), whole.clone(), of("b", "2", 3, "c"), whole.clone()];
        assert_eq!(Header::of_job(parts).unwrap().args, whole.args);
        assert_eq!((whole.args.join(" "), whole.bindings.join(" ")), ("1 : b 2".into(), "c mpif.h".into()));
    }
}
