//! A binary arithmetic coder whose probabilities are mixed from those of several contexts.
//!
//! Source: Mahoney 2005, *Adaptive Weighing of Context Models for Lossless Data Compression* (Florida Tech. CS-2005-16),
//! and the program lpaq: logistic mixing, and the coder without carries. All is in integers, so that every machine reads what
//! any has written. `st-stream(5)` writes the method down.

use std::hint::select_unpredictable;

use st_model::num::{Exact as _, narrow};

/// Probabilities that are mixed for a bit.
pub(super) const INPUTS: usize = 4;

/// A bit's probability of being 1, in 65536ths, in the upper half; how often it was learned from in the lower one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chance(u32);

impl Default for Chance {
    fn default() -> Self {
        Self(1 << 31)
    }
}

/// Learning slows down to one part in so many and a half.
const SLOWEST: u32 = 60;

/// The part that is learned, by how often was, in 65536ths: twice 1 / (2 s + 3). There are more than are needed: any six bits have one.
static PARTS: [u32; 64] = {
    let (mut parts, mut i, mut twice) = ([0; 64], 0, 3);
    while i < parts.len() {
        parts[i] = (1 << 17) / twice;
        (i, twice) = (i + 1, twice + 2);
    }
    parts
};

impl Chance {
    fn seen(self) -> u32 {
        self.0 & 63
    }

    /// In 4096ths.
    fn one(self) -> u32 {
        self.0 >> 20
    }

    /// What a context with this chance says, if it was seen often enough.
    #[inline(always)]
    fn input(self) -> i64 {
        STRETCHED[self.one().to_usize()].into()
    }

    fn is_new(self) -> bool {
        self.seen() < 2
    }

    /// Moves towards a bit, by a part of how far that is: in the upper half, where what is beyond it falls away.
    #[inline(always)]
    fn learn(&mut self, bit: bool) {
        let goal = select_unpredictable(bit, 65_535, 0u32);
        let step = goal.wrapping_sub(self.0 >> 16).wrapping_mul(PARTS[self.seen().to_usize()]);
        let seen = u32::from(self.seen() < SLOWEST);
        self.0 = self.0.wrapping_add(step & 0xffff_0000) + seen;
    }
}

/// 4096 / (1 + exp(-x / 256)), of an x from -2048 to 2048.
const fn squash(x: i32) -> i32 {
    const AT: [i32; 33] = [
        1, 2, 3, 6, 10, 16, 27, 45, 73, 120, 194, 310, 488, 747, 1101, 1546, 2047, 2549, 2994, 3348, 3607,
        3785, 3901, 3975, 4022, 4050, 4068, 4079, 4085, 4089, 4092, 4093, 4094,
    ];
    match x {
        2048 => 4095,
        -2048 => 1,
        _ => {
            let (part, i) = (x & 127, ((x >> 7) + 16).cast_unsigned() as usize);
            (AT[i] * (128 - part) + AT[i + 1] * part + 64) >> 7
        }
    }
}

/// [`squash`] of 2048 less than the index. Tables are made by the compiler, so that they are found without being looked for.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 4095")]
static SQUASHED: [u16; 4097] = {
    let (mut table, mut i, mut x) = ([0; 4097], 0, -2048);
    while i < table.len() {
        table[i] = squash(x) as u16;
        (i, x) = (i + 1, x + 1);
    }
    table
};

/// The least x from -2047 on of which [`squash`] makes at least so much.
static STRETCHED: [i16; 4096] = {
    let (mut table, mut i, mut goal, mut x) = ([0; 4096], 0, 0, -2047i16);
    while i < table.len() {
        while x < 2047 && squash(x as i32) < goal {
            x += 1;
        }
        table[i] = x;
        (i, goal) = (i + 1, goal + 1);
    }
    table
};

/// Weights of a set of inputs, in 65536ths.
pub(super) type Weights = [i64; INPUTS];

/// Codes bits into bytes, or bytes into bits.
pub(super) trait Coder {
    /// What it is, as a variable to be put back: what nobody else refers to stays in registers.
    fn take(&mut self) -> Self;

    /// Codes a bit that is 1 with a probability in 4096ths; the bit that was coded.
    fn code(&mut self, bit: bool, one: u32) -> bool;
}

/// Makes bytes.
#[derive(Debug)]
pub(super) struct Encoder {
    low: u32,
    high: u32,
    out: Vec<u8>,
    asked: u64,
}

impl Encoder {
    /// Writes after what is there.
    pub(super) fn new(out: Vec<u8>) -> Self {
        Self { low: 0, high: u32::MAX, out, asked: 0 }
    }

