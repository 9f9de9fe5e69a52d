//! What a function does with other ranks, from its row in the call table.

use std::sync::LazyLock;

use super::words::{ABSENT, last_slot, slot};
use crate::calls::{CallId, CallTable, Kind, Row};
use crate::num::narrow;
use crate::values::error_class;

/// How an operation is started and completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// The call itself is the operation.
    Blocking,
    /// The call starts it, a completion ends it.
    Request,
    /// The call only makes it; `MPI_Start` starts it.
    Persistent,
}

impl Start {
    /// How the operation of a row is.
    #[must_use]
    pub fn of(row: &Row) -> Self {
        if row.properties.start {
            Self::Request
        } else if row.params.iter().any(|p| p.role == "newrequest") {
            Self::Persistent
        } else {
            Self::Blocking
        }
    }
}

/// Kinds of collective operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// `MPI_Barrier`, and what synchronises like it.
    Barrier,
    /// `MPI_Bcast`.
    Bcast,
    /// `MPI_Gather`, `MPI_Gatherv`.
    Gather,
    /// `MPI_Scatter`, `MPI_Scatterv`.
    Scatter,
    /// `MPI_Reduce`.
    Reduce,
    /// `MPI_Allgather`.
    Allgather,
    /// `MPI_Allgatherv`.
    Allgatherv,
    /// `MPI_Alltoall`.
    Alltoall,
    /// `MPI_Alltoallv`, `MPI_Alltoallw`.
    Alltoallv,
    /// `MPI_Allreduce`.
    Allreduce,
    /// `MPI_Reduce_scatter`, `MPI_Reduce_scatter_block`.
    ReduceScatter,
    /// `MPI_Scan`, `MPI_Exscan`.
    Scan,
    /// Neighbourhood, one count for all neighbours.
    Neighbour,
    /// Neighbourhood, one count per neighbour.
    NeighbourV,
}

impl Rule {
    const ALL: [Self; 14] = [
        Self::Barrier,
        Self::Bcast,
        Self::Gather,
        Self::Scatter,
        Self::Reduce,
        Self::Allgather,
        Self::Allgatherv,
        Self::Alltoall,
        Self::Alltoallv,
        Self::Allreduce,
        Self::ReduceScatter,
        Self::Scan,
        Self::Neighbour,
        Self::NeighbourV,
    ];
    /// Its number between processes.
    #[must_use]
    pub fn number(self) -> u8 {
        let at = Self::ALL.iter().position(|r| *r == self);
        at.map_or(u8::MAX, narrow)
    }
    /// What [`Rule::number`] has given.
    #[must_use]
    pub fn from_number(n: u8) -> Option<Self> {
        Self::ALL.get(usize::from(n)).copied()
    }
}

/// What a call does with other ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Nothing that concerns others.
    Internal,
    /// Sends.
    Send {
        /// Synchronously.
        sync: bool,
        /// How.
        start: Start,
    },
    /// Receives.
    Receive {
        /// How.
        start: Start,
    },
    /// Sends and receives.
    Both {
        /// How.
        start: Start,
    },
    /// Matched probe.
    Match,
    /// Receive of a matched message.
    Matched {
        /// How.
        start: Start,
    },
    /// Starts persistent requests.
    Start,
    /// Waits for requests or tests them.
    Complete,
    /// Frees a request.
    Free,
    /// Collective operation.
    Collective {
        /// Which.
        rule: Rule,
        /// How.
        start: Start,
    },
    /// Beginning of MPI.
    Init,
    /// End of MPI.
    Finalize,
    /// Makes an object of a communicator.
    Creation,
    /// Makes a communicator with a topology: also a creation.
    Topology,
    /// Closes a file.
    Close,
    /// Begins or ends an epoch of one-sided communication.
    Epoch(Epoch),
}

impl Action {
    /// What is left of it in a call that returned an error of this class: what requests it says that it has completed, and messages
    /// that were longer than their receives, which have got what there was room for.
    #[must_use]
    pub fn after(self, error: u32) -> Self {
        match self {
            _ if error == 0 => self,
            Self::Complete => self,
            Self::Receive { start: Start::Blocking }
            | Self::Both { start: Start::Blocking }
            | Self::Matched { start: Start::Blocking }
                if error_class(error) == Some("MPI_ERR_TRUNCATE") =>
            {
                self
            }
            _ => Self::Internal,
        }
    }

