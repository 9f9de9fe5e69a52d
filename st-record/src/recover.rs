//! What a recording has left whose st-record was killed.

use crate::args::Args;
use crate::pack::{Job, jobs};
use crate::save::{Saved, each_job};
use crate::tool::TOOL;
use anyhow::{Context, Result, bail};
use st_cli::recording::elsewhere;
use st_cli::{counted, recording};
use st_model::ranklist_notation;
use st_stream::directory::{NOTES, RECORDING};
use std::fs;
use std::path::{Path, PathBuf};

/// The directories in `home` whose st-record, and whose ranks, ran on this machine and do so no longer.
pub(crate) fn left_in(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    let ours = |name: &std::ffi::OsStr| name.to_str().is_some_and(|n| n.starts_with(RECORDING));
    let found = entries.filter(|e| ours(&e.file_name())).map(|e| e.path());
    let mut left: Vec<_> =
        found.filter(|d| d.join(NOTES).is_file() && elsewhere(d).is_none() && running(d).is_none()).collect();
    left.sort();
    left
}

/// A process that works in the directory: its st-record, or a rank of any of its jobs.
fn running(directory: &Path) -> Option<u32> {
    let jobs = jobs(directory).unwrap_or_default();
    jobs.iter().map(Job::directory).find_map(|job| recording::running(job).first().copied())
}

/// `--recover`: packs what is in the directory under the name that it was to have, and removes it.
///
/// # Errors
///
/// If it is none of ours, is or may be in use, holds nothing, or the trace cannot be written.
pub(crate) fn recover(args: &Args) -> Result<u8> {
    let Some(directory) = &args.recover else { return Ok(0) };
    let shown = directory.display();
    let text = fs::read_to_string(directory.join(NOTES))
        .with_context(|| format!("{shown}: not a directory that st-record recorded into: those are named {RECORDING}…, and have a file {NOTES}. A directory of streams needs no recovery: the programs read it as it is"))?;
    if let Some(pid) = running(directory) {
        bail!("{shown}: process {pid} still works in it");
    }
    if let Some((host, pid)) = elsewhere(directory).filter(|_| !args.force) {
        bail!(
            "{shown}: was recorded on {host}, where process {pid} may still work in it: recover it there, or, if that job is over, add --force"
        );
    }
    let home = directory.canonicalize().with_context(|| shown.to_string())?;
    let home = home.parent().unwrap_or(Path::new("."));
    let asked = recording::trace_of(&text).map(|name| home.join(name));
    let args = Args { output: args.output.clone().or(asked), ..args.clone() };
    let mut found = false;
    each_job(&args, directory, home, |_, saved, notes| {
        if let Some((saved, _)) = saved {
            let target = saved.target.display();
            let (ranks, calls) = (told(&saved), counted(notes.calls, "call"));
            args.talk.note(TOOL, format_args!("{ranks}, {calls} → {target}"));
            found = true;
        }
    })?;
    if !found {
        bail!("{shown}: no rank has left anything");
    }
    fs::remove_dir_all(directory).with_context(|| format!("{shown}: cannot remove"))?;
    Ok(0)
}

/// How many ranks there are, and which are not.
fn told(saved: &Saved) -> String {
    if saved.missing.is_empty() {
        return counted(saved.ranks, "rank");
    }
    let (all, missing) = (saved.ranks + saved.missing.len(), ranklist_notation::plain(&saved.missing));
    format!("{} of {all} ranks (missing: {missing})", saved.ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_not_left() {
        let home = tempfile::tempdir().unwrap();
        let (dead, mine) = (home.path().join(".st-record-a"), home.path().join(".st-record-b"));
        for (directory, pid) in [(&dead, u32::MAX), (&mine, std::process::id())] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join(NOTES), format!("x.st\nlauncher={pid}\n")).unwrap();
        }
        assert_eq!((left_in(home.path()), running(&mine)), (vec![dead.clone()], Some(std::process::id())));
        fs::write(dead.join(format!("rank-000001.{}.journal", std::process::id())), "").unwrap();
        assert!(left_in(home.path()).is_empty());
        // What another machine records may still be in use.
        let far = home.path().join(".st-record-c");
        fs::create_dir(&far).unwrap();
        fs::write(far.join(NOTES), format!("x.st\nlauncher={} host=no.such.host\n", u32::MAX)).unwrap();
        assert!(left_in(home.path()).is_empty());
    }
}
