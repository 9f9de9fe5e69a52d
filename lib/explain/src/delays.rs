//! Who is at fault for waits: what a thread does longer than the one that waits for it, since both synchronised.
//!
//! A wait of length w of thread r for thread l: S is when they synchronised last, d(c) = max(0, T_l(c) − T_r(c)) what l does
//! longer than r from S to the beginning of the wait on r, and to its end on l, per activity c, waits left out on both sides; W =
//! max(0, W_l − W_r) is what l waits longer itself in that time. With k = min(w / (Σ d + W), 1) the wait costs k·d(c) at c, which is
//! its direct part, and k·W is passed on to those that l waits for, which is its indirect part. Costs that come from a
//! wait itself are short-term, those passed on long-term. S is the same time on both sides, so Σ d + W ≥ w, and all waits
//! together are all costs together; but for a thread that begins after another is waiting for it.
//!
//! Source: Böhme, Geimer, Wolf, Arnold 2010 (Identifying the root causes of wait states), section 3, as in Scalasca 2.5.
//! We go backwards over all threads at once where Scalasca replays communication, and take off from W_l what r has waited,
//! too: where both wait for a third, that does not make one of them late for the other.

use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap};

use foldhash::fast::FixedState;
use st_model::num::{Exact as _, narrow, saturate};

use crate::analysis::Analysis;
use crate::findings::Finding;
use crate::lengths::{Few, Lengths};
use crate::timeline::{Activity, Code, Doing, Held, Near, Sums, Timeline, code, doing};
use crate::waits::At;

/// What an activity costs others, and what it waits itself, ns.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Cost {
    /// Waits for the rank itself.
    pub short_term: f64,
    /// Waits for others that waited for the rank.
    pub long_term: f64,
    /// Waits here for what others did.
    pub direct: f64,
    /// Waits here since others waited.
    pub indirect: f64,
}

impl Cost {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.short_term += other.short_term;
        self.long_term += other.long_term;
        self.direct += other.direct;
        self.indirect += other.indirect;
    }

    /// What others wait, ns.
    #[must_use]
    pub fn caused(&self) -> f64 {
        self.short_term + self.long_term
    }
}

/// A cost in whole ns.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "costs are not negative, and saturate"
)]
#[must_use]
pub fn whole_ns(cost: f64) -> u64 {
    cost.max(0.0).round() as u64
}

/// What delays are found in a trace.
#[derive(Clone, Default, Debug)]
pub struct Delays {
    /// By what ranks do.
    pub costs: HashMap<Doing, Cost, FixedState>,
    /// All waits, ns.
    pub waits: f64,
    /// Per finding that was asked for: what waits at its places are due to, ns, most first.
    pub causes: Vec<Vec<(Doing, f64)>>,
    /// Per such finding: the few calls of many in which most of it is waited, if it is so.
    pub few: Vec<Option<Few>>,
}

impl Delays {
    /// Waits that are nobody's fault: for threads that began later, or where clocks disagree, ns.
    #[must_use]
    pub fn unexplained(&self) -> f64 {
        self.waits - self.costs.values().map(Cost::caused).sum::<f64>()
    }
}

/// Time of a thread whose waits are passed on: back to `since` each ns that it waited costs so much, by finding.
#[derive(Debug)]
struct Passed {
    since: i64,
    rate: Vec<f64>,
}

impl PartialEq for Passed {
    fn eq(&self, other: &Self) -> bool {
        self.since == other.since
    }
}

impl Eq for Passed {}

impl PartialOrd for Passed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Passed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.since.cmp(&other.since)
    }
}

/// What is passed on to the waits of a thread, as far back as they have been looked at.
#[derive(Default, Debug)]
struct Inflow {
    open: BinaryHeap<Passed>,
    rate: Vec<f64>,
}

impl Inflow {
    fn open(&mut self, passed: Passed) {
        self.rate.resize(passed.rate.len(), 0.0);
        self.rate.iter_mut().zip(&passed.rate).for_each(|(sum, rate)| *sum += rate);
        self.open.push(passed);
    }

