//! What nodes and clusters do when: the ranks of each together.

use st_explain::Analysis;
use st_model::ranklist::RankList;
use st_model::ranklist_notation::{plain, print};

use super::data::Groups;
use crate::levels::{self, Most};
use crate::rank_groups::RankGroups;

/// Cells that they have, of those that ranks have.
const PART: usize = 4;

/// A row for each, those of the lowest ranks first; nothing if there is one, or more than rows.
pub(super) fn of(analysis: &Analysis, groups: RankGroups, most: Most) -> Option<Groups> {
    let (names, of) = groups.rows(analysis);
    if names.len() < 2 || names.len() > most.rows {
        return None;
    }
    let mut ranks = vec![RankList::default(); names.len()];
    for (rank, number) in analysis.ranks.iter().map(|of| of.rank).zip(&of) {
        if let Some(all) = ranks.get_mut(*number) {
            all.insert(rank);
        }
    }
    let ranks = ranks.iter().map(told).collect();
    let levels = levels::by(analysis, names.len(), &of, Most { cells: most.cells / PART, ..most });
    Some(Groups { names, ranks, of, levels })
}

/// Characters of a set in the papers' notation, at most.
const NOTATION: usize = 80;

/// A set in a line: as people write it where that is all of it, else in the papers' notation where that is short, else its first parts.
fn told(ranks: &RankList) -> String {
    let text = plain(ranks);
    if !text.ends_with('…') {
        return text;
    }
    Some(print(ranks)).filter(|text| text.len() <= NOTATION).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_told_whole_where_a_line_has_room_for_it() {
        let of = |ranks: Vec<u32>| told(&ranks.into_iter().collect());
        assert_eq!(of(vec![0, 1, 2, 3, 8]), "0-3, 8");
        assert_eq!(of((0..512).step_by(2).collect()), "<1 0 256 2>");
        let varied = of((0..100u32).map(|n| n * n).collect());
        assert!(varied.starts_with("0, 1, 4, 9, 16, 25, 36, 49, …"), "{varied}");
    }
}
