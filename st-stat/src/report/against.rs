//! What has changed since another run.

use anyhow::Result;
use st_match::Unknown;
use st_model::section::Section;
use st_model::sites::CallSites;
use st_model::steps::Exceeded;

use super::data::{Against, Columns};
use super::room::Room;
use crate::args::ReportArgs;
use crate::changes::How;
use crate::compare::{Reading, Timed, judged};
use crate::explain::Explained;
use crate::input::{self, Lacking};
use crate::table::Table;
use crate::violations;

/// A comparison with another run.
pub(super) struct Compared {
    command: String,
    runs: String,
    counts: String,
    changes: Table,
    /// Of the same run: messages that arrived before they were sent.
    violations: Option<Table>,
}

/// What another trace of the same run says of its clocks, if it has exact times.
fn before(
    args: &ReportArgs,
    explained: &Explained,
    run: &str,
    sections: &[Section],
) -> Result<Option<Table>> {
    let same = !run.is_empty() && run == explained.whole.header.run;
    if !same || !sections.iter().any(Section::has_times) {
        return Ok(None);
    }
    match violations::survey_of(sections, &args.input.steps) {
        Err(e) if e.is::<Lacking>() || e.is::<Exceeded>() || e.is::<Unknown>() => Ok(None),
        found => Ok(Some(violations::totals(&found?))),
    }
}

impl Compared {
    /// With the run that is asked for, if one is: that is the first, the one that the page is of the second.
    ///
    /// # Errors
    ///
    /// As those of `st-stat diff --time`.
    pub(super) fn of(args: &ReportArgs, explained: &Explained, sites: &CallSites) -> Result<Option<Self>> {
        let Some(path) = &args.against else { return Ok(None) };
        let how = Reading { symbols: &args.symbols, input: &args.input, talk: &args.talk };
        let budget = args.input.steps.budget();
        let (whole, sections) = input::sections(std::slice::from_ref(path), &args.input, &args.talk)?;
        let named = args.symbols.call_sites((input::NAME, &args.talk), sections.iter().map(|s| &s.sites));
        let first = Timed::of(path.display().to_string(), &whole.header, &sections, named, &budget)?;
        let violations = before(args, explained, &whole.header.run, &sections)?;
        let bases = args.base.iter().map(|path| Timed::read(path, &how, &budget)).collect::<Result<_>>()?;
        let name = args.inputs.first().map_or_else(|| "-".to_owned(), |path| path.display().to_string());
        let header = &explained.whole.header;
        let second = Timed::of(name, header, &explained.sections, sites.clone(), &budget)?;
        let found = judged([&first, &second], bases, How { weak: args.weak, threshold: None }, &args.talk)?;
        Ok(Some(Self {
            runs: found.runs(),
            counts: found.counts(),
            changes: found.table([&first.run.1, &second.run.1], false, true),
            command: first.command,
            violations,
        }))
    }

    /// What fits into the room.
    pub(super) fn shown(&self, room: Room) -> Against {
        Against {
            command: self.command.chars().take(room.texts).collect(),
            runs: self.runs.clone(),
            counts: self.counts.clone(),
            changes: Columns::of(&self.changes, room.sites, room.texts),
            violations: self.violations.as_ref().map(|all| Columns::of(all, room.sites, room.texts)),
        }
    }
}