    /// What is passed on to a wait, by finding.
    fn take(&mut self, wait: &Held, into: &mut [f64]) {
        into.fill(0.0);
        while let Some(passed) = self.open.peek().filter(|p| p.since > wait.enter) {
            let overlap = float(wait.until - passed.since).max(0.0);
            for ((sum, rate), into) in self.rate.iter_mut().zip(&passed.rate).zip(&mut *into) {
                *into += overlap * rate;
                *sum -= rate;
            }
            self.open.pop();
        }
        if self.open.is_empty() {
            // No trace of roundings.
            self.rate.fill(0.0);
        }
        let ns = float(wait.ns());
        self.rate.iter().zip(into).for_each(|(rate, into)| *into += ns * rate.max(0.0));
    }
}

#[expect(clippy::cast_precision_loss, reason = "a cost is a share of a time")]
fn float(ns: i64) -> f64 {
    ns as f64
}

/// What activities of a thread cost, by number.
#[derive(Default, Debug)]
struct Costs {
    numbers: HashMap<Code, u32, FixedState>,
    costs: Vec<Cost>,
    /// Of each activity, by finding: what the waits of this are due to it.
    causes: Vec<f64>,
}

impl Costs {
    /// Cost of an activity, and its part in each of so many findings.
    fn of(&mut self, code: Code, findings: usize) -> (&mut Cost, &mut [f64]) {
        let Self { numbers, costs, causes } = self;
        let n = *numbers.entry(code).or_insert_with(|| {
            costs.push(Cost::default());
            causes.resize(costs.len() * findings, 0.0);
            narrow(costs.len() - 1)
        });
        let n = n.to_usize();
        (&mut costs[n], &mut causes[n * findings..][..findings])
    }
}

/// The way back over all waits.
struct Sweep<'a> {
    timelines: &'a [Timeline],
    /// Findings by places of those who wait and those they wait for, from 1; 0 is none of them.
    findings: HashMap<(u32, u32), usize, FixedState>,
    /// How many numbers these are, with 0.
    numbers: usize,
    /// By thread.
    inflow: Vec<Inflow>,
    near: Vec<Near>,
    costs: Vec<Costs>,
    sums: Sums,
    /// What the thread that is waited for does longer.
    longer: Vec<(Code, f64)>,
    waits: f64,
    /// By the numbers of findings.
    lengths: Vec<Lengths>,
}

