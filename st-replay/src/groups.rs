//! Who talks to whom: the communicators, windows and files of a trace, the same for all ranks that share one.

use st_model::num::narrow;
use std::collections::HashMap;

use st_model::objects::{Comm, Name};
use st_model::ranks::RankSeq;
use st_model::section::{Section, Tables};

/// What a call names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// A communicator, by its index in the tables.
    Comm(i64),
    /// A window.
    Win(i64),
    /// A file.
    File(i64),
}

/// Where a rank stands in one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Index in [`Groups`].
    pub group: u32,
    /// The rank's side of an intercommunicator; else 0.
    pub side: u8,
    /// Its position in that side.
    pub me: u32,
    /// Of an intercommunicator.
    pub inter: bool,
    /// Members of the group that ranks in calls refer to.
    pub peers: u32,
    /// Members of both sides.
    pub members: u32,
}

impl Standing {
    /// The side that ranks in calls are of.
    #[must_use]
    pub fn other(&self) -> u8 {
        if self.inter { 1 - self.side } else { 0 }
    }
}

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
    pub fn standing(&mut self, section: &Section, rank: u32, place: Place) -> Option<Standing> {
        let none = RankSeq::default();
        let tables = &section.tables;
        let (name, label, local, remote) = match place {
            Place::Comm(index) => {
                let named = Tables::find(&tables.comms, index, rank)?;
                let c: &Comm = &named.content;
                (named.name, named.label(), &c.members, &c.remote)
            }
            Place::Win(index) => {
                let named = Tables::find(&tables.wins, index, rank)?;
                (named.name, named.label(), &named.content.members, &none)
            }
            Place::File(index) => {
                let named = Tables::find(&tables.files, index, rank)?;
                (named.name, named.label(), &named.content.members, &none)
            }
        };
        let me = u32::try_from(local.position(rank.into())?).ok()?;
        let inter = !remote.is_empty();
        // Both sides agree which is the first: the one that begins with the lower rank.
        let side = u8::from(inter && remote.get(0) < local.get(0));
        let next = u32::try_from(self.all.len()).ok()?;
        let group = *self.names.entry(name).or_insert(next);
        if group == next {
            let (a, b) = if side == 0 { (local, remote) } else { (remote, local) };
            let apart = ["MPI_Comm_accept", "MPI_Comm_connect", "MPI_Comm_join", "MPI_Comm_spawn"];
            let shared = !apart.iter().any(|kind| label.starts_with(kind)) && label != "MPI_Comm_get_parent";
            self.all.push(Group { label, shared, sides: [a.clone(), b.clone()] });
        }
        let size = |s: &RankSeq| narrow::<u32>(s.len());
        let members = size(local).saturating_add(size(remote));
        let peers = size(if inter { remote } else { local });
        Some(Standing { group, side, me, inter, peers, members })
    }
}
