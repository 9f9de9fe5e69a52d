//! Where in time a page shows what findings are about: the longest wait, call or pause of each.

use std::cmp::Reverse;
use std::collections::HashMap;

use st_explain::{Analysis, Finding, Matter, Thread, Waited};
use st_model::num::saturate;

use super::data::Spot;
use crate::levels::colour;

/// Findings that are looked for: `why` has no more that cost a hundredth of the time but those of several threads, and leaks.
const MOST: usize = 64;

/// A place for each of the first findings that have one in time. *Cost:* O(waits + calls).
pub(super) fn of(analysis: &Analysis, findings: &[Finding]) -> Vec<Spot> {
    let findings = &findings[..findings.len().min(MOST)];
    let mut spots = waits(analysis, findings);
    spots.extend(calls(analysis, findings));
    spots.extend((0..).zip(findings).filter_map(|(number, f)| late_end(analysis, number, f)));
    spots.sort_by_key(|spot| spot.finding);
    spots
}

fn spot(analysis: &Analysis, finding: usize, from: i64, ns: u64, rank: u32, for_rank: Option<u32>) -> Spot {
    let from_ns = from.saturating_sub(analysis.begin());
    Spot { finding, from_ns, to_ns: from_ns.saturating_add(saturate(ns)), rank, for_rank, ns }
}

/// Places of those who wait and of those who are waited for, of what is told of as waits.
fn between(finding: &Finding) -> Vec<(u32, u32)> {
    match (finding.matter, finding.culprits.first()) {
        (Matter::Wait(_), Some((culprit, _))) if finding.together.is_empty() => {
            vec![(finding.place, culprit.place)]
        }
        (Matter::Wait(_) | Matter::SlowRank | Matter::Serialised, _) => finding.together.clone(),
        _ => Vec::new(),
    }
}

/// Of findings that are waits, or why ranks wait, the longest: for those at fault, where some are for them.
fn waits(analysis: &Analysis, findings: &[Finding]) -> Vec<Spot> {
    let mut at: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
    for (number, finding) in findings.iter().enumerate() {
        between(finding).into_iter().for_each(|places| at.entry(places).or_default().push(number));
    }
    let at_fault = |f: &Finding| {
        let mut ranks: Vec<u32> = f.culprits.iter().map(|(at, _)| at.rank).collect();
        ranks.sort_unstable();
        ranks
    };
    let blamed: Vec<Vec<u32>> = findings.iter().map(at_fault).collect();
    let mut longest: Vec<Option<(bool, &Waited)>> = vec![None; findings.len()];
    for wait in &analysis.each {
        for &number in at.get(&(wait.place, wait.for_place)).into_iter().flatten() {
            let is_of = |kind| colour(kind) == colour(wait.kind);
            if matches!(findings[number].matter, Matter::Wait(kind) if !is_of(kind)) {
                continue;
            }
            let for_them = blamed[number].binary_search(&wait.for_rank).is_ok();
            let order = |(for_them, w): &(bool, &Waited)| (*for_them, w.ns, Reverse((w.enter, w.rank)));
            let known = &mut longest[number];
            if known.as_ref().is_none_or(|known| order(&(for_them, wait)) > order(known)) {
                *known = Some((for_them, wait));
            }
        }
    }
    let found = longest.into_iter().enumerate().filter_map(|(number, wait)| Some((number, wait?.1)));
    found.map(|(n, w)| spot(analysis, n, w.enter, w.ns, w.rank, Some(w.for_rank))).collect()
}