impl Sweep<'_> {
    /// *Cost:* O(waits · (log threads + log calls + places)).
    fn run(&mut self) {
        let timelines = self.timelines;
        let next = |thread: u32, n: usize| {
            let before = n.checked_sub(1)?;
            Some((timelines[thread as usize].waits[before].until, thread, before))
        };
        let mut queue: BinaryHeap<_> =
            (0u32..).zip(timelines).filter_map(|(thread, line)| next(thread, line.waits.len())).collect();
        let mut weights = vec![0.0; self.numbers];
        while let Some(mut last) = queue.peek_mut() {
            let (_, thread, i) = *last;
            self.blame(thread, &timelines[thread as usize].waits[i], &mut weights);
            match next(thread, i) {
                Some(before) => *last = before,
                None => drop(PeekMut::pop(last)),
            }
        }
    }

    /// What waits of a number are due to, most first.
    fn causes_of(&self, number: usize) -> Vec<(Doing, f64)> {
        let mut sums: HashMap<Doing, f64, FixedState> = HashMap::default();
        for (line, costs) in self.timelines.iter().zip(&self.costs) {
            for (code, n) in &costs.numbers {
                let ns = costs.causes[n.to_usize() * self.numbers + number];
                if ns > 0.0 {
                    *sums.entry(doing(line.rank, *code)).or_default() += ns;
                }
            }
        }
        let mut sorted: Vec<(Doing, f64)> = sums.into_iter().collect();
        sorted.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
        sorted
    }

    /// Finds who is at fault for a wait.
    fn blame(&mut self, thread: u32, wait: &Held, weights: &mut [f64]) {
        let (r, l) = (&self.timelines[thread as usize], &self.timelines[wait.by as usize]);
        let own = float(wait.ns());
        self.inflow[thread as usize].take(wait, weights);
        let passed: f64 = weights.iter().sum();
        let near = &mut self.near[thread as usize];
        let place = r.place_at(wait.enter, near).unwrap_or_default();
        let number = self.findings.get(&(place, wait.place)).copied().unwrap_or_default();
        weights[number] += own;
        self.lengths[number].add(saturate(wait.ns()));
        r.window(wait.since..wait.enter, -1, near, &mut self.sums);
        let before = self.sums.waited;
        l.window(wait.since..wait.until, 1, &mut self.near[wait.by as usize], &mut self.sums);
        let waited = float(self.sums.waited).max(0.0);
        let part = waited / float(self.sums.waited - before);
        let longer = self.sums.drain().filter(|(_, ns)| *ns > 0).map(|(code, ns)| (code, float(ns)));
        self.longer.clear();
        self.longer.extend(longer);
        let all: f64 = self.longer.iter().map(|(_, d)| d).sum();
        // Of each ns that is waited here.
        let k = (1.0 / (all + waited)).min(1.0 / own);
        self.waits += own;
        for (code, d) in &self.longer {
            let (cost, causes) = self.costs[wait.by as usize].of(*code, weights.len());
            cost.short_term += own * k * d;
            cost.long_term += passed * k * d;
            causes.iter_mut().zip(&*weights).for_each(|(cause, weight)| *cause += weight * k * d);
        }
        let (here, _) = self.costs[thread as usize].of(code(place, Activity::Call), weights.len());
        here.direct += own * k * all;
        here.indirect += own * k * waited;
        if waited > 0.0 {
            let rate = weights.iter().map(|w| w * k * part).collect();
            self.inflow[wait.by as usize].open(Passed { since: wait.since, rate });
        }
    }
}

impl Analysis {
    /// Who is at fault for the waits, and what some findings are due to: nothing but after [`crate::analyse_causes`].
    #[must_use]
    pub fn delays(&self, findings: &[Finding]) -> Delays {
        let mut numbers = HashMap::default();
        for (finding, number) in findings.iter().zip(1..) {
            for places in finding.between() {
                numbers.entry(places).or_insert(number);
            }
        }
        let mut sweep = Sweep {
            timelines: &self.timelines,
            inflow: self.timelines.iter().map(|_| Inflow::default()).collect(),
            near: vec![Near::default(); self.timelines.len()],
            costs: self.timelines.iter().map(|_| Costs::default()).collect(),
            sums: Sums::new(self.places.len()),
            longer: Vec::new(),
            numbers: findings.len() + 1,
            findings: numbers,
            waits: 0.0,
            lengths: vec![Lengths::default(); findings.len() + 1],
        };
        sweep.run();
        let number = |f: &Finding| sweep.findings.get(f.between().first()?).copied();
        let causes = |f| number(f).map_or_else(Vec::new, |n| sweep.causes_of(n));
        let few = |f: &Finding| sweep.lengths[number(f)?].few(f.cost, self.calls_of_victims(f));
        let mut found = Delays {
            waits: sweep.waits,
            causes: findings.iter().map(causes).collect(),
            few: findings.iter().map(few).collect(),
            costs: HashMap::default(),
        };
        for (line, costs) in self.timelines.iter().zip(&sweep.costs) {
            for (code, n) in &costs.numbers {
                let cost = &costs.costs[n.to_usize()];
                found.costs.entry(doing(line.rank, *code)).or_default().add(cost);
            }
        }
        found
    }

    /// Calls at the place of a finding of those who wait there for long, beside who waits most.
    fn calls_of_victims(&self, f: &Finding) -> u64 {
        let most = f.victims.iter().map(|(_, ns)| *ns).max().unwrap_or_default();
        let long = f.victims.iter().filter(|(_, ns)| ns.saturating_mul(2) >= most);
        let calls = |rank| self.totals.get(&At { rank, place: f.place }).map_or(0, |t| t.calls);
        long.map(|(rank, _)| calls(*rank)).fold(0, u64::saturating_add)
    }
}
