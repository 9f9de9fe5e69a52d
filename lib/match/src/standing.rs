//! Where ranks stand in what calls name: communicators, windows and files, the same for all ranks that share one.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::objects::{Comm, Name, Named, SharedObject};
use st_model::ranks::RankSeq;
use st_model::section::{Section, Tables};

/// What a call names, by its index in the rank's tables.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// A communicator.
    Comm(i64),
    /// A window.
    Win(i64),
    /// A file.
    File(i64),
}

/// Where a rank stands in one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Its number among all that have been met.
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

/// What is found in the tables of a section.
enum Found<'a> {
    Comm(&'a Named<Comm>),
    SharedObject(&'a Named<SharedObject>),
}

/// One group that has been met.
#[derive(Debug)]
pub struct Met<'a> {
    /// Equal on all of its members.
    pub name: Name,
    /// World ranks of both sides; the second is empty but for intercommunicators.
    pub sides: [&'a RankSeq; 2],
    found: Found<'a>,
}

impl std::fmt::Debug for Found<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Comm(_) => "Comm",
            Self::SharedObject(_) => "SharedObject",
        })
    }
}

impl Met<'_> {
    /// Name for people.
    #[must_use]
    pub fn label(&self) -> String {
        match self.found {
            Found::Comm(c) => c.label(),
            Found::SharedObject(j) => j.label(),
        }
    }
}

/// A rank's standing in what a call names; `None` if that is not known. `number` gives a group its number.
pub fn standing<'a>(
    section: &'a Section,
    rank: u32,
    scope: Scope,
    number: impl FnOnce(&Met<'a>) -> Option<u32>,
) -> Option<Standing> {
    static NONE: std::sync::LazyLock<RankSeq> = std::sync::LazyLock::new(RankSeq::default);
    let tables = &section.tables;
    let shared = |named: &'a Named<SharedObject>| {
        (named.name, &named.content.members, &*NONE, Found::SharedObject(named))
    };
    let (name, local, remote, found) = match scope {
        Scope::Comm(index) => {
            let named = Tables::find(&tables.comms, index, rank)?;
            (named.name, &named.content.members, &named.content.remote, Found::Comm(named))
        }
        Scope::Win(index) => shared(Tables::find(&tables.wins, index, rank)?),
        Scope::File(index) => shared(Tables::find(&tables.files, index, rank)?),
    };
    let me = u32::try_from(local.position(rank.into())?).ok()?;
    let inter = !remote.is_empty();
    // Both sides agree which is the first: the one that begins with the lower rank.
    let side = u8::from(inter && remote.get(0) < local.get(0));
    let sides = if side == 0 { [local, remote] } else { [remote, local] };
    let group = number(&Met { name, sides, found })?;
    // More members than ranks have numbers are none that anybody could name.
    let size = |s: &RankSeq| u32::try_from(s.len()).ok();
    let members = size(local)?.checked_add(size(remote)?)?;
    let peers = size(if inter { remote } else { local })?;
    Some(Standing { group, side, me, inter, peers, members })
}

/// Standings of one rank that have been looked up.
#[derive(Debug, Default)]
pub(crate) struct Standings {
    all: HashMap<Scope, Option<Standing>, FixedState>,
    /// Call after call names the same communicator.
    last: Option<(Scope, Option<Standing>)>,
}

impl Standings {
    pub(crate) fn get(
        &mut self,
        scope: Scope,
        find: impl FnOnce(Scope) -> Option<Standing>,
    ) -> Option<Standing> {
        if let Some((_, found)) = self.last.filter(|(last, _)| *last == scope) {
            return found;
        }
        let found = *self.all.entry(scope).or_insert_with(|| find(scope));
        self.last = Some((scope, found));
        found
    }
}
