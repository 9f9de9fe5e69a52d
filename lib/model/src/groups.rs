//! Which ranks of a section behave alike, as its partitions say.
//!
//! *Main clusters* are ranks with equal call paths: they have the same threads and the same counts in every node of the
//! trees. *Sub-clusters* are those of them whose parameters are equal in the forms that they are stored in. How often a poll
//! had to be repeated is a matter of time and divides no clusters. Nor does, unless that is wanted, what a rank only asked of
//! its own place: coordinates, neighbours ([`Properties::asks`](crate::calls::Properties::asks)).
//!
//! Source: Bahmani, Mueller 2014, section 3.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::FixedState;

use crate::calls::{CallId, CallTable, Meaning};
use crate::ranklist::RankList;
use crate::section::{Partition, Section};

/// Ranks with equal call paths.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Group {
    /// The ranks.
    pub ranks: RankList,
    /// Those that have equal parameters, by lowest rank.
    pub subs: Vec<RankList>,
}

/// The clusters of a section, by lowest rank. `asked`: whether ranks are told apart by what they asked of their own place, too.
/// *Cost:* O(ranks) per partition.
#[must_use]
pub fn groups(section: &Section, asked: bool) -> Vec<Group> {
    let threads: Vec<Partition> =
        section.threads.iter().map(|t| Partition { classes: vec![t.ranks.clone()] }).collect();
    let counts: BTreeSet<u32> = section.threads.iter().flat_map(|t| &t.counts).map(|c| c.partition).collect();
    let chosen = |numbers: BTreeSet<u32>| {
        numbers.into_iter().filter_map(|n| section.partitions.get(usize::try_from(n).ok()?))
    };
    let main = refine(&section.ranks, threads.iter().chain(chosen(counts)));
    let parameters: BTreeSet<u32> = parameters(section, asked).collect();
    let all: Vec<&Partition> = chosen(parameters).collect();
    main.into_iter().map(|ranks| Group { subs: refine(&ranks, all.iter().copied()), ranks }).collect()
}

/// Whether a function's parameters tell ranks apart.
#[must_use]
pub fn tells_apart(call: CallId, asked: bool) -> bool {
    asked || CallTable::builtin().get(call).is_none_or(|row| !row.properties.asks)
}

/// Partitions of the streams of the parameters that tell ranks apart.
fn parameters(section: &Section, asked: bool) -> impl Iterator<Item = u32> + '_ {
    let of_thread = section.threads.iter().flat_map(|t| section.symbols.iter().zip(&t.params));
    of_thread.filter(move |(symbol, _)| tells_apart(symbol.call, asked)).flat_map(|(symbol, streams)| {
        let slots = CallTable::builtin().slots(symbol.call).iter().zip(streams);
        slots
            .filter(|(slot, _)| slot.meaning != Meaning::Times)
            .flat_map(|(_, s)| s.lens.iter().map(|l| l.partition).chain([s.values.partition]))
    })
}

/// The ranks that no partition tells apart, by lowest rank. Ranks that are in no class of a partition are one more.
/// *Cost:* O(ranks) per partition.
pub fn refine<'a>(ranks: &RankList, partitions: impl IntoIterator<Item = &'a Partition>) -> Vec<RankList> {
    let all: Vec<u32> = ranks.iter().collect();
    let mut labels = vec![0usize; all.len()];
    let mut groups = 1;
    for partition in partitions {
        let mut classes = vec![0usize; all.len()];
        for (k, class) in (1..).zip(&partition.classes) {
            let mut at = 0;
            for rank in class.iter() {
                // Mostly the next one or near it.
                let (mut step, mut to) = (1, at);
                while all.get(to).is_some_and(|r| *r < rank) {
                    (at, to, step) = (to, to + step, step * 2);
                }
                at += all[at..to.min(all.len())].partition_point(|r| *r < rank);
                if all.get(at) == Some(&rank) {
                    classes[at] = k;
                    at += 1;
                }
            }
        }
        let mut known: HashMap<(usize, usize), usize, FixedState> = HashMap::default();
        for (label, class) in labels.iter_mut().zip(classes) {
            let next = known.len();
            *label = *known.entry((*label, class)).or_insert(next);
        }
        groups = known.len().max(1);
    }
    let mut out = vec![RankList::default(); groups];
    for (rank, label) in all.iter().zip(labels) {
        out[label].insert(*rank);
    }
    out.retain(|g| !g.is_empty());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refinement_is_by_all_partitions() {
        let set = |r: &[u32]| r.iter().copied().collect::<RankList>();
        let a = Partition { classes: vec![set(&[0, 1, 2, 3]), set(&[4, 5, 6, 7])] };
        let b = Partition { classes: vec![set(&[1, 3, 5]), set(&[0, 2, 9])] };
        let got = refine(&set(&[0, 1, 2, 3, 4, 5, 6]), [&a, &b]);
        assert_eq!(got, [set(&[0, 2]), set(&[1, 3]), set(&[4, 6]), set(&[5])]);
        assert_eq!(refine(&set(&[]), [&a]), []);
        assert_eq!(refine(&set(&[3, 5]), []), [set(&[3, 5])]);
    }
}
