//! What nodes do when: the ranks of each together.

use std::collections::BTreeMap;

use st_explain::Analysis;
use st_model::section::Section;

use super::data::Nodes;
use crate::levels::{self, Most};
use crate::profile::Profile;

/// Cells that nodes have, of those that ranks have.
const PART: usize = 4;

/// A row for each node, those of the lowest ranks first; nothing if there is one, or more than rows.
pub(super) fn of(analysis: &Analysis, sections: &[(Section, Profile)], most: Most) -> Option<Nodes> {
    let mut host: BTreeMap<u32, &str> = BTreeMap::new();
    for (name, ranks) in sections.iter().flat_map(|(section, _)| &section.hosts) {
        host.extend(ranks.iter().map(|rank| (rank, name.as_str())));
    }
    let (mut names, mut numbers, mut node) = (Vec::new(), BTreeMap::new(), Vec::new());
    for of in &analysis.ranks {
        let name = host.get(&of.rank).copied().unwrap_or("");
        node.push(*numbers.entry(name).or_insert_with(|| {
            names.push(name.to_owned());
            names.len() - 1
        }));
    }
    if names.len() < 2 || names.len() > most.rows {
        return None;
    }
    let levels = levels::by(analysis, (names.len(), &node), Most { cells: most.cells / PART, ..most });
    Some(Nodes { names, node, levels })
}
