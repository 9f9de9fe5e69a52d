//! Many exact times as version 1.7 has written them: gaps and durations in turn, each by where it lies in the distribution of its kind ([`tree`]), question by
//! question, and by how far it is from the least number there ([`offsets`]).
//!
//! What can be known of a time is where in its loop the program is. That shows in how long ago times were long, a computation's
//! or a wait's, and in the times just before. Two contexts, one of each, are mixed ([`super::mixing`]).

pub(super) mod offsets;
pub(super) mod past;
#[cfg(test)]
pub(super) mod samples;
pub(super) mod tree;

use st_model::num::Exact as _;
#[cfg(test)]
use st_model::num::narrow;

use super::bytes::{get_bytes, get_i64};
#[cfg(test)]
use super::bytes::{put_bytes, put_i64};
use super::error::{DecodeError, Field as _};
#[cfg(test)]
use super::mixing::Encoder;
use super::mixing::{Chance, Coder, Decoder, alone, mixed};
use super::times::hash;
#[cfg(test)]
use offsets::Put;
use offsets::{Get, Offsets};
use past::{CONTEXTS, Past};
use tree::{LEAF, Node, Tree};

/// A row has the chances of four questions that follow each other, by the answers to those before in the row, with a 1 in front.
const ROW: usize = 16;
/// Rows of questions whose contexts are mixed; what is asked after them is asked of numbers that are spread out.
const ROWS: usize = 2;
/// What weights begin with: a sum a little above 1.
const BEGIN: i64 = 40_000;

/// The numbers of events, of each as many as there are of the other, and at least one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Numbers {
    pub(super) gaps: Vec<i64>,
    pub(super) durations: Vec<i64>,
}

/// What both sides know beforehand of gaps and durations: their distributions, and from where on they are long.
struct Known {
    trees: [Tree; 2],
    long: [i64; 2],
}

impl Known {
    fn decode(src: &mut &[u8]) -> Result<Self, DecodeError> {
        let trees = [Tree::decode(src).field("gaps")?, Tree::decode(src).field("durations")?];
        Ok(Self { trees, long: [get_i64(src).field("long gap")?, get_i64(src).field("long duration")?] })
    }
}

/// The numbers compressed, as version 1.7 has, and how many bits were coded by their chances.
#[cfg(test)]
pub(super) fn compress(numbers: &Numbers) -> Option<(Vec<u8>, u64)> {
    let sorted = [&numbers.gaps, &numbers.durations].map(|numbers| {
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        sorted
    });
    let mut out: Vec<u8> = sorted.iter().flat_map(|sorted| tree::encode(sorted)).collect();
    sorted.iter().for_each(|sorted| put_i64(&mut out, tree::long(sorted)));
    let known = Known::decode(&mut &out[..]).ok()?;
    let mut model = Model::new(&known, narrow(numbers.gaps.len()));
    let (mut coder, mut offsets) = (Encoder::new(Vec::new()), Put::default());
    for (gap, duration) in numbers.gaps.iter().zip(&numbers.durations) {
        model.code(0, &mut coder, &mut offsets, *gap);
        model.code(1, &mut coder, &mut offsets, *duration);
    }
    let asked = coder.asked();
    put_bytes(&mut out, &coder.finish());
    out.extend(offsets.finish());
    Some((out, asked))
}

/// The numbers of so many events, at least one, and how many bits were coded by their chances. *Memory:* 16 bytes for each, as they are read.
pub(super) fn expand(mut src: &[u8], events: u32) -> Result<(Numbers, u64), DecodeError> {
    const BAD: DecodeError = DecodeError::Invalid("not as many numbers as are stated");
    let known = Known::decode(&mut src)?;
    let mut coder = Decoder::new(get_bytes(&mut src).field("places")?);
    let mut offsets = Get::new(src);
    let mut model = Model::new(&known, events);
    let mut out = Numbers::default();
    for _ in 0..events {
        out.gaps.push(model.code(0, &mut coder, &mut offsets, 0));
        out.durations.push(model.code(1, &mut coder, &mut offsets, 0));
        // What ends early would go on with zeros, for as many events as are stated.
        if coder.is_over() || offsets.is_over() {
            return Err(BAD);
        }
    }
    if coder.is_done() && offsets.is_done() { Ok((out, coder.asked())) } else { Err(BAD) }
}

/// The chances of four questions, where one line of a cache has them.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Row([Chance; ROW]);

/// What is known of numbers to come.
struct Model<'a> {
    known: &'a Known,
    rows: [Vec<Row>; CONTEXTS],
    /// By kind of number: of the first row and of the second, by the answers before.
    weights: [[[[i64; CONTEXTS]; ROW]; ROWS]; 2],
    /// By kind of number and node: the chances of what is asked after that.
    alone: [Vec<Chance>; 2],
    past: Past,
}

