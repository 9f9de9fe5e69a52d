//! What makes a program slow, most costly first.

use std::collections::{BTreeMap, HashMap};

use st_model::calls::{CallId, CallTable, names};
use st_model::num::{Exact as _, saturate};

use crate::analysis::{Analysis, PlaceTotals, RankTotals};
use crate::matter::Matter;
use crate::own;
use crate::waits::{At, Sum, WaitKind, Waits};

/// Computation that makes a rank come too late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Excess {
    /// Where it ends.
    pub at: At,
    /// How much longer it is than the others' mean, ns; no more than the rank computes longer in all, for others may do
    /// the same work before another call.
    pub ns: u64,
}

/// Computations that are much longer than usual, for which others wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Noise {
    /// How many.
    pub times: u64,
    /// On how many ranks.
    pub ranks: u64,
    /// How much longer than usual they are in the mean, ns.
    pub ns: u64,
    /// Operations at the place of a rank.
    pub of: u64,
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
    /// Bytes that the calls sent and received, where the matter is their own time.
    pub bytes: u64,
    /// Number of the place where the cost is; of several that are told of together the one that costs most.
    pub place: u32,
    /// How many places these are.
    pub places: u64,
    /// How many findings are told of together: of a place there may be several, by the places of those who are waited for.
    pub parts: u64,
    /// Of several waits that are told of together: the place of those who wait and of those who are waited for, of each.
    pub together: Vec<(u32, u32)>,
    /// Ranks that it costs time, ascending, each with what it waits or polls there for whomever, ns: 0 where the matter is neither.
    pub victims: Vec<(u32, u64)>,
    /// Who is at fault, most first, each with its part of the cost, ns.
    pub culprits: Vec<(At, u64)>,
    /// What the first of them computes more than the others.
    pub excess: Option<Excess>,
    /// That it is due to few computations that are much longer than usual.
    pub noise: Option<Noise>,
}

impl Finding {
    /// One that costs nothing by itself, and concerns no place or rank alone.
    #[must_use]
    pub fn of(matter: Matter) -> Self {
        let (victims, culprits) = (Vec::new(), Vec::new());
        let (place, together, excess, noise) = (u32::MAX, Vec::new(), None, None);
        let (cost, count, bytes) = (0, 0, 0);
        Self {
            matter,
            cost,
            count,
            bytes,
            place,
            places: 1,
            parts: 1,
            together,
            victims,
            culprits,
            excess,
            noise,
        }
    }

    /// Of waits: the place of those who wait, and of those who are waited for; of several that are told of together all of them.
    pub(crate) fn between(&self) -> Vec<(u32, u32)> {
        match (self.matter, self.culprits.first()) {
            (Matter::Wait(_), Some((culprit, _))) if self.together.is_empty() => {
                vec![(self.place, culprit.place)]
            }
            _ => self.together.clone(),
        }
    }

    /// Whether it is a leak to be told of, whatever it costs: that of a request, or of so many objects that they come with the
    /// steps of a run. Many programs leave what they make once to `MPI_Finalize`.
    #[must_use]
    pub fn is_leak(&self) -> bool {
        match self.matter {
            Matter::LeakedRequests => true,
            Matter::LeakedObjects => self.count >= OFTEN * self.culprits.len().to_u64(),
            _ => false,
        }
    }
}

/// Objects that a rank leaves at a place, from which on they are more than it needs.
const OFTEN: u64 = 10;

/// Rank and place of computation, with how long each rank computes there.
pub(crate) type Before<'a> = BTreeMap<u32, Vec<(u32, &'a PlaceTotals)>>;

