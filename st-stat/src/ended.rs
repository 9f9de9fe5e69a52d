//! Where ranks ended that did not come to the end of their program.

use st_model::num::Exact;
use std::collections::BTreeMap;

use st_model::ranklist::RankList;
use st_model::ranklist_notation::plain;
use st_model::section::{Ended, NO_SYM, Section};
use st_model::sites::CallSites;

use crate::calls::called;
use crate::profile::Profile;
use crate::table::grouped;

/// Places told at most.
const PLACES: usize = 8;

/// Ranks that ended at the same place.
struct Group {
    ranks: RankList,
    /// Fewest and most calls.
    calls: (u64, u64),
    text: String,
}

/// Lines like `rank 2 ends at call 151, MPI_Allreduce (site 7, main main.c:88)`: places of few ranks first, since those tell most.
pub(crate) fn places(sections: &[(Section, Profile)], sites: &CallSites) -> Vec<String> {
    let mut groups: BTreeMap<(u32, bool, String), Group> = BTreeMap::new();
    for (section, _) in sections {
        for e in &section.ended {
            let inside = e.inside != NO_SYM;
            let at = if inside { e.inside } else { e.last };
            let call = e.calls + u64::from(inside);
            let text =
                section.symbols.get(at as usize).map(|s| called(section, s, sites)).unwrap_or_default();
            let group = groups.entry((e.thread, inside, text.clone())).or_insert_with(|| Group {
                ranks: RankList::default(),
                calls: (call, call),
                text: sentence(e, inside, &text),
            });
            group.ranks.extend(&RankList::single(e.rank));
            group.calls = (group.calls.0.min(call), group.calls.1.max(call));
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|g| (g.ranks.len(), g.ranks.lowest()));
    let more = groups.len().saturating_sub(PLACES);
    let mut lines: Vec<_> = groups.iter().take(PLACES).map(line).collect();
    if more > 0 {
        lines.push(format!("… and at {} more places", grouped(more.to_u64())));
    }
    lines
}

/// What stands behind the number of the call.
fn sentence(e: &Ended, inside: bool, text: &str) -> String {
    let thread = if e.thread == 0 { String::new() } else { format!(" (thread {})", e.thread) };
    match (inside, e.last) {
        (true, _) => format!(", {text}, which did not return{thread}"),
        (false, NO_SYM) => thread.to_owned(),
        (false, _) => format!(", {text}{thread}"),
    }
}

fn line(g: &Group) -> String {
    let (verb, who) = match g.ranks.lowest() {
        Some(rank) if g.ranks.len() == 1 => ("ends", format!("rank {rank}")),
        _ => ("end", format!("ranks {}", plain(&g.ranks))),
    };
    let calls = match g.calls {
        (0, 0) => "before its first call".to_owned(),
        (a, b) if a == b => format!("at call {}", grouped(a)),
        (a, b) => format!("at calls {} to {}", grouped(a), grouped(b)),
    };
    format!("{who} {verb} {calls}{}", g.text)
}
