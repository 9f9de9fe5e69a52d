//! Versions that are measured, and what they are measured on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::results::About;

/// What a command prints, without the end of its last line.
///
/// # Errors
///
/// If it cannot be started or fails.
pub(crate) fn said(command: &mut Command) -> Result<String> {
    let out =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("{command:?}: cannot start"))?;
    if !out.status.success() {
        bail!("{command:?}: {}", out.status);
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim_end().to_owned())
}

fn git(root: &Path, words: &[&str]) -> Result<String> {
    said(Command::new("git").arg("-C").arg(root).args(words))
}

/// The work tree that the current directory is in.
///
/// # Errors
///
/// If it is in none.
pub(crate) fn root() -> Result<PathBuf> {
    git(Path::new("."), &["rev-parse", "--show-toplevel"]).map(PathBuf::from)
}

/// Builds a commit in a work tree of its own below `target/bench`, and says where that is. One that was built before stays.
///
/// # Errors
///
/// If there is no such commit, or it cannot be built.
pub(crate) fn built(root: &Path, rev: &str) -> Result<PathBuf> {
    let commit = git(root, &["rev-parse", "--verify", &format!("{rev}^{{commit}}")])
        .with_context(|| format!("{rev}: no such commit"))?;
    let place = root.join("target/bench").join(commit.get(..12).unwrap_or(&commit));
    if !place.exists() {
        let to = place.display().to_string();
        // By force: git may still know a work tree that was deleted with target/.
        git(root, &["worktree", "add", "--quiet", "--force", "--detach", &to, &commit])?;
    }
    // A commit stays what it is.
    let done = place.join("target/built");
    if done.exists() {
        return Ok(place);
    }
    // Cargo and make pass on where this version is built.
    let mut make = Command::new("make");
    make.arg("-C").arg(&place).arg("build").env_remove("CARGO_TARGET_DIR").env_remove("MAKEFLAGS");
    let status = make.stdout(Stdio::null()).status().context("make: cannot start")?;
    if !status.success() {
        bail!("{}: make build: {status}", place.display());
    }
    fs::write(&done, "").with_context(|| format!("{}: cannot create", done.display()))?;
    Ok(place)
}

/// Processes that want a processor, mean of a minute.
pub(crate) fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|w| w.parse().ok()).unwrap_or(f64::NAN)
}

/// First value of a field of a file of lines `name : value`.
fn field(path: &str, name: &str, sign: char) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|l| l.strip_prefix(name)?.trim_start().strip_prefix(sign))?;
    Some(value.trim().trim_matches('"').to_owned())
}

/// The facts of a measurement that begins now.
///
/// # Errors
///
/// If git does not know the commit.
pub(crate) fn about(root: &Path) -> Result<About> {
    let commit = git(root, &["rev-parse", "--short=12", "HEAD"])?;
    let changed = !git(root, &["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    let processor = field("/proc/cpuinfo", "model name", ':').unwrap_or_else(|| "unknown processor".into());
    let system = field("/etc/os-release", "PRETTY_NAME", '=').unwrap_or_else(|| "Linux".into());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut software = vec![said(Command::new("rustc").arg("--version"))?];
    for mpi in ["openmpi", "mpich"] {
        let version = Command::new(format!("mpirun.{mpi}")).arg("--version").output();
        let text = version.map(|v| String::from_utf8_lossy(&v.stdout).into_owned()).unwrap_or_default();
        let number = text.split_whitespace().find(|w| w.starts_with(|c: char| c.is_ascii_digit()));
        software.extend(number.map(|n| format!("{mpi} {n}")));
    }
    Ok(About {
        date: said(Command::new("date").args(["-u", "+%F"]))?,
        commit: if changed { format!("{commit}+") } else { commit },
        machine: format!("{cores} of {processor}, {system}"),
        software: software.join(", "),
        load: (load(), load()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_built_once_in_a_place_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| git(root.path(), words).unwrap();
        git(&["init", "--quiet"]);
        fs::write(root.path().join("Makefile"), "build:\n\tmkdir -p target; echo built >>target/log\n")
            .unwrap();
        git(&["add", "Makefile"]);
        let me = ["-c", "user.name=test", "-c", "user.email=test@example.org"];
        git(&[&me[..], &["commit", "--quiet", "-m", "one"]].concat());
        fs::write(root.path().join("Makefile"), "build:\n\tfalse\n").unwrap();
        let place = built(root.path(), "HEAD").unwrap();
        assert_eq!(built(root.path(), "HEAD").unwrap(), place);
        assert_eq!(fs::read_to_string(place.join("target/log")).unwrap(), "built\n");
        let unknown = format!("{:#}", built(root.path(), "nowhere").unwrap_err());
        assert!(unknown.starts_with("nowhere: no such commit"), "{unknown}");
        git(&[&me[..], &["commit", "--quiet", "-a", "-m", "two"]].concat());
        let broken = format!("{:#}", built(root.path(), "HEAD").unwrap_err());
        assert!(broken.contains("make build"), "{broken}");
    }
}
