//! What ranks have in a slot, and the rules by which that is compared.

use st_model::form::{Form, Own};
use st_model::ints::Sealed;
use st_model::ranklist::RankList;

use crate::cluster::rank_view::Owns;

/// How values are compared between ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rules {
    /// In the first form that makes all equal.
    #[default]
    Common,
    /// As recorded or, if that is not the same on all ranks, relative to the own rank.
    Relative,
    /// Like [`Rules::Relative`], but relative modulo the number of ranks.
    Modulo,
    /// As recorded, and where ranks differ one's values stand for all.
    Rigid(Stand),
}

/// Which ranks' counts stand for those of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stand {
    /// The first one's.
    First,
    /// Call by call the least: what is sent is no more than it was.
    Least,
    /// Call by call the most: what is received has the room it had.
    Most,
}

impl Rules {
    /// The form of partners where ranks differ in any one.
    pub(super) fn of_peers(self) -> Form {
        if self == Self::Modulo { Form::MODULO } else { Form::RELATIVE }
    }
}

/// What a rank has in a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mine<'a> {
    pub(crate) rank: u32,
    /// Who it is in the calls; `None` if that changes.
    pub(crate) own: Option<Own>,
    /// Lengths of the lists, and the number of executions.
    pub(crate) lens: Option<(&'a Sealed, u64)>,
    pub(crate) values: &'a Sealed,
    /// Number of values.
    pub(crate) len: u64,
}

/// The ranks before one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before<'a> {
    pub(crate) ranks: &'a RankList,
    pub(crate) owns: &'a Owns,
}

/// A stream's values under a map.
pub(crate) fn rewritten(values: &Sealed, len: u64, f: impl Fn(i64) -> i64) -> Sealed {
    match values.constant() {
        Some(_) => values.map(f),
        None => values.rebuild(len, f),
    }
}
