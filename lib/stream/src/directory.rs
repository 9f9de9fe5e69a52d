//! Names of the files that a recording leaves in its directory.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// What all ranks became last while the program ran (`st-record --reduce-every`). Of a job that has ended it holds nothing more.
pub const INTERIM: &str = "interim.st";

/// What the ranks' streams have been merged into: all ranks are in it, whatever else is there.
pub const MERGED: &str = "merged.st";

/// Lines in which a launcher is told about each rank, where it has put this file there. Its first line is the trace's name.
pub const NOTES: &str = "notes";

/// What a line of [`NOTES`] begins with that says why a rank, if it knows which, could not record: `failed rank=3 no room`.
pub const FAILED: &str = "failed ";

/// What stands before the rank there.
pub const FAILED_RANK: &str = "rank=";

/// What stands there before the number of the process and its host, `7@node3`, behind the rank.
pub const FAILED_PROCESS: &str = "process=";

/// What a line of the notes begins with that names ranks without the recorder: `without rank 1`.
pub const WITHOUT: &str = "without ";

/// What the name of a function begins with, beside the number of its calls where nothing is recorded.
pub const OUTSIDE: &str = "outside_";

/// What the names of directories begin with in which the ranks of a job record, beside where its trace will be.
pub const RECORDING: &str = ".st-record-";

/// What a rank's files begin with: `rank-000002`, for its stream `rank-000002.st`.
#[must_use]
pub fn rank(rank: u32) -> String {
    format!("rank-{rank:06}")
}

/// What a rank's journal ends with, beside the exact times of the same process, [`TIMES`].
pub const JOURNAL: &str = "journal";

/// What a rank's exact times end with while it runs.
pub const TIMES: &str = "times";

/// What a rank's files begin with while this process records it: `rank-000002.4711`.
#[must_use]
pub fn process(rank: u32, process: u32) -> String {
    format!("{}.{process}", self::rank(rank))
}

/// A file of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankFile<'a> {
    /// The rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// The process that writes it, or that ended without having written the stream.
    pub process: Option<u32>,
    /// What follows the last dot: `st`, [`JOURNAL`] or [`TIMES`].
    pub ends: &'a str,
}

impl<'a> RankFile<'a> {
    /// What a file's name says: `rank-000002.st`, `rank-000002.4711.journal`. None if it is no file of a rank.
    #[must_use]
    pub fn of(name: &'a OsStr) -> Option<Self> {
        let (rank, rest) = name.to_str()?.strip_prefix("rank-")?.split_once('.')?;
        let (process, ends) = match rest.split_once('.') {
            Some((process, ends)) => (Some(process.parse().ok()?), ends),
            None => (None, rest),
        };
        Some(Self { rank: rank.parse().ok()?, process, ends })
    }

    /// Whether the process that writes it runs on this machine.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.process.is_some_and(runs)
    }
}

/// Whether a process runs on this machine. One that has ended and that nobody has asked for its status is none: where nobody
/// waits for orphans, as in containers, it stays for ever.
#[must_use]
pub fn runs(process: u32) -> bool {
    let told = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat"));
    // The name, in brackets, may have any characters.
    told.is_ok_and(|told| {
        told.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::thread::sleep;
    use std::time::Duration;

    #[test]
    fn a_process_that_nobody_has_waited_for_does_not_run() {
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert!(runs(child.id()));
        drop(child.stdin.take());
        while runs(child.id()) {
            sleep(Duration::from_millis(1));
        }
        assert!(Path::new("/proc").join(child.id().to_string()).exists());
        child.wait().unwrap();
    }

    #[test]
    fn names_say_whose_file_it_is() {
        let of = |name: &'static str| RankFile::of(OsStr::new(name));
        let names = [format!("{}.st", rank(2)), format!("{}.{JOURNAL}", process(1_000_000, 4711))];
        let files: Vec<_> = names.iter().map(|name| RankFile::of(OsStr::new(name))).collect();
        assert_eq!(files[0], Some(RankFile { rank: 2, process: None, ends: "st" }));
        assert_eq!(files[1], Some(RankFile { rank: 1_000_000, process: Some(4711), ends: JOURNAL }));
        for other in ["merged.st", "rank-", "rank-2", "rank-x.st", "rank-000002.x.journal", "notes"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert!(!of("rank-000002.st").unwrap().is_in_use());
        let own = process(0, std::process::id());
        assert!(RankFile::of(OsStr::new(&format!("{own}.{TIMES}"))).unwrap().is_in_use());
    }
}
