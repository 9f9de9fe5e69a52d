//! An archive of OTF2, which Vampir, Scalasca and Pipit read, written through its own library.
//!
//! A rank is a location group, a thread a location, a function a region: of MPI, and around its calls those of the program as far
//! as the stacks of call sites name them. Computation before a call belongs to the functions that make it.

mod accesses;
mod definitions;
mod library;
mod lines;
mod members;
mod regions;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use foldhash::fast::FixedState;
use st_model::num::{Exact as _, saturate};

use crate::directory::Directory;
use crate::exchanges::{Exchange, ExchangePart, Side};
use crate::format::{Call, Format, FormatKind, Summary};
use crate::frames::functions;
use crate::level::Level;
use crate::losses::Losses;
use crate::matters::Matter;
use crate::otf2::{NAME, Operation, PROGRAM, Peer, Record};
use crate::phase::Phase;
use crate::trace::Trace;
use crate::words::function;
use accesses::Accesses;
use library::{Archive, Attribute, Writer};
use lines::Lines;
use members::Members;
use regions::{Regions, operation};

pub(crate) const KIND: FormatKind = FormatKind {
    name: "otf2",
    endings: &[".otf2"],
    about: "an OTF2 archive in a directory: Vampir, Scalasca, Pipit, otf2-print",
    needs_times: true,
    by_rank: true,
    levels: &[Level::Calls, Level::Phases],
    whole_only: false,
    has_waits: false,
    lacks: LACKS,
    is_series: false,
    files_each: 2,
    bytes: 70,
    bears: 50_000_000_000,
    open,
};

/// What there are no records for: it is lost where it is not kept in attributes either ([`Lines`]).
const LACKS: &[Matter] = &[
    Matter::Datatypes,
    Matter::Reductions,
    Matter::InPlace,
    Matter::Counts,
    Matter::Wildcards,
    Matter::Probed,
    Matter::Persistent,
    Matter::Pending,
    Matter::Displacements,
    Matter::Offsets,
    Matter::Errors,
    Matter::Others,
];

/// Bytes of memory for the events of a location that is written. Readers take as much for each that they read, so that it is the
/// least that the library allows.
const CHUNK: u64 = 1 << 18;

/// What is to be said of a location.
#[derive(Clone, Copy, Default, Debug)]
struct Written {
    /// Of its last event.
    time: u64,
    events: u64,
}

/// A location that is being written.
struct Location {
    at: u32,
    writer: Writer,
    written: Written,
    /// Regions of the program that it is in, outermost first.
    frames: Vec<u32>,
}

struct Otf2<'a> {
    archive: Archive,
    directory: Directory,
    trace: &'a Trace,
    first: i64,
    rank: Option<u32>,
    /// Locations of the rank, in the order in which they begin.
    locations: Vec<Location>,
    /// Which of them is written to.
    location: usize,
    /// Requests of the rank that have begun: another thread than the one that has begun it may complete one.
    requests: HashSet<u64, FixedState>,
    written: Vec<Option<Written>>,
    regions: Regions,
    /// Of each call site: the regions of the program around it.
    frames: Vec<Vec<u32>>,
    members: Members,
    /// Collective operations that have begun, by part.
    operations: HashMap<u64, Operation, FixedState>,
    accesses: Accesses,
    lines: Lines,
    /// Of the call that is written.
    attributes: Vec<Attribute>,
    losses: Losses,
}

/// Number of a location: as Score-P has it.
fn location(rank: u32, thread: u32) -> u64 {
    thread.to_u64() << 32 | rank.to_u64()
}

fn open<'a>(target: &Path, trace: &'a Trace) -> Result<Box<dyn Format + 'a>> {
    let directory = Directory::create(target)?;
    let archive = Archive::create(&directory.path(""), NAME, CHUNK)?;
    let header = &trace.whole.header;
    archive.describe(concat!("st-convert ", env!("CARGO_PKG_VERSION")), &header.command())?;
    archive.property(PROGRAM, &header.program)?;
    archive.property("ST::MPI", &header.mpi.called())?;
    let mut regions = Regions::default();
    let region =
        |site: u32| functions(&trace.sites, site).iter().map(|name| regions.of_program(name)).collect();
    let frames = (0..trace.sites.len()).map(region).collect();
    let (members, operations, losses) = (Members::default(), HashMap::default(), Losses::default());
    let first = trace.first();
    Ok(Box::new(Otf2 {
        archive,
        directory,
        trace,
        first,
        rank: None,
        locations: Vec::new(),
        location: 0,
        requests: HashSet::default(),
        written: vec![None; trace.lanes.len()],
        regions,
        frames,
        members,
        operations,
        accesses: Accesses::default(),
        lines: Lines::of(trace),
        attributes: Vec::new(),
        losses,
    }))
}

/// Sends and receives have numbers of their own, requests one for each.
fn request(id: u64, send: bool) -> u64 {
    id << 1 | u64::from(send)
}

