//! Who talks to whom: the communicators, windows and files of a trace, the same for all ranks that share one.

use std::collections::HashMap;

use st_match::standing::{Scope, Standing, standing};
use st_model::calls::names;
use st_model::objects::Name;
use st_model::ranks::RankSeq;
use st_model::section::Section;

/// A communicator, window or file, whatever its index on a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Name for people.
    pub label: String,
    /// Whether all members know it by one name. Those of communicators that connect jobs do not.
    pub shared: bool,
    /// World ranks of both sides; the second is empty but for intercommunicators.
    pub sides: [RankSeq; 2],
}

impl Group {
    /// World rank of a member.
    #[must_use]
    pub fn world(&self, side: u8, position: u32) -> Option<u32> {
        let seq = self.sides.get(usize::from(side))?;
        seq.get(position.into()).and_then(|r| u32::try_from(r).ok())
    }

    /// World ranks of all members.
    pub fn members(&self) -> impl Iterator<Item = u32> + '_ {
        self.sides.iter().flat_map(RankSeq::iter).filter_map(|r| u32::try_from(r).ok())
    }
}

/// All that have been met.
#[derive(Debug, Default)]
pub struct Groups {
    names: HashMap<Name, u32>,
    all: Vec<Group>,
}

impl Groups {
    /// The group with an index.
    #[must_use]
    pub fn get(&self, group: u32) -> Option<&Group> {
        self.all.get(usize::try_from(group).ok()?)
    }

    /// The indices of a rank's communicators, by group.
    #[must_use]
    pub fn indices(&self, section: &Section, rank: u32) -> HashMap<u32, Vec<i64>> {
        let mut all: HashMap<u32, Vec<i64>> = HashMap::new();
        for (index, entry) in (0..).zip(&section.tables.comms) {
            let group = entry.on(rank).and_then(|named| self.names.get(&named.name));
            if let Some(group) = group {
                all.entry(*group).or_default().push(index);
            }
        }
        all
    }

    /// A rank's standing in what a call names; `None` if that is not known.
    pub fn standing(&mut self, section: &Section, rank: u32, scope: Scope) -> Option<Standing> {
        standing(section, rank, scope, |met| {
            let next = u32::try_from(self.all.len()).ok()?;
            let group = *self.names.entry(met.name).or_insert(next);
            if group == next {
                let label = met.label();
                let apart = [
                    names::MPI_Comm_accept,
                    names::MPI_Comm_connect,
                    names::MPI_Comm_join,
                    names::MPI_Comm_spawn,
                ];
                let shared =
                    !apart.iter().any(|kind| label.starts_with(kind)) && label != names::MPI_Comm_get_parent;
                self.all.push(Group { label, shared, sides: met.sides.map(Clone::clone) });
            }
            Some(group)
        })
    }
}
