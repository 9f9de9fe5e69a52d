//! Numbers of which nothing is known but how large they can be, in as few bits as they take.

use std::hint::select_unpredictable;

use st_model::num::{Exact as _, narrow};

/// Codes numbers from 0 up to one that is known.
pub(in super::super) trait Offsets {
    /// Codes a number; the number that was coded.
    fn code(&mut self, n: u64, most: u64) -> u64;
}

/// So many bits hold all numbers up to this one, and so many of the least take one bit less.
struct Width {
    bits: u32,
    short: u64,
}

impl Width {
    #[inline]
    fn of(most: u64) -> Self {
        let bits = u64::BITS - most.leading_zeros();
        Self { bits, short: u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0) - most }
    }
}

/// Makes bytes, the highest bit first.
#[derive(Debug, Default)]
pub(in super::super) struct Put {
    out: Vec<u8>,
    /// Bits that are no byte yet, the lowest ones.
    bits: u64,
    n: u32,
}

impl Put {
    fn bits(&mut self, bits: u64, n: u32) {
        if n > 32 {
            self.bits(bits >> 32, n - 32);
            return self.bits(bits & u64::from(u32::MAX), 32);
        }
        self.bits = self.bits << n | bits;
        self.n += n;
        while self.n >= 8 {
            self.n -= 8;
            self.out.push(narrow(self.bits >> self.n & 255));
        }
    }

    /// The bytes, the last one with zeros.
    pub(in super::super) fn finish(mut self) -> Vec<u8> {
        self.bits(0, (8 - self.n) % 8);
        self.out
    }
}

impl Offsets for Put {
    #[inline]
    fn code(&mut self, n: u64, most: u64) -> u64 {
        let Width { bits, short } = Width::of(most);
        if n < short {
            self.bits(n, bits - 1);
        } else {
            self.bits(n + short, bits);
        }
        n
    }
}

/// Reads bytes.
#[derive(Debug)]
pub(in super::super) struct Get<'a> {
    src: &'a [u8],
    /// Bits that were read, of those that are there and of zeros after them.
    at: usize,
}

impl<'a> Get<'a> {
    pub(in super::super) fn new(src: &'a [u8]) -> Self {
        Self { src, at: 0 }
    }

    /// Whether more was asked for than there is.
    pub(in super::super) fn is_over(&self) -> bool {
        self.at > 8 * self.src.len()
    }

    /// Whether all was read but the zeros of the last byte.
    pub(in super::super) fn is_done(&self) -> bool {
        self.at.div_ceil(8) == self.src.len() && (self.at.is_multiple_of(8) || self.next() == 0)
    }

    /// The next bits, the first one highest: at least 57 of them.
    #[inline(always)]
    fn next(&self) -> u64 {
        let from = self.at / 8;
        let bytes = self.src.get(from..).and_then(<[u8]>::first_chunk);
        bytes.map_or_else(|| self.last(from), |bytes| u64::from_be_bytes(*bytes)) << (self.at % 8)
    }

    /// The last bytes from here on, with zeros after them.
    #[cold]
    fn last(&self, from: usize) -> u64 {
        let bytes = self.src.get(from..).unwrap_or_default().iter().chain(&[0; 8]);
        bytes.take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }

    /// So many bits, at most 32.
    fn bits(&mut self, n: u32) -> u64 {
        let bits = self.next() >> 1 >> (63 - n);
        self.at += n.to_usize();
        bits
    }
}

/// Numbers of so many bits are read in one piece.
const PIECE: u32 = 56;

impl Offsets for Get<'_> {
    #[inline(always)]
    fn code(&mut self, _: u64, most: u64) -> u64 {
        let Width { bits, short } = Width::of(most);
        let (all, known) = if bits <= PIECE {
            (self.next() >> 1 >> (63 - bits), 0)
        } else {
            let high = self.bits(bits - 32);
            ((high << 32) | self.next() >> 32, bits - 32)
        };
        // No branch: which of both it is cannot be foreseen.
        let is_short = all >> 1 < short;
        self.at += (bits - known - u32::from(is_short)).to_usize();
        select_unpredictable(is_short, all >> 1, all.wrapping_sub(short))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(v in prop::collection::vec((any::<u64>(), 0u32..64), 0..200)) {
            let numbers: Vec<(u64, u64)> = v.iter().map(|(n, by)| (n >> by).max(1)).zip(v.iter().map(|(n, _)| *n))
                .flat_map(|(most, n)| [(n % most, most), (most, most), (0, 0)]).collect();
            let mut put = Put::default();
            numbers.iter().for_each(|(n, most)| assert_eq!(put.code(*n, *most), *n));
            let bytes = put.finish();
            let mut get = Get::new(&bytes);
            for (n, most) in &numbers {
                prop_assert_eq!(get.code(0, *most), *n);
            }
            prop_assert!(get.is_done());
            // What is missing is noticed.
            let mut get = Get::new(&bytes[..bytes.len().saturating_sub(1)]);
            numbers.iter().for_each(|(_, most)| _ = get.code(0, *most));
            prop_assert!(bytes.is_empty() || get.is_over());
        }
    }

    #[test]
    fn no_bit_more_than_numbers_need() {
        let mut put = Put::default();
        // Of three numbers the first takes one bit, the others two.
        [0, 1, 2, 0].iter().for_each(|n| _ = put.code(*n, 2));
        assert_eq!(put.finish(), [0b0101_1000]);
    }
}
