//! What is kept of a run's wait states where exact times are not: how much ranks waited, where and for whom, what that is due
//! to, and what else costs time.
//!
//! Sums over all ranks are exact, but for what is said of each; how they are spread over ranks is a [`Spread`]. Kinds of wait
//! states and findings are numbers here, which st-explain gives their meaning; those that it does not know are of a newer
//! version.

use serde::{Deserialize, Serialize};

use crate::calls::CallId;
use crate::ranklist::RankList;
use crate::section::{Section, Symbol};
use crate::spread::Spread;

/// Stands for the number of a place: several that are not told apart.
pub const ELSEWHERE: u32 = u32::MAX;

/// What is kept.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Explanation {
    /// The ranks that it is of.
    #[serde(with = "crate::ranklist_notation::as_text")]
    pub ranks: RankList,
    /// What is so of all of them.
    pub totals: Totals,
    /// Functions at call sites, which others name by their positions here.
    pub places: Vec<Place>,
    /// Wait states by kind and by the place of those who wait. Their numbers and times are those of [`Self::waits`] together.
    pub victims: Vec<Victims>,
    /// Wait states by kind, place, and the place of those who are waited for.
    pub waits: Vec<Waits>,
    /// What costs time and is no wait.
    pub others: Vec<Other>,
    /// What waits are due to.
    pub costs: Vec<Costs>,
}

/// Times are in ns. All numbers here and below are less than 2^63.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// From the first rank's beginning to the last rank's end.
    pub run: u64,
    /// The same on an ideal network.
    pub ideal: u64,
    /// Time of all ranks together.
    pub time: u64,
    /// Computation, mean of all ranks.
    pub mean: u64,
    /// Computation of the rank that computes longest.
    pub longest: u64,
    /// Waits that delays are looked for of.
    pub delayed: u64,
    /// Waits that would end after their calls.
    pub violations: u64,
    /// Sends, receives, ambiguous messages, operations and threads that are left out.
    pub unmatched: [u64; 5],
}

/// A function at a call site.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Place {
    /// The function.
    pub call: CallId,
    /// The call site ([`crate::sites::Site`]); `None` if the section does not know it.
    #[serde(with = "site")]
    pub site: Option<u128>,
}

impl Place {
    /// That of a section's symbol.
    #[must_use]
    pub fn of(section: &Section, symbol: &Symbol) -> Self {
        Self { call: symbol.call, site: section.sites.get(symbol.site).map(|site| site.id) }
    }
}

/// Who waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Victims {
    /// Kind of wait state.
    pub kind: u8,
    /// Where.
    pub place: u32,
    /// The longest of the waits.
    pub longest: u64,
    /// Ranks that wait, by how long.
    pub spread: Spread,
}

/// Who is waited for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waits {
    /// Kind of wait state.
    pub kind: u8,
    /// Where ranks wait.
    pub place: u32,
    /// Where those are that they wait for, or [`ELSEWHERE`].
    pub culprit: u32,
    /// How many.
    pub count: u64,
    /// How long.
    pub ns: u64,
    /// The longest.
    pub longest: u64,
    /// Ranks that are waited for, by how long.
    pub spread: Spread,
    /// What makes it a finding, if it is one.
    pub finding: Option<Found>,
}

/// What is known of waits that cost much.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Found {
    /// Where the first of those who are waited for computes most more than the others, and how much, if it does.
    pub excess: Option<Excess>,
    /// What the waits are due to, most first; what is left is [`ELSEWHERE`].
    pub causes: Vec<Cause>,
}

/// Computation that makes a rank come too late.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Excess {
    /// The rank.
    pub rank: u32,
    /// Where it ends.
    pub place: u32,
    /// How much longer it is.
    pub ns: u64,
}

/// What waits are due to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cause {
    /// Where.
    pub place: u32,
    /// In the call, not in the computation before it.
    pub in_call: bool,
    /// How much of them.
    pub ns: u64,
    /// Ranks that do it.
    pub spread: Spread,
}

/// What costs time, and is no wait.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Other {
    /// What is the matter.
    pub matter: u8,
    /// Where.
    pub place: u32,
    /// What it costs.
    pub cost: u64,
    /// How often.
    pub count: u64,
    /// Bytes sent and received.
    pub bytes: u64,
    /// Ranks that do it.
    pub spread: Spread,
}

/// What others wait for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Costs {
    /// Where, or [`ELSEWHERE`].
    pub place: u32,
    /// In the call, not in the computation before it.
    pub in_call: bool,
    /// What it costs: in the short term, in the long term; and waits there: direct, indirect. Each is right to 1 ns.
    pub ns: [u64; 4],
    /// Ranks that others wait for, by both costs.
    pub caused: Spread,
    /// Ranks that wait, by both.
    pub suffered: Spread,
}

impl Explanation {
    /// Rows about ranks that this stands for.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.spreads().map(Spread::rows).fold(0, u64::saturating_add)
    }

    fn spreads(&self) -> impl Iterator<Item = &Spread> {
        let waits = self.waits.iter().flat_map(|w| {
            std::iter::once(&w.spread)
                .chain(w.finding.iter().flat_map(|f| &f.causes).map(|cause| &cause.spread))
        });
        let costs = self.costs.iter().flat_map(|c| [&c.caused, &c.suffered]);
        let victims = self.victims.iter().map(|v| &v.spread);
        waits.chain(costs).chain(victims).chain(self.others.iter().map(|o| &o.spread))
    }
}

/// Identities of call sites as text.
mod site {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(site: &Option<u128>, to: S) -> Result<S::Ok, S::Error> {
        site.map(|id| format!("{id:032x}")).serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<u128>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let id = |text: String| u128::from_str_radix(&text, 16).map_err(D::Error::custom);
        text.map(id).transpose()
    }
}
