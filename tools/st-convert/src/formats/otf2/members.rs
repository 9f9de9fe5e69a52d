//! Ranks of an archive, and where they stand in its communicators: those that are not converted are in neither.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::num::narrow;
use st_model::values::{PROC_NULL, ROOT};

use crate::groups::{Group, Groups};
use crate::trace::Trace;

/// `OTF2_COLLECTIVE_ROOT_NONE`, `_SELF` and `_THIS_GROUP`.
const NO_ROOT: u32 = u32::MAX;
const SELF: u32 = u32::MAX - 1;
const THIS_GROUP: u32 = u32::MAX - 2;

/// Members of both sides of a communicator, with their positions.
type Positions = [HashMap<u32, u32, FixedState>; 2];

/// Those of all communicators that have been met.
#[derive(Debug, Default)]
pub(super) struct Members {
    all: HashMap<u32, Positions, FixedState>,
}

/// The members of a side that are in the archive.
pub(super) fn there<'a>(group: &'a Group, side: usize, trace: &'a Trace) -> impl Iterator<Item = u32> + 'a {
    let ranks = group.sides.get(side).into_iter().flat_map(|seq| seq.iter());
    ranks.filter_map(|rank| u32::try_from(rank).ok()).filter(|rank| trace.has(*rank))
}

impl Members {
    fn positions(&mut self, trace: &Trace, groups: &Groups, group: u32) -> &Positions {
        self.all.entry(group).or_insert_with(|| {
            [0, 1].map(|side| {
                let members = groups.get(group).into_iter().flat_map(|group| there(group, side, trace));
                members.zip(0..).collect()
            })
        })
    }

    /// Position of a rank of the world in a communicator, of one between two groups among the members of both.
    pub(super) fn position(&mut self, trace: &Trace, groups: &Groups, group: u32, rank: u32) -> Option<u32> {
        let [first, second] = self.positions(trace, groups, group);
        let behind = || Some(second.get(&rank)? + narrow::<u32>(first.len()));
        first.get(&rank).copied().or_else(behind)
    }

    /// The root of an operation; `None` if it is not in the archive.
    pub(super) fn root(
        &mut self,
        trace: &Trace,
        groups: &Groups,
        group: u32,
        me: u32,
        root: Option<i64>,
    ) -> Option<u32> {
        let position = match root {
            None => return Some(NO_ROOT),
            Some(ROOT) => return Some(SELF),
            Some(PROC_NULL) => return Some(THIS_GROUP),
            Some(position) => u32::try_from(position).ok()?,
        };
        let [_, second] = self.positions(trace, groups, group);
        let inter = groups.get(group).is_some_and(|group| !group.sides[1].is_empty());
        let side: u8 = if inter { narrow(u32::from(!second.contains_key(&me))) } else { 0 };
        let rank = groups.world(group, side, position)?;
        self.position(trace, groups, group, rank)
    }
}
