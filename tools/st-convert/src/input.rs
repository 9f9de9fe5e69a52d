//! Reading a trace, and what is asked for of it.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use st_cli::options::{Steps, StreamIn, Talk};
use st_cli::{Symbols, each_section};
use st_explain::PhasesBy;
use st_match::volume::Graphs;
use st_model::rank_times::begin;
use st_model::ranklist::RankList;
use st_model::section::Section;
use st_model::steps::{Budget, Exceeded};

use crate::alike;
use crate::choice::Chosen;
use crate::level::Level;
use crate::numbering::Numbering;
use crate::selection::Selection;
use crate::strangers::Strangers;
use crate::trace::Trace;
use crate::window::Window;

/// Steps that it takes to hand a call to a format.
const HANDED: u64 = 2;

/// Counts what converting a section takes, or some ranks of it.
///
/// # Errors
///
/// If that, with what has been counted before, is more than is allowed.
pub(crate) fn count(budget: &Budget, section: &Section, ranks: Option<&RankList>) -> Result<(), Exceeded> {
    let calls = budget.spend(section, ranks, HANDED);
    budget.spend_threads(section, ranks).and(calls)
}

/// The calls that are asked for are too many.
#[derive(Debug)]
pub(crate) struct TooMany {
    exceeded: Exceeded,
    /// Whether some have exact times.
    pub(crate) timed: bool,
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; some ranks take less (--ranks), and st-stat report shows all", self.exceeded)
    }
}

impl Error for TooMany {}

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Which calls.
    pub(crate) selection: Selection,
    /// Sums of them do.
    pub(crate) sums: bool,
}

/// What is read, and how.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Streams, or directories of streams; none is standard input.
    pub paths: Vec<PathBuf>,
    /// How they are read.
    pub stream: StreamIn,
    /// How call sites are named.
    pub symbols: Symbols,
    /// How much is said on standard error.
    pub talk: Talk,
}

impl Input {
    /// What is read, for messages.
    pub(crate) fn named(&self) -> String {
        match &self.paths[..] {
            [one] if one.as_os_str() != "-" => one.display().to_string(),
            [] | [_] => "standard input".to_owned(),
            all => format!("{} streams", all.len()),
        }
    }

    /// Reads all of it, and says for `tool` what is missing. Threads are those of the ranks that are `asked` for; who goes through their
    /// calls must ask `steps` before.
    pub(crate) fn read(
        &self,
        tool: &'static str,
        steps: Option<&Steps>,
        asked: Option<&Asked>,
    ) -> Result<Trace> {
        let ranks = asked.and_then(|asked| asked.selection.ranks.as_ref());
        let sums = asked.is_some_and(|asked| asked.sums);
        let (mut sections, mut zero, mut timed) = (Vec::new(), None::<i64>, false);
        let budget = steps.map(Steps::budget);
        let mut strangers = Strangers::default();
        let whole = each_section(&self.paths, &self.stream.shown(tool, &self.talk), |_, mut section| {
            strangers.number(&mut section);
            timed |= section.has_times();
            let taken = |budget: &Budget| match alike::moved(&section).filter(|_| sums) {
                Some(_) => alike::count(budget, &section),
                None => count(budget, &section, ranks),
            };
            if budget.as_ref().is_some_and(|budget| taken(budget).is_err()) {
                return Ok(());
            }
            let begins = begin(&section).context("decoding")?;
            zero = zero.into_iter().chain(begins).min();
            sections.push(section);
            Ok(())
        })?;
        budget.as_ref().map_or(Ok(()), Budget::check).map_err(|exceeded| TooMany { exceeded, timed })?;
        whole.remark(tool, &self.talk);
        if let Some(missing) = asked.map_or(Ok(None), |asked| asked.selection.missing(&whole.ranks))? {
            self.talk.warn(tool, missing);
        }
        let sites = self.symbols.call_sites((tool, &self.talk), sections.iter().map(|s| &s.sites));
        let numbers: Vec<Vec<u32>> = sections.iter().map(|s| sites.numbers(&s.sites)).collect();
        let graphs = Graphs::of(&sections)?;
        let numbering = Numbering::of(&sections);
        let mut all = Trace {
            whole: whole.into(),
            sections: sections.into(),
            sites: sites.into(),
            numbers: numbers.into(),
            hosts: [].into(),
            lanes: Vec::new(),
            zero,
            graphs: graphs.into(),
            numbering: numbering.into(),
            window: Window::ALL,
            chosen: Chosen::default(),
            waits: false,
            level: Level::Calls,
            by: PhasesBy::Loop,
            events: 0,
            made: None,
        };
        all.find_lanes(ranks);
        Ok(all)
    }
}
