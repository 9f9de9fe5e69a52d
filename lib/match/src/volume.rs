//! How many bytes a rank's calls send and receive.
//!
//! *Sent* is what a call takes from its rank's buffers for others, once however many get it; *received*, what the call puts
//! into them (of a request: the call that completes it, where that has a status). For users st-intro(7) defines it, in "Bytes
//! sent and received"; this is the only code that knows it, from the rows of the call table.
//!
//! Data of a collective operation are counted as the standard describes it: a rank's own block is one like the others',
//! unless it stays in place.

mod flows;
mod graphs;
mod moved;
mod places;

pub use flows::{Flow, Flows, each_sent, flows};
pub use graphs::Graphs;
pub use moved::{Alike, Moved};
pub use places::{Amount, Places};

use st_model::num::{Exact, narrow, saturate};
use std::cell::Cell;
use std::collections::HashMap;
use std::ops::AddAssign;

use foldhash::fast::FixedState;

use crate::graph::Topologies;
use st_model::calls::Kind;
use st_model::calls::roles::{Action, Start};
use st_model::calls::words::{ABSENT, Words};
use st_model::event::Event;
use st_model::objects::{Comm, Name};
use st_model::ranks::RankSeq;
use st_model::section::{Section, Tables};
use st_model::values::{NONE, PROC_NULL, ROOT};

/// What a call moves in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Side {
    /// Bytes of data, without gaps in a datatype's extent.
    pub bytes: u128,
    /// Sum of the values of the slot that it is reckoned from ([`Places::measured`]).
    pub values: u128,
}

impl AddAssign for Side {
    fn add_assign(&mut self, other: Self) {
        *self = self.plus(other);
    }
}

impl Side {
    fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            values: self.values.saturating_add(other.values),
        }
    }
    /// The same for each of so many partners, whose values are one.
    fn times(self, n: u64) -> Self {
        Self { bytes: self.bytes.saturating_mul(n.into()), ..self }
    }
    /// What so many such calls move.
    #[must_use]
    pub fn in_all(self, calls: u64) -> Self {
        let all = |n: u128| n.saturating_mul(calls.into());
        Self { bytes: all(self.bytes), values: all(self.values) }
    }
    fn without(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_sub(other.bytes), ..self }
    }
}

/// What a call sends and receives.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Volume {
    /// What it sends.
    pub sent: Side,
    /// What it receives.
    pub received: Side,
    /// World ranks that it sends messages to or whose windows it reaches, with the bytes that it sends there.
    pub partners: Vec<(u32, u128)>,
}

/// A request, as far as others' bytes depend on it.
#[derive(Clone, Debug)]
enum Request {
    /// What each start moves.
    Persistent(Volume),
    /// A write to a file: what its status tells of was counted when it was handed over.
    Write,
    /// An exchange, the receive of which was counted likewise.
    Exchange,
}

/// Whom the blocks of a rank's neighbourhood operations are for and from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Neighbours {
    /// Positions in the communicator of destinations and sources; [`PROC_NULL`] of a block that is nobody's.
    pub lists: [Vec<i64>; 2],
    /// They are lower and upper neighbours in turn, dimension by dimension: what goes to the one comes from the other.
    pub grid: bool,
    /// Which of the blocks is whose is known.
    pub ordered: bool,
}

/// Reads the calls of a rank in order, and says what each moves.
#[derive(Debug)]
pub struct Volumes<'a> {
    section: &'a Section,
    rank: u32,
    graphs: &'a Graphs,
    topologies: Topologies,
    requests: HashMap<i64, Request, FixedState>,
    volume: Volume,
    /// The datatype that was looked up last, and its size: call after call has the same.
    last_type: Cell<Option<(i64, Option<i64>)>>,
    /// The communicator likewise, and whom ranks in it refer to.
    last_comm: Option<(i64, Option<&'a RankSeq>)>,
}

/// A rank in a communicator.
#[derive(Clone, Copy)]
struct Member<'a> {
    name: Name,
    comm: &'a Comm,
    me: u64,
}

impl Member<'_> {
    fn inter(&self) -> bool {
        !self.comm.remote.is_empty()
    }
    fn peers(&self) -> u64 {
        self.comm.peers().len()
    }
}

const SEND: usize = 0;
const RECEIVE: usize = 1;

