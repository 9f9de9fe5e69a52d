//! Views of a run as pictures for a paper. Their numbers are texts of the tables that commands print.

mod cells;
mod matrix;
mod path;
mod profile;
mod ranks;
mod spread;

use anyhow::{Result, bail};
use st_cli::{Finished, Output, UsageError};
use st_explain::{Analysis, WaitKind};
use st_model::sites::CallSites;

use self::cells::{nothing, number, text};
use super::told::Told;
use crate::args::{PictureArgs, PictureOf};
use crate::figure::{self, Anchor, Bar, Figure, SMALL, bars};
use crate::input::Lacking;
use crate::levels::{self, Most, Rows};
use crate::logical;
use crate::table::{Cell, Table};
use crate::timeline::drawn;

/// Rows of a timeline at most.
const ROWS: usize = 64;

/// Of logical time, where rows have loops in them, and the loops and calls of all rows.
const LOGICAL: usize = 24;
const BOXES: usize = 4096;

/// Draws the view that is asked for, and writes it wherever that is asked for: none has its name before all are written.
///
/// # Errors
///
/// If the trace lacks what is drawn, or a file cannot be written.
pub(super) fn draw(
    args: &PictureArgs,
    view: PictureOf,
    told: &Told,
    sites: &CallSites,
) -> Result<Vec<Finished>> {
    if args.site.is_some() && view != PictureOf::Spread {
        bail!(UsageError("--site: only --view spread draws one call site".to_owned()));
    }
    let window = match (&told.windows[..], view) {
        ([], _) => None,
        ([window], PictureOf::Timeline | PictureOf::Path) => Some(*window),
        ([_], _) => bail!(UsageError("--window: only --view timeline and path show times".to_owned())),
        _ => bail!(UsageError("--window: a picture shows one".to_owned())),
    };
    let from = window.map_or(0, |(from, _)| from);
    let to_standard_output =
        [&args.svg, &args.png].into_iter().flatten().filter(|path| path.as_os_str() == "-");
    if to_standard_output.count() > 1 {
        bail!(UsageError("--svg - and --png -: standard output holds one picture".to_owned()));
    }
    let mut figure = Figure::new(args.width, format!("{}: {}", told.program, view.name()))?;
    match view {
        PictureOf::Timeline if told.analysis.is_none() => {
            let of = told.logical(sites, logical::Most { rows: LOGICAL, boxes: BOXES })?;
            logical::draw(&mut figure, &of);
        }
        PictureOf::Timeline => {
            let (rows, _) = rows(told, args, window)?;
            drawn::draw(&mut figure, &rows, told.origin.saturating_add(from));
        }
        PictureOf::Path => {
            let (rows, analysis) = rows(told, args, window)?;
            path::draw(&mut figure, &rows, analysis, told.origin, from);
        }
        PictureOf::Matrix => matrix::draw(&mut figure, told)?,
        PictureOf::Profile => profile::draw(&mut figure, told)?,
        PictureOf::Ranks => ranks::draw(&mut figure, told),
        PictureOf::Spread => spread::draw(&mut figure, told, sites, args.site.as_deref())?,
        PictureOf::Efficiency => efficiency(&mut figure, known(told, told.efficiency.as_ref())?),
        PictureOf::Waits => waits(&mut figure, known(told, told.waits.as_ref())?),
    }
    let mut written = Vec::new();
    if let Some(path) = &args.svg {
        let mut out = Output::text(path)?;
        figure::svg(&figure, &mut out)?;
        written.push(out.finish()?);
    }
    if let Some(path) = &args.png {
        let mut out = Output::text(path)?;
        figure::png(&figure, args.dpi, &mut out)?;
        written.push(out.finish()?);
    }
    Ok(written)
}

/// What a trace without times, or without what is kept of them, lacks.
fn known<T>(told: &Told, of: Option<T>) -> Result<T> {
    of.ok_or_else(|| Lacking(told.without.clone()).into())
}

/// Rows of ranks and columns of time, of all of it or a window.
fn rows<'a>(told: &'a Told, args: &PictureArgs, window: Option<(i64, i64)>) -> Result<(Rows, &'a Analysis)> {
    let analysis = known(told, told.analysis.as_ref())?;
    let most = Most { rows: ROWS, columns: drawn::columns(args.width), cells: usize::MAX, window };
    Ok((Rows::ranks(analysis, most), analysis))
}

/// Over this it counts as good (the POP centre).
const GOOD: f64 = 0.8;

/// Measures that are shares, each the product of those that are deeper below it, and how deep they are.
const TREE: [(&str, u8); 5] = [
    ("parallel efficiency", 0),
    ("load balance", 1),
    ("communication efficiency", 1),
    ("serialisation", 2),
    ("transfer", 2),
];

fn efficiency(figure: &mut Figure, table: &Table) {
    let (mut shares, mut times) = (Vec::new(), Vec::new());
    for row in &table.rows {
        let (name, value) = (text(table, row, "measure"), text(table, row, "value"));
        let Some((_, deep)) = TREE.into_iter().find(|(of, _)| *of == name) else {
            times.push((name, value));
            continue;
        };
        let part = number(table, row, "value");
        let colour = if part < GOOD { figure::LATE_SENDER } else { figure::MPI };
        shares.push(Bar { name, place: String::new(), deep, parts: vec![(part, colour)], text: value });
    }
    let mut y = bars(figure, 2.0, &shares) + 7.0;
    for (name, value) in &times {
        figure.text([0.0, y], SMALL, Anchor::Start, name);
        figure.text([figure.width, y], SMALL, Anchor::End, value);
        y += 8.5;
    }
    figure.reach(y - 5.0);
}

fn waits(figure: &mut Figure, table: &Table) {
    if table.rows.is_empty() {
        return nothing(figure, "no wait states");
    }
    let most = table.rows.iter().map(|row| number(table, row, "wait_ns")).fold(1.0, f64::max);
    let bar = |row: &Vec<Cell>| {
        let name = text(table, row, "kind");
        let kind = WaitKind::ALL.into_iter().find(|kind| kind.name() == name);
        let colour = kind.map_or(figure::MPI, |kind| drawn::colour(levels::colour(kind)));
        let parts = vec![(number(table, row, "wait_ns") / most, colour)];
        let text = format!("{}  {}", text(table, row, "wait_ns"), text(table, row, "share_percent"));
        Bar { name, place: String::new(), deep: 0, parts, text }
    };
    let all: Vec<Bar> = table.rows.iter().map(bar).collect();
    bars(figure, 2.0, &all);
}
