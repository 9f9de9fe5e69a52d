//! Many exact times: gaps and durations in turn, each by where it lies in the distribution of its kind, one of up to sixteen ways at
//! a time ([`wide`]), and by how far it is from the least number there.
//!
//! As [`super::placed`] before it, which asked one question at a time: four of these take as long as sixteen ways. Contexts are the same
//! two. Only where numbers begin are they worth their time, and the memory that caches hold: chances further on are learned by
//! place alone.

mod chances;
mod wide;

use st_model::num::{Exact as _, narrow};

use super::bytes::{get_bytes, get_i64, put_bytes, put_i64};
use super::error::{DecodeError, Field as _};
use super::placed::Numbers;
use super::placed::offsets::{Get, Offsets, Put};
use super::placed::past::{self, CONTEXTS, Past};
use super::placed::tree::{self, LEAF, Tree};
use chances::{Coder, Decoder, EMPTY, Encoder, HALF, Row, Weights, alone, mixed};
use wide::Wide;

/// Bits that a way counts for among those that are coded by their chances: it takes as long.
const ASKED_WAY: u64 = 4;

/// What both sides know beforehand of gaps and durations: their distributions, and from where on they are long.
struct Known {
    wide: [Wide; 2],
    long: [i64; 2],
}

impl Known {
    fn decode(src: &mut &[u8]) -> Result<Self, DecodeError> {
        let trees = [Tree::decode(src).field("gaps")?, Tree::decode(src).field("durations")?];
        let long = [get_i64(src).field("long gap")?, get_i64(src).field("long duration")?];
        Ok(Self { wide: trees.map(Wide::new), long })
    }
}

/// The numbers compressed, and how many bits were coded by their chances, or took as long.
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
    let (mut coder, mut offsets) = (Encoder::default(), Put::default());
    for (gap, duration) in numbers.gaps.iter().zip(&numbers.durations) {
        model.code(0, &mut coder, &mut offsets, *gap);
        model.code(1, &mut coder, &mut offsets, *duration);
    }
    put_bytes(&mut out, &coder.finish());
    out.extend(offsets.finish());
    Some((out, model.asked))
}

/// The numbers of so many events, at least one, and how many bits were coded by their chances, or took as long. *Memory:* 16 bytes for
/// each, as they are read.
pub(super) fn expand(mut src: &[u8], events: u32) -> Result<(Numbers, u64), DecodeError> {
    const BAD: DecodeError = DecodeError::Invalid("not as many numbers as are stated");
    let known = Known::decode(&mut src)?;
    let mut coder = Decoder::new(get_bytes(&mut src).field("ways")?).ok_or(DecodeError::End).field("ways")?;
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
    if coder.is_done() && offsets.is_done() { Ok((out, model.asked)) } else { Err(BAD) }
}

/// What is known of numbers to come.
struct Model<'a> {
    known: &'a Known,
    /// By context: chances where numbers begin.
    rows: [Vec<Row>; CONTEXTS],
    weights: [Weights; 2],
    /// By kind of number and place: chances further on.
    alone: [Vec<Row>; 2],
    past: Past,
    asked: u64,
}