impl<'a> Volumes<'a> {
    /// Begins with a rank of a section; its threads are read one after the other.
    #[must_use]
    pub fn new(section: &'a Section, rank: u32, graphs: &'a Graphs) -> Self {
        let (topologies, requests) = (Topologies::default(), HashMap::default());
        let volume = Volume::default();
        Self {
            section,
            rank,
            graphs,
            topologies,
            requests,
            volume,
            last_type: Cell::default(),
            last_comm: None,
        }
    }

    /// What the rank's next event moves. Of a call that failed only what it completed or received counts.
    pub fn next_event(&mut self, event: &Event<'_>) -> &Volume {
        let words = event.words();
        (self.volume.sent, self.volume.received) = (Side::default(), Side::default());
        self.volume.partners.clear();
        let Some(at) = Places::of_call(event.symbol.call) else { return &self.volume };
        if event.symbol.error != 0 && event.action() == Action::Internal {
            return &self.volume;
        }
        match at.kind {
            Kind::Complete => self.complete(&at, words),
            Kind::Restart => self.restart(&at, words),
            kind if kind.is_creation() => self.learn(event, &at),
            _ => self.moved(&at, words),
        }
        if at.kind != Kind::Restart && at.start != Start::Blocking {
            let request = words.one(at.request);
            match at.start {
                Start::Persistent => {
                    let made = Request::Persistent(std::mem::take(&mut self.volume));
                    self.requests.insert(request, made);
                }
                _ if at.kind == Kind::Write => {
                    self.requests.insert(request, Request::Write);
                }
                _ if at.kind == Kind::SendReceive => {
                    self.requests.insert(request, Request::Exchange);
                }
                _ => {
                    self.requests.remove(&request);
                }
            }
        }
        &self.volume
    }

    fn moved(&mut self, at: &Places, words: &Words) {
        let blocking = at.start == Start::Blocking;
        match at.kind {
            Kind::Send | Kind::SyncSend | Kind::SendReceive => self.send(at, words),
            Kind::Write => self.volume.sent = self.block(at, SEND, words, 0),
            Kind::Put | Kind::Get | Kind::GetPut | Kind::CompareSwap => self.access(at, words),
            Kind::Receive | Kind::MatchedReceive | Kind::Read => {}
            _ => self.collective(at, words),
        }
        let by_status =
            matches!(at.kind, Kind::Receive | Kind::MatchedReceive | Kind::SendReceive | Kind::Read);
        if at.kind == Kind::SendReceive && !blocking && words.one(at.source) != PROC_NULL {
            // The statuses of such requests are not recorded: MPICH 4.0 sets nothing in them. Others may have them.
            self.volume.received = self.block(at, RECEIVE, words, 0);
        } else if by_status && blocking {
            let bytes = positive(words.one(at.bytes));
            self.volume.received = Side { bytes, values: bytes };
        }
    }

    /// Size of a datatype's data in bytes.
    fn size(&self, datatype: i64) -> u128 {
        self.size_of(datatype).map_or(0, positive)
    }

    /// Size of a datatype of the rank in bytes, as it is recorded; `None` if it is not known.
    #[must_use]
    pub fn size_of(&self, datatype: i64) -> Option<i64> {
        if let Some((_, size)) = self.last_type.get().filter(|(last, _)| *last == datatype) {
            return size;
        }
        let found = Tables::find(&self.section.tables.types, datatype, self.rank);
        let size = found.map(|t| t.content.size);
        self.last_type.set(Some((datatype, size)));
        size
    }

    /// What is for the `k`-th partner.
    fn block(&self, at: &Places, side: usize, words: &Words, k: u64) -> Side {
        let amount = at.amounts[side];
        let of = |slot: u8, listed: bool| match usize::try_from(k) {
            Ok(k) if listed => words.list(slot).get(k).copied(),
            _ => words.get(slot),
        };
        let size = self.size(of(amount.datatype, amount.listed[1]).unwrap_or(-1));
        if amount.count == ABSENT {
            return Side { bytes: size, values: 0 };
        }
        let values = positive(of(amount.count, amount.listed[0]).unwrap_or(0));
        Side { bytes: values.saturating_mul(size), values }
    }

    /// What is for all of `n` partners, or as many as there are counts.
    fn all(&self, at: &Places, side: usize, words: &Words, n: u64) -> Side {
        let amount = at.amounts[side];
        if !amount.listed[0] {
            return self.block(at, side, words, 0).times(n);
        }
        let n = words.list(amount.count).len();
        (0..n.to_u64()).map(|k| self.block(at, side, words, k)).fold(Side::default(), Side::plus)
    }

