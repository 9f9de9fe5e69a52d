//! How iterations of the outermost loops change over the run.

use std::io::{self, Write};

use anyhow::{Result, bail};
use st_cli::{Output, Screen, Status, counted};
use st_explain::{Analysis, Loop, Moment, PhasesBy, Waited, analyse_each, phases as cut, sum};
use st_model::num::{Exact as _, saturate};
use st_model::section::Section;
use st_model::sites::CallSites;

use crate::args::PhasesArgs;
use crate::calls::{SITE, function, site_cells};
use crate::explain::{self, HISTOGRAMS};
use crate::input::{self, Lacking};
use crate::levels::zero;
use crate::table::{Cell, Column, Format, Table, duration, grouped, ranks};
use crate::untimed::{NO_TIMES, without};

/// Loops that are drawn at most, and slow iterations of each that are named.
const MOST: usize = 5;
/// Columns of a drawing at most, and what stands beside it.
const DRAWN: usize = 48;
/// Iterations from which on tenths of them are told, and a trend.
pub(crate) const TENTHS: usize = 10;
const BESIDE: usize = 42;
/// Parts of a whole, in eighths.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// `st-stat phases`.
pub(crate) fn phases(args: &PhasesArgs) -> Result<Status> {
    let of = &args.of;
    let (whole, sections) = input::sections(&of.inputs, &of.input, &of.talk)?;
    if !sections.iter().any(Section::has_times) {
        bail!(Lacking(format!(
            "{}; sketches add times up over the whole run, and do not say when they were",
            without(NO_TIMES, &whole.header)
        )));
    }
    if sections.iter().any(|s| s.histograms().next().is_some()) {
        bail!("{HISTOGRAMS}");
    }
    explain::pay(&whole, &sections, &of.input.steps, 2)?;
    let progress = explain::explaining(&sections, &of.talk);
    let mut analysis = analyse_each(&sections, &|n| progress.advance(n))?;
    drop(progress);
    explain::remark(&analysis, &whole.header.clock, &of.talk);
    let sites = args.symbols.call_sites((input::NAME, &of.talk), sections.iter().map(|s| &s.sites));
    let each = std::mem::take(&mut analysis.each);
    let phases = Phases::of(args.by, &sections, &sites, &analysis, &each)?;
    let mut out = Output::text(&of.output.output)?;
    let screen = Screen::of(&out);
    if of.format == Format::Text {
        phases.write(screen, &mut out)?;
    } else {
        phases.table().write(of.format, screen, &mut out)?;
    }
    out.commit()?;
    explain::tell_of_threads(&sections, &of.talk);
    Ok(Status::Ok)
}

/// What a run is cut into.
pub(crate) struct Phases<'a> {
    /// Those that take most first.
    pub(crate) loops: Vec<Loop>,
    analysis: &'a Analysis,
    /// When the first rank enters `MPI_Init`.
    zero: i64,
    sections: &'a [Section],
    sites: &'a CallSites,
}

impl<'a> Phases<'a> {
    /// Of a trace with exact times, whose waits are `each`.
    ///
    /// # Errors
    ///
    /// If a rank cannot be read back.
    pub(crate) fn of(
        by: PhasesBy,
        sections: &'a [Section],
        sites: &'a CallSites,
        analysis: &'a Analysis,
        each: &[Waited],
    ) -> Result<Self> {
        let loops = cut(sections, by, each, &analysis.lanes)?;
        Ok(Self { loops, analysis, zero: zero(analysis, sections)?, sections, sites })
    }

