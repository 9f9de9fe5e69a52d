//! Which places of two runs are one.
//!
//! They are if their call sites are of one identity, as those of one build are; of those that only one run has, if they are called
//! the same from the MPI call to the outermost function: several of one run that are count as one place, as which is which cannot be
//! told; of those that are left, as where lines have moved, if as many calls of a function
//! in either run come through the same functions: then the first is the first, and so on.

use std::collections::BTreeMap;
use std::path::Path;

use st_model::sites::CallSites;

use crate::calls::named;
use crate::times::{Phases, TimedPlace, Times};

/// A place as both traces call it.
type Key = (String, u32, Option<u128>);

/// A place in one of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Number of its call site, or of the first of several.
    pub(super) site: Option<u32>,
    /// Call sites that are taken for it.
    pub(super) sites: usize,
    pub(super) phases: Phases,
}

/// Whether both are of one program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sure {
    /// By the identity of the call site, by function, file and line, or by functions in files that are called the same.
    Yes,
    /// Two programs may have as much in common.
    No,
}

/// Places that are one.
pub(super) struct Pair {
    pub(super) function: String,
    /// In either run.
    pub(super) found: [Option<Found>; 2],
    pub(super) how: Sure,
}

/// Places of a run, where call sites that the other has, too, stand for themselves, and others for what they are called.
fn keyed(times: &Times, sites: [&CallSites; 2]) -> BTreeMap<Key, Found> {
    let [own, other] = sites;
    let mut out: BTreeMap<Key, Found> = BTreeMap::new();
    for (TimedPlace { function, error, site }, phases) in &times.places {
        let number = site.and_then(|id| own.number(id));
        let name = number.and_then(|number| own.by_name(number));
        let key = site.map(|id| if other.number(id).is_some() { id } else { name.unwrap_or(id) });
        let found = out.entry((function.clone(), *error, key)).or_default();
        found.site = found.site.or(number);
        found.sites += 1;
        found.phases.iter_mut().zip(phases).for_each(|(sum, sample)| sum.add(sample));
    }
    out
}

/// Whether the places of two call sites are in files that are called the same, wherever these are.
fn in_one_file(numbers: [Option<u32>; 2], sites: [&CallSites; 2]) -> bool {
    let file = |side: usize| {
        let file = sites[side].location(numbers[side]?)?.file.as_ref()?;
        Path::new(&**file).file_name()
    };
    file(0) == file(1)
}

/// Moves what is left over of both runs together where functions tell that it is one.
fn by_functions(left: [Vec<(Key, Found)>; 2], sites: [&CallSites; 2]) -> Vec<Pair> {
    type Group = [Vec<(Key, Found)>; 2];
    let (mut groups, mut out): (BTreeMap<Key, Group>, Vec<Pair>) = (BTreeMap::new(), Vec::new());
    for (side, left) in left.into_iter().enumerate() {
        for (key, found) in left {
            let functions = found.site.and_then(|site| sites[side].by_functions(site));
            let group = functions.map_or_else(|| key.clone(), |f| (key.0.clone(), key.1, Some(f)));
            groups.entry(group).or_default()[side].push((key, found));
        }
    }
    let pair = |key: Key, found: [Option<Found>; 2], how| Pair { function: named(&key.0, key.1), found, how };
    for [mut a, mut b] in groups.into_values() {
        a.sort_by_key(|(_, found)| found.site);
        b.sort_by_key(|(_, found)| found.site);
        let same = a.len() == b.len();
        let (mut a, mut b) = (a.into_iter(), b.into_iter());
        while same && let (Some((key, x)), Some((_, y))) = (a.next(), b.next()) {
            let how = if in_one_file([x.site, y.site], sites) { Sure::Yes } else { Sure::No };
            out.push(pair(key, [Some(x), Some(y)], how));
        }
        out.extend(a.map(|(key, x)| pair(key, [Some(x), None], Sure::Yes)));
        out.extend(b.map(|(key, y)| pair(key, [None, Some(y)], Sure::Yes)));
    }
    out
}

/// All places of two runs.
pub(super) fn pairs(times: [&Times; 2], sites: [&CallSites; 2]) -> Vec<Pair> {
    let [a, mut b] = [keyed(times[0], sites), keyed(times[1], [sites[1], sites[0]])];
    let (mut both, mut left) = (Vec::new(), Vec::new());
    for (key, x) in a {
        match b.remove(&key) {
            Some(y) => {
                let how = if key.2.is_some() { Sure::Yes } else { Sure::No };
                both.push(Pair { function: named(&key.0, key.1), found: [Some(x), Some(y)], how });
            }
            None => left.push((key, x)),
        }
    }
    both.extend(by_functions([left, b.into_iter().collect()], sites));
    both
}
