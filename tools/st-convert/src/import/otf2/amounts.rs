//! What a collective operation's record says of bytes, as a call's parameters: elements are bytes.

use serde_json::{Map, Value};
use st_model::calls::{Kind, Row, names};

use crate::otf2::Operation;

/// `OTF2_COLLECTIVE_ROOT_NONE`, `_SELF` and `_THIS_GROUP`.
const NO_ROOT: u32 = u32::MAX;
const SELF: u32 = u32::MAX - 1;
const THIS_GROUP: u32 = u32::MAX - 2;

/// Functions that begin an operation, by `OTF2_CollectiveOp`.
const BEGIN: [&str; 17] = [
    names::MPI_Ibarrier,
    names::MPI_Ibcast,
    names::MPI_Igather,
    names::MPI_Igatherv,
    names::MPI_Iscatter,
    names::MPI_Iscatterv,
    names::MPI_Iallgather,
    names::MPI_Iallgatherv,
    names::MPI_Ialltoall,
    names::MPI_Ialltoallv,
    names::MPI_Ialltoallw,
    names::MPI_Iallreduce,
    names::MPI_Ireduce,
    names::MPI_Ireduce_scatter,
    names::MPI_Iscan,
    names::MPI_Iexscan,
    names::MPI_Ireduce_scatter_block,
];

/// The function that begins an operation; `None` of an operation that none begins.
pub(super) fn begin(operation: &Operation) -> Option<&'static str> {
    BEGIN.get(usize::from(operation.kind)).copied()
}

/// The root of an operation; `None` if it has none.
pub(super) fn root(operation: &Operation) -> Option<Value> {
    match operation.root {
        NO_ROOT => None,
        SELF => Some("MPI_ROOT".into()),
        THIS_GROUP => Some("MPI_PROC_NULL".into()),
        rank => Some(rank.into()),
    }
}

/// Whom a rank's operations reach.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Reach {
    /// Number of ranks.
    pub(super) peers: u64,
    /// The caller's position among them.
    pub(super) me: u64,
    /// They are of another group.
    pub(super) inter: bool,
    /// What is sent to all is counted once: st-convert does so. Some tools count what each partner is sent, others what all are.
    pub(super) counted_once: bool,
}

impl Reach {
    /// Whether an operation that all get the same from was one in place, by its bytes: the caller gets all blocks but its own.
    fn is_in_place(&self, row: &Row, o: &Operation) -> bool {
        let others = self.peers.saturating_sub(1);
        row.kind == Kind::Allgather
            && !self.inter
            && self.counted_once
            && o.sent > 0
            && o.received == o.sent.saturating_mul(others)
    }
}

/// Adds the counts of an operation. Bytes for each of several partners are spread evenly where the record has their sum. Whether a
/// sum was spread is returned.
pub(super) fn add(row: &Row, o: &Operation, reach: Reach, to: &mut Map<String, Value>) -> bool {
    let (n, in_place) = (reach.peers.max(1), reach.is_in_place(row, o));
    if in_place {
        to.insert("inplace".into(), true.into());
    }
    let either = |a: u64, b: u64| if a > 0 { a } else { b };
    let scattered = matches!(row.kind, Kind::Scatter | Kind::Alltoall);
    let collected = matches!(row.kind, Kind::Gather | Kind::Allgather | Kind::Alltoall);
    let mut spread = false;
    for slot in &row.slots {
        let value: Value = match (slot.name.as_str(), slot.list) {
            ("count", false) if matches!(row.kind, Kind::Bcast | Kind::ReduceScatter) => {
                either(o.received, o.sent).into()
            }
            ("count", false) => either(o.sent, o.received).into(),
            ("sendcount", false) if scattered => (o.sent / n).into(),
            ("sendcount", false) if in_place => 0.into(),
            ("recvcount", false) if in_place => o.sent.into(),
            ("recvcounts", true) if in_place => even(o.received.saturating_add(o.sent), n),
            ("sendcount", false) if row.kind == Kind::Allgather && !reach.counted_once => {
                (o.received / n).into()
            }
            ("sendcount", false) => o.sent.into(),
            ("recvcount", false) if collected => (o.received / n).into(),
            ("recvcount", false) => o.received.into(),
            ("sendcounts", true) if o.sent > 0 => even(o.sent, n),
            ("recvcounts", true) if o.received > 0 => even(o.received, n),
            ("counts", true) => with_own(o, n, reach.me),
            ("sendtypes" | "recvtypes", true) => (0..n).map(|_| Value::from("MPI_BYTE")).collect(),
            _ => continue,
        };
        spread |= slot.list;
        to.insert(slot.name.clone(), value);
    }
    spread
}

/// A sum spread evenly.
fn even(sum: u64, n: u64) -> Value {
    (0..n).map(|at| Value::from(sum / n + u64::from(at < sum % n))).collect()
}

/// What is sent spread over all but the caller, who gets what it receives.
fn with_own(o: &Operation, n: u64, me: u64) -> Value {
    let (others, rest) = (n.saturating_sub(1).max(1), o.sent.saturating_sub(o.received));
    let mut seen = 0;
    let each = |at: u64| {
        if at == me {
            return Value::from(o.received);
        }
        seen += 1;
        Value::from(rest / others + u64::from(seen <= rest % others))
    };
    (0..n).map(each).collect()
}
