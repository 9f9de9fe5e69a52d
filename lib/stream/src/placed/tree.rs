//! Where in their distribution numbers lie: a tree of comparisons, whose leaves are ranges of numbers.
//!
//! Clocks tick in steps, so that of most times there are few different ones: a number that is frequent has a range of its own,
//! others share one. What the tree asks first halves the numbers, so that what is frequent takes few questions.

use st_model::num::{Exact, narrow};

use super::super::bytes::{get_i64, get_u8, get_u64, put_i64, put_u64};
use super::super::error::{DecodeError, Field as _};

/// Questions from the root to a leaf at most.
pub(in super::super) const DEEPEST: u8 = 31;
/// A tree has at most so many leaves.
const MOST_LEAVES: usize = 1 << 12;
/// Places from here on are leaves.
pub(in super::super) const LEAF: usize = 1 << 16;
/// A leaf of one number has this beside its depth.
const ONE: u8 = 32;
/// Fewer numbers than these are not told apart.
const FEWEST: u64 = 24;
/// What a leaf costs, in 256ths of a bit: its bytes, and what is learned anew for it.
const COST: u64 = 60 << 8;

/// A range of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Leaf {
    pub(in super::super) first: i64,
    /// The last one less the first.
    pub(in super::super) most: u64,
}

impl Leaf {
    fn last(self) -> i64 {
        self.first.wrapping_add_unsigned(self.most)
    }
}

/// A question, and what comes after it: a node, or a leaf from [`LEAF`] on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Node {
    /// The least number that is on the second side.
    pub(in super::super) split: i64,
    pub(in super::super) next: [usize; 2],
}

/// A tree of a distribution.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in super::super) struct Tree {
    pub(in super::super) root: usize,
    /// Each before what is below it, the first side before the second.
    pub(in super::super) nodes: Vec<Node>,
    pub(in super::super) leaves: Vec<Leaf>,
}

impl Tree {
    /// Reads what [`encode`] has written.
    pub(in super::super) fn decode(src: &mut &[u8]) -> Result<Self, DecodeError> {
        let mut tree = Self::default();
        tree.root = tree.side(src, 0)?;
        Ok(tree)
    }

    /// What lies below a place of some depth.
    fn side(&mut self, src: &mut &[u8], depth: u8) -> Result<usize, DecodeError> {
        let next = *src.first().ok_or(DecodeError::End).field("leaf")?;
        let of = next & DEEPEST;
        if of < depth || next > ONE | DEEPEST || self.leaves.len() == MOST_LEAVES {
            return Err(DecodeError::Integer).field("leaf");
        }
        if of == depth {
            return self.leaf(src);
        }
        let node = self.nodes.len();
        self.nodes.push(Node { split: 0, next: [0; 2] });
        let first = self.side(src, depth + 1)?;
        let right = self.leaves.len();
        let second = self.side(src, depth + 1)?;
        self.nodes[node] = Node { split: self.leaves[right].first, next: [first, second] };
        Ok(node)
    }

    fn leaf(&mut self, src: &mut &[u8]) -> Result<usize, DecodeError> {
        let one = get_u8(src)? & ONE != 0;
        let first = match self.leaves.last() {
            None => get_i64(src).field("first")?,
            Some(before) => {
                let distance = get_u64(src).field("first")?;
                let least = before.last().checked_add(1);
                least
                    .and_then(|n| n.checked_add_unsigned(distance))
                    .ok_or(DecodeError::Integer)
                    .field("first")?
            }
        };
        let most = if one { 0 } else { get_u64(src).field("last")? };
        first.checked_add_unsigned(most).ok_or(DecodeError::Integer).field("last")?;
        self.leaves.push(Leaf { first, most });
        Ok(LEAF + self.leaves.len() - 1)
    }
}

/// A tree for these numbers, which are in ascending order and at least one: its leaves in order.
pub(in super::super) fn encode(sorted: &[i64]) -> Vec<u8> {
    let mut fewest = FEWEST;
    let distinct = Distinct::of(sorted);
    let leaves = loop {
        let mut leaves = Vec::new();
        distinct.leaves(Part { from: 0, to: distinct.numbers.len() }, 0, fewest, &mut leaves);
        if leaves.len() <= MOST_LEAVES {
            break leaves;
        }
        fewest *= 2;
    };
    let mut out = Vec::new();
    let mut before: Option<Leaf> = None;
    for (depth, leaf) in leaves {
        out.push(depth | if leaf.most == 0 { ONE } else { 0 });
        match before {
            None => put_i64(&mut out, leaf.first),
            Some(before) => put_u64(&mut out, before.last().abs_diff(leaf.first) - 1),
        }
        if leaf.most > 0 {
            put_u64(&mut out, leaf.most);
        }
        before = Some(leaf);
    }
    out
}

/// Different numbers, and how many numbers there are before each of them, and in all.
struct Distinct {
    numbers: Vec<i64>,
    before: Vec<u64>,
}

/// Some of them that follow each other.
#[derive(Clone, Copy)]
struct Part {
    from: usize,
    to: usize,
}

impl Distinct {
    fn of(sorted: &[i64]) -> Self {
        let (mut numbers, mut before) = (Vec::new(), Vec::new());
        for (number, at) in sorted.iter().zip(0u64..) {
            if numbers.last() != Some(number) {
                numbers.push(*number);
                before.push(at);
            }
        }
        before.push(sorted.len().to_u64());
        Self { numbers, before }
    }

    fn count(&self, part: Part) -> u64 {
        self.before[part.to] - self.before[part.from]
    }

