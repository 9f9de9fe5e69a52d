//! What ranks do when, drawn with characters.

pub(crate) mod drawn;

use std::io::{self, Write};

use anyhow::{Result, bail};
use st_cli::{Finished, Output, Screen, Status};
use st_explain::analyse_all;
use st_model::num::{float, narrow, saturate};
use st_model::section::Section;

use crate::args::{PAPER, RanksBy, TimelineArgs};
use crate::clusters;
use crate::explain::{Explained, rank_cell};
use crate::figure::{self, Figure, PICTURE, not_called_a_trace};
use crate::input::{self, Lacking};
use crate::levels::{self, COMPUTATION, Levels, MPI, Most, Rows};
use crate::logical::{self, Logical};
use crate::rank_groups::RankGroups;
use crate::table::{Cell, Column, Format, Table, duration, grouped};
use crate::untimed::{NO_TIMES, without};
use crate::window;

/// Characters that what a row is called has at most.
const NAME: usize = 20;

/// Columns where there is no screen.
const USUAL: usize = 64;

/// What stands for kinds of waits.
const WAITS: [(char, &str); levels::KINDS] =
    [('s', "late sender"), ('r', "late receiver"), ('c', "collective"), ('w', "window")];

/// What tells of a run without exact times.
const INSTEAD: &str = "without these, a row is ranks that do the same (--by rank), in logical time";

/// Loops and calls that are drawn in logical time.
const BOXES: usize = 4096;

/// `st-stat timeline`.
pub(crate) fn timeline(args: &TimelineArgs) -> Result<Status> {
    let explained = Explained::measured(&args.of, analyse_all)?;
    let Some(analysis) = &explained.analysis else {
        return logically(args, &explained);
    };
    let (origin, windows) = window::asked(&explained, args.window.as_slice())?;
    let window = windows.first().copied();
    let origin = origin.saturating_add(window.map_or(0, |(from, _)| from));
    let groups = groups(args, &explained)?;
    let rows = |most: Most| match &groups {
        Some(groups) => Rows::groups(analysis, args.by, groups, most),
        None => Rows::ranks(analysis, most),
    };
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    let longest = match &groups {
        Some(groups) => groups.names.iter().map(|name| name.chars().count()).max().unwrap_or(0),
        None => grouped(analysis.ranks.last().map_or(0, |r| r.rank).into()).len(),
    };
    let label = longest.max(args.by.one().len()).min(NAME);
    let text = args.of.format == Format::Text;
    let fits = if text { screen.width.saturating_sub(label + 1).max(1) } else { USUAL };
    let columns = args.columns.map_or(fits, usize::from);
    let most = Most { rows: args.rows.into(), columns, cells: usize::MAX, window };
    let mut drawn = None;
    if let Some(path) = &args.svg {
        not_called_a_trace("--svg", path, PICTURE)?;
        let mut picture = Output::text(path)?;
        let rows = rows(Most { columns: drawn::columns(PAPER), ..most });
        let mut figure = Figure::new(PAPER, format!("{}: timeline", explained.whole.header.command()))?;
        drawn::draw(&mut figure, &rows, origin);
        figure::svg(&figure, &mut picture)?;
        drawn = Some(picture.finish()?);
    }
    let timeline = Timeline { rows: rows(most), origin, label };
    if text {
        timeline.write(screen, &mut out)?;
    } else {
        timeline.table().write(args.of.format, screen, &mut out)?;
    }
    out.finish()?.commit()?;
    drawn.map_or(Ok(()), Finished::commit)?;
    Ok(Status::Ok)
}

