//! Traces of Paraver: records by time (.prv), names of their numbers (.pcf), and of threads (.row).
//!
//! Source: Barcelona Supercomputing Center, "Paraver trace format". A call is a state and two events, at its enter the number of
//! its function, at its exit 0; what lies between calls is the state Running; a message is a communication.

mod labels;
mod sorting;

use std::io::Write as _;
use std::path::Path;

use anyhow::{Result, bail};
use st_cli::{Output, UsageError};
use st_model::calls::Kind;
use st_model::calls::roles::Start;
use st_model::num::Exact as _;

use crate::exchanges::Exchange;
use crate::format::{Call, Format, FormatKind, Summary};
use crate::groups::Groups;
use crate::level::Level;
use crate::losses::Losses;
use crate::matters::Matter;
use crate::message::{Message, Moment};
use crate::trace::{Lane, Trace};
use crate::words::function;
use labels::Values;
use sorting::Lines;

pub(crate) const KIND: FormatKind = FormatKind {
    name: "paraver",
    endings: &[".prv"],
    about: "a trace of Paraver, with .pcf and .row beside it",
    needs_times: true,
    by_rank: false,
    levels: &[Level::Calls],
    whole_only: false,
    has_waits: false,
    lacks: LACKS,
    is_series: false,
    files_each: 0,
    bytes: 160,
    bears: 2_000_000_000,
    open,
};

/// What there are no records for.
const LACKS: &[Matter] = &[
    Matter::Datatypes,
    Matter::Reductions,
    Matter::InPlace,
    Matter::Counts,
    Matter::Roots,
    Matter::Comms,
    Matter::Wildcards,
    Matter::Requests,
    Matter::Windows,
    Matter::Displacements,
    Matter::Files,
    Matter::Offsets,
    Matter::Members,
    Matter::Errors,
    Matter::Others,
];

/// Where a thread stands in records: processor, task and thread, from 1.
#[derive(Clone, Copy, Debug)]
struct Processor {
    cpu: u64,
    task: u64,
    thread: u64,
}

struct Paraver<'a> {
    /// The records, names and rows.
    out: Option<[Output; 3]>,
    trace: &'a Trace,
    first: i64,
    places: Vec<Processor>,
    /// When each thread's last call ended.
    last: Vec<Option<i64>>,
    lines: Lines,
    values: Values,
    end: i64,
    losses: Losses,
}

fn open<'a>(target: &Path, trace: &'a Trace) -> Result<Box<dyn Format + 'a>> {
    if target.as_os_str() == "-" {
        bail!(UsageError("paraver is three files: name the first with -o".into()));
    }
    let out = [
        Output::text(target)?,
        Output::text(&target.with_extension("pcf"))?,
        Output::text(&target.with_extension("row"))?,
    ];
    Ok(Box::new(Paraver {
        out: Some(out),
        trace,
        first: trace.first(),
        places: places(trace),
        last: vec![None; trace.lanes.len()],
        lines: Lines::default(),
        values: Values::default(),
        end: 0,
        losses: Losses::default(),
    }))
}

/// Processors are counted node by node, one for each thread.
fn places(trace: &Trace) -> Vec<Processor> {
    let mut by_node: Vec<(u32, usize)> = trace.lanes.iter().map(|lane| lane.host).zip(0..).collect();
    by_node.sort_unstable();
    let mut cpus = vec![0; trace.lanes.len()];
    for ((_, at), cpu) in by_node.into_iter().zip(1..) {
        cpus[at] = cpu;
    }
    let ranks = trace.lanes.chunk_by(|a, b| a.rank == b.rank).zip(1..);
    let threads = ranks.flat_map(|(lanes, task)| (1..).take(lanes.len()).map(move |thread| (task, thread)));
    threads.zip(cpus).map(|((task, thread), cpu)| Processor { cpu, task, thread }).collect()
}

/// A time in s since 1970, UTC, as Paraver writes dates: `29/02/2024 at 23:59`.
///
/// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms" (2021), `civil_from_days`.
fn date(seconds: u64) -> String {
    let (days, minutes) = (seconds / 86_400 + 719_468, seconds % 86_400 / 60);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // Years begin in March.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month < 3);
    format!("{day:02}/{month:02}/{year} at {:02}:{:02}", minutes / 60, minutes % 60)
}

impl Processor {
    fn text(&self) -> String {
        format!("{}:1:{}:{}", self.cpu, self.task, self.thread)
    }
}

