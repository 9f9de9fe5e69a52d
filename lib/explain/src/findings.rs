//! What makes a program slow, most costly first.

use std::collections::{BTreeMap, BTreeSet};

use st_model::num::Exact as _;

use crate::analysis::{Analysis, PlaceTotals};
use crate::waits::{At, Kind, Sum};

/// What is the matter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Matter {
    /// Ranks wait for others.
    Wait(Kind),
    /// Tests that complete nothing.
    Polling,
    /// Calls that send messages of at most 1,024 bytes.
    TinyMessages,
    /// Requests that nothing completes.
    LeakedRequests,
    /// A rank that computes longer than the others wherever it computes.
    SlowRank,
}

/// Computation that makes a rank come too late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Excess {
    /// Where it ends.
    pub at: At,
    /// How much longer it is than the others' mean, ns; no more than the rank computes longer in all, for others may do
    /// the same work before another call.
    pub ns: u64,
}

/// One thing that costs time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What.
    pub matter: Matter,
    /// What it costs, ns of all ranks together.
    pub cost: u64,
    /// How often.
    pub count: u64,
    /// Number of the place where the cost is.
    pub place: u32,
    /// Ranks that it costs time, ascending.
    pub victims: Vec<u32>,
    /// Who is at fault, most first, each with its part of the cost, ns.
    pub culprits: Vec<(At, u64)>,
    /// What the first of them computes more than the others.
    pub excess: Option<Excess>,
}

/// Rank and place of computation, with how long each rank computes there.
type Before<'a> = BTreeMap<u32, Vec<(u32, &'a PlaceTotals)>>;

impl Analysis {
    /// Time of all ranks together, ns.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.ranks.iter().map(super::RankTotals::whole).sum()
    }

    /// All that costs time, most first.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut before: Before<'_> = BTreeMap::new();
        for (at, totals) in &self.totals {
            before.entry(at.place).or_default().push((at.rank, totals));
        }
        let mut all = self.waiting(&before);
        all.extend(before.iter().flat_map(|(place, ranks)| self.at_place(*place, ranks)));
        all.extend(self.slow_ranks(&before));
        all.sort_by_key(|f| (u64::MAX - f.cost, f.matter, f.place));
        all
    }

    /// Waits, by kind, where they are, and the place of those who are waited for.
    fn waiting(&self, before: &Before<'_>) -> Vec<Finding> {
        let mut groups: BTreeMap<(Kind, u32, u32), Vec<(At, Sum)>> = BTreeMap::new();
        for ((kind, place, culprit), sum) in &self.waits.culprits {
            groups.entry((*kind, *place, culprit.place)).or_default().push((*culprit, *sum));
        }
        let mut victims: BTreeMap<(Kind, u32), BTreeSet<u32>> = BTreeMap::new();
        for (kind, at) in self.waits.victims.keys() {
            victims.entry((*kind, at.place)).or_default().insert(at.rank);
        }
        let found = |((kind, place, _), sums): ((Kind, u32, u32), Vec<(At, Sum)>)| {
            let mut culprits: Vec<(At, u64)> = sums.iter().map(|(at, s)| (*at, s.ns)).collect();
            culprits.sort_by_key(|(at, ns)| (u64::MAX - ns, *at));
            let victims = victims.get(&(kind, place)).into_iter().flatten().copied().collect();
            let excess = culprits.first().and_then(|(at, _)| self.excess(at.rank, before));
            let (cost, count) = sums.iter().fold((0, 0), |(ns, n), (_, s)| (ns + s.ns, n + s.count));
            Finding { matter: Matter::Wait(kind), cost, count, place, victims, culprits, excess }
        };
        groups.into_iter().map(found).collect()
    }

    /// Where a rank computes most more than the others.
    fn excess(&self, rank: u32, before: &Before<'_>) -> Option<Excess> {
        let others = self.ranks.len().to_u64().saturating_sub(1).max(1);
        let all: u64 = self.ranks.iter().map(super::RankTotals::computation).sum();
        let own = self.ranks.iter().find(|r| r.rank == rank)?.computation();
        let most = own.saturating_sub((all - own) / others);
        let more = |(place, ranks): (&u32, &Vec<(u32, &PlaceTotals)>)| {
            let own = ranks.iter().find(|(r, _)| *r == rank)?.1.before;
            let rest: u64 = ranks.iter().filter(|(r, _)| *r != rank).map(|(_, t)| t.before).sum();
            Some(Excess { at: At { rank, place: *place }, ns: own.saturating_sub(rest / others).min(most) })
        };
        before.iter().filter_map(more).max_by_key(|e| e.ns).filter(|e| e.ns > 0)
    }

    /// What calls at a place cost without waiting.
    fn at_place(&self, place: u32, ranks: &[(u32, &PlaceTotals)]) -> Vec<Finding> {
        let mut all = PlaceTotals::default();
        ranks.iter().for_each(|(_, t)| all.add(t));
        let waited: u64 =
            self.waits.victims.iter().filter(|((_, at), _)| at.place == place).map(|(_, s)| s.ns).sum();
        let own = all.time.saturating_sub(waited);
        let of = |matter, cost, count, has: fn(&PlaceTotals) -> u64| {
            let mut who: Vec<u32> = ranks.iter().filter(|(_, t)| has(t) > 0).map(|(r, _)| *r).collect();
            who.sort_unstable();
            let culprits = who.iter().map(|rank| (At { rank: *rank, place }, 0)).collect();
            (count > 0).then_some(Finding {
                matter,
                cost,
                count,
                place,
                victims: who,
                culprits,
                excess: None,
            })
        };
        let mostly = all.tiny * 10 >= all.calls * 9;
        [
            of(Matter::Polling, all.polling, all.failed_tests, |t| t.failed_tests),
            of(Matter::TinyMessages, own, all.tiny * u64::from(mostly), |t| t.tiny),
            of(Matter::LeakedRequests, 0, all.leaked, |t| t.leaked),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Ranks that compute a tenth longer than the others at nearly all of at least three places.
    fn slow_ranks(&self, before: &Before<'_>) -> Vec<Finding> {
        let mut slow: BTreeMap<u32, (usize, u64, u32)> = BTreeMap::new();
        let mut all: BTreeMap<u32, usize> = BTreeMap::new();
        for (place, ranks) in before.iter().filter(|(_, r)| r.len() > 1) {
            let sum: u64 = ranks.iter().map(|(_, t)| t.before).sum();
            // What is nothing beside the run says nothing.
            if sum < self.time() / 1000 {
                continue;
            }
            for (rank, t) in ranks {
                *all.entry(*rank).or_default() += 1;
                let others = (sum - t.before) / (ranks.len().to_u64() - 1);
                if t.before > others + others / 10 {
                    let entry = slow.entry(*rank).or_insert((0, 0, *place));
                    (entry.0, entry.1) = (entry.0 + 1, entry.1 + (t.before - others));
                }
            }
        }
        let of = |(rank, (n, cost, place)): (u32, (usize, u64, u32))| {
            let places = all.get(&rank).copied().unwrap_or(0);
            (places >= 3 && n * 10 >= places * 9).then(|| Finding {
                matter: Matter::SlowRank,
                cost,
                count: n.to_u64(),
                place,
                victims: Vec::new(),
                culprits: vec![(At { rank, place }, cost)],
                excess: None,
            })
        };
        slow.into_iter().filter_map(of).collect()
    }
}
