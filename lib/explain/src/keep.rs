//! What is kept of an analysis where exact times are not: [`st_model::explanation`], from which [`crate::Kept`] tells the same.
//!
//! Bytes are those of the program's structure: each kind of wait at a place is one row whatever the number of ranks, and how a
//! row is spread over ranks takes at most so many integers as its share of the run is worth.

use std::collections::{BTreeMap, HashMap};

use st_model::explanation::{
    Cause, Costs, ELSEWHERE, Excess, Explanation, Found, Other, Totals, Victims, Waits,
};
use st_model::num::{narrow, saturate};
use st_model::ranklist::RankList;
use st_model::spread::Spread;

use crate::analysis::{Analysis, Unmatched};
use crate::delays::{Cost, Delays, whole_ns};
use crate::findings::Finding;
use crate::matter::Matter;
use crate::timeline::{Activity, Doing};
use crate::waits::{Sum, WaitKind};

/// Findings that are kept cost more than one part in so many of the run; what waits are due to is told apart from one part in
/// so many of all waits on.
const WORTH: u64 = 1000;

/// Findings that are kept at most, the most costly.
const FINDINGS: usize = 256;

/// Wait states, and places of delays, that are kept apart at most.
const ROWS: usize = 4096;

/// Findings whose causes are looked for, the most costly: each takes time at each wait.
const EXPLAINED: usize = 20;

/// Causes of a finding that are kept apart.
const CAUSES: usize = 3;

/// A part of the whole that is worth so many integers of a spread.
fn room(part: u64, whole: u64) -> usize {
    match whole / part.max(1) {
        0..100 => 36,
        100..WORTH => 12,
        _ => 5,
    }
}

impl Analysis {
    /// What is kept of it, if causes have been looked for.
    #[must_use]
    pub fn kept(&self) -> Explanation {
        let time = self.time();
        let mut findings = self.findings();
        findings.retain(|f| f.cost > time / WORTH || f.is_leak() || f.matter.is_reason());
        // Leaks cost nothing, and come last.
        findings.sort_by_key(|f| !f.is_leak());
        findings.truncate(FINDINGS);
        let waits = findings.iter().filter(|f| matches!(f.matter, Matter::Wait(_)));
        let explained: Vec<Finding> = waits.take(EXPLAINED).cloned().collect();
        let delays = self.delays(&explained);
        let ranks: RankList = self.ranks.iter().map(|r| r.rank).collect();
        let keeping = Keeping { analysis: self, ranks: &ranks, time, waited: self.waits.total().ns };
        let efficiency = self.efficiency();
        let Unmatched { sends, receives, ambiguous, operations, untimed_threads } = self.unmatched;
        let mut kept = Explanation {
            ranks: ranks.clone(),
            totals: Totals {
                run: efficiency.run,
                ideal: efficiency.ideal,
                time,
                mean: efficiency.mean,
                longest: efficiency.longest,
                delayed: whole_ns(delays.waits),
                violations: self.waits.violations,
                unmatched: [sends, receives, ambiguous, operations, untimed_threads],
            },
            places: Vec::new(),
            victims: Vec::new(),
            waits: Vec::new(),
            others: findings.iter().filter_map(|f| keeping.other(f)).collect(),
            costs: keeping.costs(&delays),
        };
        let victims = keeping.victims();
        let causes = explained.iter().zip(delays.causes.iter().map(Vec::as_slice));
        kept.waits = keeping.waits(&findings, causes, |kind, place| victims.contains_key(&(kind, place)));
        kept.victims =
            victims.iter().map(|((kind, place), ranks)| keeping.victims_at(*kind, *place, ranks)).collect();
        self.number(&mut kept);
        kept
    }

    /// Names places by their positions among those that are kept.
    fn number(&self, kept: &mut Explanation) {
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let mut places = Vec::new();
        let mut renumber = |place: &mut u32| {
            *place = match self.places.get(*place) {
                None => ELSEWHERE,
                Some(known) => *numbers.entry(*place).or_insert_with(|| {
                    places.push(known);
                    narrow(places.len() - 1)
                }),
            }
        };
        for v in &mut kept.victims {
            renumber(&mut v.place);
        }
        for w in &mut kept.waits {
            renumber(&mut w.place);
            renumber(&mut w.culprit);
            if let Some(found) = &mut w.finding {
                found.excess.iter_mut().for_each(|e| renumber(&mut e.place));
                found.causes.iter_mut().for_each(|c| renumber(&mut c.place));
            }
        }
        kept.others.iter_mut().for_each(|o| renumber(&mut o.place));
        kept.costs.iter_mut().for_each(|c| renumber(&mut c.place));
        kept.places = places;
    }
}

struct Keeping<'a> {
    analysis: &'a Analysis,
    /// All ranks.
    ranks: &'a RankList,
    /// Time of all ranks, and the part of it that is wait states, ns.
    time: u64,
    waited: u64,
}

