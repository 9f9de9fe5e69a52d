//! One page that shows the whole run: [`told`] is what other commands find, [`data`] what the page holds of it, in the [`room`] there is.

mod against;
mod all;
mod bands;
mod data;
mod detail;
mod extremes;
mod follow;
mod going;
mod groups;
mod kept;
mod page;
mod pairs;
mod pictures;
mod ranks;
mod room;
mod spots;
mod stacks;
mod structure;
mod told;

use anyhow::Result;
use st_cli::{Finished, Status, refuse_terminal};

use self::all::{named, told, write};
use crate::args::ReportArgs;
use crate::figure::{PICTURE, not_called_a_trace};
use crate::input;

/// `st-stat report`.
pub(crate) fn report(args: &ReportArgs) -> Result<Status> {
    // Beside a run that is followed it may be what st-record is about to write.
    not_called_a_trace("-o", &args.output.output, "a page is HTML: name it .html")?;
    for (option, path) in [("--svg", &args.picture.svg), ("--png", &args.picture.png)] {
        path.iter().try_for_each(|path| not_called_a_trace(option, path, PICTURE))?;
    }
    if let Some(path) = &args.follow {
        return follow::follow(args, path);
    }
    // Beside a picture the page is written only to a file.
    let asked = args.picture.view.is_none() || args.output.output.as_os_str() != "-";
    if asked {
        refuse_terminal(&args.output.output, "a page")?;
    }
    let told = told(args, None)?;
    let pictures = match args.picture.view {
        Some(view) => pictures::draw(&args.picture, view, &told.told, &told.sites)?,
        None => Vec::new(),
    };
    let page = if asked { Some(told.page(None)?) } else { None };
    if let Some(page) = &page {
        write(args, page)?;
    }
    pictures.into_iter().try_for_each(Finished::commit)?;
    if let Some(page) = page.filter(|_| args.output.output.as_os_str() != "-") {
        args.talk.note(input::NAME, format!("{}; open it in a browser", named(args, &page)));
    }
    Ok(Status::Ok)
}
