//! What nodes and clusters do when: the ranks of each together.

use st_explain::Analysis;

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
    let levels = levels::by(analysis, (names.len(), &of), Most { cells: most.cells / PART, ..most });
    Some(Groups { names, of, levels })
}
