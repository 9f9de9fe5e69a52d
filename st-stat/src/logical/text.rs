//! Rows with characters.

use std::io::{self, Write};

use st_cli::Screen;
use st_model::num::{Exact as _, saturate};
use st_model::ranklist_notation::plain;

use super::boxes::{Boxed, What};
use super::{Logical, Row};
use crate::levels::{COMPUTATION, MPI};
use crate::table::{duration, grouped};

impl Boxed {
    /// How many turns a loop makes each time.
    pub(super) fn turns(&self) -> String {
        let visits = self.visits.max(1);
        if self.runs.is_multiple_of(visits) {
            return format!("×{}", grouped(self.runs / visits));
        }
        // Hundredths, rounded down: as the mean of turns that differ.
        let hundredths = u128::from(self.runs) * 100 / u128::from(visits);
        format!("×{}.{:02}", grouped(saturate(hundredths / 100)), hundredths % 100)
    }
}

impl Logical {
    /// Draws all rows in so many columns.
    pub(crate) fn write(&self, columns: usize, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        screen.sentence(&self.told(), out)?;
        let scale = Scale { span: self.span(), columns: columns.max(1) };
        for row in &self.rows {
            writeln!(out)?;
            let takes = match self.timed {
                true => duration(saturate(row.times[0] + row.times[1])),
                false => format!("{} calls", grouped(row.calls)),
            };
            let thread = if row.thread > 0 { format!("thread {} of ", row.thread) } else { String::new() };
            let one = if row.ranks.len() == 1 { "rank" } else { "ranks" };
            let each = if row.ranks.len() == 1 { "" } else { " each" };
            let head = format!("{thread}{one} {}", plain(&row.ranks));
            let others = if row.shape.is_none() { ", not alike in what they do" } else { "" };
            screen.sentence(&screen.bold(&format!("{head}: {takes}{each}{others}")), out)?;
            for line in self.lines(row, scale) {
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        writeln!(out)?;
        let times = match self.timed {
            true => format!("{COMPUTATION} computation before a call, {MPI} MPI"),
            false => format!("{MPI} calls"),
        };
        screen.sentence(&format!("[×n] a loop of n turns each time; {times}"), out)
    }

    /// A line for each depth of loops, one of what takes the time, and one of calls' names.
    fn lines(&self, row: &Row, scale: Scale) -> Vec<String> {
        let depths = row.boxes.iter().filter(|of| of.what == What::Loop).map(|of| of.depth + 1).max();
        let mut bands = vec![vec![' '; scale.columns]; depths.unwrap_or(0)];
        let mut names = vec![' '; scale.columns];
        let mut sums = vec![[0u128; 2]; scale.columns];
        for of in &row.boxes {
            let begin = self.begin(of);
            let end = begin + self.width([of.computation, of.mpi], of.calls);
            let (from, to) = (scale.column(begin), scale.column(end));
            if of.what == What::Loop {
                band(&mut bands[of.depth], from, to, &of.turns());
                continue;
            }
            let middle = if self.timed { begin + of.computation } else { begin };
            scale.add(&mut sums, [begin, middle], 0);
            scale.add(&mut sums, [middle, end], 1);
            let name = self.name(row, of);
            let name = name.strip_prefix("MPI_").unwrap_or(&name);
            let room = to.saturating_sub(from + 1);
            if room > 1 {
                names.iter_mut().skip(from).zip(name.chars().take(room)).for_each(|(at, c)| *at = c);
            }
        }
        if row.shape.is_none() {
            scale.add(&mut sums, [0, row.times[0]], 0);
            scale.add(&mut sums, [row.times[0], self.width(row.times, row.calls)], 1);
        }
        let mark = |[computation, mpi]: &[u128; 2]| match (*computation, *mpi) {
            (0, 0) => ' ',
            (computation, mpi) if mpi > computation => MPI,
            _ => COMPUTATION,
        };
        let marks = sums.iter().map(mark).collect::<String>();
        let drawn = bands.iter().map(|band| band.iter().collect());
        drawn.chain([marks, names.iter().collect()]).filter(|line: &String| !line.trim().is_empty()).collect()
    }
}

/// Draws a loop.
fn band(line: &mut [char], from: usize, to: usize, turns: &str) {
    let to = to.max(from + 1).min(line.len());
    let Some(place) = line.get_mut(from..to) else { return };
    place.fill('═');
    match place {
        [] => (),
        [only] => *only = '|',
        [first, inner @ .., last] => {
            (*first, *last) = ('[', ']');
            if turns.chars().count() <= inner.len() {
                inner.iter_mut().zip(turns.chars()).for_each(|(at, c)| *at = c);
            }
        }
    }
}

/// Where times are in columns.
#[derive(Clone, Copy)]
struct Scale {
    span: u128,
    columns: usize,
}

impl Scale {
    /// The column nearest to where something begins or ends.
    fn column(self, at: u128) -> usize {
        let columns = u128::from(self.columns.to_u64());
        saturate::<u64>((at * columns + self.span / 2) / self.span).to_usize()
    }

    /// Adds what is from one time to another to the columns that it is in.
    fn add(self, sums: &mut [[u128; 2]], [from, to]: [u128; 2], what: usize) {
        // In parts of a column, so that a short run is no column too early.
        let columns = u128::from(self.columns.to_u64());
        let [from, to] = [from, to].map(|at| at * columns);
        let first = saturate::<u64>(from / self.span).to_usize();
        for (column, sum) in sums.iter_mut().enumerate().skip(first) {
            let begin = u128::from(column.to_u64()) * self.span;
            if begin >= to {
                break;
            }
            sum[what] += to.min(begin + self.span).saturating_sub(from.max(begin));
        }
    }
}
