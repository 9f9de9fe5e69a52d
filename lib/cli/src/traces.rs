//! Reading a trace from whatever it lies in: a file, a directory of rank streams, standard input.

use crate::options::{StreamIn, Talk};
use crate::output::is_unwritten;
use crate::progress::{Amount, Progress};
use crate::roll::Roll;
use crate::{Input, expand, reads};
use anyhow::{Context, Result};
use st_model::explanation::Explanation;
use st_model::header::{Header, Step};
use st_model::ranklist::RankList;
use st_model::ranklist_notation;
use st_model::section::Section;
use st_stream::{ReadOptions, Reader, Stored, Trace};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the streams of a trace say about the run as a whole.
#[derive(Clone, PartialEq, Debug, Default)]
#[must_use = "say what is missing: `Whole::remark`"]
pub struct Whole {
    /// Facts of the run, from the first stream; the programs of all, once all have been read.
    pub header: Header,
    /// The tools that made it, from the first stream.
    pub provenance: Vec<Step>,
    /// Whether all streams had their end frames.
    pub complete: bool,
    /// Ranks that the streams hold.
    pub ranks: RankList,
    /// Compression level of the first stream.
    pub level: u8,
    /// Bytes of the files; `None` if a stream came through a pipe.
    pub bytes: Option<u64>,
    /// What may be wrong, and is not refused; empty if nothing is.
    pub doubt: String,
    /// What is kept of the wait states of these ranks together.
    pub explanation: Option<Explanation>,
    /// Whether that is of other ranks together, and left out.
    pub unexplained: bool,
}

impl Whole {
    /// What a trace in memory says, which was read from one stream of this name.
    ///
    /// # Errors
    ///
    /// If it holds a rank twice, or one that its run cannot have.
    pub fn of_trace(name: &str, trace: &Trace) -> Result<Self> {
        let (mut roll, name) = (Roll::default(), name.into());
        roll.stream(&name, &trace.header)?;
        trace.sections.iter().try_for_each(|section| roll.section(&name, &section.ranks))?;
        Ok(Self {
            header: trace.header.clone(),
            provenance: trace.provenance.clone(),
            complete: trace.complete,
            ranks: roll.ranks().clone(),
            level: trace.level,
            bytes: None,
            doubt: String::new(),
            explanation: trace.explanation.clone(),
            unexplained: false,
        }
        .of_all())
    }

    /// What is kept of wait states is of all ranks, or left out.
    pub(crate) fn of_all(mut self) -> Self {
        let other = self.explanation.take_if(|e| e.ranks != self.ranks).is_some();
        self.unexplained |= other;
        self
    }

    /// Takes what another stream keeps of wait states: that of two is of neither's ranks with the other's.
    pub(crate) fn explained(&mut self, by: Option<&Explanation>) {
        self.unexplained |= by.is_some() && self.explanation.is_some();
        self.explanation = self.explanation.take().or_else(|| by.cloned());
    }

    /// The ranks of the run that no stream holds.
    #[must_use]
    pub fn missing(&self) -> RankList {
        self.ranks.others(self.header.world)
    }

    /// Says what is not there: the end of a stream, ranks.
    pub fn remark(&self, tool: &str, talk: &Talk) {
        if !self.complete {
            talk.warn(tool, "an input is truncated; what is whole is used");
        }
        if !self.doubt.is_empty() {
            talk.warn(tool, &self.doubt);
        }
        if self.unexplained {
            talk.warn(tool, "what is kept of wait states is of other ranks together: left out");
        }
        let missing = self.missing();
        if !missing.is_empty() {
            let (n, world) = (missing.len(), self.header.world);
            let which = ranklist_notation::plain(&missing);
            talk.warn(tool, format_args!("{n} of {world} ranks are missing: {which}"));
        }
    }
}

/// Reads all sections of the streams that `paths` stand for (see [`expand`]), one at a time, and hands each with the
/// run's header to `take`.
///
/// # Errors
///
/// If a stream cannot be read, if streams are of different runs or hold a rank twice, or if `take` fails.
pub fn each_section(
    paths: &[PathBuf],
    input: &StreamIn,
    mut take: impl FnMut(&Header, Section) -> Result<()>,
) -> Result<Whole> {
    each_section_of(paths, input, |whole, section| take(&whole.header, section))
}

/// As [`each_section`], with all that is known of the run before its first section.
///
/// # Errors
///
/// As [`each_section`].
pub fn each_section_of(
    paths: &[PathBuf],
    input: &StreamIn,
    mut take: impl FnMut(&Whole, Section) -> Result<()>,
) -> Result<Whole> {
    each_stored_of(paths, input, |whole, _, stored| take(whole, stored.section()?))
}

/// As [`each_section_of`], with sections that are not decoded yet, and the name of the stream that each is in.
///
/// # Errors
///
/// As [`each_section`], but for what is wrong inside sections.
pub fn each_stored_of(
    paths: &[PathBuf],
    input: &StreamIn,
    mut take: impl FnMut(&Whole, &Arc<str>, Stored) -> Result<()>,
) -> Result<Whole> {
    let mut whole = Whole { complete: true, bytes: Some(0), ..Whole::default() };
    let mut roll = Roll::default();
    let paths = expand(paths)?;
    paths.iter().try_for_each(|path| reads(path))?;
    let bytes = paths.iter().map(|path| size(path)).sum();
    let progress = Progress::begin(
        input.reader.is_some(),
        input.reader.unwrap_or_default(),
        "reading",
        Amount::Bytes(bytes),
    );
    let budget = input.steps.budget();
    for (i, path) in paths.iter().enumerate() {
        let from = Input::open(path, &input.steps)?;
        let name: Arc<str> = from.name().into();
        let named = || name.to_string();
        let mut reader = Reader::new(progress.of(from), ReadOptions { partial: input.partial })
            .with_context(named)?
            .within(&budget);
        if i == 0 {
            whole.header = reader.header().clone();
            whole.provenance = reader.provenance().to_vec();
            whole.level = reader.level();
        }
        roll.stream(&name, reader.header())?;
        while let Some(section) = reader.next_stored().with_context(named)? {
            roll.section(&name, section.ranks())?;
            take(&whole, &name, section)
                .map_err(|e| if is_unwritten(&e) { e } else { e.context(named()) })?;
        }
        whole.explained(reader.explanation());
        whole.complete &= reader.is_complete();
        whole.bytes = whole.bytes.zip(size(path)).map(|(a, b)| a + b);
    }
    whole.ranks = roll.ranks().clone();
    roll.doubt().clone_into(&mut whole.doubt);
    roll.name_programs(&mut whole.header);
    Ok(whole.of_all())
}

/// The provenance step of this program, as it was started.
#[must_use]
pub fn step(tool: &str) -> Step {
    let args = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    Step { tool: tool.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned(), args }
}

fn size(path: &Path) -> Option<u64> {
    let found = std::fs::metadata(path).ok()?;
    found.is_file().then_some(found.len())
}
