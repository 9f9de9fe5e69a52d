//! The directory of a job that is being recorded.

use st_model::header::Header;
use st_stream::directory::{JOURNAL, NOTES, RankFile, runs};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// What directories of later jobs of a script begin with, in that of the first; a number follows.
pub const JOB: &str = "job-";

/// In a header's options, the number of a job that was not the only one of its recording, if it was not the first.
pub const NUMBER: &str = "job";

/// Which job of its recording a trace is of, from 1 on.
#[must_use]
pub fn number(header: &Header) -> u64 {
    header.options.get(NUMBER).and_then(|job| job.as_u64()).unwrap_or(1)
}

/// Jobs that record, or have, into a directory and below it: their numbers from 1 on, ascending, and where each does.
#[must_use]
pub fn jobs(directory: &Path) -> Vec<(usize, PathBuf)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let later = entries.filter_map(|entry| {
        let number = entry.file_name().to_str()?.strip_prefix(JOB)?.parse().ok()?;
        entry.path().is_dir().then_some((number, entry.path()))
    });
    let mut all: Vec<_> = std::iter::once((1, directory.to_owned())).chain(later).collect();
    all.sort();
    all
}

/// The first lines of the notes in a job's directory: the name that the trace will have, and this process.
#[must_use]
pub fn head(name: &str) -> String {
    format!("{name}\nlauncher={} host={}\n", std::process::id(), this_host())
}

/// The st-record of a job's directory, and the machine that it runs on, if its notes say that.
fn launcher(directory: &Path) -> Option<(u32, Option<String>)> {
    let notes = fs::read_to_string(directory.join(NOTES)).ok()?;
    let said = notes.lines().nth(1)?.strip_prefix("launcher=")?;
    // The name is the rest of the line, whatever it is.
    let (pid, host) = said.split_once(" host=").map_or((said, None), |(pid, host)| (pid, Some(host)));
    Some((pid.parse().ok()?, host.map(str::to_owned)))
}

/// The machine that a job's st-record runs on, or ran, and which process it is there, if it is another one than this: whether it,
/// or its ranks, still run cannot be seen from here.
#[must_use]
pub fn elsewhere(directory: &Path) -> Option<(String, u32)> {
    let (pid, host) = launcher(directory)?;
    host.filter(|host| *host != this_host()).map(|host| (host, pid))
}

/// What the machine is called.
fn this_host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Processes of this machine that work in a job's directory: its st-record first, then ranks that have not ended.
#[must_use]
pub fn running(directory: &Path) -> Vec<u32> {
    let launcher = launcher(directory).filter(|_| elsewhere(directory).is_none()).map(|(pid, _)| pid);
    launcher
        .into_iter()
        .filter(|pid| runs(*pid))
        .chain(ranks(directory).into_iter().map(|(_, pid)| pid))
        .collect()
}

/// Ranks that this machine's processes record now, and these.
#[must_use]
pub fn ranks(directory: &Path) -> Vec<(u32, u32)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let journal = |name: &OsStr| {
        let file = RankFile::of(name).filter(|file| file.ends == JOURNAL && file.is_in_use())?;
        Some((file.rank, file.process?))
    };
    let mut all: Vec<_> = entries.filter_map(|entry| journal(&entry.file_name())).collect();
    all.sort_unstable();
    all
}

/// The file that a recording becomes, by the text of its notes: beside its directory, unless another has the name by then.
#[must_use]
pub fn trace_of(notes: &str) -> Option<&OsStr> {
    Path::new(notes.lines().next()?).file_name()
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_stream::directory::process;

    #[test]
    fn later_jobs_are_below_the_first() {
        let home = tempfile::tempdir().unwrap();
        for name in ["job-10", "job-2", "job-x", "spawn-1"] {
            fs::create_dir(home.path().join(name)).unwrap();
        }
        fs::write(home.path().join("job-3"), "").unwrap();
        let below = [2, 10].map(|n| (n, home.path().join(format!("{JOB}{n}"))));
        assert_eq!(jobs(home.path()), [vec![(1, home.path().to_owned())], below.to_vec()].concat());
    }

    #[test]
    fn who_works_in_a_directory() {
        let home = tempfile::tempdir().unwrap();
        let me = std::process::id();
        assert!(running(home.path()).is_empty());
        for (rank, pid) in [(3, me), (1, me), (2, u32::MAX)] {
            fs::write(home.path().join(format!("{}.{JOURNAL}", process(rank, pid))), "").unwrap();
        }
        assert_eq!(ranks(home.path()), [(1, me), (3, me)]);
        let notes = format!("a/x.st\nlauncher={me}\n");
        fs::write(home.path().join(NOTES), &notes).unwrap();
        assert_eq!(running(home.path()), [me; 3]);
        assert_eq!(elsewhere(home.path()), None);
        fs::write(home.path().join(NOTES), head("a/x.st")).unwrap();
        assert_eq!((running(home.path()), elsewhere(home.path())), (vec![me; 3], None));
        // The same number on another machine is another process.
        fs::write(home.path().join(NOTES), format!("a/x.st\nlauncher={me} host=node 17\n")).unwrap();
        assert_eq!(
            (running(home.path()), elsewhere(home.path())),
            (vec![me; 2], Some(("node 17".into(), me)))
        );
        assert_eq!(trace_of(&notes), Some(OsStr::new("x.st")));
        assert_eq!(trace_of("\nlauncher=7\n"), None);
    }
}
