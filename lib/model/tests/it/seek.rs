//! Places are found where a walk comes to them, and in long loops as fast as in short ones.

use proptest::prelude::*;
use st_model::columns::{Column, ColumnWriter};
use st_model::ints::Sealed;
use st_model::tree::{FlatTree, Item, Limits, Walk, WalkError};

/// Nodes by depth; a node with deeper ones after it is a body.
fn tree(depths: &[(usize, u32)]) -> FlatTree {
    let below = |i: usize| depths[i + 1..].iter().take_while(|(d, _)| *d > depths[i].0).count();
    let item = |i: usize| match below(i) {
        0 => Item::Leaf { sym: depths[i].1 },
        n => Item::Body { below: u32::try_from(n).unwrap() },
    };
    FlatTree::new((0..depths.len()).map(item).collect())
}

/// What a walk has: symbols in order, each with where it is in the loops around it.
type All = Vec<(u32, Vec<(u64, u64)>)>;

fn all(mut walk: Walk<'_>) -> All {
    let mut all = All::new();
    while let Some(sym) = walk.next_symbol().unwrap() {
        all.push((sym, walk.turns().collect()));
    }
    all
}

const WEIGHTS: [u64; 4] = [1, 0, 7, 3];

proptest! {
    #[test]
    fn a_place_is_where_a_walk_comes_to_it(
        nodes in proptest::collection::vec((0..4_usize, 0..4_u32, proptest::collection::vec(0..4_i64, 1..6)), 1..9),
        looks in prop_oneof![Just(0), Just(1 << 20)],
        ones: bool,
    ) {
        // No node is deeper than one below the one before it.
        let mut depth = 0;
        let depths: Vec<_> = nodes.iter().map(|(d, sym, _)| {
            let at = (*d).min(depth);
            depth = at + 1;
            (at, *sym)
        }).collect();
        let tree = tree(&depths);
        let counts: Vec<Sealed> = nodes.iter().map(|(_, _, c)| c.repeat(3).into_iter().collect()).collect();
        let cursors = || counts.iter().map(Sealed::cursor).collect::<Vec<_>>();
        let weights = if ones { [1; 4] } else { WEIGHTS };
        let walked = all(Walk::new(&tree, cursors()));
        let whole: u64 = walked.iter().map(|(sym, _)| weights[*sym as usize]).sum();
        for target in (0..whole + 2).step_by(1 + usize::try_from(whole).unwrap() / 40) {
            let found = Walk::seek(&tree, cursors(), &weights, target.into(), Limits { looks, runs: 1 << 20 }).unwrap();
            let mut sum = 0;
            let at = walked.iter().position(|(sym, _)| {
                sum += weights[*sym as usize];
                sum > target
            });
            prop_assert_eq!(found.is_some(), at.is_some());
            if let Some((found, at)) = found.zip(at) {
                prop_assert_eq!(found.index, u64::try_from(at).unwrap());
                prop_assert_eq!(found.before, u128::from(sum - weights[walked[at].0 as usize]));
                prop_assert_eq!(&all(found.walk)[..], &walked[at..]);
            }
        }
    }

    #[test]
    fn events_are_found_by_their_times(
        gaps in proptest::collection::vec((0..5_i64, 0..5_i64), 1..60),
        cut in 1..10_usize,
    ) {
        let (mut column, mut times, mut now) = (Column::default(), Vec::new(), 0);
        for part in gaps.chunks(cut) {
            let mut writer = ColumnWriter::resume(u64::try_from(times.len()).unwrap(), now);
            for (gap, took) in part {
                times.push((now + gap, now + gap + took));
                now += gap + took;
                prop_assert!(writer.push(now - took, now).is_none());
            }
            column.chunks.extend(writer.flush());
        }
        for t in -1..now + 2 {
            let at = times.iter().position(|(_, exit)| *exit > t);
            let expected = at.map(|at| (u64::try_from(at).unwrap(), times[at]));
            prop_assert_eq!(column.find(t), expected);
        }
        for from in 0..times.len() + 1 {
            let rest: Vec<_> = column.times_from(u64::try_from(from).unwrap()).collect();
            prop_assert_eq!(&rest[..], &times[from..]);
        }
    }
}

#[test]
fn a_long_loop_is_searched_as_fast_as_a_short_one() {
    // Two calls, one of them in turns of three numbers, in a loop in a loop that goes round 10^12 times in all.
    let tree = tree(&[(0, 0), (1, 0), (2, 0), (2, 1), (1, 2)]);
    let pattern: Sealed = [1, 2, 3].repeat(20).into_iter().collect();
    let [long, one] = [1_000_000, 1].map(Sealed::from_constant);
    let counts = [&long, &long, &pattern, &one, &one];
    let target = 2_500_000_000_007_u128;
    let cursors = counts.iter().map(|c| c.cursor()).collect();
    // Looks that do not suffice for a thousandth of either loop.
    let found =
        Walk::seek(&tree, cursors, &[1; 3], target, Limits { looks: 20_000, runs: 0 }).unwrap().unwrap();
    assert_eq!(u128::from(found.index), target);
    let cursors = counts.iter().map(|c| c.cursor()).collect();
    assert_eq!(
        Walk::seek(&tree, cursors, &[1; 3], target, Limits { looks: 10, runs: 99 }).unwrap_err(),
        WalkError::Long { most: 99 }
    );
    let turns: Vec<_> = found.walk.turns().map(|(turn, _)| turn).collect();
    // A turn of the inner loop is three calls in the mean; of the outer one, 3,000,001 but for where the pattern begins.
    assert!(turns[0].abs_diff(2_500_000_000_007 / 3_000_001) <= 1, "{turns:?}");
}
