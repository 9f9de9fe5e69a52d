//! Reading what others have written, and writing it as a stream.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use st_cli::options::{Steps, Talk};
use st_cli::{FailedCheck, InvalidStream, Output, UsageError, counted, step};
use st_import::Left;
use st_stream::{MAGIC, WriteOptions, Writer};

use super::formats::{ENDING, SOURCES, ST, names};
use super::source::{Imported, Opened, Source};
use crate::NAME;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task<'a> {
    /// Nothing is standard input.
    pub(crate) inputs: &'a [PathBuf],
    /// Name of their format; else their content tells.
    pub(crate) read_as: Option<&'a str>,
    /// Write nothing if the source does not tell all.
    pub(crate) strict: bool,
    pub(crate) steps: &'a Steps,
    pub(crate) talk: &'a Talk,
}

/// Whether a stream is to be written, by the format that is asked for or the name of the output.
pub(crate) fn is_wanted(to: Option<&str>, output: &Path) -> bool {
    match to {
        Some(to) => to == ST,
        None => output.to_str().is_some_and(|name| name.ends_with(ENDING)),
    }
}

/// Reads what is asked for, and writes it as a stream.
pub(crate) fn run(task: Task<'_>, output: &Path) -> Result<()> {
    let Task { strict, steps: limit, talk, .. } = task;
    let paths = match task.inputs {
        [] => vec![PathBuf::from("-")],
        all => all.to_vec(),
    };
    let mut inputs = paths.iter().map(|path| Opened::open(path, *limit)).collect::<Result<Vec<_>>>()?;
    let Some(first) = inputs.first_mut() else { bail!(UsageError("no input".into())) };
    let source = chosen(task.read_as, first)?;
    let Imported { header, steps, importer } = (source.read)(&mut inputs)?;
    let to = Output::stream(output)?;
    let name = to.name().to_owned();
    let options = if to.is_stdout() { WriteOptions::PIPE } else { WriteOptions::FILE };
    let write = || format!("{name}: writing");
    let mut writer = Writer::new(to, &header, options).with_context(write)?;
    steps.iter().chain([&step(NAME)]).try_for_each(|step| writer.provenance(step)).with_context(write)?;
    let (budget, mut ranks, mut calls) = (limit.budget(), 0u64, 0u64);
    let left = importer.finish(|section| -> Result<()> {
        budget.spend(&section, None, 1)?;
        ranks = ranks.saturating_add(1);
        calls = section.threads.iter().fold(calls, |sum, thread| sum.saturating_add(thread.lanes.calls));
        writer.section(&section).with_context(write)
    })?;
    let done = writer.finish().with_context(write)?;
    if strict && !left.is_empty() {
        let lacks = listed(&left);
        bail!(FailedCheck(format!("--strict: {} does not tell {lacks}; nothing is written", source.name)));
    }
    done.commit()?;
    let (calls, ranks) = (counted(calls, "call"), counted(ranks, "rank"));
    talk.note(NAME, format_args!("{calls} of {ranks}, read from {}", source.name));
    if !left.is_empty() {
        talk.warn(NAME, format_args!("{} does not tell: {}", source.name, listed(&left)));
    }
    Ok(())
}

fn listed(left: &Left) -> String {
    left.iter().map(|(what, n)| format!("{n} {what}")).collect::<Vec<_>>().join(", ")
}

/// The format of the inputs, as it is asked for or as the first one tells.
fn chosen(asked: Option<&str>, first: &mut Opened) -> Result<&'static Source> {
    if let Some(source) = asked.and_then(|name| SOURCES.iter().find(|source| source.name == name)) {
        return Ok(source);
    }
    let begin = first.begin()?;
    if begin.starts_with(&MAGIC) {
        bail!(UsageError(format!("{}: is a stream of st already", first.name)));
    }
    let Some(source) = SOURCES.iter().find(|source| (source.is)(&first.path, &begin)) else {
        if first.path.is_dir() {
            bail!(InvalidStream(format!(
                "{}: is a directory that has no file NAME.otf2, or several",
                first.name
            )));
        }
        if begin.is_empty() {
            bail!(InvalidStream(format!("{}: is empty", first.name)));
        }
        let names = names().join(", ");
        bail!(InvalidStream(format!(
            "{}: in none of the formats that can be read, or damaged; --read-as FORMAT says which it is ({names})",
            first.name
        )));
    };
    Ok(source)
}