    /// Bits that were coded.
    #[cfg(test)]
    pub(super) fn asked(&self) -> u64 {
        self.asked
    }

    /// The bytes; a reader takes those that are missing at the end for zeros.
    pub(super) fn finish(mut self) -> Vec<u8> {
        // The shortest number within the bounds.
        if self.low > 0 {
            let top = (self.low >> 24) + 1;
            if top << 24 <= self.high && top < 256 {
                self.out.push(narrow(top));
            } else {
                self.out.extend_from_slice(&self.high.to_be_bytes());
            }
        }
        self.out
    }
}

/// The last number of the range in which a bit is 1.
#[expect(clippy::cast_possible_truncation, reason = "a part of the range")]
#[inline(always)]
fn split(low: u32, high: u32, one: u32) -> u32 {
    low + ((u64::from(high - low) * u64::from(one)) >> 12) as u32
}

impl Coder for Encoder {
    #[inline(always)]
    fn take(&mut self) -> Self {
        Self { out: std::mem::take(&mut self.out), ..*self }
    }

    #[inline(always)]
    fn code(&mut self, bit: bool, one: u32) -> bool {
        self.asked += 1;
        let middle = split(self.low, self.high, one);
        // No branch: which bit it is cannot be foreseen.
        self.low = select_unpredictable(bit, self.low, middle + 1);
        self.high = select_unpredictable(bit, middle, self.high);
        while (self.low ^ self.high) >> 24 == 0 {
            self.out.push(narrow(self.high >> 24));
            self.low <<= 8;
            self.high = self.high << 8 | 255;
        }
        bit
    }
}

/// Reads bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decoder<'a> {
    low: u32,
    high: u32,
    at: u32,
    src: &'a [u8],
    /// Bytes that were read after the last one.
    beyond: u32,
    asked: u64,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(src: &'a [u8]) -> Self {
        let mut new = Self { low: 0, high: u32::MAX, at: 0, src, beyond: 0, asked: 0 };
        (0..4).for_each(|_| new.at = new.at << 8 | new.byte());
        new
    }

    /// Whether all bytes were used, and no more than [`Encoder::finish`] leaves out.
    pub(super) fn is_done(&self) -> bool {
        self.src.is_empty() && !self.is_over()
    }

    /// Whether more was asked for than there is.
    pub(super) fn is_over(&self) -> bool {
        self.beyond > 4
    }

    /// Bytes that were read.
    #[cfg(test)]
    pub(super) fn used(&self, of: usize) -> usize {
        of - self.src.len()
    }

    /// Bits that were read.
    pub(super) fn asked(&self) -> u64 {
        self.asked
    }

    /// With bytes read in the place of those in which both bounds are the same. One bit in ten or so needs that.
    #[cold]
    #[inline(never)]
    fn shifted(mut self) -> Self {
        while (self.low ^ self.high) >> 24 == 0 {
            self.low <<= 8;
            self.high = self.high << 8 | 255;
            self.at = self.at << 8 | self.byte();
        }
        self
    }

    fn byte(&mut self) -> u32 {
        match self.src.split_first() {
            Some((first, rest)) => {
                self.src = rest;
                u32::from(*first)
            }
            None => {
                self.beyond = self.beyond.saturating_add(1);
                0
            }
        }
    }
}

impl Coder for Decoder<'_> {
    #[inline(always)]
    fn take(&mut self) -> Self {
        *self
    }

    #[inline(always)]
    fn code(&mut self, _: bool, one: u32) -> bool {
        self.asked += 1;
        let middle = split(self.low, self.high, one);
        let bit = self.at <= middle;
        // No branch: which bit it is cannot be foreseen.
        self.low = select_unpredictable(bit, self.low, middle + 1);
        self.high = select_unpredictable(bit, middle, self.high);
        if (self.low ^ self.high) >> 24 == 0 {
            *self = self.shifted();
        }
        bit
    }
}

/// Codes a bit by what one context says of it, and learns.
#[inline(always)]
pub(super) fn alone<C: Coder>(coder: &mut C, bit: bool, chance: &mut Chance) -> bool {
    let bit = coder.code(bit, chance.one().clamp(1, 4095));
    chance.learn(bit);
    bit
}

