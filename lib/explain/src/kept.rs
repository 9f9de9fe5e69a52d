//! What is told of a run's waits, by its exact times or by what has been kept of them.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use st_model::explanation::{Cause, Costs, ELSEWHERE, Explanation, Other, Victims};
use st_model::num::{Exact as _, float};
use st_model::spread::Spread;

use crate::analysis::{Analysis, Unmatched};
use crate::delays::{Cost, Delays};
use crate::efficiency::Efficiency;
use crate::findings::{Excess, Finding, is_short};
use crate::matter::Matter;
use crate::places::Places;
use crate::timeline::{Activity, Doing};
use crate::waits::{At, Sum, WaitKind, Waits};

/// What a run's waits are told from.
pub trait Explains {
    /// Functions at call sites, by number.
    fn places(&self) -> &Places;
    /// How many ranks there are.
    fn ranks(&self) -> u64;
    /// Time of all ranks together, ns.
    fn time(&self) -> u64;
    /// What the run time is made of.
    fn efficiency(&self) -> Efficiency;
    /// Wait states.
    fn waits(&self) -> &Waits;
    /// What costs time, most first.
    fn findings(&self) -> Vec<Finding>;
    /// Who is at fault for the waits, and what some findings are due to.
    fn delays(&self, findings: &[Finding]) -> Delays;
    /// What is left out.
    fn unmatched(&self) -> Unmatched;
}

impl Explains for Analysis {
    fn places(&self) -> &Places {
        &self.places
    }
    fn ranks(&self) -> u64 {
        self.ranks.len().to_u64()
    }
    fn time(&self) -> u64 {
        Self::time(self)
    }
    fn efficiency(&self) -> Efficiency {
        Self::efficiency(self)
    }
    fn waits(&self) -> &Waits {
        &self.waits
    }
    fn findings(&self) -> Vec<Finding> {
        Self::findings(self)
    }
    fn delays(&self, findings: &[Finding]) -> Delays {
        Self::delays(self, findings)
    }
    fn unmatched(&self) -> Unmatched {
        self.unmatched
    }
}

/// What has been kept of a run: sums over all ranks are those of its exact times, how they are spread over ranks is
/// approximate ([`st_model::spread`]), and pairs of ranks are not known.
#[derive(Clone, Debug)]
pub struct Kept {
    places: Places,
    ranks: u64,
    time: u64,
    efficiency: Efficiency,
    waits: Waits,
    unmatched: Unmatched,
    findings: Vec<Finding>,
    delays: Delays,
    /// What findings are due to, by places of those who wait and those they wait for.
    causes: HashMap<(u32, u32), Vec<(Doing, f64)>, FixedState>,
    /// Kinds of waits and findings that this version does not know.
    pub unknown: u64,
}

impl Kept {
    /// From what a stream holds. *Cost:* O([`Explanation::rows`]) time and memory.
    #[must_use]
    pub fn of(e: &Explanation) -> Self {
        let t = e.totals;
        let [sends, receives, ambiguous, operations, untimed_threads] = t.unmatched;
        let mut kept = Self {
            places: Places::of_list(e.places.clone()),
            ranks: e.ranks.len(),
            time: t.time,
            efficiency: Efficiency {
                run: t.run,
                ideal: t.ideal,
                mean: t.mean,
                longest: t.longest,
                paused: 0,
            },
            waits: Waits { violations: t.violations, ..Waits::default() },
            unmatched: Unmatched { sends, receives, ambiguous, operations, untimed_threads },
            findings: Vec::new(),
            delays: Delays { waits: float(t.delayed.into()), ..Delays::default() },
            causes: HashMap::default(),
            unknown: 0,
        };
        kept.read_victims(e);
        kept.read_waits(e);
        e.others.iter().for_each(|other| kept.read_other(other));
        e.costs.iter().for_each(|costs| kept.read_costs(costs));
        kept.read_rest(e);
        crate::findings::sort(&mut kept.findings);
        kept
    }