/// Sums by rank.
type ByRank = BTreeMap<u32, Sum>;

fn together<'a>(sums: impl IntoIterator<Item = &'a Sum>) -> Sum {
    let mut all = Sum::default();
    sums.into_iter().for_each(|s| all.add(*s));
    all
}

impl Keeping<'_> {
    fn spread(&self, values: &[(u32, u64)]) -> Spread {
        Spread::of(
            values,
            room(values.iter().map(|(_, v)| *v).fold(0, u64::saturating_add), self.time),
            self.ranks,
        )
    }

    /// Who waits where: places that are not here are elsewhere.
    fn victims(&self) -> BTreeMap<(WaitKind, u32), ByRank> {
        let mut groups: BTreeMap<(WaitKind, u32), ByRank> = BTreeMap::new();
        for ((kind, at), sum) in &self.analysis.waits.victims {
            groups.entry((*kind, at.place)).or_default().entry(at.rank).or_default().add(*sum);
        }
        let worth = |_: &(WaitKind, u32), ranks: &ByRank| together(ranks.values()).ns.max(1);
        few(groups, worth, |(kind, _)| (*kind, ELSEWHERE), add_ranks)
    }

    fn victims_at(&self, kind: WaitKind, place: u32, ranks: &ByRank) -> Victims {
        let values: Vec<(u32, u64)> = ranks.iter().map(|(rank, s)| (*rank, s.ns)).collect();
        let longest = together(ranks.values()).longest;
        Victims { kind: kind.number(), place, longest, spread: self.spread(&values) }
    }

    fn waits<'a>(
        &self,
        findings: &[Finding],
        causes: impl Iterator<Item = (&'a Finding, &'a [(Doing, f64)])>,
        is_known: impl Fn(WaitKind, u32) -> bool,
    ) -> Vec<Waits> {
        let key = |f: &Finding| match (f.matter, f.culprits.first()) {
            (Matter::Wait(kind), Some((culprit, _))) => Some((kind, f.place, culprit.place)),
            _ => None,
        };
        let excess = |f: &Finding| f.excess.map(|e| Excess { rank: e.at.rank, place: e.at.place, ns: e.ns });
        let found = |f: &Finding| Some((key(f)?, Found { excess: excess(f), causes: Vec::new() }));
        let mut found: BTreeMap<(WaitKind, u32, u32), Found> = findings.iter().filter_map(found).collect();
        for (f, causes) in causes {
            if let Some(found) = key(f).and_then(|key| found.get_mut(&key)) {
                found.causes = self.causes(causes);
            }
        }
        let mut groups: BTreeMap<(WaitKind, u32, u32), ByRank> = BTreeMap::new();
        for ((kind, place, culprit), sum) in &self.analysis.waits.culprits {
            let place = if is_known(*kind, *place) { *place } else { ELSEWHERE };
            let group = groups.entry((*kind, place, culprit.place)).or_default();
            group.entry(culprit.rank).or_default().add(*sum);
        }
        let worth = |key: &(WaitKind, u32, u32), ranks: &ByRank| {
            let ns = together(ranks.values()).ns;
            if found.contains_key(key) {
                u64::MAX
            } else if ns > self.waited / WORTH {
                ns
            } else {
                0
            }
        };
        let groups = few(groups, worth, |(kind, place, _)| (*kind, *place, ELSEWHERE), add_ranks);
        let kept = |((kind, place, culprit), ranks): ((WaitKind, u32, u32), ByRank)| {
            let values: Vec<(u32, u64)> = ranks.iter().map(|(rank, s)| (*rank, s.ns)).collect();
            let Sum { count, ns, longest } = together(ranks.values());
            let finding = found.get(&(kind, place, culprit)).cloned();
            let kind = kind.number();
            Waits { kind, place, culprit, count, ns, longest, spread: self.spread(&values), finding }
        };
        groups.into_iter().map(kept).collect()
    }

    /// What waits are due to, by activity.
    fn causes(&self, all: &[(Doing, f64)]) -> Vec<Cause> {
        let mut activities: BTreeMap<(u32, Activity), BTreeMap<u32, u64>> = BTreeMap::new();
        for (Doing { at, what }, ns) in all {
            let sum = activities.entry((at.place, *what)).or_default().entry(at.rank).or_default();
            *sum = sum.saturating_add(whole_ns(*ns));
        }
        let sum = |ranks: &BTreeMap<u32, u64>| ranks.values().copied().fold(0, u64::saturating_add);
        let mut sorted: Vec<_> = activities.into_iter().filter(|(_, ranks)| sum(ranks) > 0).collect();
        sorted.sort_by_key(|(what, ranks)| (u64::MAX - sum(ranks), *what));
        let rest: u64 = sorted
            .drain(CAUSES.min(sorted.len())..)
            .map(|(_, ranks)| sum(&ranks))
            .fold(0, u64::saturating_add);
        let kept = |((place, what), ranks): ((u32, Activity), BTreeMap<u32, u64>)| {
            let values: Vec<(u32, u64)> = ranks.into_iter().collect();
            let ns = values.iter().map(|(_, v)| *v).fold(0, u64::saturating_add);
            Cause { place, in_call: what == Activity::Call, ns, spread: self.spread(&values) }
        };
        let rest = (rest > 0).then(|| Cause {
            place: ELSEWHERE,
            in_call: false,
            ns: rest,
            spread: Spread::default(),
        });
        sorted.into_iter().map(kept).chain(rest).collect()
    }

    fn other(&self, f: &Finding) -> Option<Other> {
        let matter = f.matter.number()?;
        let whole = room(f.cost, self.time).max(12);
        let ranks: Vec<(u32, u64)> = match f.matter {
            Matter::Polling => f.victims.iter().map(|(rank, ns)| (*rank, (*ns).max(1))).collect(),
            _ => f.culprits.iter().map(|(at, _)| (at.rank, 1)).collect(),
        };
        let spread = Spread::of(&ranks, whole, self.ranks);
        Some(Other { matter, place: f.place, cost: f.cost, count: f.count, bytes: f.bytes, spread })
    }

    fn costs(&self, delays: &Delays) -> Vec<Costs> {
        let mut groups: BTreeMap<(u32, Activity), BTreeMap<u32, Cost>> = BTreeMap::new();
        for (Doing { at, what }, cost) in &delays.costs {
            groups.entry((at.place, *what)).or_default().entry(at.rank).or_default().add(cost);
        }
        let all = |ranks: &BTreeMap<u32, Cost>| {
            let mut all = Cost::default();
            ranks.values().for_each(|cost| all.add(cost));
            all
        };
        let worth = |_: &(u32, Activity), ranks: &BTreeMap<u32, Cost>| {
            let cost = all(ranks);
            let most = whole_ns(cost.caused().max(cost.direct + cost.indirect));
            if most > self.waited / WORTH { most } else { 0 }
        };
        let add = |into: &mut BTreeMap<u32, Cost>, from: BTreeMap<u32, Cost>| {
            from.into_iter().for_each(|(rank, cost)| into.entry(rank).or_default().add(&cost));
        };
        let groups = few(groups, worth, |(_, what)| (ELSEWHERE, *what), add);
        let kept = |((place, what), ranks): ((u32, Activity), BTreeMap<u32, Cost>)| {
            let Cost { short_term, long_term, direct, indirect } = all(&ranks);
            let spread = |of: fn(&Cost) -> f64| {
                self.spread(&ranks.iter().map(|(r, c)| (*r, whole_ns(of(c)))).collect::<Vec<_>>())
            };
            Costs {
                place,
                in_call: what == Activity::Call,
                ns: [short_term, long_term, direct, indirect].map(whole_ns),
                caused: spread(Cost::caused),
                suffered: spread(|c| c.direct + c.indirect),
            }
        };
        groups.into_iter().map(kept).collect()
    }
}

