//! Ranks that a timeline shows by themselves where there are so many that one of them would not be seen.

use std::cmp::Reverse;

use st_explain::{Analysis, Finding, RankTotals};

use crate::levels::{self, Levels, Most};

/// Rows of more ranks are so low that one is hardly seen.
const MANY: usize = 32;
/// Ranks that are shown at most, and findings whose culprits are.
const MOST: usize = 6;
const FINDINGS: usize = 4;

/// Numbers of ranks in an analysis, ascending: those that are waited for most by the first findings; and who computes most, who waits most and
/// who computes least.
fn of(analysis: &Analysis, findings: &[Finding]) -> Vec<usize> {
    let ranks = &analysis.ranks;
    let first = |f: &Finding| f.culprits.first().filter(|(_, ns)| *ns > 0).map(|(at, _)| at.rank);
    let blamed = findings.iter().take(FINDINGS).filter_map(first);
    let blamed = blamed.filter_map(|rank| ranks.binary_search_by_key(&rank, |r| r.rank).ok());
    let most =
        |by: &dyn Fn(&RankTotals) -> u64| (0..ranks.len()).max_by_key(|i| (by(&ranks[*i]), Reverse(*i)));
    let ends = [
        most(&RankTotals::computation),
        most(&|rank| rank.wait.ns),
        most(&|rank| u64::MAX - rank.computation()),
    ];
    let mut all = Vec::new();
    for rank in ends[..1].iter().copied().flatten().chain(blamed).chain(ends[1..].iter().copied().flatten()) {
        if all.len() < MOST && !all.contains(&rank) {
            all.push(rank);
        }
    }
    all.sort_unstable();
    all
}

/// A row for each of them, where ranks are many. *Cost:* O(calls + cells).
pub(super) fn levels(analysis: &Analysis, findings: &[Finding], most: Most) -> Option<Levels> {
    if analysis.ranks.len() <= MANY {
        return None;
    }
    let chosen = of(analysis, findings);
    let made = levels::some(analysis, &chosen, most);
    let ranks = chosen.iter().filter_map(|i| analysis.ranks.get(*i)).map(|of| of.rank).collect();
    Some(Levels { ranks, most: Vec::new(), busiest: Vec::new(), ..made })
}

/// Rows of fewer ranks than those of the timeline, of single ranks if there is room for them, in fewer columns: for who looks at few of many.
pub(super) fn fine(analysis: &Analysis, group: usize, most: Most) -> Option<Levels> {
    let rows = analysis.ranks.len().min(FINE);
    let each = analysis.ranks.len().div_ceil(rows.max(1));
    let columns = (most.cells.saturating_mul(2) / rows.max(1)).max(1);
    (each < group && columns >= LEAST).then(|| {
        levels::of(
            analysis,
            Most { rows, columns: columns.min(most.columns), cells: usize::MAX, window: None },
        )
    })
}

/// Rows of few ranks each at most, and columns at least: fewer tell nothing.
const FINE: usize = 4096;
const LEAST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::spots::tests::analysis;
    use st_kernels::{Kernel, Slow};

    #[test]
    fn a_slow_rank_of_many_has_a_row_of_its_own_and_is_found_among_few() {
        let Some(analysis) = analysis(Kernel::Stencil2d, 64, &[Slow { rank: 37, factor: 2.0 }]) else {
            unreachable!("the kernel runs")
        };
        let most = Most { rows: 16, columns: 64, cells: 1 << 10, window: None };
        let all = levels(&analysis, &analysis.findings(), most);
        let all = all.unwrap_or_else(|| unreachable!("they are many"));
        let at = all.ranks.iter().position(|rank| *rank == 37);
        let row = |row: usize| all.computation[row * all.columns..][..all.columns].iter().sum::<u64>();
        let own = at.map_or(0, row);
        assert!((0..all.rows).all(|other| Some(other) == at || row(other) < own), "{all:?}");
        assert_eq!(own, analysis.ranks[37].computation());
        assert!(all.rows <= MOST && all.group == 1);
        let fine = fine(&analysis, 4, most).unwrap_or_else(|| unreachable!("rows are of four ranks"));
        assert_eq!((fine.group, fine.rows, fine.columns), (1, 64, 32));
        let rows: Vec<u64> = fine.computation.chunks(32).map(|row| row.iter().sum()).collect();
        let ranks: Vec<u64> = analysis.ranks.iter().map(RankTotals::computation).collect();
        assert_eq!(rows, ranks);
        assert!(super::fine(&analysis, 1, most).is_none());
    }
}
