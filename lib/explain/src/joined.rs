//! Waits that have one reason, told of once, as that.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::FixedState;
use st_model::explanation::ELSEWHERE;
use st_model::num::{Exact as _, float};

use crate::findings::{Finding, sort};
use crate::gathered::together;
use crate::kept::Explains;
use crate::matter::Matter;
use crate::timeline::{Activity, Doing};
use crate::waits::{At, Sum, WaitKind, Waits};

/// Waits of which it is asked what they are due to, the most costly: each takes time at each wait.
const MOST: usize = 20;

/// The part of a wait that must be due to a reason.
const DUE: f64 = 0.75;

/// Findings, of which waits that are due to a reason among them are that: a loss counts once, and a reason costs what is waited for it. A
/// reason that nobody waits for, or polls for, is none.
#[must_use]
pub fn joined(findings: Vec<Finding>, told: &dyn Explains) -> Vec<Finding> {
    let (reasons, mut rest): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|f| f.matter.is_reason());
    sort(&mut rest);
    if reasons.is_empty() {
        return rest;
    }
    let waits: Vec<Finding> =
        rest.iter().filter(|f| matches!(f.matter, Matter::Wait(_))).take(MOST).cloned().collect();
    let slow = Slow::of(&reasons);
    let due = due(&waits, &reasons, &slow, told);
    let parts = Parts::of(told.waits());
    for matter in [Matter::SlowRank, Matter::Serialised] {
        let of = waits.iter().zip(&due).filter(|(_, due)| **due == Some(matter));
        let mut group: Vec<Finding> = of.map(|(f, _)| f.clone()).collect();
        if matter == Matter::SlowRank {
            group.extend(slow.polls(&rest, &group));
        }
        let split: Vec<Finding> = group.iter().flat_map(|f| parts.split(f)).collect();
        let Some(one) = together(&split.iter().collect::<Vec<_>>()) else { continue };
        rest.retain(|f| !group.contains(f));
        let mut culprits = one.culprits;
        if matter == Matter::SlowRank {
            // Others wait for ranks that wait for them.
            let ranks = reasons.iter().filter(|f| f.matter == matter).flat_map(|f| &f.culprits);
            culprits = ranks.map(|(at, ns)| (*at, *ns)).collect();
        }
        let [cost, count] = [|f: &Finding| f.cost, |f: &Finding| f.count]
            .map(|of| group.iter().map(of).fold(0, u64::saturating_add));
        rest.push(Finding { matter, cost, count, culprits, ..one });
    }
    sort(&mut rest);
    rest
}

/// Which of these reasons waits are due to.
fn due(waits: &[Finding], reasons: &[Finding], slow: &Slow, told: &dyn Explains) -> Vec<Option<Matter>> {
    if waits.is_empty() {
        return Vec::new();
    }
    let serialised = reasons.iter().any(|f| f.matter == Matter::Serialised);
    let due = |causes: &Vec<(Doing, f64)>| {
        let sum = |of: &dyn Fn(&Doing) -> bool| -> f64 {
            // Of merged traces the lesser causes stand together, as nobody's.
            let known = causes.iter().filter(|(doing, _)| doing.at.place != ELSEWHERE);
            known.filter(|(doing, _)| of(doing)).map(|(_, ns)| ns).sum()
        };
        let least = sum(&|_| true) * DUE;
        let computed = |doing: &Doing| doing.what == Activity::Computation;
        let of_slow = sum(&|doing| computed(doing) && slow.ranks.contains(&doing.at.rank));
        match least > 0.0 {
            true if of_slow >= least => Some(Matter::SlowRank),
            true if serialised && sum(&computed) >= least => Some(Matter::Serialised),
            _ => None,
        }
    };
    told.delays(waits).causes.iter().map(due).collect()
}

/// Slow ranks.
struct Slow {
    ranks: BTreeSet<u32>,
    /// How much longer than the others one of them computes at most, ns.
    most: u64,
}

impl Slow {
    fn of(reasons: &[Finding]) -> Self {
        let slow = reasons.iter().filter(|f| f.matter == Matter::SlowRank);
        let ranks = slow.clone().flat_map(|f| f.culprits.iter().map(|(at, _)| at.rank)).collect();
        Self { ranks, most: slow.map(|f| f.cost).max().unwrap_or_default() }
    }

    /// Tests by which others wait for them. No message tells for whom they do: slow ranks themselves hardly test, and what the others do with
    /// what they wait beside that (`waits`) is no more than what slow ranks compute longer.
    fn polls(&self, all: &[Finding], waits: &[Finding]) -> Vec<Finding> {
        let others = |f: &Finding| {
            let others = f.victims.iter().filter(|(rank, _)| !self.ranks.contains(rank));
            others.map(|(_, ns)| *ns).fold(0, u64::saturating_add)
        };
        let hardly = |f: &&Finding| share(others(f), f.cost) >= DUE;
        let polls: Vec<&Finding> =
            all.iter().filter(|f| f.matter == Matter::Polling && f.cost > 0).filter(hardly).collect();
        let who: BTreeSet<u32> =
            polls.iter().flat_map(|f| &f.victims).filter(|(_, ns)| *ns > 0).map(|(rank, _)| *rank).collect();
        let waiting = who.difference(&self.ranks).count().to_u64();
        let lost = polls.iter().map(|f| others(f)).chain(waits.iter().map(|f| f.cost));
        let explained = share(self.most.saturating_mul(waiting), lost.fold(0, u64::saturating_add)) >= DUE;
        polls.into_iter().filter(|_| explained).cloned().collect()
    }
}

fn share(part: u64, whole: u64) -> f64 {
    float(part.into()) / float(whole.max(1).into())
}

/// Who is waited for, and how long.
type Whom = Vec<(At, Sum)>;

/// Waits by kind, place, and place of those who are waited for.
struct Parts {
    culprits: HashMap<(WaitKind, u32, u32), Whom, FixedState>,
    victims: HashMap<(WaitKind, u32), Vec<(u32, u64)>, FixedState>,
}

impl Parts {
    fn of(waits: &Waits) -> Self {
        let mut culprits: HashMap<_, Whom, FixedState> = HashMap::default();
        for ((kind, place, at), sum) in &waits.culprits {
            culprits.entry((*kind, *place, at.place)).or_default().push((*at, *sum));
        }
        Self { culprits, victims: waits.by_place() }
    }

    /// What is told of together, each by itself: places count, and who waits there.
    fn split(&self, f: &Finding) -> Vec<Finding> {
        let Matter::Wait(kind) = f.matter else { return vec![f.clone()] };
        if f.together.is_empty() {
            return vec![f.clone()];
        }
        let part = |(place, culprit): &(u32, u32)| {
            let sums = self.culprits.get(&(kind, *place, *culprit)).map_or(&[][..], Vec::as_slice);
            let sum = |of: fn(&Sum) -> u64| sums.iter().map(|(_, s)| of(s)).fold(0, u64::saturating_add);
            let mut culprits: Vec<(At, u64)> = sums.iter().map(|(at, s)| (*at, s.ns)).collect();
            culprits.sort_by_key(|(at, ns)| (u64::MAX - ns, *at));
            let victims = self.victims.get(&(kind, *place)).cloned().unwrap_or_default();
            let (cost, count, place) = (sum(|s| s.ns), sum(|s| s.count), *place);
            Finding { cost, count, place, victims, culprits, ..Finding::of(f.matter) }
        };
        f.together.iter().map(part).collect()
    }
}
