//! How a sum is spread over ranks, in few bytes whatever the number of ranks.
//!
//! Ranks with about the same part of a sum are one class. Its part is a power of 2^(1/16), so that the parts of classes are
//! right to 2.2 % beside the greatest, which is right to 2.2 % of the sum: together to 4.5 %. Where ranks differ in no order, a
//! class may hold ranks whose parts are not alike, or all from one rank to another: of the ways to put ranks into classes that
//! take no more than a number of integers the one that is least wrong is taken. The sum is kept by whoever has the spread, and
//! parts add up to it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::num::{self, Exact, rounded, saturate};
use crate::ranklist::RankList;
use crate::ranks::Run;

/// Steps of a part from one power of two to the next.
const STEPS: f64 = 16.0;
/// Steps below the greatest part at most: 2^-64 of it.
pub const LOWEST: u16 = 1024;

/// Ranks with about the same part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Class {
    /// The ranks: at least one.
    #[serde(with = "crate::ranklist_notation::as_text")]
    pub ranks: RankList,
    /// How far a rank's part is below the greatest, in steps of 2^(1/16); at most [`LOWEST`].
    pub below: u16,
}

/// How a sum is spread over ranks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Spread {
    /// Greatest parts first. A rank in several classes has the parts of all.
    pub classes: Vec<Class>,
}

/// Ranks with their values, and the value that stands for each.
struct Rough {
    ranks: RankList,
    mean: f64,
    /// Integers that the set of ranks takes.
    size: usize,
}

/// A way to put ranks into classes: how far it is off in all, and how many integers it takes.
struct Way {
    classes: Vec<Rough>,
    error: f64,
    size: usize,
}

impl Spread {
    /// Of some of all ranks, ascending, with their parts; those without any are left out. `most` integers are taken at most, if that
    /// is 5 or more.
    #[must_use]
    pub fn of(values: &[(u32, u64)], most: usize, all: &RankList) -> Self {
        let values: Vec<(u32, f64)> =
            values.iter().filter(|(_, v)| *v > 0).map(|(r, v)| (*r, float(*v))).collect();
        let Some(one) = Rough::of(&values, 0, all) else { return Self::default() };
        let mut best = Way::of(&values, vec![values.clone()], most, all).unwrap_or_else(|| Way {
            error: f64::INFINITY,
            size: 5,
            classes: vec![one],
        });
        let ways = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0].map(|step| bands(&values, step)).into_iter();
        let ways = ways.chain([1, 2, 4, 8].map(|n| greatest(&values, n)));
        let ways = ways.chain([2, 4, 8, 16].map(|n| pieces(&values, n)));
        for way in ways.filter_map(|groups| Way::of(&values, groups, most, all)) {
            if (way.error, way.size) < (best.error, best.size) {
                best = way;
            }
        }
        best.finish()
    }

    /// One class of ranks.
    #[must_use]
    pub fn even(ranks: RankList) -> Self {
        let classes = if ranks.is_empty() { Vec::new() } else { vec![Class { ranks, below: 0 }] };
        Self { classes }
    }

    /// Parts of a sum, greatest classes first; what they are together is the sum, if there is any rank.
    #[must_use]
    pub fn parts(&self, sum: u64) -> Vec<(u32, u64)> {
        let weight = |c: &Class| (-f64::from(c.below.min(LOWEST)) / STEPS).exp2();
        let all: f64 = self.classes.iter().map(|c| weight(c) * float(c.ranks.len())).sum();
        let (mut passed, mut given) = (0.0, 0);
        let mut parts: Vec<(u32, u64)> = Vec::new();
        for class in &self.classes {
            for rank in class.ranks.iter() {
                passed += weight(class);
                let upto = rounded(float(sum) * (passed / all)).clamp(given, sum);
                parts.push((rank, upto - given));
                given = upto;
            }
        }
        // What rounding has left.
        if let Some((_, last)) = parts.last_mut() {
            *last += sum - given;
        }
        parts
    }

    /// Rows that [`Spread::parts`] has.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.classes.iter().map(|c| c.ranks.len()).fold(0, u64::saturating_add)
    }

    /// All ranks that have a part.
    #[must_use]
    pub fn ranks(&self) -> RankList {
        let mut all = RankList::default();
        self.classes.iter().for_each(|c| all.extend(&c.ranks));
        all
    }
}