impl Analysis {
    /// Time of all ranks together, ns; what is more than 2^64 is told as that.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.ranks.iter().map(RankTotals::whole).fold(0, u64::saturating_add)
    }

    /// All that costs time, most first.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut before: Before<'_> = BTreeMap::new();
        for (at, totals) in &self.totals {
            before.entry(at.place).or_default().push((at.rank, totals));
        }
        let mut all = self.waiting(&before);
        self.find_noise(&mut all);
        let mut waited: HashMap<u32, u64> = HashMap::new();
        for ((_, at), sum) in &self.waits.victims {
            let sums = waited.entry(at.place).or_default();
            *sums = sums.saturating_add(sum.ns);
        }
        let waited = |place| waited.get(&place).copied().unwrap_or_default();
        let at_places = before.iter().flat_map(|(place, ranks)| self.at_place(*place, ranks, waited(*place)));
        let mut at_places: Vec<Finding> = at_places.collect();
        self.blame_for_tests(&mut at_places, &before);
        all.extend(at_places);
        all.extend(self.slow_ranks(&before));
        all.extend(self.serialised());
        all.extend(self.late_end());
        let mut all = latencies(all);
        sort(&mut all);
        all
    }

    /// Waits, by kind, where they are, and the place of those who are waited for.
    fn waiting(&self, before: &Before<'_>) -> Vec<Finding> {
        let mut groups: BTreeMap<(WaitKind, u32, u32), Vec<(At, Sum)>> = BTreeMap::new();
        for ((kind, place, culprit), sum) in &self.waits.culprits {
            groups.entry((*kind, *place, culprit.place)).or_default().push((*culprit, *sum));
        }
        let victims = self.waits.by_place();
        // There are many groups, and few ranks that others wait for most.
        let mut excesses: HashMap<u32, Option<Excess>> = HashMap::new();
        let found = |((kind, place, _), sums): ((WaitKind, u32, u32), Vec<(At, Sum)>)| {
            let mut culprits: Vec<(At, u64)> = sums.iter().map(|(at, s)| (*at, s.ns)).collect();
            culprits.sort_by_key(|(at, ns)| (u64::MAX - ns, *at));
            let victims = victims.get(&(kind, place)).cloned().unwrap_or_default();
            let excess = culprits
                .first()
                .and_then(|(at, _)| *excesses.entry(at.rank).or_insert_with(|| self.excess(at.rank, before)));
            let (cost, count) =
                sums.iter().fold((0_u64, 0), |(ns, n), (_, s)| (ns.saturating_add(s.ns), n + s.count));
            let matter = Matter::Wait(kind);
            Finding { cost, count, place, victims, culprits, excess, ..Finding::of(matter) }
        };
        groups.into_iter().map(found).collect()
    }

    /// Who is at fault for tests that find nothing, as far as that is known.
    fn blame_for_tests(&self, findings: &mut [Finding], before: &Before<'_>) {
        let mut culprits: HashMap<u32, Vec<(At, u64)>> = HashMap::new();
        for ((place, at), sum) in &self.waits.polls {
            culprits.entry(*place).or_default().push((*at, sum.ns));
        }
        for f in findings.iter_mut().filter(|f| f.matter == Matter::Polling) {
            let Some(mut known) = culprits.remove(&f.place) else { continue };
            known.sort_by_key(|(at, ns)| (u64::MAX - ns, *at));
            f.excess = known.first().and_then(|(at, _)| self.excess(at.rank, before));
            f.culprits = known;
        }
    }

    /// How long a rank computes, and the others' mean, ns; `all`: how long all do.
    pub(crate) fn computation(&self, rank: u32, all: u64) -> [u64; 2] {
        let others = self.ranks.len().to_u64().saturating_sub(1).max(1);
        let own =
            self.ranks.binary_search_by_key(&rank, |r| r.rank).map_or(0, |i| self.ranks[i].computation());
        [own, (all - own) / others]
    }

    /// Where a rank computes most more than the others.
    fn excess(&self, rank: u32, before: &Before<'_>) -> Option<Excess> {
        let others = self.ranks.len().to_u64().saturating_sub(1).max(1);
        let [own, mean] = self.computation(rank, self.computed());
        let most = own.saturating_sub(mean);
        let more = |(place, ranks): (&u32, &Vec<(u32, &PlaceTotals)>)| {
            let own = ranks.iter().find(|(r, _)| *r == rank)?.1.before;
            let rest: u64 =
                ranks.iter().filter(|(r, _)| *r != rank).map(|(_, t)| t.before).fold(0, u64::saturating_add);
            Some(Excess { at: At { rank, place: *place }, ns: own.saturating_sub(rest / others).min(most) })
        };
        before.iter().filter_map(more).max_by_key(|e| e.ns).filter(|e| e.ns > 0)
    }

    /// What calls at a place cost without the time that they have waited, ns.
    fn at_place(&self, place: u32, ranks: &[(u32, &PlaceTotals)], waited: u64) -> Vec<Finding> {
        let mut all = PlaceTotals::default();
        ranks.iter().for_each(|(_, t)| all.add(t));
        let own = all.time.saturating_sub(waited).saturating_sub(all.polling);
        let of = |matter, cost, (count, bytes), has: fn(&PlaceTotals) -> u64| {
            let who = ranks.iter().filter(|(_, t)| has(t) > 0);
            let polls = |t: &PlaceTotals| if matter == Matter::Polling { t.polling } else { 0 };
            let mut victims: Vec<(u32, u64)> = who.map(|(rank, t)| (*rank, polls(t))).collect();
            victims.sort_unstable();
            let culprits = victims.iter().map(|(rank, _)| (At { rank: *rank, place }, 0)).collect();
            let found = Finding { cost, count, bytes, place, victims, culprits, ..Finding::of(matter) };
            (count > 0).then_some(found)
        };
        let call = self.places.get(place).map_or(CallId(0), |p| p.call);
        [
            of(Matter::Polling, all.polling, (all.failed_tests, 0), |t| t.failed_tests),
            of(own::matter(call, &all, own), own, (all.calls, all.bytes), |t| t.calls),
            of(Matter::LeakedRequests, 0, (all.leaked, 0), |t| t.leaked),
            of(Matter::LeakedObjects, 0, (all.unfreed, 0), |t| t.unfreed),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl Analysis {
    /// How long ranks have nothing to do once they are at `MPI_Finalize`, until the last comes there.
    fn late_end(&self) -> Option<Finding> {
        let finalize = CallTable::builtin().by_name(names::MPI_Finalize)?.id;
        let ends = |place: u32| self.places.get(place).is_some_and(|p| p.call == finalize);
        let at: HashMap<u32, u32> =
            self.totals.keys().filter(|at| ends(at.place)).map(|at| (at.rank, at.place)).collect();
        // Who was killed has not come too early.
        if self.ranks.len() < 2 || !self.ranks.iter().all(|r| at.contains_key(&r.rank)) {
            return None;
        }
        let last = self.ranks.iter().map(|r| r.end).max()?;
        let early = |r: &RankTotals| saturate::<u64>(last.saturating_sub(r.end));
        let cost = self.ranks.iter().map(early).fold(0, u64::saturating_add);
        let mean = cost / self.ranks.len().to_u64();
        // Those that are not much before the last of them.
        let (late, others): (Vec<&RankTotals>, Vec<&RankTotals>) =
            self.ranks.iter().partition(|r| early(r) <= mean / 2);
        let culprits: Vec<(At, u64)> =
            late.iter().filter_map(|r| Some((At { rank: r.rank, place: *at.get(&r.rank)? }, cost))).collect();
        let place = culprits.first()?.0.place;
        // What they compute there longer than the others, each in the mean.
        let excess = late.iter().max_by_key(|r| r.end).and_then(|slowest| {
            let there = |rank: u32| At { rank, place: at.get(&rank).copied().unwrap_or_default() };
            let before = |r: &RankTotals| self.totals.get(&there(r.rank)).map_or(0, |t| t.before);
            let mean = |of: &[&RankTotals]| {
                of.iter().map(|r| before(r)).fold(0, u64::saturating_add) / of.len().to_u64().max(1)
            };
            let ns = mean(&late).saturating_sub(mean(&others));
            (ns > 0).then_some(Excess { at: there(slowest.rank), ns })
        });
        let count = 1;
        (cost > 0).then_some(Finding { cost, count, place, culprits, excess, ..Finding::of(Matter::LateEnd) })
    }
}

/// Most costly first.
pub(crate) fn sort(all: &mut [Finding]) {
    all.sort_by_key(|f| (u64::MAX - f.cost, f.matter, f.place));
}

/// Waits that are no longer than messages take on their way, ns: who is at fault cannot be told of them.
const SHORT_WAIT: u64 = 20_000;

/// Whether waits for messages are that short.
pub(crate) fn is_short(kind: WaitKind, ns: u64, count: u64) -> bool {
    matches!(kind, WaitKind::LateSender | WaitKind::LateReceiver) && ns < SHORT_WAIT.saturating_mul(count)
}

/// Whether the latency of a place has waits for messages in it, as they are short.
#[must_use]
pub fn has_short_waits(waits: &Waits, place: u32) -> bool {
    let mut all: BTreeMap<(WaitKind, u32), (u64, u64)> = BTreeMap::new();
    for ((kind, _, culprit), sum) in waits.culprits.iter().filter(|((_, at, _), _)| *at == place) {
        let (ns, count) = all.entry((*kind, culprit.place)).or_default();
        (*ns, *count) = (ns.saturating_add(sum.ns), count.saturating_add(sum.count));
    }
    all.iter().any(|((kind, _), (ns, count))| *ns > 0 && is_short(*kind, *ns, *count))
}

/// Adds short waits for messages to the latency of their place.
fn latencies(all: Vec<Finding>) -> Vec<Finding> {
    let is_short = |f: &Finding| matches!(f.matter, Matter::Wait(kind) if is_short(kind, f.cost, f.count));
    let (short, mut rest): (Vec<_>, Vec<_>) = all.into_iter().partition(is_short);
    for wait in short {
        match rest.iter_mut().find(|f| f.matter == Matter::Latency && f.place == wait.place) {
            Some(latency) => latency.cost = latency.cost.saturating_add(wait.cost),
            None => rest.push(wait),
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_messages_of_less_than_20_us_in_the_mean_are_in_the_latency_of_their_place() {
        let mut waits = Waits::default();
        let mut wait = |kind, place, culprit, (count, ns)| {
            let culprit = At { rank: 3, place: culprit };
            waits.culprits.insert((kind, place, culprit), Sum { count, ns, longest: ns });
        };
        wait(WaitKind::LateSender, 1, 7, (10, 190_000));
        wait(WaitKind::LateSender, 2, 7, (10, 210_000));
        wait(WaitKind::Barrier, 3, 7, (10, 190_000));
        let short: Vec<u32> = (0..4).filter(|place| has_short_waits(&waits, *place)).collect();
        assert_eq!(short, [1]);
    }
}
