//! Ranks that are slow wherever they compute, and nodes all of whose ranks are.

use std::collections::{BTreeMap, BTreeSet};

use st_model::num::Exact as _;

use crate::analysis::{Analysis, PlaceTotals};
use crate::findings::{Before, Finding};
use crate::matter::Matter;
use crate::waits::At;

/// A place that takes more than one part in so many of all ranks' time is looked at by itself, others together, as many as take that
/// much: at each of hundreds of places with few calls ranks differ by chance.
const ALONE: u64 = 100;

/// Less than one part in so many says nothing.
const NOTHING: u64 = 1000;

/// A rank that is slow is so at this many places at least, those that are nothing by themselves counted as one.
const LEAST: u64 = 3;

/// More than so many parts in four of what it computes longer at one place alone are that place's, which those who wait tell: elsewhere
/// ranks differ by chance, in one run and not in the next.
const AT_ONE: u64 = 3;

/// Each rank of a slow node computes longer than those of others by one part in so many: half of what makes the node slow.
const EACH: u64 = 20;

/// Places that are looked at together.
#[derive(Default)]
struct Group {
    /// How long all ranks compute there, ns.
    sum: u64,
    /// How many they are, and how many of these say something by themselves.
    places: u64,
    telling: u64,
    /// How long each unit does, and those of the others that do so in the mean, ns.
    units: BTreeMap<u32, [u64; 2]>,
}

/// A unit, how long a rank of it computes at a place in the mean, and one of the others, ns.
type Means = (u32, u64, u64);

/// What is known of a unit (a rank, or all ranks of a node) when all places have been looked at.
#[derive(Clone, Copy, Default)]
struct Pace {
    /// How long it computes where others do, too, ns.
    computed: u64,
    /// The part of it that is where it takes a tenth longer than they do, and how much longer.
    slow: u64,
    more: u64,
    /// How many places these are, and how many of these say something, at least one in a group.
    places: u64,
    telling: u64,
    /// How much longer it computes at the place where that is most, and that place.
    most: (u64, u32),
}

impl Group {
    fn add(&mut self, means: &[Means], sum: u64, tells: bool) {
        self.sum = self.sum.saturating_add(sum);
        self.places += 1;
        self.telling += u64::from(tells);
        for (unit, own, others) in means {
            let [of_unit, of_others] = self.units.entry(*unit).or_default();
            *of_unit = of_unit.saturating_add(*own);
            *of_others = of_others.saturating_add(*others);
        }
    }

    /// Adds it to what is known of units, and begins anew.
    fn end(&mut self, all: &mut BTreeMap<u32, Pace>) {
        for (unit, [own, others]) in std::mem::take(&mut self.units) {
            let pace = all.entry(unit).or_default();
            pace.computed += own;
            if own > others + others / 10 {
                pace.slow += own;
                pace.more += own - others;
                pace.places += self.places;
                pace.telling += self.telling.max(1);
            }
        }
        *self = Self::default();
    }
}

/// How long a rank of each unit computes at a place in the mean, and one of the others, where there are others; and all together.
fn means(ranks: &[(u32, &PlaceTotals)], unit: &dyn Fn(u32) -> u32) -> (Vec<Means>, u64) {
    let mut units: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
    for (rank, t) in ranks {
        let [ns, n] = units.entry(unit(*rank)).or_default();
        (*ns, *n) = (ns.saturating_add(t.before), *n + 1);
    }
    let [sum, all] = [0, 1].map(|i| units.values().map(|of| of[i]).fold(0, u64::saturating_add));
    let mean = |(unit, [ns, n]): (u32, [u64; 2])| Some((unit, ns / n, (sum - ns).checked_div(all - n)?));
    (units.into_iter().filter_map(mean).collect(), sum)
}