    /// The loops that take more than 1 % of the time, or the one that takes most if none does, and no more than are drawn.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &Loop> {
        let least = self.analysis.time() / 100;
        let longest = self.loops.iter().map(|l| l.whole().time).max().unwrap_or(0);
        self.loops.iter().filter(move |l| l.whole().time >= longest.min(least + 1)).take(MOST)
    }

    /// The first call of a loop: its function, and the number of its call site.
    pub(crate) fn place(&self, of: &Loop) -> (String, Option<u32>) {
        let call = of.place.call;
        let named = self.sections.iter().find(|s| s.tables.names.contains_key(&call));
        let named = named.or(self.sections.first());
        let name = named.map_or_else(String::new, |s| function(call, &s.tables));
        (name, of.place.site.and_then(|id| self.sites.number(id)))
    }

    /// One row per iteration.
    pub(crate) fn table(&self) -> Table {
        let columns = vec![
            Column::right("loop", "loop", 0),
            Column::right("level", "level", 0),
            Column::left("first call", "function"),
            Column::right("iteration", "iteration", 0),
            Column::right("ranks", "ranks", 0),
            Column::right("begin", "begin_ns", 0),
            Column::right("end", "end_ns", 0),
            Column::right("time", "time_ns", 0),
            Column::right("longest", "longest_ns", 0),
            Column::right("on rank", "longest_rank", 0),
            Column::right("computes", "computation_longest_ns", 0),
            Column::right("rank", "computation_longest_rank", 0),
            Column::right("in MPI", "mpi_ns", 0),
            Column::right("waiting", "wait_ns", 0),
        ];
        let pauses = self.loops.iter().flat_map(|of| &of.turns).any(|turn| turn.paused > 0);
        let paused = pauses.then_some(Column::right("paused", "paused_ns", 0));
        let since = |at: i64| Cell::ns(saturate::<u64>(at.saturating_sub(self.zero)).into());
        let mut rows = Vec::new();
        for (i, of) in self.loops.iter().enumerate() {
            let (name, site) = self.place(of);
            let site = site_cells(site, self.sites);
            for turn in &of.turns {
                let mean = |ns: u64| Cell::ns((ns / turn.ranks.max(1)).into());
                let mut row = vec![
                    Cell::count(i.to_u64()),
                    of.level.map_or_else(Cell::none, |level| Cell::shown(level.into(), level.to_string())),
                    Cell::text(name.clone()),
                    Cell::count(turn.number),
                    Cell::count(turn.ranks),
                    since(turn.begin),
                    since(turn.end),
                    mean(turn.time),
                    Cell::ns(turn.longest.0.into()),
                    Cell::count(turn.longest.1.into()),
                    Cell::ns(turn.busiest.0.into()),
                    Cell::count(turn.busiest.1.into()),
                    mean(turn.mpi),
                    mean(turn.wait),
                ];
                row.extend(pauses.then(|| mean(turn.paused)));
                row.extend(site.clone());
                rows.push(row);
            }
        }
        Table { columns: columns.into_iter().chain(paused).chain(SITE).collect(), rows, total: None }
    }

    fn write(&self, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        if self.loops.is_empty() {
            return writeln!(out, "no loop around calls is known, and no phase");
        }
        let mut shown = 0;
        for (i, of) in self.shown().enumerate() {
            shown += 1;
            if i > 0 {
                writeln!(out)?;
            }
            self.describe(of, screen, out)?;
        }
        let rest = self.loops.len() - shown;
        if rest > 0 {
            writeln!(out, "… and {rest} more, which take less (--format csv)")?;
        }
        Ok(())
    }

    fn describe(&self, of: &Loop, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        let (whole, n) = (of.whole(), of.turns.len().to_u64());
        let all = counted(n, one(of));
        let what = match of.level {
            Some(level) => format!("{all} of level {level}"),
            None => format!("loop of {all}"),
        };
        let among: u64 = self.sections.iter().map(|section| section.ranks.len()).sum();
        let who =
            if of.ranks.len().to_u64() < among { format!(" on {}", ranks(&of.ranks)) } else { String::new() };
        let share = Cell::percent(whole.time.into(), self.analysis.time().into()).text;
        writeln!(out, "{}", screen.bold(&format!("{what}{who}, {share} of the time")))?;
        let (name, site) = self.place(of);
        let place = site.map_or_else(String::new, |site| format!(" ({})", self.sites.describe(site)));
        writeln!(out, "from {name}{place}")?;
        let columns = screen.width.saturating_sub(BESIDE).clamp(1, DRAWN).min(of.turns.len());
        let all = of.turns.len();
        let parts: Vec<Moment> =
            (0..columns).map(|i| sum(&of.turns[i * all / columns..(i + 1) * all / columns])).collect();
        let longest = parts.iter().map(Moment::mean).max().unwrap_or(0);
        let line = |of: &dyn Fn(&Moment) -> (u64, u64)| -> String {
            parts.iter().map(|part| bar(of(part))).collect()
        };
        let trend = of
            .trend()
            .filter(|_| all >= TENTHS)
            .map_or_else(String::new, |t| format!(", {:+.1} % by the end", t * 100.0));
        writeln!(out, "  time     {} {}{trend}", line(&|m| (m.mean(), longest)), duration(whole.mean()))?;
        let all = [("in MPI ", mpi as fn(&Moment) -> u64), ("waiting", waiting), ("paused ", paused)];
        for (what, of) in all.into_iter().filter(|(what, of)| *what != "paused " || of(&whole) > 0) {
            let share = Cell::percent(of(&whole).into(), whole.time.into()).text;
            writeln!(out, "  {what}  {} {share}", line(&|m| (of(m), m.time)))?;
        }
        tenths(of).write(Format::Text, screen, out)?;
        slow(of, out)
    }
}