    /// Numbers and times of the waits at a place are those of all that are waited for there.
    fn read_victims(&mut self, e: &Explanation) {
        let mut sums: HashMap<(u8, u32), Sum> = HashMap::new();
        for w in &e.waits {
            let one = Sum { count: w.count, ns: w.ns, longest: 0 };
            sums.entry((w.kind, w.place)).or_default().add(one);
        }
        for Victims { kind, place, longest, spread } in &e.victims {
            let Some(kind) = WaitKind::of_number(*kind) else { continue };
            let all = sums.get(&(kind.number(), *place)).copied().unwrap_or_default();
            for (rank, sum) in shared(Sum { longest: *longest, ..all }, spread) {
                self.waits.victims.entry((kind, At { rank, place: *place })).or_default().add(sum);
            }
        }
    }

    fn read_waits(&mut self, e: &Explanation) {
        let victims = self.waits.by_place();
        for w in &e.waits {
            let Some(kind) = WaitKind::of_number(w.kind) else {
                self.unknown += 1;
                continue;
            };
            let all = Sum { count: w.count, ns: w.ns, longest: w.longest };
            let parts = shared(all, &w.spread);
            for (rank, sum) in &parts {
                let culprit = At { rank: *rank, place: w.culprit };
                self.waits.culprits.entry((kind, w.place, culprit)).or_default().add(*sum);
            }
            let Some(found) = &w.finding else { continue };
            let victims = victims.get(&(kind, w.place)).cloned().unwrap_or_default();
            let mut culprits: Vec<(At, u64)> =
                parts.iter().map(|(rank, sum)| (At { rank: *rank, place: w.culprit }, sum.ns)).collect();
            culprits.sort_by_key(|(at, ns)| (u64::MAX - ns, *at));
            let excess = found.excess.map(|e| Excess { at: At { rank: e.rank, place: e.place }, ns: e.ns });
            let (cost, count) = (w.ns, w.count);
            self.causes.insert((w.place, w.culprit), causes(&found.causes));
            let place = w.place;
            let of = Finding::of(Matter::Wait(kind));
            self.findings.push(Finding { cost, count, place, victims, culprits, excess, ..of });
        }
    }

    /// Waits at a place for whomever that were too little to be kept by themselves, but for those that are in its latency.
    fn read_rest(&mut self, e: &Explanation) {
        let victims = self.waits.by_place();
        let latency = |f: &&Finding| f.matter == Matter::Latency;
        let latencies: HashSet<u32> = self.findings.iter().filter(latency).map(|f| f.place).collect();
        for w in e.waits.iter().filter(|w| w.finding.is_none() && w.ns > 0) {
            let (Some(kind), Some(_)) = (WaitKind::of_number(w.kind), self.places.get(w.place)) else {
                continue;
            };
            if latencies.contains(&w.place) && is_short(kind, w.ns, w.count) {
                continue;
            }
            let all = Sum { count: w.count, ns: w.ns, longest: w.longest };
            let culprit = |(rank, sum): (u32, Sum)| (At { rank, place: w.culprit }, sum.ns);
            let mut culprits: Vec<(At, u64)> = shared(all, &w.spread).into_iter().map(culprit).collect();
            culprits.sort_by_key(|(at, ns)| (u64::MAX - ns, *at));
            let victims = victims.get(&(kind, w.place)).cloned().unwrap_or_default();
            // It is not known how many they are: more than one.
            let (cost, count, place, parts) = (w.ns, w.count, w.place, 2);
            let of = Finding::of(Matter::Wait(kind));
            self.findings.push(Finding { cost, count, place, parts, victims, culprits, ..of });
        }
    }