    /// Whether it is a blocking call that nobody leaves before all of its communicator have come.
    #[must_use]
    pub fn joins(self) -> bool {
        matches!(
            self,
            Self::Collective {
                rule: Rule::Barrier
                    | Rule::Allgather
                    | Rule::Allgatherv
                    | Rule::Alltoall
                    | Rule::Alltoallv
                    | Rule::Allreduce
                    | Rule::ReduceScatter,
                start: Start::Blocking
            }
        )
    }
}

/// Calls that begin or end an epoch in which others wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Epoch {
    /// `MPI_Win_fence`.
    Fence,
    /// `MPI_Win_post`.
    Post,
    /// `MPI_Win_start`.
    Start,
    /// `MPI_Win_complete`.
    Complete,
    /// `MPI_Win_wait`, `MPI_Win_test`.
    Wait,
    /// Of one side only.
    Lock,
    /// The end of the window: nobody returns before all have called it (MPI 3.1, section 11.2.5).
    Free,
}

/// What a function does with others, and where its words are.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    /// What it does.
    pub action: Action,
    /// Slot of the communicator; this and the others: [`ABSENT`] where the row has none.
    pub comm: u8,
    /// Destination and source.
    pub peer: [u8; 2],
    /// Tags of the message sent and received.
    pub tag: [u8; 2],
    /// What a wildcard receive got: source and tag.
    pub resolved: [u8; 2],
    /// The first request.
    pub request: u8,
    /// The last request: the one that is made.
    pub new_request: u8,
    /// The same, absent where the call makes none.
    pub makes: u8,
    /// The list of requests.
    pub requests: u8,
    /// The lists of a completion: positions, sources, tags, bytes.
    pub completed: [u8; 4],
    /// Whether a test succeeded.
    pub flag: u8,
    /// The root.
    pub root: u8,
    /// Whether the caller's own data are in place.
    pub inplace: u8,
    /// Elements sent and received.
    pub count: [u8; 2],
    /// Types of what is sent and received.
    pub types: [u8; 2],
    /// Elements sent to and received from each.
    pub counts: [u8; 2],
    /// The window.
    pub win: u8,
    /// The file that is closed.
    pub file: u8,
    /// The group.
    pub group: u8,
    /// Assertions.
    pub assert: u8,
    /// Its messages are sent in parts, and meet no others.
    pub partitioned: bool,
}

/// Of the built-in table's functions, by number.
static ROLES: LazyLock<Vec<Role>> = LazyLock::new(|| {
    let mut roles = Vec::new();
    for row in CallTable::builtin().rows() {
        let at = usize::from(row.id.0);
        if roles.len() <= at {
            roles.resize(at + 1, Role::INTERNAL);
        }
        roles[at] = Role::of(row);
    }
    roles
});

impl Role {
    /// Of calls that concern nobody else.
    pub const INTERNAL: Self = Self {
        action: Action::Internal,
        comm: ABSENT,
        peer: [ABSENT; 2],
        tag: [ABSENT; 2],
        resolved: [ABSENT; 2],
        request: ABSENT,
        new_request: ABSENT,
        makes: ABSENT,
        requests: ABSENT,
        completed: [ABSENT; 4],
        flag: ABSENT,
        root: ABSENT,
        inplace: ABSENT,
        count: [ABSENT; 2],
        types: [ABSENT; 2],
        counts: [ABSENT; 2],
        win: ABSENT,
        file: ABSENT,
        group: ABSENT,
        assert: ABSENT,
        partitioned: false,
    };