impl Otf2<'_> {
    /// Another rank is written.
    fn begin_rank(&mut self, rank: u32) -> Result<()> {
        if self.rank != Some(rank) {
            self.end_rank()?;
            self.rank = Some(rank);
            self.accesses.next_rank();
            self.lines.next_rank();
        }
        Ok(())
    }

    /// Begins a thread's events, and ends those of the rank before.
    fn begin_location(&mut self, at: u32) -> Result<()> {
        let Some(lane) = self.trace.lanes.get(at.to_usize()) else { return Ok(()) };
        self.begin_rank(lane.rank)?;
        if let Some(known) = self.locations.iter().position(|location| location.at == at) {
            self.location = known;
            return Ok(());
        }
        let writer = self.archive.writer(location(lane.rank, lane.thread))?;
        self.location = self.locations.len();
        self.locations.push(Location { at, writer, written: Written::default(), frames: Vec::new() });
        Ok(())
    }

    fn end_rank(&mut self) -> Result<()> {
        for at in 0..self.locations.len() {
            self.location = at;
            self.go_to(u32::MAX, self.first)?;
        }
        self.operations.clear();
        self.requests.clear();
        for location in std::mem::take(&mut self.locations) {
            let written = self.written.get_mut(location.at.to_usize());
            written.into_iter().for_each(|written| *written = Some(location.written));
            self.archive.end(location.writer)?;
        }
        Ok(())
    }

    fn record(&mut self, time: i64, record: Record) -> Result<()> {
        let Some(Location { written, writer, .. }) = self.locations.get_mut(self.location) else {
            return Ok(());
        };
        // Times of a location must not go back.
        written.time = written.time.max(saturate(time.saturating_sub(self.first)));
        written.events += 1;
        self.archive.record(*writer, written.time, record)
    }

    /// Enters a call's region.
    fn enter(&mut self, time: i64, region: u32, call: &Call<'_>) -> Result<()> {
        self.lines.call(call, &mut self.attributes);
        let Some(Location { written, writer, .. }) = self.locations.get_mut(self.location) else {
            return Ok(());
        };
        written.time = written.time.max(saturate(time.saturating_sub(self.first)));
        written.events += 1;
        self.archive.enter(*writer, written.time, region, &self.attributes)
    }

    /// Leaves the program's regions and enters others, so that it is in those around a call site.
    fn go_to(&mut self, site: u32, enter: i64) -> Result<()> {
        let Some(location) = self.locations.get_mut(self.location) else { return Ok(()) };
        let wanted = self.frames.get(site.to_usize()).cloned().unwrap_or_default();
        let before = std::mem::replace(&mut location.frames, wanted.clone());
        // What comes before the first call is not known.
        let time = if location.written.events == 0 { enter } else { self.first };
        let common = before.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
        before[common..].iter().rev().try_for_each(|region| self.record(time, Record::Leave(*region)))?;
        wanted[common..].iter().try_for_each(|region| self.record(time, Record::Enter(*region)))
    }

    /// The other end of a message; `None` if it is not in the archive.
    fn peer(&mut self, call: &Call<'_>, side: &Side) -> Option<Peer> {
        let position = side
            .peer
            .filter(|peer| self.trace.has(*peer))
            .and_then(|peer| self.members.position(self.trace, call.groups, side.group, peer));
        let tag = saturate(side.tag.unwrap_or_default());
        Some(Peer { rank: position?, comm: side.group, tag, bytes: side.bytes })
    }

    fn part(&mut self, call: &Call<'_>, part: &ExchangePart) -> Option<Operation> {
        let Some(kind) = operation(part.rule, call.event) else {
            let function = call.event.name().unwrap_or_default();
            self.losses.add(&format!("neighbourhood operations of {function} (they are regions)"), 1);
            return None;
        };
        let root = self.members.root(self.trace, call.groups, part.group, call.lane.rank, part.root);
        let Some(root) = root else {
            self.losses.add("parts in operations whose root is not converted", 1);
            return None;
        };
        Some(Operation { kind, comm: part.group, root, sent: call.sent, received: call.received })
    }

    /// What begins with a call.
    fn begin(&mut self, call: &Call<'_>, exchange: &Exchange, enter: i64) -> Result<()> {
        match exchange {
            Exchange::Send { side, done } => {
                let Some(peer) = self.peer(call, side) else { return Ok(()) };
                let id = request(side.id, true);
                if *done {
                    return self.record(enter, Record::Send(peer));
                }
                self.requests.insert(id);
                self.record(enter, Record::Isend(peer, id))
            }
            Exchange::Post { side, done: false } => {
                let id = request(side.id, false);
                self.requests.insert(id);
                self.record(enter, Record::IrecvRequest(id))
            }
            Exchange::Join { part, done } => {
                let Some(operation) = self.part(call, part) else { return Ok(()) };
                self.operations.insert(part.id, operation);
                let begin = Record::CollectiveRequest(request(part.id, true) | COLLECTIVE);
                self.record(enter, if *done { Record::CollectiveBegin } else { begin })
            }
            _ => Ok(()),
        }
    }

    /// What ends with a call.
    fn end(&mut self, call: &Call<'_>, exchange: &Exchange, exit: i64) -> Result<()> {
        match exchange {
            Exchange::Sent { id } if self.requests.remove(&request(*id, true)) => {
                self.record(exit, Record::IsendComplete(request(*id, true)))
            }
            Exchange::Received { side, .. } => {
                let id = request(side.id, false);
                let asked = self.requests.remove(&id);
                let Some(peer) = self.peer(call, side) else { return Ok(()) };
                self.record(exit, if asked { Record::Irecv(peer, id) } else { Record::Recv(peer) })
            }
            Exchange::Cancelled { id, send } if self.requests.remove(&request(*id, *send)) => {
                self.record(exit, Record::Cancelled(request(*id, *send)))
            }
            Exchange::Join { part, done: true } => {
                let operation = self.operations.remove(&part.id);
                operation.map_or(Ok(()), |o| self.record(exit, Record::CollectiveEnd(o)))
            }
            Exchange::Left { part } => {
                let id = request(part.id, true) | COLLECTIVE;
                let operation = self.operations.remove(&part.id);
                operation.map_or(Ok(()), |o| self.record(exit, Record::CollectiveComplete(o, id)))
            }
            _ => Ok(()),
        }
    }
}