/// Draws loops and calls in the place of time.
fn logically(args: &TimelineArgs, explained: &Explained) -> Result<Status> {
    let lack = without(NO_TIMES, &explained.whole.header);
    if args.by != RanksBy::Rank {
        bail!(Lacking(format!("{lack}; {INSTEAD}")));
    }
    window::asked(explained, args.window.as_slice())?;
    let sections = &explained.sections;
    let sites = args.symbols.call_sites((input::NAME, &args.of.talk), sections.iter().map(|s| &s.sites));
    let most = logical::Most { rows: args.rows.into(), boxes: BOXES };
    let sections: Vec<&Section> = sections.iter().collect();
    let found = Logical::of(&sections, &sites, most, &args.of.input.steps.budget())?;
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    let mut drawn = None;
    if let Some(path) = &args.svg {
        not_called_a_trace("--svg", path, PICTURE)?;
        let mut picture = Output::text(path)?;
        let mut figure = Figure::new(PAPER, format!("{}: logical time", explained.whole.header.command()))?;
        logical::draw(&mut figure, &found);
        figure::svg(&figure, &mut picture)?;
        drawn = Some(picture.finish()?);
    }
    if args.of.format == Format::Text {
        args.of.talk.note(input::NAME, format!("{lack}; loops and calls are shown instead"));
        found.write(args.columns.map_or(screen.width, usize::from), screen, &mut out)?;
    } else {
        found.table(&sites).write(args.of.format, screen, &mut out)?;
    }
    out.finish()?.commit()?;
    drawn.map_or(Ok(()), Finished::commit)?;
    Ok(Status::Ok)
}

/// What rows are, if not ranks. Clusters are looked for where nobody has put ranks into any.
fn groups(args: &TimelineArgs, explained: &Explained) -> Result<Option<RankGroups>> {
    let sections = &explained.sections;
    Ok(match args.by {
        RanksBy::Rank => None,
        RanksBy::Node => Some(RankGroups::nodes(sections)),
        RanksBy::Cluster => {
            let budget = args.of.input.steps.budget();
            sections.iter().try_for_each(|section| budget.spend_ranks(section))?;
            let asked = clusters::by_asked(&explained.whole.provenance);
            // Clusters are not found by when calls were: one section at a time has a copy of that.
            let copies = sections.iter().map(|section| {
                let mut copy = section.clone();
                copy.threads.iter_mut().for_each(|thread| thread.columns.clear());
                copy
            });
            Some(RankGroups::clusters(&clusters::found(copies.collect(), asked, &|_| ())?, asked))
        }
    })
}

/// A run in rows and columns.
struct Timeline {
    rows: Rows,
    /// When it begins, ns.
    origin: i64,
    /// Characters of what a row is called.
    label: usize,
}

impl Timeline {
    /// When a column begins, ns.
    fn begin(&self, column: usize) -> i64 {
        self.origin.saturating_add(self.rows.levels.column_ns.saturating_mul(narrow(column)))
    }

    /// A time over every sixteenth column, if there is room for it: as many digits as tell them apart.
    fn times(&self, columns: usize) -> String {
        let begins: Vec<u64> = (0..columns).step_by(16).map(|column| saturate(self.begin(column))).collect();
        let mut shown: Vec<String> = begins.iter().map(|ns| duration(*ns)).collect();
        for digits in 3..=9 {
            if shown.windows(2).all(|next| next[0] != next[1]) {
                break;
            }
            shown = begins.iter().map(|ns| format!("{:.digits$} s", float((*ns).into()) / 1e9)).collect();
        }
        let fits = |(at, text): (usize, String)| {
            (at * 16 + text.chars().count() <= columns).then_some(format!("{text:<16}"))
        };
        shown.into_iter().enumerate().map_while(fits).collect()
    }

    fn wait(&self, kind: usize, cell: usize) -> u64 {
        self.rows.levels.waits.get(kind).and_then(|sums| sums.get(cell)).copied().unwrap_or(0)
    }

    /// What stands for a cell, and the kind of wait that it is.
    fn mark(&self, cell: usize) -> (char, Option<usize>) {
        let at = |sums: &[u64]| sums.get(cell).copied().unwrap_or(0);
        let (computation, mpi) = (at(&self.rows.levels.computation), at(&self.rows.levels.mpi));
        let all = computation.saturating_add(mpi);
        let waits: u64 = (0..WAITS.len()).map(|kind| self.wait(kind, cell)).fold(0, u64::saturating_add);
        let longest = (0..WAITS.len()).max_by_key(|kind| (self.wait(*kind, cell), WAITS.len() - kind));
        match longest.filter(|_| waits > 0 && waits >= all / 8) {
            _ if all == 0 => (' ', None),
            Some(kind) if waits >= all / 2 => (WAITS[kind].0.to_ascii_uppercase(), Some(kind)),
            Some(kind) => (WAITS[kind].0, Some(kind)),
            None if mpi > computation => (MPI, None),
            None => (COMPUTATION, None),
        }
    }

