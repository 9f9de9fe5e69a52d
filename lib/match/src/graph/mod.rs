//! The message graph: which point in time of which rank must lie before which, as the streams themselves tell.
//!
//! Every event of a rank's thread has two *points*, its enter (`2·i`) and its exit (`2·i + 1`). A message is an edge from
//! the enter of the call that sent it to the exit of the call that completed its receive; a collective operation is
//! edges from enters to exits, by its kind. [`Matcher`] takes sections one by one and finds the edges; [`Graph`] holds
//! them as short lists of operations per thread, so that a correction of clocks, a count of violations or a search for
//! a critical path can run over the points of a thread from one end to the other.
//!
//! Source of the classes: Becker, Linford, Rabenseifner, Wolf 2008, section 3 (logical messages of collective
//! operations). Beyond it: edges only where bytes flow, non-blocking and neighbourhood collectives,
//! intercommunicators, the edge from a posted receive back to the synchronous send that waits for it, and epochs of
//! one-sided communication.

mod barriers;
mod binding;
mod collective;
mod constraints;
mod epochs;
mod matcher;
mod share;
mod sharing;
mod survey;
mod tags;
mod tally;
mod times;
mod topology;
mod turns;
mod walk;

pub use barriers::Barriers;
pub use binding::Seen;
pub use collective::Part;
pub use constraints::{Bound, Latency, earliest, latest};
pub use epochs::{Epochs, Turn};
pub use matcher::{Matcher, OpenEnd};
pub use share::{Links, ShareError, roll};
pub use survey::{Ends, Positions, StreamEnds, at_ops, survey};
pub use tags::{COMPLETED, POSTED};
pub use tally::{Shortest, Span, Survey, Tally};
pub use topology::Topologies;

use std::fmt;

use crate::channel::{Channel, PARTITIONED};
use st_model::ranks::RankSeq;

/// One thread of one rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// World rank.
    pub rank: u32,
    /// Thread index.
    pub thread: u32,
    /// Number of its node; ranks with the same host share one.
    pub node: u32,
    /// Number of points that have times: twice the timed events.
    pub points: u32,
}

/// What happens at a point of a thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Op {
    /// The point.
    pub at: u32,
    code: u32,
}

/// The kinds of [`Op`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphStep {
    /// A message arrives.
    Receive(usize),
    /// A message leaves for a rank on another node (`far`) or on the same one.
    Send {
        /// The message.
        message: usize,
        /// Between nodes.
        far: bool,
    },
    /// The thread leaves a collective operation in which others' data reaches it.
    Leave(usize),
    /// The thread enters a collective operation in which its data reaches others.
    Enter(usize),
    /// The thread enters a collective operation that another process has: that process is told, by a message that takes no
    /// time.
    Tell(usize),
}

const RECEIVE: u32 = 0;
const SEND_NEAR: u32 = 1;
const SEND_FAR: u32 = 2;
const LEAVE: u32 = 3;
const ENTER: u32 = 4;
const TELL: u32 = 5;
/// Data of a collective operation in which each pair of members is by itself.
const RECEIVE_PAIR: u32 = 6;
/// No stream.
pub const NOBODY: u32 = u32::MAX;
/// Messages, and collective operations, that a graph can hold.
pub const LIMIT: usize = 1 << 29;

impl Op {
    fn new(at: u32, kind: u32, id: u32) -> Self {
        Self { at, code: id << 3 | kind }
    }
    /// What happens.
    #[must_use]
    #[inline]
    pub fn step(self) -> GraphStep {
        let id = (self.code >> 3) as usize;
        match self.code & 7 {
            RECEIVE | RECEIVE_PAIR => GraphStep::Receive(id),
            SEND_NEAR => GraphStep::Send { message: id, far: false },
            SEND_FAR => GraphStep::Send { message: id, far: true },
            LEAVE => GraphStep::Leave(id),
            TELL => GraphStep::Tell(id),
            _ => GraphStep::Enter(id),
        }
    }
    /// Whether a message arrives that is data of a collective operation.
    #[must_use]
    #[inline]
    pub fn is_collective(self) -> bool {
        self.code & 7 == RECEIVE_PAIR
    }
}

