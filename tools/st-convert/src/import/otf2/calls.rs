//! Events of a rank as calls.
//!
//! What a receive or collective operation that only begins is about its record says when it is complete: a rank is read twice, the
//! first time for that.

mod completed;

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use anyhow::{Result, anyhow};
use foldhash::fast::FixedState;
use serde_json::{Map, Value};
use st_import::{Call, Importer, Site};
use st_model::calls::{CallTable, Kind, Meaning, Object, Row, names};
use st_model::num::Exact as _;

use super::amounts::Reach;
use super::definitions::{Communicators, Definitions, Known, WORLD, parent};
use super::requests::{Completions, Id, begun};
use super::{accesses, amounts};
use crate::matters::Matter;
use crate::otf2::{Operation, Peer, Record};

/// What a region is.
#[derive(Clone, Copy, Debug)]
enum What<'a> {
    /// A function of MPI; of one that the call table has, its row.
    Mpi(&'a str, Option<&'static Row>),
    /// A function of the program.
    Program(&'a str),
}

/// A record in a call.
#[derive(Clone, Copy, Debug)]
struct Noted {
    record: Record,
    /// Of one that begins something: which of these it is.
    at: usize,
}

/// A call that is under way.
#[derive(Debug)]
struct Inside<'a> {
    name: &'a str,
    row: Option<&'static Row>,
    enter: i64,
    records: Vec<Noted>,
    /// Regions that it is in itself.
    nested: usize,
}

/// A thread of the rank.
#[derive(Debug, Default)]
struct Thread<'a> {
    /// Number of its location.
    location: u64,
    /// Functions of the program that it is in, outermost first.
    frames: Vec<&'a str>,
    inside: Option<Inside<'a>>,
    /// Its requests of which the archive does not say when they are complete, in their order.
    untold: BTreeMap<usize, (Id, String)>,
}

/// A request that is under way.
#[derive(Debug)]
struct Open {
    /// Which it is by its order.
    at: usize,
    /// What the trace calls it.
    name: String,
    /// The thread that has begun it.
    by: usize,
}

/// Reads the events of a rank.
pub(super) struct Reading<'a> {
    definitions: &'a Definitions,
    communicators: &'a Communicators,
    to: &'a mut Importer,
    rank: u32,
    threads: Vec<Thread<'a>>,
    /// The thread whose event is read.
    thread: usize,
    /// What its communicators are made of, as far as that is told.
    parent: Option<&'a str>,
    completions: Completions,
    /// Requests that have begun so far.
    begun: usize,
    /// By number in the archive.
    open: HashMap<Id, Open, FixedState>,
    /// Whom the rank's operations reach, by number of the communicator.
    reaches: HashMap<u32, Reach, FixedState>,
    /// Ranks that accesses go to which are not complete.
    accesses: HashMap<Id, u32, FixedState>,
    regions: HashMap<u32, What<'a>, FixedState>,
}

/// What is counted of amounts, which are bytes, and of accesses to windows and files.
static DATATYPES: LazyLock<String> = LazyLock::new(|| untold(Matter::Datatypes, "MPI_BYTE stands for them"));
static DISPLACEMENTS: LazyLock<String> = LazyLock::new(|| untold(Matter::Displacements, "0 stands for them"));
static OFFSETS: LazyLock<String> = LazyLock::new(|| untold(Matter::Offsets, "0 stands for them"));

/// What archives have no place for, and what stands for it.
fn untold(matter: Matter, instead: &str) -> String {
    format!("{} ({instead})", matter.name())
}

/// Parameters of a call.
type Parameters = Map<String, Value>;

impl<'a> Reading<'a> {
    pub(super) fn new(
        Known { definitions, communicators }: Known<'a>,
        to: &'a mut Importer,
        threads: &[(u32, u64)],
        completions: Completions,
    ) -> Self {
        let rank = threads.first().map_or(0, |(rank, _)| *rank);
        let thread = |(_, location): &(u32, u64)| Thread { location: *location, ..Thread::default() };
        Self {
            definitions,
            communicators,
            to,
            rank,
            threads: threads.iter().map(thread).collect(),
            thread: 0,
            parent: parent(communicators, rank).map(|comm| comm.name.as_str()),
            completions,
            begun: 0,
            open: HashMap::default(),
            reaches: HashMap::default(),
            accesses: HashMap::default(),
            regions: HashMap::default(),
        }
    }