impl<'a> Model<'a> {
    fn new(known: &'a Known, events: u32) -> Self {
        let alone = |wide: &Wide| wide.places.iter().map(|place| place.begin).collect();
        Self {
            known,
            rows: std::array::from_fn(|_| vec![EMPTY; past::rows(events)]),
            weights: [[[HALF; 8]; 8]; 2],
            alone: known.wide.each_ref().map(alone),
            past: Past::default(),
            asked: 0,
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
        let wide = &self.known.wide[kind];
        let mut at = LEAF;
        if let Some(place) = wide.places.first() {
            let mask = self.rows[0].len() - 1;
            let rows = self.past.contexts(kind).map(|context| (context >> 20).to_usize() & mask);
            let [first, second] = &mut self.rows;
            let rows = [&mut first[rows[0]], &mut second[rows[1]]];
            let way = mixed(coder, || place.way(number), &place.begin, rows, &mut self.weights[kind]);
            at = place.ways[way].to_usize();
            self.asked += ASKED_WAY;
        }
        while at < LEAF {
            let place = &wide.places[at];
            let way = alone(coder, || place.way(number), &mut self.alone[kind][at]);
            at = place.ways[way].to_usize();
            self.asked += ASKED_WAY;
        }
        let leaf = &wide.leaves[at - LEAF];
        let offset = offsets.code(leaf.first.abs_diff(number), leaf.most);
        let number = leaf.first.wrapping_add_unsigned(offset);
        self.past.add(kind, at - LEAF, number >= self.known.long[kind]);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::super::placed::samples::{come_back, damaged, noisy, number, numbers};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(v in prop::collection::vec((number(), number()), 1..300), times in 1usize..20) {
            come_back(&v, times, compress, expand, &[0])?;
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
            // With trees that make sense, whatever state it begins with.
            let packed = compress(&noisy(300, 10)).unwrap().0;
            let mut rest = &packed[..];
            Known::decode(&mut rest).unwrap();
            let mut other = packed[..packed.len() - rest.len()].to_vec();
            put_bytes(&mut other, &bytes);
            other.extend(&bytes);
            let _ = expand(&other, events);
        }
    }

    #[test]
    fn times_take_less_than_by_lzma() {
        for tick in [1, 10] {
            let all = noisy(60_000, tick);
            let packed = compress(&all).unwrap().0;
            let column = |numbers: &[i64]| {
                numbers.iter().flat_map(|n| narrow::<u32>(*n).to_le_bytes()).collect::<Vec<u8>>()
            };
            let other = [column(&all.gaps), column(&all.durations)].concat();
            #[cfg(feature = "lzma")]
            let other = super::super::lzma::compress(&other, 19).unwrap();
            assert!(10 * packed.len() < 9 * other.len(), "{} of {}", packed.len(), other.len());
        }
    }

    #[test]
    fn times_take_hardly_more_than_by_single_questions() {
        for tick in [1, 10, 100] {
            let all = noisy(100_000, tick);
            let (packed, before) =
                (compress(&all).unwrap().0, super::super::placed::compress(&all).unwrap().0);
            assert!(100 * packed.len() < 103 * before.len(), "{} of {}", packed.len(), before.len());
        }
    }

    #[test]
    fn ways_are_counted() {
        let (packed, written) = compress(&noisy(3_000, 10)).unwrap();
        assert_eq!(expand(&packed, 3_000).unwrap().1, written);
        // What is measured pays for it many times.
        assert!(written > 3_000 && written < 16 * packed.len().to_u64(), "{written} by {}", packed.len());
        // No number has more ways to it than eight: each is past four levels at least, but where leaves are.
        let mut deep = Vec::new();
        for _ in 0..2 {
            for depth in (1..=31u8).chain([31]) {
                deep.push(32 | depth);
                put_i64(&mut deep, 0);
            }
        }
        deep.extend([2, 2]);
        let known = Known::decode(&mut &deep[..]).unwrap();
        let zeros = vec![0; 1 << 20];
        let (mut coder, mut model) = (Decoder::new(&zeros).unwrap(), Model::new(&known, 1 << 12));
        for _ in 0..1 << 12 {
            (0..2).for_each(|kind| _ = model.code(kind, &mut coder, &mut Get::new(&[]), 0));
        }
        assert!(model.asked <= super::super::packer::ASKED_EVENT << 12, "{}", model.asked);
    }

    #[test]
    fn what_is_written_stays_the_same() {
        // Other bytes for the same numbers are another format.
        let packed = compress(&noisy(3_000, 10)).unwrap().0;
        assert_eq!((packed.len(), crc32c::crc32c(&packed)), (5_057, 1_545_931_040));
    }

    #[test]
    fn what_is_always_so_takes_next_to_nothing() {
        let all = numbers([(40, 300), (90, 25_000), (400_000, 1_200)].into_iter().cycle().take(90_000));
        let bytes = compress(&all).unwrap().0.len();
        assert!(bytes < 200, "{bytes}");
    }
}
