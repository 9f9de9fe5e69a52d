//! Tables of calls, messages, call sites, ranks and waits, of phases, and of sums, for whoever writes tables: CSV and Parquet.

mod schema;
mod sink;
mod totals;
mod waits;

use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use foldhash::fast::FixedState;
use st_model::calls::roles::Action;
use st_model::num::{Exact as _, saturate};
use st_model::rank_times::{RankTime, TimeSum, exact_time, rank_times};
use st_model::values::error_class;

use crate::exchanges::{Exchange, Side};
use crate::format::{AlikeCalls, Call, Format, Summary};
use crate::groups::{Group, Groups};
use crate::level::Level;
use crate::losses::Losses;
use crate::matters::Matter;
use crate::message::{Message, Moment};
use crate::numbering::Numbering;
use crate::phase::Phase;
use crate::trace::{Lane, Trace};
use crate::walk::Tell;
use crate::words::function;

pub use schema::{COMMS, Column, EVENTS, MESSAGES, PHASES, RANKS, SITES, TABLES, TOTALS, Table, Type, WAITS};
pub use sink::{Cell, Sink};

use sink::{count, known, maybe};
use totals::Totals;

/// What there are no columns for.
pub(crate) const LACKS: &[Matter] = &[
    Matter::Datatypes,
    Matter::Reductions,
    Matter::InPlace,
    Matter::Counts,
    Matter::Roots,
    Matter::Wildcards,
    Matter::Requests,
    Matter::Windows,
    Matter::Displacements,
    Matter::Files,
    Matter::Offsets,
    Matter::Groups,
    Matter::Others,
];

/// All tables, in their order: those that are files of a trace at its level.
pub(crate) fn files(trace: &Trace) -> impl Iterator<Item = Option<&'static Table>> {
    let is_file = |table: usize| match trace.level {
        Level::Calls => table < WAITS || table == WAITS && trace.waits,
        Level::Phases => matches!(table, PHASES | SITES),
        Level::Summary => matches!(table, TOTALS | SITES | RANKS),
    };
    TABLES.iter().enumerate().map(move |(at, table)| is_file(at).then_some(table))
}

/// What is added up for a rank.
#[derive(Clone, Copy, Default, Debug)]
struct Sums {
    calls: u64,
    sent: u64,
    received: u64,
    /// Of the calls of the thread that stands for the rank, where all are read.
    time: TimeSum,
}

/// Rows from calls and messages.
pub(crate) struct Tables<'a, S> {
    /// Where they go.
    pub(crate) sink: S,
    trace: &'a Trace,
    sums: HashMap<u32, Sums, FixedState>,
    groups: Named,
    /// Names of functions that the call table does not list have to be made once per call.
    names: HashMap<(usize, u32), String, FixedState>,
    totals: Totals,
}

impl<'a, S: Sink> Tables<'a, S> {
    pub(crate) fn new(sink: S, trace: &'a Trace) -> Self {
        let (sums, groups, names) = (HashMap::default(), Named::default(), HashMap::default());
        Self { sink, trace, sums, groups, names, totals: Totals::default() }
    }

    /// The same trace's tables where others have read other ranks.
    pub(crate) fn join(&mut self, others: Self) -> S {
        self.sums.extend(others.sums);
        self.groups.met.extend(others.groups.met);
        others.sink
    }

    /// Writes the tables that sum up: of what has been read.
    pub(crate) fn sum_up(&mut self) -> Result<()> {
        self.ranks()?;
        self.comms()
    }

    /// Writes the table of wait states.
    pub(crate) fn waits(&mut self, tell: Tell<'_>) -> Result<()> {
        waits::waits(self.trace, &mut self.sink, tell)
    }

    /// Writes the table of call sites.
    pub(crate) fn sites(&mut self) -> Result<()> {
        let sites = &self.trace.sites;
        for number in 0..sites.len() {
            let id = sites.table().get(number).map(|site| format!("{:032x}", site.id)).unwrap_or_default();
            let stack = sites.stack(number).join("\n");
            let location = sites.location(number);
            let part = |text: Option<&'a str>| text.map_or(Cell::None, Cell::Text);
            self.sink.row(
                SITES,
                &[
                    Cell::Int(number.into()),
                    Cell::Text(&id),
                    known(sites.place(number)),
                    part(location.and_then(|l| l.function.as_deref())),
                    part(location.and_then(|l| l.file.as_deref())),
                    maybe(location.and_then(|l| l.line)),
                    known(&stack),
                ],
            )?;
        }
        Ok(())
    }