/// Codes a bit by what each context says of it, and learns.
#[inline(always)]
pub(super) fn mixed<C: Coder, const N: usize>(
    coder: &mut C,
    bit: bool,
    contexts: [&mut Chance; N],
    weights: &mut [i64; N],
) -> bool {
    let mut inputs = contexts.each_ref().map(|chance| chance.input());
    // What was seen little says little.
    if contexts.iter().any(|chance| chance.is_new()) {
        for (input, chance) in inputs.iter_mut().zip(&contexts) {
            *input = *input * i64::from(chance.seen().min(2)) / 2;
        }
    }
    let products = inputs.iter().zip(&*weights).map(|(input, weight)| input * weight);
    // Beyond that everything is the same.
    let sum = (products.sum::<i64>() >> 16).clamp(-2048, 2048) + 2048;
    let one = SQUASHED[sum.cast_unsigned().to_usize()];
    let bit = coder.code(bit, one.into());
    let error = ((i64::from(bit) << 12) - i64::from(one)) * 10;
    for (input, weight) in inputs.iter().zip(weights) {
        *weight += (input * error + 0x8000) >> 16;
    }
    for chance in contexts {
        chance.learn(bit);
    }
    bit
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Codes bits in a few contexts.
    fn all<C: Coder>(coder: &mut C, bits: &[bool]) -> Vec<bool> {
        let mut weights = [20_000; INPUTS];
        let mut chances = [[Chance::default(); INPUTS]; 3];
        let each = bits.iter().enumerate().map(|(i, bit)| {
            if i % 7 == 6 {
                return coder.code(*bit, 2048);
            }
            mixed(coder, *bit, chances[i % 3].each_mut(), &mut weights)
        });
        each.collect()
    }

    proptest! {
        #[test]
        fn bits_come_back(runs in proptest::collection::vec((any::<bool>(), 1usize..40), 0..60)) {
            let bits: Vec<bool> = runs.into_iter().flat_map(|(bit, n)| std::iter::repeat_n(bit, n)).collect();
            let mut encoder = Encoder::new(vec![9]);
            all(&mut encoder, &bits);
            let bytes = encoder.finish();
            let mut decoder = Decoder::new(&bytes[1..]);
            prop_assert_eq!(all(&mut decoder, &vec![false; bits.len()]), bits.clone());
            prop_assert!(decoder.is_done());
            // More bytes than a decoder reads ahead are noticed, and bits beyond the end are.
            let more = [&bytes[1..], &[0; 5]].concat();
            let mut decoder = Decoder::new(&more);
            all(&mut decoder, &vec![false; bits.len()]);
            prop_assert!(!decoder.is_done());
            let mut decoder = Decoder::new(&bytes[1..]);
            all(&mut decoder, &vec![false; bits.len()]);
            for _ in 0..8 * bytes.len() + 40 {
                decoder.code(false, 2048);
            }
            prop_assert!(decoder.is_over());
        }

        #[test]
        fn any_bytes_are_bits(bytes: Vec<u8>) {
            let bits = all(&mut Decoder::new(&bytes), &[false; 300]);
            let mut encoder = Encoder::new(Vec::new());
            all(&mut encoder, &bits);
            let again = encoder.finish();
            prop_assert_eq!(all(&mut Decoder::new(&again), &[false; 300]), bits);
        }
    }

    /// Bytes of bits of which one context is sure and the others know nothing, or all know nothing.
    fn bytes_of(bits: impl Iterator<Item = bool>) -> usize {
        let mut weights = [20_000; INPUTS];
        let mut encoder = Encoder::new(Vec::new());
        let (mut knows, mut others) = ([Chance::default(); 2], [Chance::default(); INPUTS - 1]);
        for (i, bit) in bits.enumerate() {
            let [a, b, c] = &mut others;
            mixed(&mut encoder, bit, [&mut knows[i % 2], a, b, c], &mut weights);
        }
        encoder.finish().len()
    }

    #[test]
    fn the_context_that_knows_gets_the_say() {
        // With weights as they are at the beginning it would be an eighth of a bit each.
        let turns = bytes_of((0..8_000).map(|i| i % 2 == 0));
        assert!(turns < 40, "{turns}");
        let mut noise = 1u64;
        let chance = bytes_of((0..8_000).map(|_| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            noise >> 63 == 1
        }));
        assert!((1_000..1_060).contains(&chance), "{chance}");
    }

    #[test]
    fn stretching_is_the_inverse_of_squashing() {
        for (i, x) in (0i32..).zip(STRETCHED.iter()).filter(|(i, _)| (2..4095).contains(i)) {
            assert!(squash((*x).into()) >= i && squash(i32::from(*x) - 1) < i, "{i}");
        }
    }

    #[test]
    fn what_is_always_so_takes_no_space() {
        let mut encoder = Encoder::new(Vec::new());
        all(&mut encoder, &vec![true; 7_000].iter().enumerate().map(|(i, _)| i % 7 != 6).collect::<Vec<_>>());
        // A thousand bits are stored as they are.
        let bytes = encoder.finish().len();
        assert!((125..160).contains(&bytes), "{bytes}");
    }
}