fn add_ranks(into: &mut ByRank, from: ByRank) {
    from.into_iter().for_each(|(rank, sum)| into.entry(rank).or_default().add(sum));
}

/// At most [`ROWS`] of them, those that are worth most, if anything; the others are added to what they are a part of.
fn few<K: Ord + Copy, V: Default>(
    groups: BTreeMap<K, V>,
    worth: impl Fn(&K, &V) -> u64,
    whole: impl Fn(&K) -> K,
    add: impl Fn(&mut V, V),
) -> BTreeMap<K, V> {
    let mut sorted: Vec<(u64, K, V)> = groups.into_iter().map(|(k, v)| (worth(&k, &v), k, v)).collect();
    sorted.sort_by_key(|(worth, key, _)| (u64::MAX - worth, *key));
    let mut kept = BTreeMap::new();
    for (i, (worth, key, value)) in sorted.into_iter().enumerate() {
        let key = if worth > 0 && i < ROWS { key } else { whole(&key) };
        add(kept.entry(key).or_default(), value);
    }
    kept
}

impl WaitKind {
    /// Its number in streams.
    pub(crate) fn number(self) -> u8 {
        saturate(Self::ALL.iter().position(|kind| *kind == self).unwrap_or(Self::ALL.len()))
    }

    /// The kind of a number.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// What is the matter, by number in streams.
const MATTERS: [Matter; 11] = [
    Matter::Polling,
    Matter::Latency,
    Matter::Bandwidth,
    Matter::Files,
    Matter::OneSided,
    Matter::Inside,
    Matter::LeakedRequests,
    Matter::SlowRank,
    Matter::LeakedObjects,
    Matter::LateEnd,
    Matter::Serialised,
];

impl Matter {
    /// Its number in streams; `None` of waits, which are kept by themselves, and of what headers tell.
    fn number(self) -> Option<u8> {
        MATTERS.iter().position(|matter| *matter == self).map(saturate)
    }

    /// The matter of a number.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        MATTERS.get(usize::from(number)).copied()
    }
}