    fn send(&mut self, at: &Places, words: &Words) {
        let Some(to) = words.get(at.peer).and_then(|p| u64::try_from(p).ok()) else { return };
        let mut sent = self.block(at, SEND, words, 0);
        if at.partitions != ABSENT {
            sent = sent.times(saturate(words.one(at.partitions)));
        }
        self.volume.sent = sent;
        let comm = words.one(at.comm);
        let peers = match self.last_comm.filter(|(last, _)| *last == comm) {
            Some((_, peers)) => peers,
            None => Tables::find(&self.section.tables.comms, comm, self.rank).map(|c| c.content.peers()),
        };
        self.last_comm = Some((comm, peers));
        self.partner(peers, to, sent.bytes);
    }

    fn access(&mut self, at: &Places, words: &Words) {
        let Some(to) = words.get(at.peer).and_then(|p| u64::try_from(p).ok()) else { return };
        if at.kind != Kind::Get {
            let mut sent = self.block(at, SEND, words, 0);
            let op = Tables::find(&self.section.tables.ops, words.get(at.op).unwrap_or(-1), self.rank);
            if op.is_some_and(|op| op.content.kind == "MPI_NO_OP") {
                sent = Side::default();
            }
            // The value that is expected and the one that is to replace it.
            self.volume.sent = sent.times(if at.kind == Kind::CompareSwap { 2 } else { 1 });
        }
        if at.kind != Kind::Put {
            self.volume.received = self.block(at, RECEIVE, words, 0);
        }
        let win = Tables::find(&self.section.tables.wins, words.one(at.win), self.rank);
        self.partner(win.map(|w| &w.content.members), to, self.volume.sent.bytes);
    }

    fn partner(&mut self, among: Option<&RankSeq>, rank: u64, bytes: u128) {
        let world = among.and_then(|m| m.get(rank)).and_then(|r| u32::try_from(r).ok());
        self.volume.partners.extend(world.map(|r| (r, bytes)));
    }

