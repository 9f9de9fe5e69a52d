//! Waits that have one reason, told of once, as that.

use std::collections::BTreeSet;

use st_model::explanation::ELSEWHERE;

use crate::findings::{Finding, sort};
use crate::gathered::together;
use crate::kept::Explains;
use crate::matter::Matter;
use crate::timeline::{Activity, Doing};

/// Waits of which it is asked what they are due to, the most costly: each takes time at each wait.
const MOST: usize = 20;

/// The part of a wait that must be due to a reason.
const DUE: f64 = 0.75;

/// Findings, of which waits that are due to a reason among them are that: a loss counts once, and a reason costs what is waited for it. A
/// reason that nobody waits for is none.
#[must_use]
pub fn joined(findings: Vec<Finding>, told: &dyn Explains) -> Vec<Finding> {
    let (reasons, mut rest): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|f| f.matter.is_reason());
    sort(&mut rest);
    let waits: Vec<Finding> =
        rest.iter().filter(|f| matches!(f.matter, Matter::Wait(_))).take(MOST).cloned().collect();
    if reasons.is_empty() || waits.is_empty() {
        return rest;
    }
    let slow: BTreeSet<u32> = reasons
        .iter()
        .filter(|f| f.matter == Matter::SlowRank)
        .flat_map(|f| f.culprits.iter().map(|(at, _)| at.rank))
        .collect();
    let serialised = reasons.iter().any(|f| f.matter == Matter::Serialised);
    let all = told.delays(&waits).causes;
    let due = |causes: &[(Doing, f64)]| {
        let sum = |of: &dyn Fn(&Doing) -> bool| -> f64 {
            // Of merged traces the lesser causes stand together, as nobody's.
            let known = causes.iter().filter(|(doing, _)| doing.at.place != ELSEWHERE);
            known.filter(|(doing, _)| of(doing)).map(|(_, ns)| ns).sum()
        };
        let least = sum(&|_| true) * DUE;
        let computed = |doing: &Doing| doing.what == Activity::Computation;
        let of_slow = sum(&|doing| computed(doing) && slow.contains(&doing.at.rank));
        match least > 0.0 {
            true if of_slow >= least => Some(Matter::SlowRank),
            true if serialised && sum(&computed) >= least => Some(Matter::Serialised),
            _ => None,
        }
    };
    let reason: Vec<Option<Matter>> = all.iter().map(|causes| due(causes)).collect();
    for matter in [Matter::SlowRank, Matter::Serialised] {
        let of = waits.iter().zip(&reason).filter(|(_, r)| **r == Some(matter)).map(|(f, _)| f);
        let group: Vec<&Finding> = of.collect();
        let Some(one) = together(&group) else { continue };
        rest.retain(|f| !group.contains(&f));
        let mut culprits = one.culprits;
        if matter == Matter::SlowRank {
            // Others wait for ranks that wait for them.
            let ranks = reasons.iter().filter(|f| f.matter == matter).flat_map(|f| &f.culprits);
            culprits = ranks.map(|(at, ns)| (*at, *ns)).collect();
        }
        rest.push(Finding { matter, culprits, ..one });
    }
    sort(&mut rest);
    rest
}