/// Which members of a collective operation wait for which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Every receiver waits for all senders but itself.
    Full,
    /// Every receiver waits for the senders of lower rank.
    Prefix,
}

/// One collective operation (on an intercommunicator: one direction of it).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instance {
    /// Index in [`Graph::groups`].
    pub group: u32,
    /// First of its slots: one per member of the sending side, then one per member of the receiving side; one only
    /// where that side is the root.
    pub first: u32,
    /// Who waits for whom.
    pub shape: Shape,
    /// The only sender, by position.
    pub from_root: Option<u32>,
    /// The only receiver, by position.
    pub to_root: Option<u32>,
    /// Side of the group that sends: 0, or 1 for the second group of an intercommunicator.
    pub side: u8,
    /// Number of threads that enter as senders.
    pub senders: u32,
    /// Number of threads that leave as receivers.
    pub receivers: u32,
}

/// The members of a communicator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// World ranks of both sides; the second is empty for an intracommunicator.
    pub sides: [RankSeq; 2],
    /// Node of each member; `u32::MAX` for a rank of whom nothing is known.
    pub nodes: [Vec<u32>; 2],
}

impl Instance {
    /// The receiving side.
    #[must_use]
    pub fn to_side(&self, group: &Group) -> u8 {
        if group.sides[1].is_empty() { self.side } else { 1 - self.side }
    }
    /// Number of slots of the sending side.
    #[must_use]
    pub fn sending(&self, group: &Group) -> usize {
        if self.from_root.is_some() { 1 } else { group.nodes[usize::from(self.side)].len() }
    }
    /// Number of slots of the receiving side.
    #[must_use]
    pub fn receiving(&self, group: &Group) -> usize {
        if self.to_root.is_some() { 1 } else { group.nodes[usize::from(self.to_side(group))].len() }
    }
    /// Slot of a sender, by its position in the sending side.
    #[must_use]
    pub fn sender_slot(&self, position: usize) -> usize {
        self.first as usize + if self.from_root.is_some() { 0 } else { position }
    }
    /// Slot of a receiver, by its position in the receiving side.
    #[must_use]
    pub fn receiver_slot(&self, group: &Group, position: usize) -> usize {
        self.first as usize + self.sending(group) + if self.to_root.is_some() { 0 } else { position }
    }
    /// Positions of the senders' slots, in order.
    pub fn sender_positions(&self, group: &Group) -> std::ops::Range<usize> {
        positions(self.from_root, self.sending(group))
    }
    /// Positions of the receivers' slots, in order.
    pub fn receiver_positions(&self, group: &Group) -> std::ops::Range<usize> {
        positions(self.to_root, self.receiving(group))
    }
}

fn positions(root: Option<u32>, n: usize) -> std::ops::Range<usize> {
    root.map_or(0..n, |r| r as usize..r as usize + 1)
}

/// What could not be matched: it counts as internal to its rank.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Issues {
    /// Sends whose receive is not in the streams.
    pub sends: u64,
    /// Receives whose send is not in the streams.
    pub receives: u64,
    /// Receives and collective operations that were started and never seen to complete.
    pub incomplete: u64,
    /// Receives and sends that were cancelled.
    pub cancelled: u64,
    /// Messages on a channel that several threads of a rank use: their order is not known.
    pub ambiguous: u64,
    /// Completions of requests of which nothing is known (made on another thread, or by a function known by name only).
    pub requests: u64,
    /// Collective operations that lack a member.
    pub members: u64,
    /// Collective operations that members disagree on.
    pub disagreements: u64,
    /// Neighbourhood operations whose neighbours are not known.
    pub neighbours: u64,
    /// Operations of events without exact times.
    pub untimed: u64,
    /// Epochs of one-sided communication that concern one side only.
    pub locks: u64,
    /// Examples, in order.
    pub examples: Vec<Example>,
}

