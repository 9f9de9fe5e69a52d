//! Alignment of two lists of tree nodes by their heaviest common subsequence.
//!
//! Items match if they are the same event, or bodies with at least half of the smaller one's leaves in common; a match
//! weighs the leaves it shares, so that a long body counts for more than an event. Among the heaviest alignments the
//! canonical one is taken: greedy from the left, matching whenever that is optimal, else skipping the master's item when
//! that is not worse (Wu, Mueller 2013, figure 5 follows from this rule).

use std::cmp::Reverse;
use std::ops::Range;

/// Beyond this many cells the table is not built: lists are cut in two where an optimal alignment passes (Hirschberg 1975),
/// until the table of each part is small. Up to it the alignment is the canonical one, beyond it one of the same weight.
const CELLS: usize = 16 << 20;

/// Beyond this many pairs of items nothing but what lists have in common at both ends is aligned: their number is the product of two
/// lengths, and these follow the program. What stays apart is left to the other layout ([`super::lists`]).
const MOST: usize = 128 << 20;

/// Aligns lists of `n` and `m` items. `weight(i, j)` is what matching item i with item j is worth, 0 if they cannot
/// match; `same(i, j)` says that they are equal outright. Returns the matched pairs, ascending in both.
///
/// *Cost:* after stripping the common prefix and suffix O(n·m) time, and memory for the table or O(n + m) beyond it; O(n + m)
/// where n·m is beyond a bound (some seconds).
pub fn align(
    n: usize,
    m: usize,
    weight: impl FnMut(usize, usize) -> u32,
    same: impl FnMut(usize, usize) -> bool,
) -> Vec<(usize, usize)> {
    within(CELLS, n, m, weight, same)
}

fn within(
    cells: usize,
    n: usize,
    m: usize,
    mut weight: impl FnMut(usize, usize) -> u32,
    mut same: impl FnMut(usize, usize) -> bool,
) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut start = 0;
    while start < n && start < m && same(start, start) {
        pairs.push((start, start));
        start += 1;
    }
    let mut tail = 0;
    while tail < n - start && tail < m - start && same(n - 1 - tail, m - 1 - tail) {
        tail += 1;
    }
    if (n - tail - start).saturating_mul(m - tail - start) <= MOST {
        parts(cells, start..n - tail, start..m - tail, &mut weight, &mut pairs);
    }
    pairs.extend((0..tail).rev().map(|k| (n - 1 - k, m - 1 - k)));
    pairs
}

/// Aligns ranges of both lists part by part, each by its table.
fn parts(
    cells: usize,
    a: Range<usize>,
    b: Range<usize>,
    weight: &mut impl FnMut(usize, usize) -> u32,
    pairs: &mut Vec<(usize, usize)>,
) {
    if a.len() < 2 || a.len().saturating_mul(b.len()) <= cells {
        return table(a, b, weight, pairs);
    }
    let half = a.start + a.len() / 2;
    let upper = last_row(a.start..half, b.clone(), weight);
    let lower = first_row(half..a.end, b.clone(), weight);
    let sums = upper.iter().zip(&lower).map(|(x, y)| x.saturating_add(*y));
    // The leftmost of the best.
    let best = sums.enumerate().min_by_key(|(_, sum)| Reverse(*sum)).map_or(0, |(at, _)| at);
    parts(cells, a.start..half, b.start..b.start + best, weight, pairs);
    parts(cells, half..a.end, b.start + best..b.end, weight, pairs);
}

/// Weight of the best alignment of all of `a` with each beginning of `b`.
fn last_row(a: Range<usize>, b: Range<usize>, weight: &mut impl FnMut(usize, usize) -> u32) -> Vec<u32> {
    let mut row = vec![0u32; b.len() + 1];
    for i in a {
        let mut diagonal = 0;
        for (k, j) in b.clone().enumerate() {
            let w = weight(i, j);
            let take = if w > 0 { u32::saturating_add(diagonal, w) } else { 0 };
            diagonal = row[k + 1];
            row[k + 1] = row[k + 1].max(row[k]).max(take);
        }
    }
    row
}

