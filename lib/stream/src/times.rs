//! Exact times under a coder of their own: gaps and durations in turn, each as its number of binary digits, predicted from
//! those of the numbers before it, and its digits.
//!
//! Times are most of a file that has them, and hardly repeat, so that there is nothing to match: what can be known of a
//! number is how long it is, from where in a loop it stands, and that shows in how long the numbers before it were.

use st_model::num::{Exact, narrow};
use std::io::{self, Error, ErrorKind::InvalidData};

use super::bytes::{put_bytes, put_u64};
use super::column;
use super::expansion::may_ask;
use super::mixing::{Chance, Coder, Decoder, Encoder, INPUTS, Weights, mixed};
use st_model::varint;

/// Lengths from here on are stored beside it.
const LONG: u32 = 31;
/// So many times up to five digits after the first are predicted.
const FIVES: usize = 2;
/// Numbers that the model looks back to.
const BACK: usize = 5;
/// Places of chances per input, 2 to the power of: as many as there are numbers, within these bounds. More than that were
/// outside of caches, and hardly better.
const FEWEST: u32 = 6;
const MOST: u32 = 12;
/// What weights begin with: a sum a little above 1.
const BEGIN: i64 = 20_000;
/// The chance of a bit that is not predicted.
const EVEN: u32 = 2048;

/// Events before the coded part, and what they are.
struct Parts<'a> {
    head: &'a [u8],
    events: u32,
    rest: &'a [u8],
}

fn parts(payload: &[u8]) -> Option<Parts<'_>> {
    let mut rest = payload;
    let events = column::decode_head(&mut rest).ok()?.1.events;
    let (head, rest) = payload.split_at(payload.len() - rest.len());
    Some(Parts { head, events, rest })
}

/// A COLUMN's payload: as it is up to its times, which are coded. Nothing if it has integers that are longer than needed.
pub(super) fn compress(payload: &[u8]) -> Option<Vec<u8>> {
    let Parts { head, events, mut rest } = parts(payload)?;
    let len = usize::try_from(varint::get_u64(&mut rest).ok()?).ok()?;
    let (mut gaps, mut durations) = rest.split_at_checked(len)?;
    let shortest = |src: &mut &[u8]| {
        let before = src.len();
        let n = varint::get_i64(src).ok()?;
        let zigzag = (n << 1 ^ n >> 63).cast_unsigned();
        (before - src.len() == digits(zigzag).div_ceil(7).max(1) as usize).then_some(zigzag)
    };
    let mut coder = Encoder::new(head.to_vec());
    let mut model = Model::new(events);
    for _ in 0..events {
        model.code(&mut coder, shortest(&mut gaps)?);
        model.code(&mut coder, shortest(&mut durations)?);
    }
    (gaps.is_empty() && durations.is_empty()).then(|| coder.finish())
}

/// The payload of a frame, at most `limit` bytes of it, and how many bits were coded by their chances.
pub(super) fn expand(packed: &[u8], limit: usize) -> io::Result<(Vec<u8>, u64)> {
    let invalid = || Error::from(InvalidData);
    let Parts { head, events, rest } = parts(packed).ok_or_else(invalid)?;
    let mut coder = Decoder::new(rest);
    let most = may_ask(packed.len().to_u64());
    let mut model = Model::new(events);
    let (mut gaps, mut durations) = (Vec::new(), Vec::new());
    for _ in 0..events {
        put_u64(&mut gaps, model.code(&mut coder, 0));
        put_u64(&mut durations, model.code(&mut coder, 0));
        // What ends early would go on with zeros, for as many events as are stated.
        if gaps.len() + durations.len() > limit || coder.is_over() || coder.asked() > most {
            return Err(invalid());
        }
    }
    if !coder.is_done() {
        return Err(invalid());
    }
    let mut out = head.to_vec();
    put_bytes(&mut out, &gaps);
    out.extend_from_slice(&durations);
    Ok((out, coder.asked()))
}

/// Number of binary digits.
fn digits(n: u64) -> u32 {
    64 - n.leading_zeros()
}

/// The chances of five bits that depend on each other, by the bits before in them, with a 1 in front.
type Five = [Chance; 32];

/// What is known of numbers to come.
struct Model {
    /// Chances per input, found by hashes of what they depend on.
    chances: [Vec<Five>; INPUTS],
    /// By kind of number: of the five bits of lengths, by the bits before; then of each five digits, by their number.
    weights: [[Weights; 64]; 2],
    /// Digits of the numbers before, the last one first.
    before: [u32; BACK],
    /// 0 for a gap, 1 for a duration.
    kind: u8,
}

impl Model {
    fn new(events: u32) -> Self {
        let bits = (events.max(1).ilog2() + 2).clamp(FEWEST, MOST);
        Self {
            chances: std::array::from_fn(|_| vec![[Chance::default(); 32]; 1 << bits]),
            weights: [[[BEGIN; INPUTS]; 64]; 2],
            before: [0; BACK],
            kind: 0,
        }
    }

    /// Codes `n` bits, up to five, the first one highest, by what their hashed contexts say. `weights` gives those of a bit by
    /// its number and the bits before it. The bits, with a 1 in front.
    #[inline]
    fn bits<C: Coder>(
        &mut self,
        coder: &mut C,
        bits: u64,
        n: u32,
        contexts: [u64; INPUTS],
        weights: impl Fn(usize, usize) -> usize,
    ) -> u64 {
        let mask = self.chances[0].len() - 1;
        let at = contexts.map(|h| (h >> 20).to_usize() & mask);
        let [a, b, c, d] = &mut self.chances;
        let (a, b, c, d) = (&mut a[at[0]], &mut b[at[1]], &mut c[at[2]], &mut d[at[3]]);
        let all = &mut self.weights[usize::from(self.kind)];
        let mut before = 1;
        for i in 0..n {
            let chances = [&mut a[before], &mut b[before], &mut c[before], &mut d[before]];
            let weights = &mut all[weights(i as usize, before)];
            let bit = mixed(coder, bits >> (n - 1 - i) & 1 == 1, chances, weights);
            before = 2 * before + usize::from(bit);
        }
        before as u64
    }