    fn read_other(&mut self, other: &Other) {
        let Other { matter, place, cost, count, bytes, ref spread } = *other;
        let Some(matter) = Matter::of_number(matter) else {
            self.unknown += 1;
            return;
        };
        let ranks: Vec<u32> = spread.ranks().iter().collect();
        // A slow rank is who is at fault, or a late one; of other matters nobody is.
        let slow = matter.is_reason() || matter == Matter::LateEnd;
        let culprits = ranks.iter().map(|rank| (At { rank: *rank, place }, if slow { cost } else { 0 }));
        let culprits = culprits.collect();
        let victims = match matter {
            _ if slow => Vec::new(),
            Matter::Polling => {
                let mut polls = spread.parts(cost);
                polls.sort_unstable();
                polls
            }
            _ => ranks.iter().map(|rank| (*rank, 0)).collect(),
        };
        let of = Finding::of(matter);
        self.findings.push(Finding { cost, count, bytes, place, victims, culprits, ..of });
    }

    fn read_costs(&mut self, costs: &Costs) {
        let [short_term, long_term, direct, indirect] = costs.ns.map(|ns| float(ns.into()));
        let share = |part: u64, whole: f64| float(part.into()) / whole.max(1.0);
        let doing = |rank| Doing { at: At { rank, place: costs.place }, what: activity(costs.in_call) };
        let [short, long, here, passed] = costs.ns;
        for (rank, part) in costs.caused.parts(short.saturating_add(long)) {
            let part = share(part, short_term + long_term);
            let cost = Cost { short_term: short_term * part, long_term: long_term * part, ..Cost::default() };
            self.delays.costs.entry(doing(rank)).or_default().add(&cost);
        }
        for (rank, part) in costs.suffered.parts(here.saturating_add(passed)) {
            let part = share(part, direct + indirect);
            let cost = Cost { direct: direct * part, indirect: indirect * part, ..Cost::default() };
            self.delays.costs.entry(doing(rank)).or_default().add(&cost);
        }
    }
}

/// A sum by ranks: the rank with most has the longest of it.
fn shared(all: Sum, spread: &Spread) -> Vec<(u32, Sum)> {
    let counts = spread.parts(all.count).into_iter().map(|(_, count)| count);
    let parts = spread.parts(all.ns).into_iter().zip(counts).enumerate();
    let sum = |(i, ((rank, ns), count)): (usize, ((u32, u64), u64))| {
        let longest = if i == 0 { all.longest } else { all.longest.min(ns) };
        (rank, Sum { count, ns, longest })
    };
    parts.map(sum).collect()
}

fn activity(in_call: bool) -> Activity {
    if in_call { Activity::Call } else { Activity::Computation }
}

fn causes(all: &[Cause]) -> Vec<(Doing, f64)> {
    let mut found = Vec::new();
    for Cause { place, in_call, ns, spread } in all {
        let doing = |rank| Doing { at: At { rank, place: *place }, what: activity(*in_call) };
        match spread.classes.is_empty() {
            true => found.push((doing(0), float((*ns).into()))),
            false => found
                .extend(spread.parts(*ns).into_iter().map(|(rank, part)| (doing(rank), float(part.into())))),
        }
    }
    found.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
    found
}

impl Explains for Kept {
    fn places(&self) -> &Places {
        &self.places
    }
    fn ranks(&self) -> u64 {
        self.ranks
    }
    fn time(&self) -> u64 {
        self.time
    }
    fn efficiency(&self) -> Efficiency {
        self.efficiency
    }
    fn waits(&self) -> &Waits {
        &self.waits
    }
    fn findings(&self) -> Vec<Finding> {
        self.findings.clone()
    }
    fn delays(&self, findings: &[Finding]) -> Delays {
        let causes = |f: &Finding| {
            let known = f.between().into_iter().filter_map(|places| self.causes.get(&places)).flatten();
            let mut all: Vec<(Doing, f64)> = known.copied().collect();
            // Of what is told of together not all is known.
            let rest = float(f.cost.into()) - all.iter().map(|(_, ns)| ns).sum::<f64>();
            if !all.is_empty() && f.parts > 1 && rest > 0.0 {
                all.push((Doing { at: At { rank: 0, place: ELSEWHERE }, what: Activity::Computation }, rest));
            }
            all
        };
        Delays { causes: findings.iter().map(causes).collect(), ..self.delays.clone() }
    }
    fn unmatched(&self) -> Unmatched {
        self.unmatched
    }
}