/// Weight of the best alignment of all of `a` with each rest of `b`.
fn first_row(a: Range<usize>, b: Range<usize>, weight: &mut impl FnMut(usize, usize) -> u32) -> Vec<u32> {
    let mut row = vec![0u32; b.len() + 1];
    for i in a.rev() {
        let mut diagonal = 0;
        for (k, j) in b.clone().enumerate().rev() {
            let w = weight(i, j);
            let take = if w > 0 { u32::saturating_add(diagonal, w) } else { 0 };
            diagonal = row[k];
            row[k] = row[k].max(row[k + 1]).max(take);
        }
    }
    row
}

/// Suffix table over two ranges, then greedy from the left.
fn table(
    a: Range<usize>,
    b: Range<usize>,
    weight: &mut impl FnMut(usize, usize) -> u32,
    pairs: &mut Vec<(usize, usize)>,
) {
    let (n, m) = (a.len(), b.len());
    if n == 0 || m == 0 {
        return;
    }
    let width = m + 1;
    let mut weights = vec![0u32; n * m];
    let mut best = vec![0u32; (n + 1) * width];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            let w = weight(a.start + i, b.start + j);
            weights[i * m + j] = w;
            let skip = best[(i + 1) * width + j].max(best[i * width + j + 1]);
            let take = if w > 0 { best[(i + 1) * width + j + 1].saturating_add(w) } else { 0 };
            best[i * width + j] = skip.max(take);
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < n && j < m {
        let here = best[i * width + j];
        let w = weights[i * m + j];
        if w > 0 && best[(i + 1) * width + j + 1].saturating_add(w) == here {
            pairs.push((a.start + i, b.start + j));
            i += 1;
            j += 1;
        } else if best[(i + 1) * width + j] == here {
            i += 1;
        } else {
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(a: &[u8], b: &[u8]) -> Vec<(usize, usize)> {
        align(a.len(), b.len(), |i, j| u32::from(a[i] == b[j]), |i, j| a[i] == b[j])
    }

    fn plain_length(a: &[u8], b: &[u8]) -> usize {
        let mut t = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..a.len() {
            for j in 0..b.len() {
                t[i + 1][j + 1] = if a[i] == b[j] { t[i][j] + 1 } else { t[i][j + 1].max(t[i + 1][j]) };
            }
        }
        t[a.len()][b.len()]
    }

    proptest! {
        #[test]
        fn length_is_that_of_the_plain_table(a in proptest::collection::vec(0u8..4, 0..24), b in proptest::collection::vec(0u8..4, 0..24)) {
            let p = run(&a, &b);
            prop_assert_eq!(p.len(), plain_length(&a, &b));
            prop_assert!(p.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
            prop_assert!(p.iter().all(|&(i, j)| a[i] == b[j]));
        }
    }

    proptest! {
        #[test]
        fn lists_of_any_length_have_the_plain_tables_length(
            a in proptest::collection::vec(0u8..6, 0..120),
            b in proptest::collection::vec(0u8..6, 0..120),
            cells in 1usize..200,
        ) {
            let p = within(cells, a.len(), b.len(), |i, j| u32::from(a[i] == b[j]), |i, j| a[i] == b[j]);
            prop_assert_eq!(p.len(), plain_length(&a, &b));
            prop_assert!(p.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
            prop_assert!(p.iter().all(|&(i, j)| a[i] == b[j]));
        }

        #[test]
        fn weights_add_up_to_as_much_in_parts(
            weights in proptest::collection::vec(proptest::collection::vec(0u32..4, 30), 30),
            cells in 1usize..100,
        ) {
            let total = |cells| -> u32 {
                let pairs = within(cells, 30, 30, |i, j| weights[i][j], |_, _| false);
                pairs.into_iter().map(|(i, j)| weights[i][j]).sum()
            };
            prop_assert_eq!(total(cells), total(CELLS));
        }
    }

    /// Quadratic time would be hours.
    #[test]
    fn very_long_lists_keep_their_ends() {
        let n = 1_000_000;
        let same = |i: usize, j: usize| i == j && !(10..n - 20).contains(&i);
        let p = align(n, n, |_, _| panic!("the middle is not looked at"), same);
        assert_eq!(p.len(), 30);
        assert!(p.iter().all(|(i, j)| i == j));
    }

    #[test]
    fn figure_5_matches_the_first_pair() {
        // Wu, Mueller 2013, figure 5: rank 0 is Isend Irecv Isend Irecv Waitall, rank 1 Isend Irecv Waitall.
        assert_eq!(run(&[1, 2, 1, 2, 3], &[1, 2, 3]), [(0, 0), (1, 1), (4, 2)]);
    }
}