/// A call of a trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Call {
    /// World rank.
    pub rank: u32,
    /// Thread index.
    pub thread: u32,
    /// Position on the thread, from 0.
    pub index: u64,
}

/// Both ends of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// What it went through: communicator, positions in it, tag.
    pub channel: Channel,
    /// The call that sent it, or started to.
    pub sent: Call,
    /// Position of the call that completed the send, on the same thread; `None` if that is not in the trace.
    pub sent_by: Option<u64>,
    /// Position of the call that posted the receive, on the thread of the one that completed it.
    pub posted: u64,
    /// The call that completed the receive.
    pub received: Call,
}

/// Messages of which one end is not in the streams.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Example {
    /// World rank that sends; -1 if it is not known.
    pub from: i64,
    /// World rank that receives.
    pub to: i64,
    /// Tag; some below all tags stand for what is no message.
    pub tag: i64,
    /// The ends that are there are receives.
    pub receives: bool,
    /// How many.
    pub n: u64,
}

impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self { from, to, tag, receives, n } = self;
        let what = if receives { "receives without send" } else { "sends without receive" };
        write!(f, "rank {from} to {to}, ")?;
        match tag {
            tags::PAIR => f.write_str("in a collective operation")?,
            tags::POSTED => f.write_str("window posted")?,
            tags::COMPLETED => f.write_str("access completed")?,
            tag if tag >= PARTITIONED => write!(f, "in parts, tag {}", tag % PARTITIONED)?,
            tag => write!(f, "tag {tag}")?,
        }
        write!(f, ": {n} {what}")
    }
}

/// Examples kept of what does not match.
const EXAMPLES: usize = 8;

impl Issues {
    /// Adds those of other streams.
    pub fn add(&mut self, other: &Self) {
        let Self { sends, receives, incomplete, cancelled, ambiguous, .. } = other;
        let Self { requests, members, disagreements, neighbours, untimed, locks, examples, .. } = other;
        self.sends += sends;
        self.receives += receives;
        self.incomplete += incomplete;
        self.cancelled += cancelled;
        self.ambiguous += ambiguous;
        self.requests += requests;
        self.members += members;
        self.disagreements += disagreements;
        self.neighbours += neighbours;
        self.untimed += untimed;
        self.locks += locks;
        if !examples.is_empty() {
            self.examples.extend(examples);
            self.few();
        }
    }

    /// Keeps the first few examples, so that they do not depend on the order in which they were found.
    fn few(&mut self) {
        self.examples.sort_unstable();
        self.examples.truncate(EXAMPLES);
    }

    /// Names and counts of what was met.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.all().into_iter().filter(|(_, n)| *n > 0)
    }

    fn all(&self) -> [(&'static str, u64); 11] {
        [
            ("sends without receive", self.sends),
            ("receives without send", self.receives),
            ("operations never completed", self.incomplete),
            ("cancelled operations", self.cancelled),
            ("messages whose order between threads is unknown", self.ambiguous),
            ("completions of unknown requests", self.requests),
            ("collective operations that lack a member", self.members),
            ("collective operations that members disagree on", self.disagreements),
            ("neighbourhood operations with unknown neighbours", self.neighbours),
            ("operations without times", self.untimed),
            ("one-sided epochs of locks", self.locks),
        ]
    }
}

/// The message graph of a set of streams.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    /// The threads, by (rank, thread).
    pub streams: Vec<Stream>,
    /// Per thread, by point: what happens. Several operations at a point are in no particular order.
    pub ops: Vec<Vec<Op>>,
    /// Per message the thread that sends it; [`NOBODY`] if it only stands for a collective operation of another process.
    pub senders: Vec<u32>,
    /// Communicators.
    pub groups: Vec<Group>,
    /// Collective operations.
    pub instances: Vec<Instance>,
    /// Number of slots of all collective operations.
    pub slots: usize,
    /// What could not be matched.
    pub issues: Issues,
    /// Host of each node.
    pub nodes: Vec<String>,
}