/// Numbers of requests of collective operations have this bit.
const COLLECTIVE: u64 = 1 << 63;

impl Otf2<'_> {
    fn write(&mut self, call: &Call<'_>) -> Result<()> {
        let Some((enter, exit)) = call.times else {
            self.lines.miss();
            self.losses.add("calls whose times are not known", call.event.calls());
            return Ok(());
        };
        self.losses.add("polls that are one record with others", call.event.calls().saturating_sub(1));
        let region = match call.event.name() {
            Some(name) => self.regions.of_mpi(name, call.event),
            None => self.regions.of_mpi(&function(call), call.event),
        };
        self.begin_location(call.at)?;
        self.go_to(call.site, enter)?;
        self.enter(enter, region, call)?;
        let told = self.accesses.of(call, self.trace);
        told.lost.into_iter().for_each(|what| self.losses.add(what, 1));
        told.begin.iter().try_for_each(|record| self.record(enter, *record))?;
        call.exchanges.iter().try_for_each(|exchange| self.begin(call, exchange, enter))?;
        call.exchanges.iter().try_for_each(|exchange| self.end(call, exchange, exit))?;
        told.end.iter().try_for_each(|record| self.record(exit, *record))?;
        self.record(exit, Record::Leave(region))
    }

    fn write_phase(&mut self, phase: &Phase<'_>) -> Result<()> {
        let region = self.regions.of_phase(phase);
        let (begin, end) = phase.times;
        self.begin_location(phase.at)?;
        self.record(begin, Record::Enter(region))?;
        if let Some(Location { written, writer, .. }) = self.locations.get_mut(self.location) {
            written.events += 1;
            self.archive.measure(
                *writer,
                written.time,
                [Some(phase.compute), Some(phase.mpi), phase.wait],
            )?;
        }
        self.record(end, Record::Leave(region))
    }

    /// Whether a thread is in the archive: the first of a rank, which stands for that in communicators, and those with calls. Readers look
    /// for the events of all that are, and so for a file of each.
    fn has(&self, at: usize) -> bool {
        let lanes = &self.trace.lanes;
        let rank = |at: usize| lanes.get(at).map(|lane| lane.rank);
        let is_first = at.checked_sub(1).is_none_or(|before| rank(before) != rank(at));
        is_first || self.written.get(at).is_some_and(Option::is_some)
    }

    /// What all calls have in common, and ranks without calls.
    fn write_rest(&mut self, summary: &Summary<'_>) -> Result<()> {
        self.end_rank()?;
        for at in (0..).take(self.trace.lanes.len()) {
            if self.has(at.to_usize()) && self.written.get(at.to_usize()).is_some_and(Option::is_none) {
                self.begin_location(at)?;
                self.end_rank()?;
            }
        }
        self.define(summary)
    }
}

impl Format for Otf2<'_> {
    fn call(&mut self, call: &Call<'_>) -> Result<()> {
        self.write(call).with_context(|| self.directory.unwritten())
    }

    fn passed(&mut self, call: &Call<'_>) -> Result<()> {
        self.begin_rank(call.lane.rank).with_context(|| self.directory.unwritten())?;
        self.accesses.passed(call, self.trace);
        Ok(())
    }

    fn phase(&mut self, phase: &Phase<'_>) -> Result<()> {
        self.write_phase(phase).with_context(|| self.directory.unwritten())
    }

    fn finish(&mut self, summary: &Summary<'_>) -> Result<Losses> {
        self.write_rest(summary).with_context(|| self.directory.unwritten())?;
        if self.lines.is_whole() {
            return Ok(self.lines.losses(self.trace));
        }
        Ok(std::mem::take(&mut self.losses))
    }

    fn holds_all(&self) -> bool {
        self.lines.is_whole()
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.archive.close().with_context(|| self.directory.unwritten())?;
        self.directory.commit()
    }
}