    /// The role of a function of the built-in table.
    #[must_use]
    pub fn of_call(call: CallId) -> &'static Self {
        ROLES.get(usize::from(call.0)).unwrap_or(&Self::INTERNAL)
    }

    /// The role of a row.
    #[must_use]
    pub fn of(row: &Row) -> Self {
        let action = action(row);
        if row.properties.opaque {
            return Self::INTERNAL;
        }
        let s = |name| slot(row, name);
        let new_request = last_slot(row, "request");
        let makes = row.params.iter().any(|p| p.role == "newrequest");
        let either = |a, b| if s(a) == ABSENT { s(b) } else { s(a) };
        Self {
            action,
            comm: row.comm_slot().map_or(ABSENT, narrow),
            peer: [s("dest"), s("source")],
            tag: [either("sendtag", "tag"), either("recvtag", "tag")],
            resolved: [s("rsource"), s("rtag")],
            request: s("request"),
            new_request,
            makes: if makes { new_request } else { ABSENT },
            requests: s("requests"),
            completed: [s("completed"), s("source"), s("tag"), s("bytes")],
            flag: s("flag"),
            root: s("root"),
            inplace: s("inplace"),
            count: [either("sendcount", "count"), either("recvcount", "count")],
            types: [either("sendtype", "type"), either("recvtype", "type")],
            counts: [either("sendcounts", "counts"), either("recvcounts", "counts")],
            win: either("win", "freewin"),
            file: s("freefile"),
            group: s("group"),
            assert: s("assert"),
            partitioned: row.slot("partitions").is_some(),
        }
    }
}

fn action(row: &Row) -> Action {
    let start = Start::of(row);
    let collective = |rule| Action::Collective { rule, start };
    let each = row.slot("recvcounts").is_some();
    match row.kind {
        Kind::Init => Action::Init,
        Kind::Finalize => Action::Finalize,
        Kind::Send => Action::Send { sync: false, start },
        Kind::SyncSend => Action::Send { sync: true, start },
        Kind::Receive => Action::Receive { start },
        Kind::SendReceive => Action::Both { start },
        Kind::MatchedProbe => Action::Match,
        Kind::MatchedReceive => Action::Matched { start },
        Kind::Restart => Action::Start,
        Kind::Free => Action::Free,
        Kind::Complete => Action::Complete,
        Kind::Barrier => collective(Rule::Barrier),
        Kind::Bcast => collective(Rule::Bcast),
        Kind::Gather => collective(Rule::Gather),
        Kind::Scatter => collective(Rule::Scatter),
        Kind::Allgather => collective(if each { Rule::Allgatherv } else { Rule::Allgather }),
        Kind::Alltoall => collective(if each { Rule::Alltoallv } else { Rule::Alltoall }),
        Kind::Reduce => collective(Rule::Reduce),
        Kind::Allreduce => collective(Rule::Allreduce),
        Kind::ReduceScatter => collective(Rule::ReduceScatter),
        Kind::Scan | Kind::Exscan => collective(Rule::Scan),
        Kind::NeighborAllgather | Kind::NeighborAlltoall => {
            collective(if each { Rule::NeighbourV } else { Rule::Neighbour })
        }
        // A communicator that is there only once its request is complete: all wait for all until then.
        Kind::Duplicate if start == Start::Request => collective(Rule::Barrier),
        Kind::Creation | Kind::Duplicate | Kind::Intercomm => Action::Creation,
        Kind::Cart | Kind::CartSub | Kind::Graph | Kind::DistGraph | Kind::Adjacent => Action::Topology,
        Kind::Close => Action::Close,
        Kind::WinFence => Action::Epoch(Epoch::Fence),
        Kind::WinPost => Action::Epoch(Epoch::Post),
        Kind::WinStart => Action::Epoch(Epoch::Start),
        Kind::WinComplete => Action::Epoch(Epoch::Complete),
        Kind::WinWait => Action::Epoch(Epoch::Wait),
        Kind::WinLock => Action::Epoch(Epoch::Lock),
        Kind::WinFree => Action::Epoch(Epoch::Free),
        Kind::Put
        | Kind::Get
        | Kind::GetPut
        | Kind::CompareSwap
        | Kind::Read
        | Kind::Write
        | Kind::Abort
        | Kind::Probe
        | Kind::Buffer
        | Kind::GroupCreation
        | Kind::Connect
        | Kind::Parent
        | Kind::CommFree
        | Kind::WinAttach
        | Kind::TypeLookup
        | Kind::Other => Action::Internal,
    }
}