/// What a loop or a level consists of.
fn one(of: &Loop) -> &'static str {
    if of.level.is_some() { "phase" } else { "iteration" }
}

fn mpi(of: &Moment) -> u64 {
    of.mpi
}

fn waiting(of: &Moment) -> u64 {
    of.wait
}

fn paused(of: &Moment) -> u64 {
    of.paused
}

/// How high a part of a whole is; nothing only if it is nothing.
fn bar((part, whole): (u64, u64)) -> char {
    let eighths = (u128::from(part) * 8).div_ceil(u128::from(whole.max(1)));
    BARS.get(saturate::<usize>(eighths)).copied().unwrap_or(BARS[8])
}

/// The first, the middle and the last tenth; of fewer than ten iterations each.
fn tenths(of: &Loop) -> Table {
    let parts: Vec<(String, Moment)> = if of.turns.len() < TENTHS {
        of.turns.iter().map(|turn| (format!("{} {}", one(of), grouped(turn.number)), *turn)).collect()
    } else {
        ["first tenth", "middle tenth", "last tenth"]
            .map(str::to_owned)
            .into_iter()
            .zip(of.tenths())
            .collect()
    };
    let row = |(what, m): (String, Moment)| {
        vec![
            Cell::text(format!("  {what}")),
            Cell::ns(m.mean().into()),
            Cell::ns(m.longest.0.into()),
            Cell::ns(m.busiest.0.into()),
            Cell::count(m.busiest.1.into()),
            Cell::percent(m.mpi.into(), m.time.into()),
            Cell::percent(m.wait.into(), m.time.into()),
        ]
    };
    let columns = vec![
        Column::left("", "tenth"),
        Column::right("each", "time_ns", 0),
        Column::right("longest", "longest_ns", 0),
        Column::right("computes", "computation_longest_ns", 0),
        Column::right("on rank", "computation_longest_rank", 0).spare(),
        Column::right("in MPI", "mpi_percent", 0),
        Column::right("waiting", "wait_percent", 0),
    ];
    Table { columns, rows: parts.into_iter().map(row).collect(), total: None }
}

/// What most of an iteration is: what the rank computes that computes longest, what ranks do in MPI, or what is not recorded.
fn what_takes_it(turn: &Moment) -> String {
    let (ns, rank) = turn.busiest;
    let each = |ns: u64| ns / turn.ranks.max(1);
    let half = turn.mean() / 2;
    if each(turn.paused) > half {
        return format!("recording is paused for {}", duration(each(turn.paused)));
    }
    if ns < half && each(turn.mpi) > half {
        let [mpi, wait] = [turn.mpi, turn.wait].map(|ns| duration(each(ns)));
        return format!("{mpi} in MPI, {wait} of it waiting");
    }
    let others = turn.computation().saturating_sub(ns) / turn.ranks.saturating_sub(1).max(1);
    // All may take as long, since they wait for the one that computes.
    let others = if turn.ranks > 1 { format!(", others {}", duration(others)) } else { String::new() };
    format!("rank {rank} computes {}{others}", duration(ns))
}

/// Iterations that take much longer than others.
fn slow(of: &Loop, out: &mut dyn Write) -> io::Result<()> {
    let all = of.outliers();
    for i in all.iter().take(MOST) {
        let turn = &of.turns[*i];
        let (number, mean) = (grouped(turn.number), duration(turn.mean()));
        writeln!(out, "  slow: {number} takes {mean}: {}", what_takes_it(turn))?;
    }
    if all.len() > MOST {
        writeln!(out, "  … and {} more that are slow", grouped((all.len() - MOST).to_u64()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_iteration_is_told_by_what_takes_most_of_it() {
        let of = |busiest, mpi, wait, paused| {
            let [time, mpi, wait, paused] = [200, mpi, wait, paused].map(|ms| ms * 1_000_000);
            let of = Moment {
                number: 0,
                begin: 0,
                end: 0,
                ranks: 2,
                time,
                longest: (time, 0),
                busiest,
                mpi,
                wait,
                paused,
            };
            what_takes_it(&of)
        };
        assert_eq!(of((90_000_000, 1), 30, 30, 0), "rank 1 computes 90.0 ms, others 80.0 ms");
        assert_eq!(of((2_000_000, 1), 196, 40, 0), "98.0 ms in MPI, 20.0 ms of it waiting");
        assert_eq!(of((0, 1), 0, 0, 180), "recording is paused for 90.0 ms");
    }
}