    /// The thread whose event is read.
    fn own(&mut self) -> &mut Thread<'a> {
        &mut self.threads[self.thread]
    }

    /// The next event of a thread.
    ///
    /// # Errors
    ///
    /// If it cannot be.
    pub(super) fn record(&mut self, thread: usize, time: u64, record: Record) -> Result<()> {
        self.thread = thread;
        let now = self.definitions.ns(time);
        let at = self.begun;
        self.begun += usize::from(begun(&record).is_some());
        match record {
            Record::Enter(region) => self.enter(now, region),
            Record::Leave(region) => self.leave(now, region),
            _ => match &mut self.own().inside {
                Some(inside) => {
                    inside.records.push(Noted { record, at });
                    Ok(())
                }
                None => {
                    self.to.leave("messages, operations and accesses outside of functions of MPI", 1);
                    Ok(())
                }
            },
        }
    }

    fn what(&mut self, region: u32) -> What<'a> {
        let definitions = self.definitions;
        *self.regions.entry(region).or_insert_with(|| {
            let name = definitions.region_name(region).unwrap_or("unknown function");
            if definitions.is_of_program(region) {
                return What::Program(name);
            }
            let row = CallTable::builtin().by_name(name);
            if row.is_some() || name.starts_with("MPI_") { What::Mpi(name, row) } else { What::Program(name) }
        })
    }

    fn enter(&mut self, now: i64, region: u32) -> Result<()> {
        if let Some(inside) = &mut self.own().inside {
            inside.nested = inside.nested.saturating_add(1);
            return Ok(());
        }
        match self.what(region) {
            What::Mpi(name, row) => {
                self.own().inside = Some(Inside { name, row, enter: now, records: Vec::new(), nested: 0 });
            }
            What::Program(name) => self.own().frames.push(name),
        }
        Ok(())
    }

    fn leave(&mut self, now: i64, region: u32) -> Result<()> {
        if let Some(inside) = self.own().inside.as_mut().filter(|inside| inside.nested > 0) {
            inside.nested -= 1;
        } else if let Some(inside) = self.own().inside.take() {
            return self.call(&inside, now);
        } else if let What::Program(name) = self.what(region)
            && self.own().frames.pop_if(|inner| *inner == name).is_none()
        {
            self.to.leave("functions of the program that are left without being entered", 1);
        }
        Ok(())
    }

    /// A call is over: what its records say of it.
    fn call(&mut self, inside: &Inside<'a>, exit: i64) -> Result<()> {
        let times = (inside.enter, exit);
        let kind = inside.row.map(|row| row.kind);
        if kind == Some(Kind::Restart) && self.restart(inside, times)? {
            return Ok(());
        }
        let (name, row) = self.plain(inside);
        let mut parameters = Map::new();
        if let Some(row) = row {
            let request = format!("r{}", inside.records.first().map_or(0, |noted| noted.at));
            for noted in &inside.records {
                self.add(row, noted, &request, &mut parameters);
            }
            if kind == Some(Kind::Complete) {
                self.complete(row, &inside.records, &mut parameters);
            } else if row.properties.poll {
                parameters.entry("flag").or_insert(false.into());
            }
            self.untold_communicators(row, &mut parameters);
        }
        self.hand_over(name, times, &parameters)
    }

    /// A receive of a message that a probe has found: which one that was no record tells, but who sent it.
    fn plain(&mut self, inside: &Inside<'a>) -> (&'a str, Option<&'static Row>) {
        let receives = |record: &Record| match record {
            Record::Recv(_) => Some(names::MPI_Recv),
            Record::IrecvRequest(_) => Some(names::MPI_Irecv),
            _ => None,
        };
        let probed = inside.row.is_some_and(|row| row.kind == Kind::MatchedReceive);
        let Some(name) = inside.records.iter().find_map(|noted| receives(&noted.record)).filter(|_| probed)
        else {
            return (inside.name, inside.row);
        };
        self.to.leave(&untold(Matter::Probed, "MPI_Recv and MPI_Irecv stand for them"), 1);
        (name, CallTable::builtin().by_name(name))
    }

    /// What stands for communicators that no record tells: none at all would be refused by MPI.
    fn untold_communicators(&mut self, row: &Row, to: &mut Parameters) {
        let makes = row.slots.iter().any(|slot| slot.is_made() && slot.meaning == Meaning::Ref(Object::Comm));
        for of in row.params.iter().filter(|of| of.role == "comm") {
            if to.contains_key(&of.name) {
                continue;
            }
            let told = self.parent.filter(|_| makes);
            if told.is_none() {
                self.to.leave(&format!("communicators of {} ({} stands for them)", row.name, WORLD), 1);
            }
            to.insert(of.name.clone(), told.unwrap_or(WORLD).into());
        }
    }

    fn hand_over(&mut self, name: &str, times: (i64, i64), parameters: &Parameters) -> Result<()> {
        let Thread { location: thread, ref frames, .. } = self.threads[self.thread];
        let place = frames.iter().rev().copied().collect::<Vec<_>>().join(" < ");
        let site = if place.is_empty() { Site::Unknown } else { Site::Text(&place) };
        let call = Call {
            rank: self.rank,
            thread,
            name,
            site,
            error: 0,
            times: Some(times),
            parameters,
            partial: true,
        };
        self.to.call(&call).map_err(|what| anyhow!("location {thread}: {what}"))
    }

    /// A start of persistent requests, whose making no record tells: as calls that begin such operations. Whether there is one.
    fn restart(&mut self, inside: &Inside<'_>, (enter, exit): (i64, i64)) -> Result<bool> {
        let (mut from, mut is_told) = (enter, false);
        for noted in &inside.records {
            let name = match noted.record {
                Record::Isend(..) => names::MPI_Isend,
                Record::IrecvRequest(_) => names::MPI_Irecv,
                Record::CollectiveRequest(_) => match self.completions.get(noted.at) {
                    Some(Some(Record::CollectiveComplete(o, _))) => amounts::begin(o).unwrap_or_default(),
                    _ => continue,
                },
                _ => continue,
            };
            let Some(row) = CallTable::builtin().by_name(name) else { continue };
            self.to.leave(&untold(Matter::Persistent, &format!("{name} stands for them")), 1);
            let (request, mut parameters) = (format!("r{}", noted.at), Map::new());
            self.add(row, noted, &request, &mut parameters);
            self.hand_over(name, (from, exit), &parameters)?;
            (from, is_told) = (exit, true);
        }
        Ok(is_told)
    }

    /// Adds what a record says of a call.
    fn add(&mut self, row: &Row, noted: &Noted, request: &str, to: &mut Parameters) {
        let Noted { record, at } = *noted;
        let makes = row.params.iter().any(|p| p.role == "newrequest");
        // Libraries of MPI use files of the system's.
        let own = |id: &Id| !matches!(id, Id::Operation(file, _) if self.definitions.file(*file).is_none());
        let id = begun(&record).filter(|id| makes && own(id));
        let completion = id.and_then(|id| self.begin(id, at, request));
        if id.is_some() {
            to.insert("request".into(), request.into());
        }
        match (record, completion) {
            (Record::Send(peer) | Record::Isend(peer, _), _) => self.message(row, true, &peer, to),
            (Record::Recv(peer), _) | (Record::IrecvRequest(_), Some(Record::Irecv(peer, _)))
                if self.is_told(&peer) =>
            {
                self.message(row, false, &peer, to);
            }
            (Record::Recv(peer), _) | (Record::IrecvRequest(_), Some(Record::Irecv(peer, _))) => {
                self.untold_receive(row, to);
                self.communicator(peer.comm, to);
            }
            (Record::IrecvRequest(_), _) => self.untold_receive(row, to),
            (Record::CollectiveEnd(o), _)
            | (Record::CollectiveRequest(_), Some(Record::CollectiveComplete(o, _))) => {
                self.operation(row, &o, to);
            }
            _ => self.access(row, &record, to),
        }
    }

    /// A receive of which no record says what came.
    fn untold_receive(&mut self, row: &Row, to: &mut Parameters) {
        self.to.leave("receives of which it is not told what came (from anybody)", 1);
        let any = if row.slot("recvtag").is_some() { "recvtag" } else { "tag" };
        to.insert("source".into(), "MPI_ANY_SOURCE".into());
        to.insert(any.into(), "MPI_ANY_TAG".into());
        to.insert("comm".into(), WORLD.into());
    }

    /// Whether a record says what came. Where the program asks for no status, tools may write whatever stands in the memory for it.
    fn is_told(&mut self, peer: &Peer) -> bool {
        let position = self.position(peer.comm, peer.rank);
        let is_there = self.reach(peer.comm).is_none_or(|reach| u64::from(position) < reach.peers.max(1));
        is_there && i32::try_from(peer.tag).is_ok() && i64::try_from(peer.bytes).is_ok()
    }

    /// Whom the rank's operations on a communicator reach; `None` if nothing is known of it.
    fn reach(&mut self, comm: u32) -> Option<Reach> {
        let (of, rank) = (self.communicators.get(&comm)?, self.rank);
        Some(*self.reaches.entry(comm).or_insert_with(|| of.reach(rank)))
    }

    /// Adds what a record of a window or file says of a call.
    fn access(&mut self, row: &Row, record: &Record, to: &mut Parameters) {
        match *record {
            Record::Put(access) | Record::Get(access) | Record::Atomic(access, _) => {
                self.accesses.insert(Id::Access(access.win, access.id), access.remote);
                self.to.leave(&DATATYPES, 1);
                self.to.leave(&DISPLACEMENTS, 1);
            }
            Record::OperationBegin { handle, .. } if self.definitions.file(handle).is_some() => {
                self.to.leave(&DATATYPES, 1);
                self.to.leave(&OFFSETS, row.slot("offset").is_some().into());
            }
            Record::AccessComplete(win, id)
            | Record::AccessRemote(win, id)
            | Record::AccessLocal(win, id) => {
                let id = Id::Access(win, id);
                let remote = match record {
                    Record::AccessLocal(..) => self.accesses.get(&id).copied(),
                    _ => self.accesses.remove(&id),
                };
                accesses::synchronised(self.definitions, row, win, remote, to);
            }
            _ => {}
        }
        accesses::add(self.definitions, row, record, to);
    }

    /// A request begins; how it ends is returned.
    fn begin(&mut self, id: Id, at: usize, name: &str) -> Option<Record> {
        self.open.insert(id, Open { at, name: name.to_owned(), by: self.thread });
        let completion = self.completions.get(at).copied().flatten();
        // A call that synchronises may complete an access before the one that waits for its request.
        if completion.is_none() || matches!(id, Id::Access(..)) {
            self.own().untold.insert(at, (id, name.to_owned()));
        }
        completion
    }

    fn message(&mut self, row: &Row, sends: bool, peer: &Peer, to: &mut Parameters) {
        let [end, tag, count] =
            if sends { ["dest", "sendtag", "sendcount"] } else { ["source", "recvtag", "recvcount"] };
        let key = |own: &str, common: &str| {
            if row.slot(own).is_some() { own.to_owned() } else { common.to_owned() }
        };
        to.insert(end.into(), self.position(peer.comm, peer.rank).into());
        to.insert(key(tag, "tag"), peer.tag.into());
        to.insert(key(count, "count"), peer.bytes.into());
        if !sends && row.slot("rsource").is_some() {
            to.insert("bytes".into(), peer.bytes.into());
        }
        self.communicator(peer.comm, to);
        self.to.leave(&DATATYPES, 1);
    }

    fn operation(&mut self, row: &Row, o: &Operation, to: &mut Parameters) {
        self.communicator(o.comm, to);
        let o = &Operation { root: self.position(o.comm, o.root), ..*o };
        to.extend(amounts::root(o).map(|root| ("root".to_owned(), root)));
        let reach = self.reach(o.comm).unwrap_or_default();
        let reach = Reach { counted_once: self.definitions.is_own(), ..reach };
        if amounts::add(row, o, reach, to) {
            self.to.leave(&untold(Matter::Counts, "all the same"), 1);
        }
        if o.sent > 0 || o.received > 0 {
            self.to.leave(&DATATYPES, 1);
        }
    }

    fn position(&self, comm: u32, told: u32) -> u32 {
        self.communicators.get(&comm).map_or(told, |comm| comm.position(told))
    }

    fn communicator(&mut self, number: u32, to: &mut Parameters) {
        if let Some(comm) = self.communicators.get(&number) {
            to.insert("comm".into(), comm.name.clone().into());
        }
    }

    /// What is left when all events are read.
    pub(super) fn finish(self) {
        for inside in self.threads.iter().filter_map(|thread| thread.inside.as_ref()) {
            self.to.leave(&format!("calls of {} that do not end", inside.name), 1);
        }
        self.to.leave("requests that are not complete at the end", self.open.len().to_u64());
    }
}