/// How units compute before places that several of them have; `time`: all ranks' together, ns.
fn paces(before: &Before<'_>, time: u64, unit: &dyn Fn(u32) -> u32) -> BTreeMap<u32, Pace> {
    let (mut all, mut little) = (BTreeMap::<u32, Pace>::new(), Group::default());
    for (place, ranks) in before {
        let (means, sum) = means(ranks, unit);
        if means.is_empty() {
            continue;
        }
        for (unit, own, others) in &means {
            let pace = all.entry(*unit).or_default();
            pace.most = pace.most.max((own.saturating_sub(*others), *place));
        }
        let mut alone = Group::default();
        let group = if sum > time / ALONE { &mut alone } else { &mut little };
        group.add(&means, sum, sum > time / NOTHING);
        if group.sum > time / ALONE {
            group.end(&mut all);
        }
    }
    if little.sum > time / NOTHING {
        little.end(&mut all);
    }
    all
}

impl Pace {
    /// How much longer a unit computes, ns, if it does so everywhere; `own`, `others`: how long one of its ranks does in all, and one of the
    /// others.
    fn cost(&self, own: u64, others: u64) -> Option<u64> {
        // Others may do the same work before other calls.
        let cost = self.more.min(own.saturating_sub(others));
        let everywhere = self.telling >= LEAST && self.slow / 9 >= self.computed / 10;
        let everywhere = everywhere && self.most.0.saturating_mul(4) <= self.more.saturating_mul(AT_ONE);
        (everywhere && cost > others / 10).then_some(cost)
    }
}

impl Analysis {
    /// Ranks that compute a tenth longer than the others, and so at three places or more, where they do nine tenths of it. Ranks of a node all of
    /// which do are one finding.
    pub(crate) fn slow_ranks(&self, before: &Before<'_>) -> Vec<Finding> {
        let mut all = self.slow_nodes(before);
        let known: BTreeSet<u32> = all.iter().flat_map(|f| &f.culprits).map(|(at, _)| at.rank).collect();
        let computed = self.computed();
        let of = |(rank, pace): (u32, Pace)| {
            let [own, others] = self.computation(rank, computed);
            let (cost, place) = (pace.cost(own, others)?, pace.most.1);
            Some(Finding {
                cost,
                count: pace.places,
                place,
                culprits: vec![(At { rank, place }, cost)],
                ..Finding::of(Matter::SlowRank)
            })
        };
        let paces = paces(before, self.time(), &|rank| rank);
        all.extend(paces.into_iter().filter(|(rank, _)| !known.contains(rank)).filter_map(of));
        all
    }

    /// The same of nodes that have several ranks, beside those of other nodes, where each of these computes longer by so much.
    fn slow_nodes(&self, before: &Before<'_>) -> Vec<Finding> {
        let mut nodes: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
        for rank in &self.ranks {
            let Some(node) = self.nodes.get(&rank.rank) else { return Vec::new() };
            nodes.entry(*node).or_default().push((rank.rank, rank.computation()));
        }
        if nodes.len() < 2 || nodes.values().all(|ranks| ranks.len() < 2) {
            return Vec::new();
        }
        let (computed, n) = (self.computed(), self.ranks.len().to_u64());
        let unit = |rank| self.nodes.get(&rank).copied().unwrap_or(u32::MAX);
        let of = |(node, pace): (u32, Pace)| {
            let ranks = nodes.get(&node).filter(|ranks| ranks.len() > 1)?;
            let sum = ranks.iter().map(|(_, ns)| *ns).fold(0, u64::saturating_add);
            let others = computed.saturating_sub(sum).checked_div(n - ranks.len().to_u64())?;
            let cost = pace.cost(sum / ranks.len().to_u64(), others)?;
            let place = pace.most.1;
            let longer = |ns: u64| ns > others + others / EACH;
            ranks.iter().all(|(_, ns)| longer(*ns)).then(|| Finding {
                cost,
                count: pace.places,
                place,
                culprits: ranks.iter().map(|(rank, _)| (At { rank: *rank, place }, cost)).collect(),
                ..Finding::of(Matter::SlowRank)
            })
        };
        paces(before, self.time(), &unit).into_iter().filter_map(of).collect()
    }
}