    fn member(&self, comm: i64) -> Option<Member<'a>> {
        let found = Tables::find(&self.section.tables.comms, comm, self.rank)?;
        let me = found.content.members.position(self.rank.into())?;
        Some(Member { name: found.name, comm: &found.content, me })
    }

    fn collective(&mut self, at: &Places, words: &Words) {
        let Some(m) = self.member(words.one(at.comm)) else { return };
        if matches!(at.kind, Kind::NeighborAllgather | Kind::NeighborAlltoall) {
            return self.neighbours(at, words, m);
        }
        let inplace = words.one(at.inplace) != 0;
        let one = |side| self.block(at, side, words, 0);
        let own = |side| if inplace { self.block(at, side, words, m.me) } else { Side::default() };
        let all = |side| self.all(at, side, words, m.peers());
        let others = |side| all(side).without(own(side));
        let nothing = Side::default();
        let part = RootRole::of(words.get(at.root), m);
        let (sent, received) = match at.kind {
            Kind::Bcast => match part {
                // Of one rank alone nobody gets anything.
                RootRole::Root if m.inter() || m.peers() > 1 => (one(SEND), nothing),
                RootRole::Other => (nothing, one(RECEIVE)),
                _ => (nothing, nothing),
            },
            Kind::Gather => (
                if part.gives(m) && !(inplace && part == RootRole::Root) { one(SEND) } else { nothing },
                if part == RootRole::Root { others(RECEIVE) } else { nothing },
            ),
            Kind::Scatter => (
                if part == RootRole::Root { others(SEND) } else { nothing },
                if part.gives(m) && !(inplace && part == RootRole::Root) { one(RECEIVE) } else { nothing },
            ),
            Kind::Reduce => (
                if part.gives(m) { one(SEND) } else { nothing },
                if part == RootRole::Root { one(RECEIVE) } else { nothing },
            ),
            Kind::Allgather if inplace => (own(RECEIVE), others(RECEIVE)),
            Kind::Allgather => (one(SEND), all(RECEIVE)),
            Kind::Alltoall if inplace => (others(RECEIVE), others(RECEIVE)),
            Kind::Alltoall => (all(SEND), all(RECEIVE)),
            Kind::Allreduce | Kind::Scan => (one(SEND), one(RECEIVE)),
            Kind::Exscan => (one(SEND), if m.me > 0 { one(RECEIVE) } else { nothing }),
            // Counts are of the caller's own group, also between two.
            Kind::ReduceScatter => {
                (self.all(at, SEND, words, m.comm.members.len()), self.block(at, RECEIVE, words, m.me))
            }
            _ => (nothing, nothing),
        };
        (self.volume.sent, self.volume.received) = (sent, received);
    }

    /// The rank's neighbours in a communicator of its tables, as far as calls up to now tell.
    #[must_use]
    pub fn neighbours_in(&self, comm: i64) -> Option<Neighbours> {
        if let Some(lists) = self.topologies.neighbours(comm) {
            let grid = self.topologies.is_grid(comm);
            return Some(Neighbours { lists: lists.map(<[i64]>::to_vec), grid, ordered: true });
        }
        let m = self.member(comm)?;
        let lists = self.graphs.neighbours(m.name, m.me)?.clone();
        Some(Neighbours { lists, grid: false, ordered: false })
    }

    fn neighbours(&mut self, at: &Places, words: &Words, m: Member<'_>) {
        let known = self.topologies.neighbours(words.one(at.comm));
        let degrees = self.graphs.degrees(m.name, m.me);
        // Which of the blocks have a neighbour: those of a grid end at its border.
        let exist = |side: usize| -> Vec<bool> {
            match known {
                Some(lists) => lists[side].iter().map(|n| *n != PROC_NULL).collect(),
                None => vec![true; degrees[side]],
            }
        };
        let each = |side: usize| {
            let amount = at.amounts[side];
            let mut exist = exist(side);
            if amount.listed[0] {
                exist.resize(words.list(amount.count).len(), known.is_none());
            }
            let blocks = (0u64..).zip(exist).filter(|(_, there)| *there);
            blocks.map(|(k, _)| self.block(at, side, words, k)).fold(Side::default(), Side::plus)
        };
        let sent = if at.kind == Kind::NeighborAlltoall {
            each(SEND)
        } else if exist(SEND).contains(&true) {
            self.block(at, SEND, words, 0)
        } else {
            Side::default()
        };
        (self.volume.sent, self.volume.received) = (sent, each(RECEIVE));
    }

    fn restart(&mut self, at: &Places, words: &Words) {
        let one = [words.one(at.request)];
        let requests = if at.requests == ABSENT { &one[..] } else { words.list(at.requests) };
        for request in requests {
            if let Some(Request::Persistent(v)) = self.requests.get(request) {
                self.volume.sent = self.volume.sent.plus(v.sent);
                self.volume.received = self.volume.received.plus(v.received);
                self.volume.partners.extend_from_slice(&v.partners);
            }
        }
    }

    /// What the statuses of completed receives and reads say.
    fn complete(&mut self, at: &Places, words: &Words) {
        let requests = words.list(at.requests);
        let [positions, tags] = at.completed.map(|slot| words.list(slot));
        for (k, bytes) in words.list(at.bytes).iter().enumerate() {
            // Only messages have tags.
            let file = tags.get(k).is_none_or(|tag| *tag == NONE);
            let position = positions.get(k).and_then(|p| usize::try_from(*p).ok());
            let request = position.and_then(|p| requests.get(p)).and_then(|r| self.requests.get(r));
            let counted = match request {
                Some(Request::Write) => file,
                Some(Request::Exchange) => !file,
                _ => false,
            };
            if !counted {
                let bytes = positive(*bytes);
                self.volume.received = self.volume.received.plus(Side { bytes, values: bytes });
            }
        }
    }

    fn learn(&mut self, event: &Event<'_>, at: &Places) {
        let (row, words) = (event.row, event.words());
        let new = words.get(at.new).unwrap_or(-1);
        if let (Some(row), Some(m)) = (row, self.member(new)) {
            let me = narrow(m.me);
            self.topologies.learn(row, words, words.one(at.comm), new, me);
        }
    }
}

/// A rank's part in an operation with a root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RootRole {
    Root,
    /// One of those that have to do with the root.
    Other,
    /// In the root's group of an intercommunicator.
    Bystander,
}

impl RootRole {
    fn of(root: Option<i64>, m: Member<'_>) -> Self {
        match root {
            Some(ROOT) => Self::Root,
            Some(PROC_NULL) => Self::Bystander,
            Some(root) if !m.inter() && u64::try_from(root) == Ok(m.me) => Self::Root,
            _ => Self::Other,
        }
    }
    /// Whether the rank has a block of its own: the root does not, if it is in the other group.
    fn gives(self, m: Member<'_>) -> bool {
        self == Self::Other || (self == Self::Root && !m.inter())
    }
}

fn positive(v: i64) -> u128 {
    saturate::<u64>(v).into()
}
