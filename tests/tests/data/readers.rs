//! Every program that reads traces, each in its ways.

use std::fs;
use std::path::Path;

use clap::Parser;
use st_cli::Status;
use st_model::section::Section;
use st_stream::Trace;
use st_tests::Failure;

use crate::{content, read};

/// Runs a program's library as its command line does, with `-o OUT` after the words given.
fn run<A: Parser>(
    run: impl Fn(&A) -> anyhow::Result<Status>,
    words: &str,
    path: &Path,
    out: &Path,
) -> Result<(), Failure> {
    let words = words.split(' ').map(Into::into);
    let words = words.chain(["-o".into(), out.as_os_str().to_owned(), path.as_os_str().to_owned()]);
    let words: Vec<_> = words.collect();
    let args = A::try_parse_from(&words).map_err(|e| format!("{words:?}: {e}"))?;
    match run(&args) {
        Ok(Status::Ok) => Ok(()),
        Ok(Status::Difference) => Err(format!("{words:?}: a difference")),
        Err(e) => Err(format!("{words:?}: {e:#}")),
    }
}

/// What is printed is not empty.
fn printed(out: &Path) -> Result<(), Failure> {
    match fs::metadata(out) {
        Ok(m) if m.len() > 0 => Ok(()),
        other => Err(format!("nothing is printed: {other:?}")),
    }
}

/// The calls of a stage's output are those of its input.
fn kept(out: &Path, trace: &Trace) -> Result<(), Failure> {
    let (before, after) = (content::calls(trace)?, content::calls(&read(out)?)?);
    content::same(&before.join("\n"), &after.join("\n"))
}

/// All programs, on the trace at a path.
pub(crate) fn all(path: &Path, trace: &Trace) -> Result<(), Failure> {
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    let out = place.path().join("out");
    for mode in [
        "st-view",
        "st-view --flat",
        "st-view --calls",
        "st-view --json",
        "st-view --text",
        "st-view --check",
    ] {
        run(st_view::run, mode, path, &out)?;
        printed(&out)?;
    }
    for mode in ["st-stat", "st-stat calls", "st-stat sizes", "st-stat clusters"] {
        // Sizes are those of one file.
        if mode != "st-stat sizes" || path.is_file() {
            run(st_stat::run, mode, path, &out)?;
            printed(&out)?;
        }
    }
    // What is read is no output of this process any more.
    let stream = |name: &str| place.path().join(name);
    for (mode, out) in
        [("st-merge -q", stream("merged.st")), ("st-merge -q --keep-columns", stream("kept.st"))]
    {
        run(st_merge::run, mode, path, &out)?;
        kept(&out, trace)?;
    }
    let single = trace.sections.iter().all(|s| s.ranks.len() == 1);
    let out = stream("clustered.st");
    let clustered = run(st_cluster::run, "st-cluster -q", path, &out);
    if single {
        clustered?;
        kept(&out, trace)?;
    } else if clustered.is_ok() {
        return Err("st-cluster takes what is merged".into());
    }
    let columns = || trace.sections.iter().flat_map(|s| &s.threads).flat_map(|t| &t.columns);
    let exact = columns().any(|(_, c)| c.events() > 0) && columns().all(|(_, c)| c.unit() == 1);
    if exact && trace.sections.iter().all(Section::is_plain) {
        let out = stream("corrected.st");
        run(st_sync::run, "st-sync -q", path, &out)?;
        kept(&out, trace)?;
    }
    Ok(())
}
