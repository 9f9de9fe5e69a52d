//! One page that shows the whole run: [`told`] is what other commands find, [`data`] what the page holds of it, in the [`room`] there is.

mod against;
mod bands;
mod data;
mod kept;
mod lanes;
mod nodes;
mod page;
mod pairs;
mod ranks;
mod room;
mod spots;
mod stacks;
mod structure;
mod told;

use std::io::Write as _;

use anyhow::Result;
use st_cli::{Output, Status};
use st_explain::analyse_all;
use st_model::num::Exact as _;
use st_model::section::Section;

use self::against::Compared;
use self::kept::Holding;
use self::room::Room;
use self::told::Told;
use crate::args::ReportArgs;
use crate::explain::Explained;
use crate::input;
use crate::table::bytes;

/// Bytes that a page has at most.
const MOST: usize = 5_000_000;

/// `st-stat report`.
pub(crate) fn report(args: &ReportArgs) -> Result<Status> {
    let explained = Explained::read_any(&args.explaining(), analyse_all)?;
    let sites = args
        .symbols
        .call_sites((input::NAME, &args.talk), explained.sections.iter().map(|s: &Section| &s.sites));
    let against = Compared::of(args, &explained, &sites)?;
    let kept = Holding::of(args, &explained, &sites)?;
    let told = Told::of(explained, (&sites, &args.window), &args.steps)?;
    let page = fitted(MOST, |room| {
        let mut report = told.report(&sites, room)?;
        report.against = against.as_ref().map(|against| against.shown(room));
        report.kept = Some(kept.shown(room));
        page::of(&report)
    })?;
    let mut out = Output::text(&args.output.output)?;
    let named = (!out.is_stdout()).then(|| out.name().to_owned());
    out.write_all(page.as_bytes())?;
    out.commit()?;
    if let Some(name) = named {
        let size = bytes(page.len().to_u64());
        args.talk.note(input::NAME, format!("{name}: {size}; open it in a browser"));
    }
    Ok(Status::Ok)
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
