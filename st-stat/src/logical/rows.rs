//! Which ranks share a row.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A rank's thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Member {
    pub(super) rank: u32,
    /// What it does, by number of a shape.
    pub(super) shape: usize,
    /// Of ranks that do the same those with equal numbers take equally long in everything.
    pub(super) alike: usize,
    /// How long it computes, ns.
    pub(super) computation: u128,
    /// Where it comes from: number of a section's thread, and of the rank in that.
    pub(super) of: (usize, usize),
}

/// Of rows that share a shape, the rank that computes most and the one that computes least have their own from so many on.
const APART: usize = 4;

/// Rows of ranks that do the same: all that are alike share one, as far as there are so many rows; else neighbours do, and those that
/// compute most or least have one of their own. If there are fewer rows than shapes, those of fewest ranks are in no row: they come second.
/// Each member is there once.
pub(super) fn rows(members: Vec<Member>, most: usize) -> (Vec<Vec<Member>>, Vec<Member>) {
    let mut shapes: BTreeMap<usize, Vec<Member>> = BTreeMap::new();
    let all = members.len();
    for member in members {
        shapes.entry(member.shape).or_default().push(member);
    }
    let alike = |of: &Vec<Member>| of.iter().map(|member| member.alike).collect::<BTreeSet<_>>().len();
    let mut shapes: Vec<Vec<Member>> = shapes.into_values().collect();
    shapes.iter_mut().for_each(|of| of.sort_by_key(|member| member.rank));
    shapes.sort_by_key(|of| (Reverse(of.len()), of.first().map(|member| member.rank)));
    let mut others = Vec::new();
    if shapes.len() > most {
        // One row is for the others.
        others = shapes.split_off(most.saturating_sub(1)).into_iter().flatten().collect();
    }
    let has_others = usize::from(!others.is_empty());
    let enough = shapes.iter().map(alike).sum::<usize>() + has_others <= most;
    let spare = most.saturating_sub(shapes.len() + has_others);
    let mut rows: Vec<Vec<Member>> = Vec::new();
    for of in shapes {
        let quota = 1 + spare * of.len() / all.max(1);
        let quota = if enough { usize::MAX } else { quota };
        rows.extend(split(of, quota, alike));
    }
    rows.sort_by_key(|of| of.first().map(|member| (member.rank, member.of)));
    (rows, others)
}

/// Ranks that do the same, in so many rows at most.
fn split(mut of: Vec<Member>, most: usize, alike: impl Fn(&Vec<Member>) -> usize) -> Vec<Vec<Member>> {
    if alike(&of) <= most {
        let mut rows: BTreeMap<usize, Vec<Member>> = BTreeMap::new();
        of.into_iter().for_each(|member| rows.entry(member.alike).or_default().push(member));
        return rows.into_values().collect();
    }
    let mut rows = Vec::new();
    if most >= APART {
        let by = |at: &usize| of.get(*at).map(|member| (member.computation, Reverse(member.rank)));
        let ends = [(0..of.len()).max_by_key(by), (0..of.len()).min_by_key(by)];
        // The later one goes first: the other stays where it is.
        let ends: BTreeSet<usize> = ends.into_iter().flatten().collect();
        rows.extend(ends.into_iter().rev().map(|at| vec![of.remove(at)]));
    }
    let left = most.saturating_sub(rows.len()).max(1);
    let each = of.len().div_ceil(left).max(1);
    rows.extend(of.chunks(each).map(<[Member]>::to_vec));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};

    #[test]
    fn each_rank_is_in_one_row_and_rows_are_of_ranks_that_do_the_same() {
        let mut random = rand_pcg::Pcg64::seed_from_u64(7);
        for _ in 0..300 {
            let (shapes, alike) = (random.random_range(1..9), random.random_range(1..40));
            let member = |rank: u32| Member {
                rank,
                shape: random.random_range(0..shapes),
                alike: random.random_range(0..alike),
                computation: random.random_range(0..50),
                of: (0, rank as usize),
            };
            let members: Vec<Member> = (0..200).map(member).collect();
            let most = random.random_range(1..30);
            let (rows, others) = rows(members.clone(), most);
            assert!(rows.len() + usize::from(!others.is_empty()) <= most);
            let mut ranks: Vec<u32> =
                rows.iter().flatten().chain(&others).map(|member| member.rank).collect();
            ranks.sort_unstable();
            assert_eq!(ranks, (0..200).collect::<Vec<_>>());
            for row in &rows {
                assert!(!row.is_empty() && row.iter().all(|member| member.shape == row[0].shape));
            }
        }
    }

    #[test]
    fn who_computes_most_or_least_of_many_is_not_hidden() {
        let member = |rank: u32| {
            let computation = [100, 300, 50][usize::from(rank == 17) + 2 * usize::from(rank == 40)];
            Member { rank, shape: 0, alike: rank as usize, computation, of: (0, rank as usize) }
        };
        let (rows, others) = rows((0..64).map(member).collect(), 6);
        assert!(others.is_empty() && rows.len() <= 6);
        for rank in [17, 40] {
            assert!(rows.iter().any(|row| row.len() == 1 && row[0].rank == rank), "{rows:?}");
        }
        // Those that are alike share a row, wherever they are.
        let (rows, _) =
            super::rows((0..64).map(|r| Member { alike: 1 + r as usize % 2, ..member(r) }).collect(), 6);
        assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [32, 32]);
    }
}
