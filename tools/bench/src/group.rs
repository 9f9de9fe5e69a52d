//! Groups of cases: programs in `tools/bench/groups`.
//!
//! `GROUP list` prints a case a line: its name, how often it is run, and `quick` if it belongs to the quick group, too.
//! `GROUP run CASE` measures it with the programs of the version in `ST_BENCH_ROOT` and prints a measure a line: its name and its
//! value. `ST_BENCH` is this program. Inputs that all versions get are in `ST_BENCH_INPUT`, made by the programs in `ST_BENCH_BASE`. Exit status 77:
//! skipped, and why on standard error.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::version::said;

/// All groups, in the order in which they are measured.
pub(crate) const ALL: [&str; 11] = [
    "sizes", "stages", "micro", "recorder", "kernels", "times", "sketches", "scale", "finalize", "mape",
    "programs",
];

/// Those that have quick cases. The benches of crates would have to be built first.
pub(crate) const QUICK: [&str; 3] = ["sizes", "stages", "recorder"];

/// Exit status of a case that cannot be run here.
const SKIPPED: i32 = 77;

/// A case of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Case {
    /// Its group.
    pub group: &'static str,
    /// Its name.
    pub name: String,
    /// How often it is run.
    pub runs: u32,
    /// Whether it is one of the quick ones: exact, and done in seconds.
    pub quick: bool,
}

/// What is the same for all cases.
#[derive(Debug)]
pub(crate) struct Bench {
    /// The workspace: its groups are measured, whatever the version.
    pub root: PathBuf,
    /// The version whose programs make inputs.
    pub base: PathBuf,
    /// Inputs.
    pub input: TempDir,
}

impl Bench {
    fn command(&self, group: &str, version: &Path) -> Command {
        let mut command = Command::new(self.root.join("tools/bench/groups").join(group));
        command
            .env("ST_BENCH_ROOT", version)
            .env("ST_BENCH_BASE", &self.base)
            .env("ST_BENCH_INPUT", self.input.path());
        // Without it only the cases that need it fail.
        if let Ok(bench) = std::env::current_exe() {
            command.env("ST_BENCH", bench);
        }
        command
    }

    /// The cases of a group.
    ///
    /// # Errors
    ///
    /// If its program fails or prints something else.
    pub(crate) fn cases(&self, group: &'static str) -> Result<Vec<Case>> {
        let text = said(self.command(group, &self.root).arg("list"))?;
        let case = |line: &str| {
            let mut words = line.split(' ');
            let name = words.next().filter(|n| !n.is_empty())?.to_owned();
            let runs = words.next()?.parse().ok()?;
            Some(Case { group, name, runs, quick: words.next() == Some("quick") })
        };
        let parsed = |line| case(line).with_context(|| format!("tools/bench/groups/{group} list: {line}"));
        text.lines().map(parsed).collect()
    }

    /// Measures a case with a version's programs; `None` if it cannot be run here.
    ///
    /// # Errors
    ///
    /// If its program fails or prints something else.
    pub(crate) fn measured(&self, case: &Case, version: &Path) -> Result<Option<Vec<(String, f64)>>> {
        let mut command = self.command(case.group, version);
        let out = command.args(["run", &case.name]).stderr(Stdio::inherit()).output()?;
        if out.status.code() == Some(SKIPPED) {
            return Ok(None);
        }
        let name = || format!("{} {} with {}", case.group, case.name, version.display());
        if !out.status.success() {
            bail!("{}: {}", name(), out.status);
        }
        let text = String::from_utf8_lossy(&out.stdout);
        let value = |line: &str| {
            let (measure, value) = line.split_once(' ')?;
            let value: f64 = value.trim().parse().ok()?;
            value.is_finite().then(|| (measure.to_owned(), value))
        };
        let parsed = |line| value(line).with_context(|| format!("{}: no measure and number: {line}", name()));
        text.lines().map(parsed).collect::<Result<_>>().map(Some)
    }
}
