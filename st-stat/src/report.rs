//! One page that shows the whole run: [`told`] is what other commands find, [`data`] what the page holds of it, in the [`room`] there is.

mod data;
mod lanes;
mod page;
mod pairs;
mod ranks;
mod room;
mod spots;
mod structure;
mod told;

use std::io::Write as _;

use anyhow::Result;
use st_cli::{Output, Status};
use st_explain::analyse_all;
use st_model::section::Section;

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
    let told = Told::of(explained, (&sites, &args.window), &args.steps)?;
    let mut room = Room::default();
    let page = loop {
        let data = told.report(&sites, room)?;
        let page = page::of(&data)?;
        // What stays whatever the room, as names, is small; yet nothing but a bound on the tries holds for all traces.
        match room.smaller().filter(|_| page.len() > MOST) {
            Some(smaller) => room = smaller,
            None => break page,
        }
    };
    let mut out = Output::text(&args.output.output)?;
    let name = out.name().to_owned();
    out.write_all(page.as_bytes())?;
    out.commit()?;
    let size = bytes(st_model::num::Exact::to_u64(page.len()));
    args.talk.note(input::NAME, format!("{name}: {size}; open it in a browser"));
    Ok(Status::Ok)
}