#[cfg(test)]
mod tests {
    use st_import::Left;
    use st_model::event::Arg;
    use st_model::values::NONE;

    use super::*;
    use crate::otf2::COMPILER;

    #[test]
    fn functions_of_the_program_that_are_called_like_those_of_mpi_hide_none() {
        let mut definitions = Definitions::default();
        for (number, name, paradigm) in
            [(0, "MPI_BARRIER", COMPILER), (1, "MPI_Barrier", COMPILER), (2, "MPI_Barrier", 4)]
        {
            definitions.string(number, name.into());
            definitions.region(number, number, paradigm);
        }
        let (communicators, mut to) = (Communicators::default(), Importer::new(1, true));
        let of = Known { definitions: &definitions, communicators: &communicators };
        let mut reading = Reading::new(of, &mut to, &[(0, 0)], Vec::new());
        let (enters, leaves) = ([0, 1, 2].map(Record::Enter), [2, 1, 0].map(Record::Leave));
        for (record, time) in enters.into_iter().chain(leaves).zip(1..) {
            reading.record(0, time, record).unwrap();
        }
        let called: Vec<_> = calls(to).0.into_iter().map(|(name, _)| name).collect();
        assert_eq!(called, ["MPI_Barrier"]);
    }

    /// A function, and the bytes that a call of it has received.
    type Got = (String, Option<Vec<i64>>);

