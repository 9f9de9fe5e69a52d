//! Nodes with one parent, and which of them have a shape or a leaf: what aligns lists asks for each node of them.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::HashSet;
use foldhash::fast::FixedState;
use st_model::section::Sym;

/// Symbols of leaves.
pub(super) type Leaves = HashSet<Sym>;

/// Positions by what is there, ascending.
type Positions<K> = HashMap<K, Vec<usize>, FixedState>;

fn positions<K: std::hash::Hash + Eq>(of: impl Iterator<Item = (usize, K)>) -> Positions<K> {
    let mut at = Positions::default();
    of.for_each(|(i, key)| at.entry(key).or_insert_with(Vec::new).push(i));
    at
}

/// Shapes of siblings.
pub(super) struct Shapes {
    list: Vec<u64>,
    at: Positions<u64>,
}

impl Shapes {
    pub(super) fn new(list: Vec<u64>) -> Self {
        let at = positions(list.iter().copied().enumerate());
        Self { list, at }
    }

    pub(super) fn has(&self, shape: u64) -> bool {
        self.at.contains_key(&shape)
    }

    /// Where these shapes come first, one after the other.
    pub(super) fn run(&self, wanted: &[u64]) -> Option<Range<usize>> {
        let starts = self.at.get(wanted.first()?)?;
        let from = starts.iter().find(|from| self.list[**from..].starts_with(wanted))?;
        Some(*from..from + wanted.len())
    }
}

/// Leaves at or below each of some siblings.
pub(super) struct LeavesOfEach {
    sets: Vec<Leaves>,
    at: Positions<Sym>,
}

impl LeavesOfEach {
    pub(super) fn new(sets: Vec<Leaves>) -> Self {
        let at = positions(sets.iter().enumerate().flat_map(|(i, set)| set.iter().map(move |sym| (i, *sym))));
        Self { sets, at }
    }

    fn with(&self, sym: Sym) -> &[usize] {
        self.at.get(&sym).map_or(&[], Vec::as_slice)
    }

    /// The shortest run of two or more of these, which together have all leaves of the `k`-th of `others` and at most as many that
    /// are not its own, if no one of them has and nothing else in `others` has any of the run's.
    pub(super) fn covering(&self, others: &Self, k: usize) -> Option<Range<usize>> {
        let wanted = &others.sets[k];
        let first = wanted.iter().filter_map(|sym| self.with(*sym).first()).min()?;
        let last = wanted.iter().filter_map(|sym| self.with(*sym).last()).max()?;
        if first == last {
            return None;
        }
        let mut together = Leaves::default();
        for set in &self.sets[*first..=*last] {
            together.extend(set);
            // A run may be as long as the list: most that come to nothing do so soon.
            if together.len() > 2 * wanted.len() || wanted.is_subset(set) {
                return None;
            }
        }
        let elsewhere = |sym: &Sym| others.with(*sym).iter().any(|i| *i != k);
        (wanted.is_subset(&together) && !together.iter().any(elsewhere)).then_some(*first..last + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As [`LeavesOfEach::covering`], by its words.
    fn covering(nodes: &[Leaves], others: &[Leaves], k: usize) -> Option<Range<usize>> {
        let wanted = &others[k];
        let touches = |set: &Leaves| !set.is_disjoint(wanted);
        let (first, last) = (nodes.iter().position(touches)?, nodes.iter().rposition(touches)?);
        let run = &nodes[first..=last];
        let together: Leaves = run.iter().flatten().copied().collect();
        let found = run.len() >= 2
            && !run.iter().any(|set| wanted.is_subset(set))
            && wanted.is_subset(&together)
            && together.len() <= 2 * wanted.len()
            && others.iter().enumerate().all(|(i, set)| i == k || set.is_disjoint(&together));
        found.then_some(first..last + 1)
    }

    fn sets(symbols: Sym) -> impl Strategy<Value = Vec<Leaves>> {
        let set = prop::collection::vec(0..symbols, 0..5).prop_map(|syms| syms.into_iter().collect());
        prop::collection::vec(set, 1..6)
    }

    proptest! {
        #[test]
        fn runs_that_cover_are_those_that_a_search_finds(nodes in sets(12), others in sets(12)) {
            let (indexed, all) = (LeavesOfEach::new(nodes.clone()), LeavesOfEach::new(others.clone()));
            for k in 0..others.len() {
                prop_assert_eq!(indexed.covering(&all, k), covering(&nodes, &others, k));
            }
        }

        #[test]
        fn runs_of_shapes_are_those_that_a_search_finds(
            list in prop::collection::vec(0u64..3, 0..12),
            wanted in prop::collection::vec(0u64..3, 1..4),
        ) {
            let searched = list.windows(wanted.len()).position(|w| w == wanted).map(|at| at..at + wanted.len());
            prop_assert_eq!(Shapes::new(list).run(&wanted), searched);
        }
    }

    #[test]
    fn a_run_covers_only_what_it_shares_with_nothing_else() {
        let set = |syms: &[Sym]| syms.iter().copied().collect::<Leaves>();
        let nodes = LeavesOfEach::new(vec![set(&[1]), set(&[2]), set(&[3]), set(&[4])]);
        let others = LeavesOfEach::new(vec![set(&[2, 3]), set(&[1]), set(&[9])]);
        assert_eq!(nodes.covering(&others, 0), Some(1..3));
        // One node is no run, and what is not there has none.
        assert_eq!((nodes.covering(&others, 1), nodes.covering(&others, 2)), (None, None));
        let shared = LeavesOfEach::new(vec![set(&[2, 3]), set(&[3, 9])]);
        assert_eq!(nodes.covering(&shared, 0), None);
    }
}
