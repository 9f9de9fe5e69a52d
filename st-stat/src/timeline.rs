//! What ranks do when, drawn with characters.

pub(crate) mod drawn;

use std::io::{self, Write};

use anyhow::Result;
use st_cli::{Finished, Output, Screen, Status};
use st_explain::analyse_all;
use st_model::num::{Exact as _, narrow, saturate};

use crate::args::{PAPER, TimelineArgs};
use crate::explain::{Explained, rank_cell};
use crate::figure::{self, Figure};
use crate::levels::{self, Levels, Most};
use crate::table::{Cell, Column, Format, Table, duration, grouped};

/// Columns where there is no screen.
const USUAL: usize = 64;

/// What stands for computation and MPI, and for kinds of waits.
const COMPUTATION: char = '·';
const MPI: char = '-';
const WAITS: [(char, &str); levels::KINDS] =
    [('s', "late sender"), ('r', "late receiver"), ('c', "collective"), ('w', "window")];

/// `st-stat timeline`.
pub(crate) fn timeline(args: &TimelineArgs) -> Result<Status> {
    let explained = Explained::measured(&args.of, analyse_all)?;
    let analysis = explained.known()?;
    let origin = levels::origin(analysis, &explained.sections)?;
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    let ranks = analysis.ranks.last().map_or(0, |r| r.rank);
    let label = grouped(ranks.into()).len().max(4);
    let text = args.of.format == Format::Text;
    let fits = if text { screen.width.saturating_sub(label + 1).max(1) } else { USUAL };
    let columns = args.columns.map_or(fits, usize::from);
    let most = Most { rows: args.rows.into(), columns, cells: usize::MAX };
    let mut drawn = None;
    if let Some(path) = &args.svg {
        let mut picture = Output::text(path)?;
        let levels = levels::of(analysis, Most { columns: drawn::columns(PAPER), ..most });
        let mut figure = Figure::new(PAPER, format!("{}: timeline", explained.whole.header.command()))?;
        drawn::draw(&mut figure, &levels, origin);
        figure::svg(&figure, &mut picture)?;
        drawn = Some(picture.finish()?);
    }
    let timeline = Timeline { levels: levels::of(analysis, most), origin, label };
    if text {
        timeline.write(screen, &mut out)?;
    } else {
        timeline.table().write(args.of.format, screen, &mut out)?;
    }
    out.finish()?.commit()?;
    drawn.map_or(Ok(()), Finished::commit)?;
    Ok(Status::Ok)
}

/// A run in rows and columns.
struct Timeline {
    levels: Levels,
    /// When it begins, ns.
    origin: i64,
    /// Characters of a rank's number.
    label: usize,
}

impl Timeline {
    /// When a column begins, ns.
    fn begin(&self, column: usize) -> i64 {
        self.origin.saturating_add(self.levels.column_ns.saturating_mul(narrow(column)))
    }

    fn wait(&self, kind: usize, cell: usize) -> u64 {
        self.levels.waits.get(kind).and_then(|sums| sums.get(cell)).copied().unwrap_or(0)
    }

    /// What stands for a cell, and the kind of wait that it is.
    fn mark(&self, cell: usize) -> (char, Option<usize>) {
        let at = |sums: &[u64]| sums.get(cell).copied().unwrap_or(0);
        let (computation, mpi) = (at(&self.levels.computation), at(&self.levels.mpi));
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
        let Levels { group, rows, columns, column_ns, .. } = self.levels;
        let (width, ns) = (self.label, saturate(column_ns));
        let each = if group == 1 { "a rank".into() } else { format!("{} ranks", grouped(group.to_u64())) };
        writeln!(out, "a row is {each}, a column {}", duration(ns))?;
        // A time over every sixteenth column.
        let time = |column: usize| format!("{:<16}", duration(saturate(self.begin(column))));
        let times: String = (0..columns).step_by(16).map(time).collect();
        let times: String = times.chars().take(columns).collect();
        writeln!(out, "{:>width$} {}", "rank", times.trim_end())?;
        for row in 0..rows {
            let mut line = String::new();
            for column in 0..columns {
                let (mark, kind) = self.mark(row * columns + column);
                let text = mark.to_string();
                line += &kind.map_or(text.clone(), |kind| screen.coloured(&text, kind));
            }
            writeln!(out, "{:>width$} {}", grouped(self.levels.ends(row).0.into()), line.trim_end())?;
        }
        let there = |kind: &usize| self.levels.waits.get(*kind).is_some_and(|sums| !sums.is_empty());
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
        let columns = vec![
            right("from rank", "first_rank"),
            right("to rank", "last_rank"),
            right("begin", "begin_ns"),
            right("end", "end_ns"),
            right("computation", "computation_ns"),
            right("in MPI", "mpi_ns"),
            right("late sender", "late_sender_ns"),
            right("late receiver", "late_receiver_ns"),
            right("collective", "collective_ns"),
            right("window", "one_sided_ns"),
        ];
        let levels = &self.levels;
        let mut rows = Vec::new();
        for cell in 0..levels.rows * levels.columns {
            let sum = |sums: &[u64]| sums.get(cell).copied().unwrap_or(0);
            let (computation, mpi) = (sum(&levels.computation), sum(&levels.mpi));
            if computation == 0 && mpi == 0 {
                continue;
            }
            let (first, last) = levels.ends(cell / levels.columns);
            let column = cell % levels.columns;
            let times = [column, column + 1].map(|c| Cell::ns(saturate::<u64>(self.begin(c)).into()));
            let sums =
                [computation, mpi].into_iter().chain((0..WAITS.len()).map(|kind| self.wait(kind, cell)));
            let ends = [rank_cell(first), rank_cell(last)];
            rows.push(ends.into_iter().chain(times).chain(sums.map(|ns| Cell::ns(ns.into()))).collect());
        }
        Table { columns, rows, total: None }
    }
}
