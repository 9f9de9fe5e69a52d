//! Where the words of a function are that say how much its calls move.

use std::sync::LazyLock;

use st_model::calls::roles::Start;
use st_model::calls::words::{ABSENT, last_slot, slot};
use st_model::calls::{CallId, CallTable, Kind, Row};
use st_model::num::narrow;

/// How much goes in one direction: elements of a datatype.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// Slot of the number of elements, one number or one for each partner; [`ABSENT`] if it is one element.
    pub count: u8,
    /// Slot of the datatype, one or one for each partner.
    pub datatype: u8,
    /// Whether these are lists.
    pub listed: [bool; 2],
}

/// Slots of a function; [`ABSENT`] where there is none.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// What the function does.
    pub kind: Kind,
    /// Whether the call itself does it.
    pub start: Start,
    /// What is sent and what is received.
    pub amounts: [Amount; 2],
    /// The bytes that statuses tell of.
    pub bytes: u8,
    /// Number of partitions that a message is sent in.
    pub partitions: u8,
    /// Who a message is sent to, or whose window is reached.
    pub peer: u8,
    /// Who a message comes from.
    pub source: u8,
    /// The root.
    pub root: u8,
    /// Whether the rank's own data are in place.
    pub inplace: u8,
    /// The communicator.
    pub comm: u8,
    /// The window.
    pub win: u8,
    /// The operation.
    pub op: u8,
    /// The request that is made or started.
    pub request: u8,
    /// The requests that are started or completed.
    pub requests: u8,
    /// Positions among them of those that completed, and the tags of these.
    pub completed: [u8; 2],
    /// The communicator that is made.
    pub new: u8,
}

/// Of the built-in table's functions, by number.
static PLACES: LazyLock<Vec<Option<Places>>> = LazyLock::new(|| {
    let rows = CallTable::builtin().rows();
    let all = rows.iter().map(|row| usize::from(row.id.0) + 1).max().unwrap_or(0);
    let mut places = vec![None; all];
    rows.iter().for_each(|row| places[usize::from(row.id.0)] = Places::of(row));
    places
});

impl Places {
    /// Those of a function.
    #[must_use]
    pub fn of_call(call: CallId) -> Option<Self> {
        PLACES.get(usize::from(call.0)).copied().flatten()
    }

    /// Those of a row; `None` if its calls move nothing and what others move does not depend on them.
    #[must_use]
    pub fn of(row: &Row) -> Option<Self> {
        let start = Start::of(row);
        let idle = matches!(
            row.kind,
            Kind::Other
                | Kind::Init
                | Kind::Finalize
                | Kind::Abort
                | Kind::Free
                | Kind::Buffer
                | Kind::Barrier
                | Kind::Probe
                | Kind::MatchedProbe
                | Kind::GroupCreation
                | Kind::Connect
                | Kind::Parent
                | Kind::CommFree
                | Kind::TypeLookup
                | Kind::Close
                | Kind::WinFence
                | Kind::WinPost
                | Kind::WinStart
                | Kind::WinComplete
                | Kind::WinWait
                | Kind::WinLock
                | Kind::WinFree
                | Kind::WinAttach
        );
        if row.properties.opaque || (idle && start == Start::Blocking) {
            return None;
        }
        let first = |names: &[&str]| {
            names.iter().map(|name| slot(row, name)).find(|s| *s != ABSENT).unwrap_or(ABSENT)
        };
        let amount = |counts: &[&str], types: &[&str]| {
            let (count, datatype) = (first(counts), first(types));
            let listed = [count, datatype].map(|s| row.slots.get(usize::from(s)).is_some_and(|s| s.list));
            Amount { count, datatype, listed }
        };
        Some(Self {
            kind: row.kind,
            start,
            amounts: [
                amount(
                    &["sendcount", "sendcounts", "count", "counts", "origincount"],
                    &["sendtype", "sendtypes", "type", "origintype"],
                ),
                amount(
                    &["recvcount", "recvcounts", "resultcount", "count", "counts", "origincount"],
                    &["recvtype", "recvtypes", "resulttype", "type", "origintype"],
                ),
            ],
            bytes: first(&["bytes"]),
            partitions: first(&["partitions"]),
            peer: first(&["dest", "target"]),
            source: first(&["source"]),
            root: first(&["root"]),
            inplace: first(&["inplace"]),
            comm: row.comm_slot().map_or(ABSENT, narrow),
            win: first(&["win"]),
            op: first(&["op"]),
            request: last_slot(row, "request"),
            requests: first(&["requests"]),
            completed: [first(&["completed"]), first(&["tag"])],
            new: first(&["newcomm"]),
        })
    }

    /// Whether a slot says how much a call moves, or whom to, by itself: what others say of requests is not looked at.
    #[must_use]
    pub fn tells(&self, slot: usize) -> bool {
        let Ok(slot) = u8::try_from(slot) else { return false };
        let [send, receive] = self.amounts;
        let amounts = [send.count, send.datatype, receive.count, receive.datatype];
        let others =
            [self.partitions, self.peer, self.source, self.root, self.inplace, self.comm, self.win, self.op];
        let bytes = slot == self.bytes && slot != ABSENT;
        bytes
            || (self.kind != Kind::Complete
                && slot != ABSENT
                && [&amounts[..], &others].concat().contains(&slot))
    }

    /// Slots whose values the bytes sent and received are reckoned from, by name; of a slot that is a histogram the sum is
    /// known exactly.
    #[must_use]
    pub fn measured(&self) -> [u8; 2] {
        let by_status = match self.kind {
            Kind::Receive | Kind::SendReceive | Kind::MatchedReceive => self.start == Start::Blocking,
            Kind::Complete | Kind::Read => true,
            _ => false,
        };
        [self.amounts[0].count, if by_status { self.bytes } else { self.amounts[1].count }]
    }
}
