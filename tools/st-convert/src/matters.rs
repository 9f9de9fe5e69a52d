//! What calls say that formats have no place for: one table, by which what is left out of a format is counted, and by whose names what a
//! format does not tell that is read.

use std::collections::BTreeSet;

use st_model::calls::roles::{Action, Start};
use st_model::calls::{CallTable, Kind, Meaning, Object, Row, Slot, names};
use st_model::event::{Arg, Event};
use st_model::values::{ANY_SOURCE, ANY_TAG};

use crate::losses::Losses;

/// Something that calls say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Matter {
    Datatypes,
    Reductions,
    InPlace,
    Counts,
    Roots,
    Collectives,
    Comms,
    Wildcards,
    Probed,
    Persistent,
    Requests,
    Pending,
    Windows,
    Displacements,
    Files,
    Offsets,
    Members,
    Groups,
    Sites,
    Errors,
    Others,
}

use Matter::*;

/// What calls of a function say, by its row alone.
const OF_ROWS: [Matter; 18] = [
    Datatypes,
    Reductions,
    Counts,
    Roots,
    Collectives,
    Comms,
    Probed,
    Persistent,
    Requests,
    Pending,
    Windows,
    Displacements,
    Files,
    Offsets,
    Members,
    Groups,
    Sites,
    Others,
];
/// What only some of a function's calls say.
const OF_CALLS: [Matter; 3] = [InPlace, Wildcards, Errors];

impl Matter {
    /// What it is called in lists of what is left out, or not told.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Datatypes => "datatypes of messages and operations",
            Reductions => "operations of reductions",
            InPlace => "operations whose buffers are in place",
            Counts => "counts of each partner in operations",
            Roots => "roots of operations",
            Collectives => "collective operations (messages stand for them)",
            Comms => "communicators of messages",
            Wildcards => "receives from any rank or with any tag",
            Probed => "receives of probed messages",
            Persistent => "starts of persistent requests",
            Requests => "requests of calls",
            Pending => "requests that calls wait for or test and do not complete",
            Windows => "windows of accesses and synchronisations",
            Displacements => "displacements in windows",
            Files => "files of calls",
            Offsets => "offsets in files",
            Members => "members of communicators, groups, windows and files that calls make",
            Groups => "members of groups that calls make",
            Sites => "functions and call sites",
            Errors => "errors of calls",
            Others => "other parameters of calls",
        }
    }

    /// Whether calls of a function say it.
    fn is_of(self, row: &Row) -> bool {
        let names = |object| row.slots.iter().any(|slot| slot.meaning == Meaning::Ref(object));
        let has = |name| row.slot(name).is_some();
        match self {
            Datatypes => moves(row) && names(Object::Type),
            Reductions => row.params.iter().any(|of| of.role == "op"),
            Counts => moves(row) && row.slots.iter().any(|slot| slot.list && slot.meaning == Meaning::Count),
            Roots => has("root"),
            Collectives => is_collective(row.kind),
            Comms => is_message(row.kind) && names(Object::Comm),
            Probed => row.kind == Kind::MatchedReceive,
            Persistent => row.kind == Kind::Restart,
            Requests => row.slots.iter().any(|slot| slot.meaning == Meaning::Request),
            Pending => {
                row.kind == Kind::Complete && ![names::MPI_Wait, names::MPI_Waitall].contains(&row.base())
            }
            Windows => names(Object::Win),
            Displacements => has("targetdisp"),
            Files => names(Object::File),
            Offsets => moves(row) && has("offset"),
            Members => row.slots.iter().any(makes_group),
            Groups => {
                row.slots.iter().any(|slot| slot.is_made() && slot.meaning == Meaning::Ref(Object::Group))
            }
            Sites => true,
            Others => row.slots.iter().any(|slot| is_other(row, slot)),
            InPlace | Wildcards | Errors => false,
        }
    }

    /// Whether a call says it, of what only some calls of a function say.
    fn is_said(self, event: &Event<'_>) -> bool {
        let is = |slot, value| event.arg(slot) == Some(Arg::One(value));
        let receives = matches!(event.role.action, Action::Receive { .. } | Action::Both { .. });
        match self {
            InPlace => matches!(event.role.action, Action::Collective { .. }) && is("inplace", 1),
            Wildcards => {
                receives && (is("source", ANY_SOURCE) || is("tag", ANY_TAG) || is("recvtag", ANY_TAG))
            }
            Errors => event.symbol.error != 0,
            _ => false,
        }
    }

    fn bit(self) -> u32 {
        OF_ROWS.iter().position(|of| *of == self).map_or(0, |at| 1 << at)
    }
}

/// Sends and receives.
fn is_message(kind: Kind) -> bool {
    matches!(kind, Kind::Send | Kind::SyncSend | Kind::Receive | Kind::SendReceive | Kind::MatchedReceive)
}

/// Whether all of a communicator make such calls together, also where they are said to be of neighbours.
pub(crate) fn is_collective(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Barrier
            | Kind::Bcast
            | Kind::Gather
            | Kind::Scatter
            | Kind::Allgather
            | Kind::Alltoall
            | Kind::Reduce
            | Kind::Allreduce
            | Kind::ReduceScatter
            | Kind::Scan
            | Kind::Exscan
            | Kind::NeighborAllgather
            | Kind::NeighborAlltoall
    )
}

