//! Communicators, windows and files that calls name, by numbers of their own.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_match::standing::{Scope, Standing, standing};
use st_model::num::{Exact as _, narrow};
use st_model::objects::Name;
use st_model::ranks::RankSeq;
use st_model::section::Section;

/// Members that a communicator may have: a few bytes can stand for any number, and formats list them.
const MOST: u64 = 1 << 26;

/// One that has been met.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Equal for all ranks.
    pub(crate) name: Name,
    /// Name for people.
    pub(crate) label: String,
    /// World ranks of both sides; the second is empty but for intercommunicators.
    pub(crate) sides: [RankSeq; 2],
}

/// All that have been met, in the order in which they are.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    all: Vec<Group>,
    names: HashMap<Name, u32, FixedState>,
}

impl Groups {
    /// A rank's standing in what a call names; `None` of one with more members than any machine has processors.
    pub(crate) fn standing(&mut self, section: &Section, rank: u32, scope: Scope) -> Option<Standing> {
        standing(section, rank, scope, |met| {
            if met.sides.iter().any(|side| side.len() > MOST) {
                return None;
            }
            Some(*self.names.entry(met.name).or_insert_with(|| {
                self.all.push(Group {
                    name: met.name,
                    label: met.label(),
                    sides: met.sides.map(Clone::clone),
                });
                narrow(self.all.len() - 1)
            }))
        })
    }

    pub(crate) fn get(&self, group: u32) -> Option<&Group> {
        self.all.get(group.to_usize())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Group> {
        self.all.iter()
    }

    /// World rank of a member.
    pub(crate) fn world(&self, group: u32, side: u8, position: u32) -> Option<u32> {
        let rank = self.get(group)?.sides.get(usize::from(side))?.get(position.into())?;
        u32::try_from(rank).ok()
    }
}
