//! What costs little by itself, as at each of many call sites, and much together.

use std::collections::{BTreeMap, BTreeSet};

use st_model::num::Exact as _;

use crate::findings::{Finding, sort};
use crate::matter::Matter;
use crate::places::Places;
use crate::waits::At;

/// Findings of the same matter in the same function, as one: at the place that costs most. Findings that have no other to go with are not returned, nor leaks and reasons of waits, which
/// are at no function.
#[must_use]
pub fn gathered(findings: &[Finding], places: &Places) -> Vec<Finding> {
    let mut groups: BTreeMap<_, Vec<&Finding>> = BTreeMap::new();
    for f in findings.iter().filter(|f| f.cost > 0 && !f.matter.is_reason()) {
        if let Some(place) = places.get(f.place) {
            groups.entry((f.matter, place.call)).or_default().push(f);
        }
    }
    let several = groups.into_values().filter(|group| group.len() > 1);
    let mut all: Vec<Finding> = several.filter_map(|group| together(&group)).collect();
    sort(&mut all);
    all
}

/// Findings as one, at the place that costs most. None of them is several that are told of together, unless these are at one place.
pub(crate) fn together(group: &[&Finding]) -> Option<Finding> {
    let mut of_place: BTreeMap<u32, u64> = BTreeMap::new();
    // What is waited at a place stands in each of its findings of a kind, one for each place of those who are waited for.
    let mut waits: BTreeMap<(Matter, u32), &[(u32, u64)]> = BTreeMap::new();
    for f in group {
        let sum: &mut u64 = of_place.entry(f.place).or_default();
        *sum = sum.saturating_add(f.cost);
        waits.entry((f.matter, f.place)).or_insert(&f.victims);
    }
    let (place, _) = of_place.iter().max_by_key(|(place, cost)| (**cost, u32::MAX - **place))?;
    let mut victims: BTreeMap<u32, u64> = BTreeMap::new();
    for (rank, ns) in waits.into_values().flatten() {
        let sum: &mut u64 = victims.entry(*rank).or_default();
        *sum = sum.saturating_add(*ns);
    }
    let mut culprits: BTreeMap<u32, (At, u64)> = BTreeMap::new();
    for (at, ns) in group.iter().flat_map(|f| &f.culprits) {
        let (_, sum) = culprits.entry(at.rank).or_insert((*at, 0));
        *sum = sum.saturating_add(*ns);
    }
    let mut culprits: Vec<(At, u64)> = culprits.into_values().collect();
    culprits.sort_by_key(|(at, ns)| (u64::MAX - ns, *at));
    // Waits of several kinds may lie between two places.
    let mut met = BTreeSet::new();
    let together = group.iter().flat_map(|f| f.between()).filter(|between| met.insert(*between));
    Some(Finding {
        cost: group.iter().map(|f| f.cost).fold(0, u64::saturating_add),
        count: group.iter().map(|f| f.count).sum(),
        bytes: group.iter().map(|f| f.bytes).fold(0, u64::saturating_add),
        place: *place,
        places: of_place.len().to_u64(),
        parts: group.iter().map(|f| f.parts).sum(),
        together: together.collect(),
        victims: victims.into_iter().collect(),
        culprits,
        ..Finding::of(group.first()?.matter)
    })
}

#[cfg(test)]
mod tests {
    use st_model::calls::{CallId, CallTable, names};

    use super::*;
    use crate::waits::WaitKind;
    use st_model::explanation::Place;

    fn id(name: &str) -> CallId {
        CallTable::builtin().by_name(name).map_or(CallId(0), |row| row.id)
    }

    fn wait(place: u32, [culprit, culprit_place]: [u32; 2], cost: u64) -> Finding {
        let culprits = vec![(At { rank: culprit, place: culprit_place }, cost)];
        // What they wait at the place in all.
        let victims = vec![(0, 100), (9, 10)];
        Finding { cost, count: 2, place, victims, culprits, ..Finding::of(Matter::Wait(WaitKind::Barrier)) }
    }

    #[test]
    fn places_of_one_function_are_told_of_together() {
        let at = |name, site| Place { call: id(name), site: Some(site) };
        let barrier = names::MPI_Barrier;
        let places = [at(barrier, 1), at(barrier, 2), at(names::MPI_Recv, 3), at(barrier, 4)];
        let places = Places::of_list(places.to_vec());
        let inside = Finding { cost: 5, place: 0, ..Finding::of(Matter::Inside) };
        let leak = |place| Finding { count: 70, place, ..Finding::of(Matter::LeakedObjects) };
        let all = [
            wait(0, [3, 0], 30),
            wait(1, [4, 1], 25),
            wait(1, [3, 0], 20),
            wait(2, [3, 2], 90),
            wait(3, [4, 3], 2),
            inside,
            leak(0),
            leak(1),
        ];
        let found = gathered(&all, &places);
        let expected = Finding {
            cost: 77,
            count: 8,
            place: 1,
            places: 3,
            parts: 4,
            together: vec![(0, 0), (1, 1), (1, 0), (3, 3)],
            victims: vec![(0, 300), (9, 30)],
            culprits: vec![(At { rank: 3, place: 0 }, 50), (At { rank: 4, place: 1 }, 27)],
            ..Finding::of(Matter::Wait(WaitKind::Barrier))
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn who_waits_at_a_place_for_several_reasons_waits_for_each() {
        let kinds = [WaitKind::Barrier, WaitKind::AllToAll, WaitKind::Barrier];
        let all = kinds.map(|kind| Finding { matter: Matter::Wait(kind), ..wait(0, [3, 0], 30) });
        let found = together(&all.each_ref()).map(|f| (f.cost, f.places, f.victims));
        assert_eq!(found, Some((90, 1, vec![(0, 200), (9, 20)])));
    }
}