/// Whether a function moves data, or begins to.
fn moves(row: &Row) -> bool {
    let accesses = matches!(row.kind, Kind::Put | Kind::Get | Kind::GetPut | Kind::CompareSwap);
    let file = row.slot("file").is_some() && row.slot("count").is_some();
    is_message(row.kind) || is_collective(row.kind) || accesses || file
}

fn makes_group(slot: &Slot) -> bool {
    let object =
        matches!(slot.meaning, Meaning::Ref(Object::Comm | Object::Group | Object::Win | Object::File));
    slot.is_made() && object
}

/// Whether a slot says what none of the other matters is about, and no event of a message, operation or access.
fn is_other(row: &Row, slot: &Slot) -> bool {
    let made_only = Start::of(row) == Start::Persistent;
    let told = (moves(row) && !made_only) || matches!(row.kind, Kind::Complete | Kind::Restart);
    match slot.meaning {
        Meaning::Times | Meaning::Position | Meaning::Ref(Object::Win | Object::File) => false,
        Meaning::Flag => !matches!(slot.name.as_str(), "flag" | "inplace"),
        _ if slot.name == "target" => false,
        Meaning::Info | Meaning::Ref(Object::Text) => true,
        _ => !told,
    }
}

/// What calls have said so far.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// Calls of each function, by its number.
    calls: Vec<u64>,
    /// Of what only some calls say.
    some: [u64; OF_CALLS.len()],
}

impl Said {
    pub(crate) fn add(&mut self, event: &Event<'_>) {
        let at = usize::from(event.symbol.call.0);
        if event.row.is_some() {
            if self.calls.len() <= at {
                self.calls.resize(at + 1, 0);
            }
            self.calls[at] += 1;
        }
        for (matter, times) in OF_CALLS.iter().zip(&mut self.some) {
            *times += u64::from(matter.is_said(event));
        }
    }

    /// What of it has no place in a format that lacks so much.
    pub(crate) fn left_out(&self, lacks: &[Matter]) -> Losses {
        let (mut losses, mut others) = (Losses::default(), (0, BTreeSet::new()));
        let lacking = lacks.iter().fold(0, |bits, matter| bits | matter.bit());
        let called = self.calls.iter().zip(0u16..).filter(|(times, _)| **times > 0);
        for (times, number) in called {
            let Some(row) = CallTable::builtin().get(st_model::calls::CallId(number)) else { continue };
            for matter in OF_ROWS.iter().filter(|of| of.bit() & lacking != 0 && of.is_of(row)) {
                if *matter == Others {
                    others.0 += times;
                    others.1.insert(row.name.as_str());
                } else {
                    // What such calls send and what they receive have one each.
                    let both = *matter == Datatypes && row.kind == Kind::SendReceive;
                    losses.add(matter.name(), times.saturating_mul(if both { 2 } else { 1 }));
                }
            }
        }
        for (matter, times) in OF_CALLS.iter().zip(self.some).filter(|(of, _)| lacks.contains(of)) {
            losses.add(matter.name(), times);
        }
        let of = others.1.into_iter().collect::<Vec<_>>().join(", ");
        losses.add(&format!("{} ({of})", Others.name()), others.0);
        losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said_by(function: &str) -> Vec<Matter> {
        let row = CallTable::builtin().by_name(function).unwrap();
        OF_ROWS.into_iter().filter(|of| of.is_of(row) && ![Sites, Collectives].contains(of)).collect()
    }

    #[test]
    fn what_calls_say_is_what_their_parameters_are() {
        for (function, all) in [
            ("MPI_Send", &[Datatypes, Comms][..]),
            ("MPI_Irecv", &[Datatypes, Comms, Requests]),
            ("MPI_Imrecv", &[Datatypes, Probed, Requests]),
            ("MPI_Send_init", &[Datatypes, Comms, Requests, Others]),
            ("MPI_Startall", &[Persistent, Requests]),
            ("MPI_Waitany", &[Requests, Pending]),
            ("MPI_Waitall", &[Requests]),
            ("MPI_Request_free", &[Requests, Others]),
            ("MPI_Barrier", &[]),
            ("MPI_Reduce", &[Datatypes, Reductions, Roots]),
            ("MPI_Alltoallw", &[Datatypes, Counts]),
            ("MPI_Accumulate", &[Datatypes, Reductions, Windows, Displacements]),
            ("MPI_Win_flush", &[Windows]),
            ("MPI_Win_fence", &[Windows, Others]),
            ("MPI_Win_create", &[Windows, Members, Others]),
            ("MPI_File_write_at", &[Datatypes, Files, Offsets]),
            ("MPI_File_read_all_begin", &[Datatypes, Files]),
            ("MPI_File_seek", &[Files, Others]),
            ("MPI_Type_vector", &[Others]),
            ("MPI_Probe", &[Others]),
            ("MPI_Comm_split", &[Members, Others]),
            ("MPI_Wtime", &[]),
            ("MPI_Init", &[]),
        ] {
            assert_eq!(said_by(function), all, "{function}");
        }
    }
}