    /// The calls of the first rank, and what is not told.
    fn calls(of: Importer) -> (Vec<Got>, Left) {
        let mut all = Vec::new();
        let left = of
            .finish(|section| -> Result<()> {
                let mut events = section.events(0, 0).ok_or_else(|| anyhow!("no thread"))?;
                while let Some(event) = events.next_event()? {
                    let bytes = match event.arg("bytes") {
                        Some(Arg::One(bytes)) => Some(vec![bytes]),
                        Some(Arg::List(bytes)) => Some(bytes.to_vec()),
                        None => None,
                    };
                    all.push((event.name().unwrap_or_default().to_owned(), bytes));
                }
                Ok(())
            })
            .unwrap();
        (all, left)
    }

    #[test]
    fn what_stands_in_the_place_of_a_status_that_nobody_asked_for_is_not_what_came() {
        let mut definitions = Definitions::default();
        definitions.string(9, "MPI_COMM_WORLD".into());
        definitions.group(0, 4, &[0, 1]);
        definitions.group(1, 5, &[0, 1]);
        definitions.comm(0, 9, [1, 1], u32::MAX);
        for (name, number) in [("MPI_Irecv", 0), ("MPI_Waitany", 1), ("MPI_Testsome", 2)] {
            definitions.string(number, name.into());
            definitions.region(number, number, 4);
        }
        let mut to = Importer::new(2, true);
        let communicators = definitions.communicators(&mut to);
        let of = Known { definitions: &definitions, communicators: &communicators };
        let peer = |rank, bytes| Peer { rank, comm: 0, tag: 32_764, bytes };
        let completions = [peer(2_429_969_456, 3), peer(1, 8), peer(1, u64::MAX - 9)];
        let told = completions.iter().zip(0..).map(|(peer, id)| Some(Record::Irecv(*peer, id))).collect();
        let mut reading = Reading::new(of, &mut to, &[(0, 0)], told);
        let mut time = 0..;
        let mut call = |region, records: &[Record]| {
            let inner = records.iter().copied();
            for record in [Record::Enter(region)].into_iter().chain(inner).chain([Record::Leave(region)]) {
                reading.record(0, time.next().unwrap(), record).unwrap();
            }
        };
        call(0, &[Record::IrecvRequest(0)]);
        call(0, &[Record::IrecvRequest(1)]);
        call(0, &[Record::IrecvRequest(2)]);
        call(1, &[Record::Irecv(completions[0], 0)]);
        call(1, &[Record::Irecv(completions[2], 2)]);
        call(2, &[Record::Irecv(completions[1], 1)]);
        reading.finish();
        let none = |n: &str| (n.to_owned(), None);
        let got = |n: &str, bytes| (n.to_owned(), Some(vec![bytes]));
        let (begun, untold) = (none("MPI_Irecv"), got("MPI_Waitany", NONE));
        let expected = [begun.clone(), begun.clone(), begun, untold.clone(), untold, got("MPI_Testsome", 8)];
        let (all, left) = calls(to);
        assert_eq!(all, expected);
        let from_anybody = "receives of which it is not told what came (from anybody)";
        assert!(left.iter().any(|untold| untold == (from_anybody, 2)), "{left:?}");
        assert!(left.iter().all(|(what, _)| !what.starts_with("field")), "{left:?}");
    }
}