    fn comms(&mut self) -> Result<()> {
        for (number, group) in &self.groups.met {
            let [members, remote] = group
                .sides
                .each_ref()
                .map(|side| side.iter().map(|rank| rank.to_string()).collect::<Vec<_>>().join(" "));
            let row =
                [Cell::Int((*number).into()), Cell::Text(&group.label), Cell::Text(&members), known(&remote)];
            self.sink.row(COMMS, &row)?;
        }
        Ok(())
    }

    /// A rank's time by exact times, where what is kept of it is also of others.
    fn time(&self, lanes: &[Lane], sums: &Sums) -> Result<Option<RankTime>> {
        let Some(lane) = lanes.iter().find(|lane| lane.leads) else { return Ok(None) };
        let section = self.trace.section(lane);
        if !self.trace.is_whole() {
            return Ok(exact_time(section, lane.rank)?);
        }
        // Without exact times nothing has been added up.
        let shared = lane.timed > 0 && section.threads.first().is_some_and(|thread| thread.ranks.len() > 1);
        Ok(sums.time.of(section, lane.rank).filter(|_| shared))
    }

    fn ranks(&mut self) -> Result<()> {
        let times: HashMap<u32, _> =
            self.trace.sections.iter().flat_map(rank_times).map(|time| (time.rank, time)).collect();
        for lanes in self.trace.lanes.chunk_by(|a, b| a.rank == b.rank) {
            let Some(lane) = lanes.first() else { continue };
            let sums = self.sums.get(&lane.rank).copied().unwrap_or_default();
            let exact = self.time(lanes, &sums)?;
            let time = exact.as_ref().or_else(|| times.get(&lane.rank));
            self.sink.row(
                RANKS,
                &[
                    Cell::Int(lane.rank.into()),
                    known(self.trace.host(lane)),
                    count(lanes.len().to_u64()),
                    count(sums.calls),
                    time.map_or(Cell::None, |time| Cell::Int(saturate(time.whole))),
                    time.map_or(Cell::None, |time| Cell::Int(saturate(time.mpi))),
                    count(sums.sent),
                    count(sums.received),
                ],
            )?;
        }
        Ok(())
    }
}

/// Communicators, windows and files that have been met, under the numbers that all tables of a trace have for them.
#[derive(Default)]
struct Named {
    /// By number in the walk.
    known: Vec<Option<u32>>,
    met: BTreeMap<u32, Group>,
}

impl Named {
    fn number(&mut self, numbering: &Numbering, groups: &Groups, group: u32) -> Option<u32> {
        let at = group.to_usize();
        if let Some(known) = self.known.get(at) {
            return *known;
        }
        for (next, group) in groups.iter().enumerate().skip(self.known.len()) {
            let number = numbering.number(group.name);
            self.known.push(number);
            self.met.extend(number.map(|number| (number, group.clone())));
            if next == at {
                return number;
            }
        }
        None
    }
}

/// What a call has to do with one other rank, and on which communicator.
#[derive(Default)]
struct Ends {
    sends: Option<Side>,
    receives: Option<Side>,
    group: Option<u32>,
}

impl Ends {
    fn of(call: &Call<'_>) -> Self {
        let mut ends = Self::default();
        let completes = call.event.role.action == Action::Complete;
        for exchange in call.exchanges.iter().filter(|_| !completes) {
            let group = match exchange {
                Exchange::Send { side, .. } => {
                    ends.sends = ends.sends.or(Some(*side));
                    side.group
                }
                Exchange::Post { side, .. } | Exchange::Received { side, .. } => {
                    ends.receives = Some(*side);
                    side.group
                }
                Exchange::Join { part, .. } => part.group,
                Exchange::Sent { .. } | Exchange::Cancelled { .. } | Exchange::Left { .. } => continue,
            };
            ends.group = ends.group.or(Some(group));
        }
        ends
    }
}