impl Rough {
    /// `most`: integers that the set of ranks may take; else it is that of all from the first to the last, which is stored as a range.
    fn of(members: &[(u32, f64)], most: usize, all: &RankList) -> Option<Self> {
        let (first, last) = (members.first()?.0, members.last()?.0);
        let exact: RankList = members.iter().map(|(rank, _)| *rank).collect();
        let sum: f64 = members.iter().map(|(_, v)| v).sum();
        let exactly = numbers(&exact);
        let (ranks, size) = if exactly <= most {
            (exact, exactly)
        } else {
            let range = Run { start: first.into(), step: 1, n: u64::from(last - first) + 1 };
            (all.between(first, last), numbers(&RankList::from_runs([range])?))
        };
        let mean = sum / float(ranks.len());
        Some(Self { ranks, mean, size })
    }
}

impl Way {
    /// `None` if it takes more integers than `most`.
    fn of(values: &[(u32, f64)], groups: Vec<Vec<(u32, f64)>>, most: usize, all: &RankList) -> Option<Self> {
        let n = groups.len();
        if n * 3 > most {
            return None;
        }
        let mut way = Self { classes: Vec::new(), error: 0.0, size: 0 };
        for members in groups {
            // What a class may take: half of what is there, so that one without order does not become a range needlessly.
            let class = Rough::of(&members, (most / 2).max(most.saturating_sub(4 * n)), all)?;
            way.size += class.size + 1;
            way.error += members.iter().map(|(_, v)| (v - class.mean).abs()).sum::<f64>();
            way.error += (float(class.ranks.len()) - float(members.len().to_u64())) * class.mean;
            way.classes.push(class);
        }
        debug_assert!(values.iter().all(|(r, _)| way.classes.iter().any(|c| c.ranks.contains(*r))));
        (way.size <= most).then_some(way)
    }

    fn finish(mut self) -> Spread {
        self.classes.sort_by(|a, b| b.mean.total_cmp(&a.mean));
        let greatest = self.classes.first().map_or(1.0, |c| c.mean);
        let class = |c: Rough| {
            let below = rounded((greatest / c.mean).log2() * STEPS);
            Class { ranks: c.ranks, below: saturate::<u16>(below).min(LOWEST) }
        };
        Spread { classes: self.classes.into_iter().map(class).collect() }
    }
}

/// Integers that a set takes: two or three a run, or a word for each six ranks from the first to the last.
fn numbers(ranks: &RankList) -> usize {
    let runs: usize = ranks.runs().iter().map(|r| 2 + usize::from(r.n > 1)).sum();
    let (first, last) = (ranks.lowest().unwrap_or(0), ranks.highest().unwrap_or(0));
    1 + runs.min(1 + ((last - first) / 6 + 1).to_usize())
}

/// Ranks whose values are no farther from each other than so many steps.
fn bands(values: &[(u32, f64)], step: f64) -> Vec<Vec<(u32, f64)>> {
    let mut all: BTreeMap<u64, Vec<(u32, f64)>> = BTreeMap::new();
    for (rank, v) in values {
        all.entry(rounded(v.log2() * STEPS / step)).or_default().push((*rank, *v));
    }
    all.into_values().collect()
}

/// The ranks with the greatest values, each by itself, and all others.
fn greatest(values: &[(u32, f64)], n: usize) -> Vec<Vec<(u32, f64)>> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut rest = sorted.split_off(n.min(sorted.len()));
    rest.sort_by_key(|(rank, _)| *rank);
    let alone = sorted.into_iter().map(|one| vec![one]);
    alone.chain(Some(rest).filter(|rest| !rest.is_empty())).collect()
}

/// Ranks one after the other, cut where that leaves the values least unlike, up to `n` pieces.
fn pieces(values: &[(u32, f64)], n: usize) -> Vec<Vec<(u32, f64)>> {
    let mut sums = vec![(0.0, 0.0)];
    for (_, v) in values {
        let (sum, squares) = sums.last().copied().unwrap_or_default();
        sums.push((sum + v, squares + v * v));
    }
    // Of the squares of what values are off the mean of a piece.
    let error = |from: usize, to: usize| {
        let (sum, squares) = (sums[to].0 - sums[from].0, sums[to].1 - sums[from].1);
        squares - sum * sum / float((to - from).to_u64())
    };
    let cut = |from: usize, to: usize| {
        let gain = |at: usize| error(from, to) - error(from, at) - error(at, to);
        (from + 1..to).map(|at| (gain(at), at)).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
    };
    let mut found = vec![(0, values.len(), cut(0, values.len()))];
    while found.len() < n {
        let gain = |p: &(usize, usize, Option<(f64, usize)>)| p.2.map_or(0.0, |(gain, _)| gain);
        let Some(most) = (0..found.len()).max_by(|a, b| gain(&found[*a]).total_cmp(&gain(&found[*b]))) else {
            break;
        };
        let (from, to, Some((_, at))) = found[most] else { break };
        found[most] = (from, at, cut(from, at));
        found.push((at, to, cut(at, to)));
    }
    found.into_iter().map(|(from, to, _)| values[from..to].to_vec()).collect()
}

