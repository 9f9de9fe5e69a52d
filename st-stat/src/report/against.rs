//! What has changed since another run.

use anyhow::Result;
use st_model::sites::CallSites;

use super::data::{Against, Columns};
use super::room::Room;
use crate::args::ReportArgs;
use crate::changes::How;
use crate::compare::{Reading, Timed, judged};
use crate::explain::Explained;
use crate::table::Table;

/// A comparison with another run.
pub(super) struct Compared {
    command: String,
    runs: String,
    counts: String,
    changes: Table,
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
        let budget = args.steps.budget();
        let first = Timed::read(path, &how, &budget)?;
        let bases = args.base.iter().map(|path| Timed::read(path, &how, &budget)).collect::<Result<_>>()?;
        let name = args.inputs.first().map_or_else(|| "-".to_owned(), |path| path.display().to_string());
        let of = (name, explained.whole.header.command());
        let second = Timed::of(of, (&explained.sections, sites.clone()), &budget)?;
        let found = judged([&first, &second], bases, How { weak: args.weak, threshold: None }, &args.talk)?;
        Ok(Some(Self {
            runs: found.runs(),
            counts: found.counts(),
            changes: found.table([&first.run.1, &second.run.1], false, true),
            command: first.command,
        }))
    }

    /// What fits into the room.
    pub(super) fn shown(&self, room: Room) -> Against {
        Against {
            command: self.command.clone(),
            runs: self.runs.clone(),
            counts: self.counts.clone(),
            changes: Columns::of(&self.changes, room.sites, room.texts),
        }
    }
}
