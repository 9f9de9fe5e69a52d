//! Functions as regions, and what OTF2 calls kinds of them and of collective operations.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::calls::Kind;
use st_model::calls::roles::{Role, Rule};
use st_model::calls::words::ABSENT;
use st_model::event::Event;
use st_model::num::narrow;

use crate::otf2::COMPILER;
use crate::phase::Phase;

/// `OTF2_PARADIGM_USER`: parts of the program.
const USER: u8 = 1;
/// `OTF2_PARADIGM_MPI`.
pub(super) const MPI: u8 = 4;

/// A region.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub(super) name: String,
    pub(super) role: u8,
    pub(super) paradigm: u8,
}

/// All regions, by number.
#[derive(Debug, Default)]
pub(super) struct Regions {
    all: Vec<Region>,
    numbers: HashMap<(u8, String), u32, FixedState>,
}

impl Regions {
    fn number(&mut self, paradigm: u8, name: &str, role: u8) -> u32 {
        let key = (paradigm, name.to_owned());
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = narrow(self.all.len());
        self.all.push(Region { name: name.to_owned(), role, paradigm });
        self.numbers.insert(key, number);
        number
    }

    pub(super) fn of_mpi(&mut self, name: &str, event: &Event<'_>) -> u32 {
        self.number(MPI, name, role(event.row.map_or(Kind::Other, |row| row.kind)))
    }

    pub(super) fn of_program(&mut self, name: &str) -> u32 {
        // OTF2_REGION_ROLE_FUNCTION
        self.number(COMPILER, name, 1)
    }

    pub(super) fn of_phase(&mut self, phase: &Phase<'_>) -> u32 {
        let is_loop = phase.of.is_some_and(|of| of.level.is_none());
        // OTF2_REGION_ROLE_LOOP, OTF2_REGION_ROLE_CODE
        self.number(USER, phase.name(), if is_loop { 3 } else { 4 })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Region> {
        self.all.iter()
    }
}

/// `OTF2_RegionRole`.
fn role(kind: Kind) -> u8 {
    match kind {
        Kind::Barrier => 15,
        Kind::Bcast | Kind::Scatter => 23,
        Kind::Gather | Kind::Reduce => 24,
        Kind::Allgather | Kind::Alltoall | Kind::Allreduce | Kind::ReduceScatter => 25,
        Kind::Scan | Kind::Exscan | Kind::NeighborAllgather | Kind::NeighborAlltoall => 26,
        Kind::Read | Kind::Write => 27,
        Kind::Send
        | Kind::SyncSend
        | Kind::Receive
        | Kind::SendReceive
        | Kind::Probe
        | Kind::MatchedProbe
        | Kind::MatchedReceive
        | Kind::Complete
        | Kind::Restart => 28,
        Kind::Put | Kind::Get | Kind::GetPut | Kind::CompareSwap => 29,
        _ => 1,
    }
}

/// `OTF2_CollectiveOp`; `None` of those that OTF2 has no number for.
pub(super) fn operation(rule: Rule, event: &Event<'_>) -> Option<u8> {
    let Role { counts, .. } = *event.role;
    let listed = |side: usize| counts[side] != ABSENT;
    let exclusive = event.row.is_some_and(|row| row.kind == Kind::Exscan);
    // Types in a list are those of the most general exchange.
    let row = event.row;
    let types = row.is_some_and(|row| row.slots.iter().any(|slot| slot.list && slot.name.contains("types")));
    Some(match rule {
        Rule::Barrier => 0,
        Rule::Bcast => 1,
        Rule::Gather => 2 + u8::from(listed(1)),
        Rule::Scatter => 4 + u8::from(listed(0)),
        Rule::Allgather => 6,
        Rule::Allgatherv => 7,
        Rule::Alltoall => 8,
        Rule::Alltoallv => 9 + u8::from(types),
        Rule::Allreduce => 11,
        Rule::Reduce => 12,
        Rule::ReduceScatter => {
            if listed(0) {
                13
            } else {
                16
            }
        }
        Rule::Scan => 14 + u8::from(exclusive),
        Rule::Neighbour | Rule::NeighbourV => return None,
    })
}