impl<'a> Model<'a> {
    fn new(known: &'a Known, events: u32) -> Self {
        Self {
            known,
            rows: std::array::from_fn(|_| vec![Row([Chance::default(); ROW]); past::rows(events)]),
            weights: [[[[BEGIN; CONTEXTS]; ROW]; ROWS]; 2],
            alone: known.trees.each_ref().map(|tree| vec![Chance::default(); tree.nodes.len()]),
            past: Past::default(),
        }
    }

    /// Codes a number of a kind: 0 for a gap, 1 for a duration. The number that was coded.
    #[inline]
    fn code<C: Coder, O: Offsets>(
        &mut self,
        kind: usize,
        coder: &mut C,
        offsets: &mut O,
        number: i64,
    ) -> i64 {
        let tree = &self.known.trees[kind];
        let contexts = self.past.contexts(kind);
        let mask = self.rows[0].len() - 1;
        let mut at = tree.root;
        for row in 0..ROWS {
            if at >= LEAF {
                break;
            }
            let by = if row == 0 { 0 } else { hash(at.to_u64(), 7) };
            let places = contexts.map(|context| ((context ^ by) >> 20).to_usize() & mask);
            let [first, second] = &mut self.rows;
            let rows = [&mut first[places[0]], &mut second[places[1]]];
            at = ask(&tree.nodes, at, coder, number, rows, &mut self.weights[kind][row]);
        }
        while at < LEAF {
            let node = &tree.nodes[at];
            let answer = alone(coder, number >= node.split, &mut self.alone[kind][at]);
            at = node.next[usize::from(answer)];
        }
        let leaf = &tree.leaves[at - LEAF];
        let offset = offsets.code(leaf.first.abs_diff(number), leaf.most);
        let number = leaf.first.wrapping_add_unsigned(offset);
        self.past.add(kind, at - LEAF, number >= self.known.long[kind]);
        number
    }
}

/// Asks the questions of a row from a node on: where they lead to. A function of its own, so that what is used has registers.
#[inline(never)]
fn ask<C: Coder>(
    nodes: &[Node],
    mut at: usize,
    coder: &mut C,
    number: i64,
    [first, second]: [&mut Row; CONTEXTS],
    weights: &mut [[i64; CONTEXTS]; ROW],
) -> usize {
    let mut own = coder.take();
    let mut before = 1;
    while at < LEAF && before < ROW {
        let node = &nodes[at];
        let chances = [&mut first.0[before], &mut second.0[before]];
        let answer = mixed(&mut own, number >= node.split, chances, &mut weights[before]);
        at = node.next[usize::from(answer)];
        before = 2 * before + usize::from(answer);
    }
    *coder = own;
    at
}

#[cfg(test)]
mod tests {
    use super::samples::{come_back, damaged, noisy, number};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(v in prop::collection::vec((number(), number()), 1..300), times in 1usize..20) {
            come_back(&v, times, compress, expand, &[0; 5])?;
        }

        #[test]
        fn damage_is_refused_or_read(
            v in prop::collection::vec((number(), number()), 1..300), at: prop::sample::Index, xor in 1u8..,
        ) {
            damaged(&v, at, xor, compress, expand)?;
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, events in 1u32..2_000) {
            let _ = expand(&bytes, events);
        }
    }

    /// A payload of so many events whose numbers are each as many questions away as can be, with next to no bytes.
    fn deep(events: u32) -> Vec<u8> {
        let mut out = Vec::new();
        // To the right all the way down: that is where zeros lead.
        for _ in 0..2 {
            for depth in (1..=31u8).chain([31]) {
                out.push(32 | depth);
                put_i64(&mut out, 0);
            }
        }
        put_i64(&mut out, 1);
        put_i64(&mut out, 1);
        let known = Known::decode(&mut &out[..]).unwrap();
        let zeros = vec![0; 1 << 20];
        let mut coder = Decoder::new(&zeros);
        let mut model = Model::new(&known, events);
        for _ in 0..events {
            (0..2).for_each(|kind| _ = model.code(kind, &mut coder, &mut Get::new(&[]), 0));
        }
        put_bytes(&mut out, &zeros[..coder.used(zeros.len())]);
        out
    }

    #[test]
    fn questions_are_counted() {
        let packed = deep(1 << 12);
        let (numbers, asked) = expand(&packed, 1 << 12).unwrap();
        assert_eq!((numbers.gaps.len(), asked), (1 << 12, 62 << 12));
        let (packed, written) = compress(&noisy(3_000, 10)).unwrap();
        assert_eq!(expand(&packed, 3_000).unwrap().1, written);
        // What is measured pays for it many times.
        assert!(written > 3_000 && written < 16 * packed.len().to_u64(), "{written} by {}", packed.len());
    }

    #[test]
    fn what_is_written_stays_the_same() {
        // Other bytes for the same numbers are another format.
        let packed = compress(&noisy(3_000, 10)).unwrap().0;
        assert_eq!((packed.len(), crc32c::crc32c(&packed)), (5_051, 0x4236_dc90));
    }
}
