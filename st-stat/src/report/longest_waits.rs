//! For findings, the longest of the waits that each is about: where a page shows it.

use std::collections::HashMap;

use st_explain::{Analysis, Finding, Matter, WaitKind, Waited};
use st_model::num::saturate;

use super::data::Spot;
use crate::levels::colour;

/// Findings that are looked for.
const MOST: usize = 8;

/// A place for each of the first findings that are waits. *Cost:* O(waits · log ranks).
pub(super) fn of(analysis: &Analysis, findings: &[Finding]) -> Vec<Spot> {
    // Kinds and pairs of ranks tell findings apart: a wait by itself has no place.
    let mut longest: HashMap<(usize, u32, u32), &Waited> = HashMap::new();
    for wait in &analysis.each {
        let known = longest.entry((colour(wait.kind), wait.rank, wait.for_rank)).or_insert(wait);
        if (wait.ns, known.enter) > (known.ns, wait.enter) {
            *known = wait;
        }
    }
    let mut spots = Vec::new();
    for (number, finding) in findings.iter().enumerate().take(MOST) {
        let Matter::Wait(kind) = finding.matter else { continue };
        let Some(wait) = shown(&longest, kind, finding) else { continue };
        let from = wait.enter.saturating_sub(analysis.begin());
        spots.push(Spot {
            finding: number,
            from_ns: from,
            to_ns: from.saturating_add(saturate(wait.ns)),
            rank: wait.rank,
            for_rank: wait.for_rank,
            wait_ns: wait.ns,
        });
    }
    spots
}

/// The longest wait of a kind of any victim for any of those that are at fault.
fn shown<'a>(
    longest: &HashMap<(usize, u32, u32), &'a Waited>,
    kind: WaitKind,
    finding: &Finding,
) -> Option<&'a Waited> {
    let is_victim = |rank: u32| finding.victims.binary_search_by_key(&rank, |(rank, _)| *rank).is_ok();
    let mut at_fault: Vec<u32> = finding.culprits.iter().map(|(at, _)| at.rank).collect();
    at_fault.sort_unstable();
    let fits = |(colour_of, rank, for_rank): &(usize, u32, u32)| {
        *colour_of == colour(kind) && is_victim(*rank) && at_fault.binary_search(for_rank).is_ok()
    };
    let waits = longest.iter().filter(|(key, _)| fits(key)).map(|(_, wait)| *wait);
    waits.max_by_key(|w| (w.ns, std::cmp::Reverse((w.enter, w.rank))))
}