/// Of findings that are calls' own time, the call that takes most of it; of tests the longest.
fn calls(analysis: &Analysis, findings: &[Finding]) -> Vec<Spot> {
    let mut at: HashMap<u32, Vec<usize>> = HashMap::new();
    for (number, finding) in findings.iter().enumerate() {
        let tests = finding.matter == Matter::SlowRank && finding.together.is_empty();
        let own = matches!(
            finding.matter,
            Matter::Polling
                | Matter::Latency
                | Matter::Bandwidth
                | Matter::Files
                | Matter::OneSided
                | Matter::Inside
        );
        if own || tests {
            at.entry(finding.place).or_default().push(number);
        }
    }
    if at.is_empty() {
        return Vec::new();
    }
    let mut waited: HashMap<(u32, u64), u64> = HashMap::new();
    for wait in analysis.each.iter().filter(|wait| at.contains_key(&wait.place)) {
        *waited.entry((wait.thread, wait.call)).or_default() += wait.ns;
    }
    // Own time, when, how long, and whose.
    let mut longest: HashMap<u32, (u64, i64, u64, u32)> = HashMap::new();
    for (number, thread) in (0..).zip(analysis.threads()) {
        let thread: Thread<'_> = thread;
        for (position, call) in (0..).zip(thread.calls()).filter(|(_, call)| at.contains_key(&call.place)) {
            let ns: u64 = saturate(call.exit.saturating_sub(call.enter));
            let own = ns.saturating_sub(waited.get(&(number, position)).copied().unwrap_or(0));
            let known = longest.entry(call.place).or_insert((own, call.enter, ns, thread.rank()));
            if (own, Reverse(call.enter)) > (known.0, Reverse(known.1)) {
                *known = (own, call.enter, ns, thread.rank());
            }
        }
    }
    let found = longest.into_iter().flat_map(|(place, (_, enter, ns, rank))| {
        at.get(&place).into_iter().flatten().map(move |number| (*number, enter, ns, rank))
    });
    found.map(|(number, enter, ns, rank)| spot(analysis, number, enter, ns, rank, None)).collect()
}

/// From when the first rank has nothing to do any more until the last one ends.
fn late_end(analysis: &Analysis, number: usize, finding: &Finding) -> Option<Spot> {
    if finding.matter != Matter::LateEnd {
        return None;
    }
    let first = analysis.ranks.iter().min_by_key(|rank| rank.end)?;
    let last = analysis.ranks.iter().max_by_key(|rank| rank.end)?;
    let ns = saturate(last.end.saturating_sub(first.end));
    Some(spot(analysis, number, first.end, ns, first.rank, Some(last.rank)))
}

#[cfg(test)]
pub(super) mod tests {
    use st_explain::analyse_all;
    use st_kernels::{Kernel, Options, Slow, Unfit, paper};
    use st_model::section::Section;

    use super::*;

    pub(in crate::report) fn analysis(kernel: Kernel, ranks: u32, slow: &[Slow]) -> Option<Analysis> {
        let options = Options { steps: Some(20), ..Options::default() };
        let mut sections = Vec::new();
        let plan = paper::Plan::new(slow, kernel, &options, ranks, 1).ok()?;
        let keep = |section: Result<Section, Unfit>| -> Result<(), Unfit> {
            sections.push(section?);
            Ok(())
        };
        let what = paper::Planned { kernel, options: &options, plan: &plan, ranks };
        paper::each("exact".parse().ok()?, what, 1, |section| section, keep).ok()?;
        analyse_all(&sections, &|_| ()).ok()
    }

    #[test]
    fn what_is_no_wait_has_a_place_in_time_too() {
        let slow = [Slow { rank: 3, factor: 2.0 }];
        let Some(analysis) = analysis(Kernel::Stencil2d, 16, &slow) else { unreachable!("it runs") };
        let run: i64 = saturate(analysis.run());
        let mut findings = analysis.findings();
        let Some(wait) = findings.iter().find(|f| matches!(f.matter, Matter::Wait(_))).cloned() else {
            unreachable!("ranks wait")
        };
        let together = between(&wait);
        let at_end = Finding { cost: 1, ..Finding::of(Matter::LateEnd) };
        let own = findings.iter().find(|f| matches!(f.matter, Matter::Inside | Matter::Latency)).cloned();
        let reasons = [Matter::SlowRank, Matter::Serialised];
        let reasons = reasons.map(|matter| Finding { matter, together: together.clone(), ..wait.clone() });
        findings =
            reasons.into_iter().chain([at_end]).chain(own).chain([Finding::of(Matter::Queued)]).collect();
        let spots = of(&analysis, &findings);
        let shown: Vec<usize> = spots.iter().map(|spot| spot.finding).collect();
        assert_eq!(shown, [0, 1, 2, 3], "not that ranks lack processors: {findings:?}");
        assert!(spots[..2].iter().all(|spot| spot.for_rank == Some(wait.culprits[0].0.rank)), "{spots:?}");
        for spot in &spots {
            assert!(0 <= spot.from_ns && spot.from_ns <= spot.to_ns && spot.to_ns <= run, "{spot:?}");
        }
    }
}