    fn write(&self, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        let Levels { rows, columns, column_ns, .. } = self.rows.levels;
        let (width, ns) = (self.label, saturate(column_ns));
        writeln!(out, "a row is {}, a column {}", self.rows.each(), duration(ns))?;
        let times = self.times(columns);
        writeln!(out, "{:>width$} {}", self.rows.by.one(), times.trim_end())?;
        for row in 0..rows {
            let mut line = String::new();
            for column in 0..columns {
                let (mark, kind) = self.mark(row * columns + column);
                let text = mark.to_string();
                line += &kind.map_or(text.clone(), |kind| screen.coloured(&text, kind));
            }
            let [name, _] = self.rows.ends(row);
            // Of names the end tells most.
            let name: String = name.chars().skip(name.chars().count().saturating_sub(width)).collect();
            writeln!(out, "{name:>width$} {}", line.trim_end())?;
        }
        let there = |kind: &usize| self.rows.levels.waits.get(*kind).is_some_and(|sums| !sums.is_empty());
        let waits: Vec<String> = (0..WAITS.len())
            .filter(there)
            .map(|kind| format!("{} {}", screen.coloured(&WAITS[kind].0.to_string(), kind), WAITS[kind].1))
            .collect();
        let waits = match waits.is_empty() {
            true => "; no waits".to_owned(),
            false => format!(", waits: {} (capital: half of the time or more)", waits.join(", ")),
        };
        screen.sentence(&format!("{COMPUTATION} computation, {MPI} MPI{waits}"), out)
    }

    /// A row per cell in which there is something.
    fn table(&self) -> Table {
        let right = |title, key| Column::right(title, key, 0);
        let Rows { levels, by, .. } = &self.rows;
        let [first, last] = match by {
            RanksBy::Rank => [right("from rank", "first_rank"), right("to rank", "last_rank")],
            RanksBy::Node => [Column::left("from node", "first_node"), Column::left("to node", "last_node")],
            RanksBy::Cluster => [right("from cluster", "first_cluster"), right("to cluster", "last_cluster")],
        };
        let columns = vec![
            first,
            last,
            right("begin", "begin_ns"),
            right("end", "end_ns"),
            right("computation", "computation_ns"),
            right("in MPI", "mpi_ns"),
            right("late sender", "late_sender_ns"),
            right("late receiver", "late_receiver_ns"),
            right("collective", "collective_ns"),
            right("window", "one_sided_ns"),
        ];
        let mut rows = Vec::new();
        for cell in 0..levels.rows * levels.columns {
            let sum = |sums: &[u64]| sums.get(cell).copied().unwrap_or(0);
            let (computation, mpi) = (sum(&levels.computation), sum(&levels.mpi));
            if computation == 0 && mpi == 0 {
                continue;
            }
            let (first, last) = levels.ends(cell / levels.columns);
            let ends = match by {
                // A row of those that the trace does not tell has no number.
                RanksBy::Node => self.rows.ends(cell / levels.columns).map(Cell::text),
                RanksBy::Rank | RanksBy::Cluster => [rank_cell(first), rank_cell(last)],
            };
            let column = cell % levels.columns;
            let times = [column, column + 1].map(|c| Cell::ns(saturate::<u64>(self.begin(c)).into()));
            let sums =
                [computation, mpi].into_iter().chain((0..WAITS.len()).map(|kind| self.wait(kind, cell)));
            rows.push(ends.into_iter().chain(times).chain(sums.map(|ns| Cell::ns(ns.into()))).collect());
        }
        Table { columns, rows, total: None }
    }
}