fn float(n: u64) -> f64 {
    num::float(n.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parts by rank.
    fn parts(spread: &Spread, sum: u64) -> BTreeMap<u32, u64> {
        let mut all = BTreeMap::new();
        for (rank, part) in spread.parts(sum) {
            *all.entry(rank).or_default() += part;
        }
        all
    }

    fn sum(values: &[(u32, u64)]) -> u64 {
        values.iter().map(|(_, v)| v).sum()
    }

    proptest! {
        #[test]
        fn parts_add_up_and_few_are_right_to_4_5_percent(
            values in prop::collection::btree_map(0u32..1000, 100_000u64..1 << 40, 0..9),
            most in 36usize..99,
        ) {
            let values: Vec<(u32, u64)> = values.into_iter().collect();
            let spread = Spread::of(&values, most, &RankList::first(5000));
            let found = parts(&spread, sum(&values));
            prop_assert_eq!(found.values().sum::<u64>(), sum(&values));
            for (rank, v) in &values {
                let off = found.get(rank).map_or(*v, |part| part.abs_diff(*v));
                prop_assert!(off * 1000 <= v * 45 + 1000, "{} of {} is {:?} in {:?}", v, rank, found.get(rank), spread);
            }
        }

        #[test]
        fn any_values_take_no_more_than_is_said(
            values in prop::collection::btree_map(0u32..5000, 0u64..1 << 50, 0..200),
            most in 5usize..60,
        ) {
            let values: Vec<(u32, u64)> = values.into_iter().collect();
            let spread = Spread::of(&values, most, &RankList::first(5000));
            let size: usize = spread.classes.iter().map(|c| numbers(&c.ranks) + 1).sum();
            prop_assert!(size <= most, "{} {:?}", size, spread);
            prop_assert_eq!(parts(&spread, sum(&values)).values().sum::<u64>(), sum(&values));
            prop_assert!(values.iter().all(|(rank, v)| *v == 0 || spread.ranks().contains(*rank)));
        }

        #[test]
        fn of_ranks_that_are_missing_nothing_is_said(
            values in prop::collection::btree_map(0u32..500, prop::option::of(1u64..1 << 50), 1..200),
            most in 5usize..30,
        ) {
            let all: RankList = values.keys().copied().collect();
            let values: Vec<(u32, u64)> = values.into_iter().filter_map(|(rank, v)| Some((rank, v?))).collect();
            let spread = Spread::of(&values, most, &all);
            prop_assert!(spread.ranks().iter().all(|rank| all.contains(rank)), "{:?}", spread);
            prop_assert!(values.iter().all(|(rank, _)| spread.ranks().contains(*rank)));
        }

        #[test]
        fn any_spread_adds_up(
            classes in prop::collection::vec((prop::collection::btree_set(0u32..50, 1..9), 0u16..=u16::MAX), 1..6),
            sum: u64,
        ) {
            let class = |(ranks, below): (std::collections::BTreeSet<u32>, u16)| {
                Class { ranks: ranks.into_iter().collect(), below }
            };
            let spread = Spread { classes: classes.into_iter().map(class).collect() };
            let all: u128 = spread.parts(sum).iter().map(|(_, part)| u128::from(*part)).sum();
            prop_assert_eq!(all, u128::from(sum));
        }
    }

    #[test]
    fn one_rank_among_a_thousand_stands_out() {
        let mut state = 1u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            1000 + (state >> 40) % 9000
        };
        let values: Vec<(u32, u64)> =
            (0..1024).map(|r| (r, if r == 357 { 50_000_000 } else { noise() })).collect();
        let spread = Spread::of(&values, 12, &RankList::first(1024));
        let found = parts(&spread, sum(&values));
        assert!(found[&357].abs_diff(50_000_000) < 1_500_000, "{spread:?}");
        assert!(found.iter().filter(|(_, v)| **v > 1_000_000).count() == 1);
    }

    #[test]
    fn what_is_regular_is_kept_whatever_the_number_of_ranks() {
        let values: Vec<(u32, u64)> =
            (0..4096).map(|r| (r, if r % 8 == 0 { 8_000_000 } else { 1000 })).collect();
        let spread = Spread::of(&values, 32, &RankList::first(4096));
        assert_eq!(spread.classes.len(), 2);
        assert_eq!(spread.classes[0].ranks, (0..4096).step_by(8).collect());
    }
}