    /// Codes a number; the number that was coded.
    fn code<C: Coder>(&mut self, coder: &mut C, n: u64) -> u64 {
        let len = self.length(coder, digits(n));
        let [a, b, c, d, e] = self.before;
        let first = hash(hash(2, self.kind.into()), len.into());
        let (mut out, mut left) = (u64::from(len > 0), len.saturating_sub(1));
        for five in 0..FIVES {
            let take = left.min(5);
            left -= take;
            let first = hash(first, out);
            let contexts = [first, all(first, &[a]), all(first, &[a, b, d]), all(first, &[a, b, c, d, e])];
            let bits = n.checked_shr(left).unwrap_or(0);
            let coded = self.bits(coder, bits, take, contexts, |i, _| 32 + 8 * five + i);
            out = out << take | coded & ((1 << take) - 1);
        }
        for i in (0..left).rev() {
            out = out << 1 | u64::from(coder.code(n.checked_shr(i).unwrap_or(0) & 1 == 1, EVEN));
        }
        self.before = [len.min(LONG), a, b, c, d];
        self.kind ^= 1;
        out
    }

    /// Codes a number of digits.
    fn length<C: Coder>(&mut self, coder: &mut C, len: u32) -> u32 {
        let [a, b, c, d, e] = self.before;
        let first = hash(1, self.kind.into());
        let contexts = [first, all(first, &[a]), all(first, &[a, b]), all(first, &[a, b, c, d, e])];
        let coded = self.bits(coder, len.min(LONG).into(), 5, contexts, |_, before| before);
        let short = narrow(coded & 31);
        if short < LONG {
            return short;
        }
        let more = len.saturating_sub(LONG);
        LONG + (0..6).rev().fold(0, |all, i| 2 * all + u32::from(coder.code(more >> i & 1 == 1, EVEN)))
    }
}

fn all(first: u64, of: &[u32]) -> u64 {
    of.iter().fold(first, |h, x| hash(h, u64::from(*x)))
}

#[inline]
pub(super) fn hash(h: u64, x: u64) -> u64 {
    let h = (h ^ x).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    h ^ h >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use st_model::columns::{Chunk, ColumnWriter};

    fn payload(times: &[(i64, i64)]) -> Vec<u8> {
        let mut writer = ColumnWriter::new(0);
        let mut at = 0i64;
        for (gap, duration) in times {
            let enter = at.wrapping_add(*gap);
            at = enter.wrapping_add(*duration);
            writer.push(enter, at);
        }
        column::encode((3, 0), &writer.flush().unwrap_or_else(none))
    }

    fn none() -> Chunk {
        Chunk { first: 0, base: 0, events: 0, unit: 1, gaps: Vec::new(), durations: Vec::new() }
    }

    fn number() -> impl Strategy<Value = i64> {
        prop_oneof![Just(0i64), 0i64..100, -3i64..3, 900i64..1_100, 1_000_000i64..2_000_000, any::<i64>()]
    }

    proptest! {
        #[test]
        fn times_come_back(v in proptest::collection::vec((number(), number()), 0..300)) {
            let payload = payload(&v);
            let packed = compress(&payload).unwrap();
            prop_assert_eq!(expand(&packed, payload.len()).unwrap().0, payload.clone());
            prop_assert!(payload.len() < 30 || expand(&packed, payload.len() / 2).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes: Vec<u8>, events in 0u32..1_000) {
            let _ = expand(&bytes, 1 << 12);
            // With a head that makes sense.
            let mut head = column::encode((0, 0), &Chunk { events, ..none() });
            head.pop();
            head.append(&mut bytes);
            let _ = expand(&head, 1 << 12);
        }
    }

    #[test]
    fn longer_integers_than_needed_are_left_alone() {
        let mut payload = payload(&[(5, 7)]);
        assert!(compress(&payload).is_some());
        let last = payload.len() - 1;
        payload[last] |= 0x80;
        payload.push(0);
        assert_eq!(compress(&payload), None);
    }

    #[test]
    fn what_is_written_stays_the_same() {
        // Other bytes for the same times are another format.
        let times: Vec<_> = (0..900i64).map(|i| (i * i % 977, 40 + (i * i * i % 1_009) * (i % 3))).collect();
        let packed = compress(&payload(&times)).unwrap();
        assert_eq!((packed.len(), crc32c::crc32c(&packed)), (2_252, 0x49d0_9f44));
    }

    #[test]
    fn times_of_a_loop_take_less_than_by_lzma() {
        // A short call, a long one, a computation: three thousand times, with noise.
        let mut noise = 1u64;
        let mut times = Vec::new();
        for _ in 0..3_000 {
            for (gap, duration) in [(40, 300), (90, 25_000), (400_000, 1_200)] {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let part = |n: i64, by: u32| n + ((n * (noise >> by & 0xffff).cast_signed()) >> 18);
                times.push((part(gap, 30), part(duration, 47)));
            }
        }
        let payload = payload(&times);
        let packed = compress(&payload).unwrap();
        let other = zstd::bulk::compress(&payload, 19).unwrap();
        assert!(packed.len() * 20 < other.len() * 19, "{} of {}", packed.len(), other.len());
        #[cfg(feature = "lzma")]
        {
            let other = super::super::lzma::compress(&payload, 19).unwrap();
            assert!(packed.len() < other.len(), "{} of {}", packed.len(), other.len());
        }
    }
}
