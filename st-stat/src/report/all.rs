//! A trace and its page.

use std::io::Write as _;

use anyhow::Result;
use st_cli::Output;
use st_explain::analyse_all;
use st_model::num::Exact as _;
use st_model::section::Section;
use st_model::sites::CallSites;

use super::against::Compared;
use super::going::Going;
use super::kept::Holding;
use super::page;
use super::room::Room;
use super::told::Told;
use crate::args::ReportArgs;
use crate::ended::Running;
use crate::explain::Explained;
use crate::input;
use crate::table::bytes;

/// Bytes that a page has at most.
const MOST: usize = 5_000_000;

/// All that a page tells.
pub(super) struct All {
    pub(super) told: Told,
    pub(super) sites: CallSites,
    against: Option<Compared>,
    kept: Holding,
    /// Which run it is.
    pub(super) run: String,
    /// Ranks that are there, and those of the job.
    ranks: (u64, u32),
}

/// What is told of a trace; `going`: of a run that has not ended.
pub(super) fn told(args: &ReportArgs, going: Option<Going<'_>>) -> Result<All> {
    let mut explained = Explained::read_any(&args.explaining(), analyse_all)?;
    let sites = args
        .symbols
        .call_sites((input::NAME, &args.talk), explained.sections.iter().map(|s: &Section| &s.sites));
    let against = Compared::of(args, &explained, &sites)?;
    let kept = Holding::of(args, &explained, &sites)?;
    let (run, whole) = (explained.whole.header.run.clone(), &explained.whole);
    let ranks = (whole.ranks.len(), whole.header.world);
    if let Some(going) = going {
        // Where their journals end they go on.
        let ended = explained.sections.iter_mut().map(|section| &mut section.ended);
        ended.for_each(|ended| ended.retain(|end| !going.ranks.contains(end.rank)));
    }
    // Who follows a run has seen which ranks run.
    let running = match &args.follow {
        Some(_) => Running::default(),
        None => explained.running.clone(),
    };
    let told = Told::of(explained, &sites, &running, &args.window, &args.input.steps)?;
    Ok(All { told, sites, against, kept, run, ranks })
}

impl All {
    /// The page; `going`: of a run that has not ended.
    pub(super) fn page(&self, going: Option<Going<'_>>) -> Result<String> {
        fitted(MOST, |room| {
            let mut report = self.told.report(&self.sites, room)?;
            report.against = self.against.as_ref().map(|against| against.shown(room));
            report.kept = Some(self.kept.shown(room));
            let (there, world) = self.ranks;
            report.live = going.map(|going| going.live(self.told.reaches(), there, world));
            page::of(&report)
        })
    }
}

/// Gives a page its name.
pub(super) fn write(args: &ReportArgs, page: &str) -> Result<()> {
    let mut out = Output::text(&args.output.output)?;
    out.write_all(page.as_bytes())?;
    out.commit()
}

/// A page's name and size.
pub(super) fn named(args: &ReportArgs, page: &str) -> String {
    format!("{}: {}", args.output.output.display(), bytes(page.len().to_u64()))
}

/// The first page that is no longer than that, of those that are made with less and less room. All that grows with a run has its
/// part of the room: the last of them holds next to nothing.
fn fitted(most: usize, make: impl Fn(Room) -> Result<String>) -> Result<String> {
    let mut room = Room::default();
    loop {
        let page = make(room)?;
        match room.smaller().filter(|_| page.len() > most) {
            Some(smaller) => room = smaller,
            None => return Ok(page),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_as_much_as_there_is_room_for() {
        let most = Room::default();
        let made = |most| fitted(most, |room| Ok("x".repeat(room.calls))).map_or(0, |page| page.len());
        assert_eq!(made(usize::MAX), most.calls);
        assert_eq!(made(most.calls - 1), most.calls / 2);
        assert_eq!(made(0), most.calls >> 8, "it is made in the end");
    }
}