    /// Leaves of a part, with their depths, and what they cost: as few as are worth it.
    fn leaves(&self, part: Part, depth: u8, fewest: u64, out: &mut Vec<(u8, Leaf)>) -> u64 {
        let first = self.numbers[part.from];
        let leaf = Leaf { first, most: self.numbers[part.to - 1].abs_diff(first) };
        let count = self.count(part);
        let alone = count * log2(leaf.most.saturating_add(1)) + COST;
        let from = out.len();
        if leaf.most > 0 && depth < DEEPEST && count >= fewest {
            let middle = self.middle(part);
            let sides = [Part { to: middle, ..part }, Part { from: middle, ..part }];
            let counts = sides.map(|side| self.count(side));
            let asked = count * log2(count) - counts.map(|n| n * log2(n)).iter().sum::<u64>();
            let cost =
                sides.map(|side| self.leaves(side, depth + 1, fewest, out)).iter().sum::<u64>() + asked;
            if cost < alone {
                return cost;
            }
        }
        out.truncate(from);
        out.push((depth, leaf));
        alone
    }

    /// Where a part of more than one number is halved best.
    fn middle(&self, part: Part) -> usize {
        let half = self.before[part.from] + self.count(part) / 2;
        let above = part.from + self.before[part.from..part.to].partition_point(|n| *n <= half);
        let nearer = half.abs_diff(self.before[above - 1]) < half.abs_diff(self.before[above]);
        (above - usize::from(nearer)).clamp(part.from + 1, part.to - 1)
    }
}

/// The binary logarithm, in 256ths, rounded down: in integers, so that all machines write the same.
fn log2(n: u64) -> u64 {
    let whole = n.ilog2();
    // From 1 up to 2, in parts of 2^31.
    let mut rest = n << (63 - whole) >> 32;
    let mut out = whole.to_u64();
    for _ in 0..8 {
        rest = (rest * rest) >> 31;
        let bit = rest >> 32;
        rest >>= bit;
        out = out << 1 | bit;
    }
    out
}

/// From here on numbers are long: where the distances between them are widest in proportion, of the 64ths of the upper half.
pub(in super::super) fn long(sorted: &[i64]) -> i64 {
    let at = |i: usize| i128::from(sorted[i * (sorted.len() - 1) / 64]).max(1);
    let mut widest = [1, 1, i128::from(i64::MAX)];
    for i in 32..63 {
        let (low, high) = (at(i), at(i + 1));
        if high * widest[0] > widest[1] * low {
            widest = [low, high, high];
        }
    }
    narrow(widest[2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made(numbers: &[i64]) -> Tree {
        let bytes = encode(numbers);
        let mut src = &bytes[..];
        let tree = Tree::decode(&mut src).unwrap();
        assert!(src.is_empty());
        tree
    }

    /// The leaf that questions lead to.
    fn find(tree: &Tree, number: i64) -> Leaf {
        let mut at = tree.root;
        while at < LEAF {
            let node = tree.nodes[at];
            at = node.next[usize::from(number >= node.split)];
        }
        tree.leaves[at - LEAF]
    }

    proptest! {
        #[test]
        fn every_number_is_in_its_leaf(
            few in prop::collection::vec(prop_oneof![0i64..9, 90i64..95, any::<i64>()], 1..40), times in 1usize..60,
        ) {
            let mut numbers: Vec<i64> = few.iter().copied().cycle().take(few.len() * times).collect();
            numbers.sort_unstable();
            let tree = made(&numbers);
            for number in &few {
                let leaf = find(&tree, *number);
                prop_assert!((leaf.first..=leaf.last()).contains(number));
            }
        }

        #[test]
        fn any_bytes_are_a_tree_or_none(bytes: Vec<u8>) {
            if let Ok(tree) = Tree::decode(&mut &bytes[..]) {
                prop_assert_eq!(tree.nodes.len() + 1, tree.leaves.len());
                prop_assert!(tree.leaves.is_sorted_by(|a, b| a.last() < b.first));
            }
        }
    }

    #[test]
    fn frequent_numbers_are_leaves_near_the_root() {
        let mut numbers: Vec<i64> = [vec![40; 9_000], vec![50; 5_000], vec![6_960; 3_000]].concat();
        numbers.extend(10_000..10_600);
        let tree = made(&numbers);
        assert_eq!(&tree.leaves[..3], [40, 50, 6_960].map(|first| Leaf { first, most: 0 }));
        assert_eq!(tree.nodes[tree.root].split, 50);
        // What is spread evenly is not worth telling apart.
        assert_eq!(tree.leaves[3..], [Leaf { first: 10_000, most: 599 }]);
    }

    #[test]
    fn trees_have_no_more_leaves_than_are_read() {
        // As many groups as there may be leaves twice.
        let numbers: Vec<i64> =
            (0..2 * MOST_LEAVES).flat_map(|i| [i64::try_from(i << 24).unwrap(); 30]).collect();
        assert!(made(&numbers).leaves.len() <= MOST_LEAVES);
        let endless = vec![DEEPEST; 1 << 20];
        assert!(Tree::decode(&mut &endless[..]).is_err());
    }

    #[test]
    fn logarithms_are_right() {
        for n in [1u64, 2, 3, 5, 100, 1 << 40, u64::MAX] {
            let whole = st_model::num::float(n.into()).log2() * 256.0;
            let off = st_model::num::float(log2(n).into()) - whole;
            assert!((-1.01..=0.01).contains(&off), "{n}: {off}");
        }
    }

    #[test]
    fn long_numbers_are_those_beyond_the_widest_gap() {
        let numbers: Vec<i64> = [vec![40; 400], vec![50; 400], vec![7_000; 80], vec![8_000; 20]].concat();
        assert_eq!(long(&numbers), 7_000);
        assert_eq!(long(&[5]), i64::MAX);
        assert_eq!(long(&[i64::MIN, i64::MAX]), i64::MAX);
    }
}