impl<S: Sink> Format for Tables<'_, S> {
    fn call(&mut self, call: &Call<'_>) -> Result<()> {
        let event = call.event;
        let sums = self.sums.entry(call.lane.rank).or_default();
        sums.calls += event.calls();
        sums.sent = sums.sent.saturating_add(call.sent);
        sums.received = sums.received.saturating_add(call.received);
        if call.lane.leads && self.trace.is_whole() {
            sums.time.add(event, call.times);
        }
        if self.trace.level == Level::Summary {
            return self.totals.add(self.trace, call, &mut self.sink);
        }
        let ends = Ends::of(call);
        let numbering = &self.trace.numbering;
        let group = ends.group.and_then(|group| self.groups.number(numbering, call.groups, group));
        if !self.sink.wants(EVENTS) {
            return Ok(());
        }
        let symbol = (call.lane.section, event.symbol.call.0.into());
        let name = match event.name() {
            Some(name) => name,
            None => self.names.entry(symbol).or_insert_with(|| function(call)),
        };
        let tag = ends.sends.or(ends.receives).and_then(|side| side.tag);
        let error = event.symbol.error;
        self.sink.row(
            EVENTS,
            &[
                Cell::Int(call.lane.rank.into()),
                Cell::Int(call.lane.thread.into()),
                count(event.index),
                Cell::Text(name),
                maybe((call.site != u32::MAX).then_some(call.site)),
                maybe(call.times.map(|(enter, _)| enter)),
                maybe(call.times.map(|(_, exit)| exit)),
                count(event.calls()),
                maybe(group),
                maybe(ends.sends.and_then(|side| side.peer)),
                maybe(ends.receives.and_then(|side| side.peer)),
                maybe(tag),
                count(call.sent),
                count(call.received),
                if error == 0 { Cell::None } else { Cell::Text(error_class(error).unwrap_or("unknown")) },
            ],
        )?;
        Ok(())
    }

    fn alike(&mut self, calls: &AlikeCalls) -> Result<()> {
        let sums = self.sums.entry(calls.lane.rank).or_default();
        sums.calls = sums.calls.saturating_add(calls.calls);
        sums.sent = sums.sent.saturating_add(calls.sent);
        sums.received = sums.received.saturating_add(calls.received);
        self.totals.add_alike(self.trace, calls, &mut self.sink)
    }

    fn message(&mut self, message: &Message, groups: &Groups) -> Result<()> {
        if !self.sink.wants(MESSAGES) {
            return Ok(());
        }
        let place = |moment: &Moment| {
            let lane = self.trace.lanes.get(moment.at.to_usize());
            [lane.map(|lane| lane.rank), lane.map(|lane| lane.thread)].map(maybe)
        };
        let ([from, from_thread], [to, to_thread]) = (place(&message.sent), place(&message.received));
        let comm = self.groups.number(&self.trace.numbering, groups, message.group);
        self.sink.row(
            MESSAGES,
            &[
                from,
                from_thread,
                count(message.sent.call),
                to,
                to_thread,
                count(message.posted.call),
                count(message.received.call),
                maybe(message.sent.times.map(|(enter, _)| enter)),
                maybe(message.posted.times.map(|(enter, _)| enter)),
                maybe(message.received.times.map(|(_, exit)| exit)),
                maybe(comm),
                Cell::Int(message.tag),
                count(message.bytes),
            ],
        )
    }

    fn phase(&mut self, phase: &Phase<'_>) -> Result<()> {
        self.sink.row(
            PHASES,
            &[
                Cell::Int(phase.lane.rank.into()),
                maybe(phase.of.map(|of| of.number)),
                maybe(phase.of.and_then(|of| of.level)),
                phase.iteration.map_or(Cell::None, count),
                Cell::Text(phase.function),
                maybe(phase.site),
                Cell::Int(phase.times.0),
                Cell::Int(phase.times.1),
                count(phase.calls),
                count(phase.compute),
                count(phase.mpi),
                phase.wait.map_or(Cell::None, count),
            ],
        )
    }

    fn finish(&mut self, _: &Summary<'_>) -> Result<Losses> {
        self.sites()?;
        match self.trace.level {
            Level::Calls => {
                self.sum_up()?;
                if self.trace.waits {
                    self.waits(&|_| Ok(()))?;
                }
            }
            Level::Phases => {}
            Level::Summary => {
                self.totals.finish(self.trace, &mut self.sink)?;
                self.ranks()?;
            }
        }
        self.sink.finish()?;
        Ok(Losses::default())
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.sink.commit()
    }
}