impl Paraver<'_> {
    fn place(&self, at: u32) -> Option<Processor> {
        self.places.get(at.to_usize()).copied()
    }

    fn since(&self, time: i64) -> i64 {
        time.saturating_sub(self.first)
    }

    fn state(&mut self, place: &str, begin: i64, end: i64, state: u32) -> Result<()> {
        if begin >= end {
            return Ok(());
        }
        self.lines.push(begin, format!("1:{place}:{begin}:{end}:{state}"))
    }

    /// What a call does beside being there.
    fn details(&mut self, call: &Call<'_>) -> String {
        let mut text = String::new();
        for exchange in call.exchanges {
            if let Exchange::Join { part, .. } = exchange {
                let comm = part.group.to_u64() + 1;
                self.values.name(labels::COMM, comm, || {
                    call.groups.get(part.group).map_or_else(String::new, |group| group.label.clone())
                });
                let (sent, received) = (call.sent, call.received);
                text.push_str(&format!(
                    ":{}:{sent}:{}:{received}:{}:{comm}",
                    labels::SENT,
                    labels::RECEIVED,
                    labels::COMM
                ));
            }
        }
        text
    }

    /// The nodes of these threads, by number in [`Trace::hosts`].
    fn nodes(&self) -> Vec<u32> {
        let mut hosts: Vec<u32> = self.trace.lanes.iter().map(|lane| lane.host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    fn header(&self) -> String {
        let nodes = self.nodes();
        let of = |lane: &Lane| nodes.partition_point(|host| *host < lane.host);
        let mut cpus = vec![0usize; nodes.len().max(1)];
        self.trace.lanes.iter().for_each(|lane| cpus[of(lane)] += 1);
        let cpus: Vec<String> = cpus.iter().map(usize::to_string).collect();
        let ranks = self.trace.lanes.chunk_by(|a, b| a.rank == b.rank);
        let tasks =
            ranks.map(|lanes| format!("{}:{}", lanes.len(), lanes.first().map_or(1, |lane| of(lane) + 1)));
        let tasks: Vec<String> = tasks.collect();
        format!(
            "#Paraver ({}):{}_ns:{}({}):1:{}({})",
            date(self.trace.whole.header.started / 1_000_000_000),
            self.end,
            cpus.len(),
            cpus.join(","),
            tasks.len(),
            tasks.join(",")
        )
    }

    fn rows(&self, out: &mut Output) -> Result<()> {
        let lanes = &self.trace.lanes;
        let nodes = self.nodes();
        writeln!(out, "LEVEL NODE SIZE {}", nodes.len())?;
        for host in nodes.into_iter().filter_map(|host| self.trace.hosts.get(host.to_usize())) {
            writeln!(out, "{}", if host.is_empty() { "unknown node" } else { host })?;
        }
        writeln!(out, "\nLEVEL TASK SIZE {}", lanes.chunk_by(|a, b| a.rank == b.rank).count())?;
        for lanes in lanes.chunk_by(|a, b| a.rank == b.rank) {
            lanes.first().map_or(Ok(()), |lane| writeln!(out, "rank {}", lane.rank))?;
        }
        writeln!(out, "\nLEVEL THREAD SIZE {}", lanes.len())?;
        lanes.iter().try_for_each(|lane| writeln!(out, "rank {} thread {}", lane.rank, lane.thread))?;
        Ok(())
    }

    /// A moment's place and its call's times.
    fn moment(&self, moment: &Moment) -> Option<(Processor, i64, i64)> {
        let (enter, exit) = moment.times?;
        Some((self.place(moment.at)?, self.since(enter), self.since(exit)))
    }
}

impl Format for Paraver<'_> {
    fn call(&mut self, call: &Call<'_>) -> Result<()> {
        let (Some((enter, exit)), Some(place)) = (call.times, self.place(call.at)) else {
            self.losses.add("calls whose times are not known", call.event.calls());
            return Ok(());
        };
        self.losses.add("polls that are one record with others", call.event.calls().saturating_sub(1));
        let (enter, exit, place) = (self.since(enter), self.since(exit), place.text());
        let row = call.event.row;
        let begins_only = row.is_some_and(|row| Start::of(row) != Start::Blocking);
        let (of, state) = labels::of(row.map_or(Kind::Other, |row| row.kind), begins_only);
        let number = u64::from(call.event.symbol.call.0) + 1;
        self.values.name(of, number, || function(call));
        let site = u64::from(call.site) + 1;
        self.values.name(labels::SITE, site, || self.trace.sites.describe(call.site));
        if let Some(last) = self.last.get_mut(call.at.to_usize()).and_then(|last| last.replace(exit)) {
            self.state(&place, last, enter, labels::RUNNING)?;
        }
        self.state(&place, enter, exit, state)?;
        let details = self.details(call);
        self.lines
            .push(enter, format!("2:{place}:{enter}:{of}:{number}:{}:{site}{details}", labels::SITE))?;
        self.lines.push(exit, format!("2:{place}:{exit}:{of}:0:{}:0", labels::SITE))?;
        self.end = self.end.max(exit);
        Ok(())
    }

    fn message(&mut self, message: &Message, _: &Groups) -> Result<()> {
        let ends = (self.moment(&message.sent), self.moment(&message.posted), self.moment(&message.received));
        let (Some((from, sent, _)), Some((_, posted, _)), Some((to, _, received))) = ends else {
            self.losses.add("messages whose times are not known", 1);
            return Ok(());
        };
        let (from, to, bytes, tag) = (from.text(), to.text(), message.bytes, message.tag);
        self.lines.push(sent, format!("3:{from}:{sent}:{sent}:{to}:{posted}:{received}:{bytes}:{tag}"))
    }

    fn finish(&mut self, _: &Summary<'_>) -> Result<Losses> {
        let header = self.header();
        let Some([mut records, mut names, mut rows]) = self.out.take() else { return Ok(Losses::default()) };
        writeln!(records, "{header}")?;
        std::mem::take(&mut self.lines).write(&mut records)?;
        self.values.write(&mut names)?;
        self.rows(&mut rows)?;
        self.out = Some([records, names, rows]);
        Ok(std::mem::take(&mut self.losses))
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let Some(out) = self.out else { return Ok(()) };
        let finished = out.into_iter().map(Output::finish).collect::<Result<Vec<_>>>()?;
        finished.into_iter().try_for_each(st_cli::Finished::commit)
    }
}
