//! Pseudo-random numbers and digests that are the same on every machine.

use rand::Rng;
use rand_pcg::Pcg64;
use st_model::num::{Exact, narrow, saturate};

/// A number that follows from the seed and from what it is for: the same on every rank that asks for the same thing.
///
/// `topic` separates uses; `a` and `b` say which (a step, a rank, …).
#[must_use]
pub fn draw(seed: u64, topic: u32, a: i32, b: i32) -> u64 {
    let stream =
        u128::from(topic) << 64 | u128::from(a.cast_unsigned()) << 32 | u128::from(b.cast_unsigned());
    let mut generator = Pcg64::new(u128::from(seed), stream);
    // The first outputs of neighbouring streams are related.
    generator.next_u64();
    generator.next_u64();
    generator.next_u64()
}

/// As [`draw`], in `0..n`; 0 for `n` below 1.
#[must_use]
pub(crate) fn draw_below(n: i32, seed: u64, topic: u32, a: i32, b: i32) -> i32 {
    let n = saturate::<u64>(n).max(1);
    narrow(draw(seed, topic, a, b) % n)
}

/// What a rank has seen so far, as one number that depends on the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest(u64);

impl Digest {
    /// A start that differs between ranks.
    #[must_use]
    pub fn new(seed: u64, rank: i32) -> Self {
        let mut d = Self(seed);
        d.absorb(u64::from(rank.cast_unsigned()));
        d
    }
    /// Takes a number in.
    pub fn absorb(&mut self, x: u64) {
        self.0 = mix(self.0.rotate_left(5) ^ mix(x));
    }
    /// Takes numbers in whose order does not matter.
    pub fn add(&mut self, x: u64) {
        self.0 = self.0.wrapping_add(mix(x));
    }
    /// The number so far.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }
}

/// The finaliser of `SplitMix64`. Source: Steele, Lea, Flood 2014, figure 17.
#[must_use]
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The `k`-th element of what a buffer is filled with from `seed`.
#[must_use]
pub fn content(seed: u64, k: usize) -> u64 {
    mix(seed.wrapping_add(k.to_u64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_fixed_for_ever() {
        // Recordings and paper traces of different builds must agree: a change here breaks that.
        assert_eq!(
            [draw(1, 0, 0, 0), draw(1, 2, 3, 4), draw(2, 2, 3, 4)],
            [12_635_230_940_061_297_225, 12_782_348_217_826_177_116, 18_123_665_494_600_276_955]
        );
        assert!((0..100).all(|i| (0..7).contains(&draw_below(7, 1, 0, i, 0))));
        assert_eq!(draw_below(0, 1, 0, 0, 0), 0);
    }

    #[test]
    fn draws_are_spread() {
        let mut seen = [0; 8];
        (0..800).for_each(|i| seen[usize::try_from(draw_below(8, 1, 0, i, 0)).unwrap()] += 1);
        assert!(seen.iter().all(|n| (60..140).contains(n)), "{seen:?}");
    }

    #[test]
    fn digests_see_order_unless_told_not_to() {
        let run = |f: fn(&mut Digest, u64), v: [u64; 2]| {
            let mut d = Digest::new(1, 0);
            v.into_iter().for_each(|x| f(&mut d, x));
            d.value()
        };
        assert_ne!(run(Digest::absorb, [1, 2]), run(Digest::absorb, [2, 1]));
        assert_eq!(run(Digest::add, [1, 2]), run(Digest::add, [2, 1]));
        assert_ne!(run(Digest::add, [1, 2]), run(Digest::add, [1, 1]));
    }
}
