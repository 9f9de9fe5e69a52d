//! Which places of two runs are one.
//!
//! They are if their call sites are of one identity, or are called the same from the MPI call to the
//! outermost function ([`crate::diff`]); of those that are left, as where lines have moved, if as many calls of a function
//! in either run come through the same functions: then the first is the first, and so on.

use std::collections::BTreeMap;
use std::path::Path;

use st_model::sites::CallSites;

use crate::calls::named;
use crate::diff::joined;
use crate::normal::SiteKeys;
use crate::times::{Phases, Place, Times};

/// A place as both traces call it.
type Key = (String, u32, Option<u128>);

/// Number of its call site in one of them, and its times there.
pub(super) type Found = (Option<u32>, Phases);

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

fn keyed(times: &Times, sites: &CallSites, keys: &SiteKeys) -> BTreeMap<Key, Found> {
    let mut out: BTreeMap<Key, Found> = BTreeMap::new();
    for (Place { function, error, site }, phases) in &times.places {
        let key = site.map(|id| keys.get(&id).copied().unwrap_or(id));
        let number = site.and_then(|id| sites.number(id));
        let (first, sums) = out.entry((function.clone(), *error, key)).or_default();
        *first = first.or(number);
        sums.iter_mut().zip(phases).for_each(|(sum, sample)| sum.add(sample));
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
            let functions = found.0.and_then(|site| sites[side].by_functions(site));
            let group = functions.map_or_else(|| key.clone(), |f| (key.0.clone(), key.1, Some(f)));
            groups.entry(group).or_default()[side].push((key, found));
        }
    }
    let pair = |key: Key, found: [Option<Found>; 2], how| Pair { function: named(&key.0, key.1), found, how };
    for [mut a, mut b] in groups.into_values() {
        a.sort_by_key(|(_, (site, _))| *site);
        b.sort_by_key(|(_, (site, _))| *site);
        let same = a.len() == b.len();
        let (mut a, mut b) = (a.into_iter(), b.into_iter());
        while same && let (Some((key, x)), Some((_, y))) = (a.next(), b.next()) {
            let how = if in_one_file([x.0, y.0], sites) { Sure::Yes } else { Sure::No };
            out.push(pair(key, [Some(x), Some(y)], how));
        }
        out.extend(a.map(|(key, x)| pair(key, [Some(x), None], Sure::Yes)));
        out.extend(b.map(|(key, y)| pair(key, [None, Some(y)], Sure::Yes)));
    }
    out
}

/// All places of two runs.
pub(super) fn pairs(times: [&Times; 2], sites: [&CallSites; 2]) -> Vec<Pair> {
    let keys = joined(sites);
    let [a, mut b] = [0, 1].map(|side| keyed(times[side], sites[side], &keys[side]));
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
