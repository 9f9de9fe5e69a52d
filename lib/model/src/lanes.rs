//! Proof lanes: order-sensitive 128-bit hashes over the calls as they happened, taken before any compression.
//!
//! Per (rank, thread) there is one hash per [`Lane`]. Each call contributes one digest `d` to every lane (0 if it
//! has no words there): `H ← H·B + d (mod 2^128)`, a polynomial hash, so that `n` equal calls in a row can be entered at
//! once and the hash of a concatenation follows from the hashes of its parts. A merged trace holds, per thread, the
//! sum over its ranks of each lane's hash keyed by the rank: constant in the number of ranks, and the sum of two
//! traces' sums is the sum of their merge.
//!
//! A prime modulus would spread over all bits what a power of two leaves in the upper ones (two calls that change
//! places n calls apart differ in all but the lower log2(n) + 2 bits), but costs five times as much per call; digests
//! are mixed over all 128 bits, and what is left is far more than an accident can hit.

mod cycle;

use crate::calls::{LANES, Lane};
pub use cycle::Cycle;

const B: u128 = 0x2545_F491_4F6C_DD1D_9E37_79B9_7F4A_7C15;
const K1: u64 = 0x9E37_79B9_7F4A_7C15;
const K2: u64 = 0xD6E8_FEB8_6659_FD93;
const K3: u64 = 0xA076_1D64_78BD_642F;

/// Digest of the words that one call has in one lane.
#[derive(Clone, Copy, Debug)]
pub struct Digest {
    a: u64,
    b: u64,
}

impl Digest {
    /// Start of a digest.
    #[must_use]
    pub fn new() -> Self {
        Self { a: K3, b: K2 }
    }
    /// Adds a word.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "folds a product's halves")]
    pub fn word(&mut self, w: u64) {
        let m = u128::from(self.a ^ w ^ K2) * u128::from(K1);
        self.a = (m as u64) ^ ((m >> 64) as u64) ^ self.b;
        self.b = self.b.wrapping_add(w).wrapping_mul(K2).rotate_left(29);
    }
    /// The digest.
    #[must_use]
    pub fn value(self) -> u128 {
        (u128::from(self.b.wrapping_mul(K3)) << 64) | u128::from(self.a)
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

/// The lanes of one (rank, thread) while it is recorded or decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lanes {
    /// Number of calls; a poll series counts each of its calls.
    pub calls: u64,
    hash: [u128; LANES],
}

impl Default for Lanes {
    fn default() -> Self {
        Self { calls: 0, hash: [1; LANES] }
    }
}

impl Lanes {
    /// No call yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Enters a call `times` times: its digest in each lane, 0 in those that it has no words in.
    #[inline]
    pub fn enter(&mut self, digests: &[u128; LANES], times: u64) {
        self.calls = self.calls.wrapping_add(times);
        if times == 1 {
            for (h, d) in self.hash.iter_mut().zip(digests) {
                *h = h.wrapping_mul(B).wrapping_add(*d);
            }
        } else {
            self.enter_many(digests, times);
        }
    }
    fn enter_many(&mut self, digests: &[u128; LANES], times: u64) {
        let (power, sum) = geometric(B, times);
        for (h, d) in self.hash.iter_mut().zip(digests) {
            *h = h.wrapping_mul(power).wrapping_add(d.wrapping_mul(sum));
        }
    }
    /// The sum's term for this rank and thread.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "takes a hash in halves")]
    pub fn keyed(&self, rank: u32, thread: u32) -> LaneSum {
        let term = |h: u128| {
            let mut d = Digest::new();
            [u64::from(rank), u64::from(thread), h as u64, (h >> 64) as u64]
                .into_iter()
                .for_each(|w| d.word(w));
            d.value()
        };
        LaneSum { calls: self.calls, hash: self.hash.map(term), voided: 0 }
    }
}

/// The lanes whose bits are set, ascending.
#[inline]
pub fn lanes_of(bits: u8) -> impl Iterator<Item = usize> {
    let mut left = u32::from(bits) & ((1 << LANES) - 1);
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        usize::try_from(lane).ok().filter(|lane| *lane < LANES)
    })
}

/// `(b^n, 1 + b + … + b^(n-1))`.
fn geometric(b: u128, n: u64) -> (u128, u128) {
    let (mut power, mut sum) = (1u128, 0u128);
    for bit in (0..64 - n.leading_zeros()).rev() {
        // Doubling: b^2k = (b^k)², S(2k) = S(k)·(1 + b^k).
        sum = sum.wrapping_mul(power.wrapping_add(1));
        power = power.wrapping_mul(power);
        if n >> bit & 1 == 1 {
            sum = sum.wrapping_mul(b).wrapping_add(1);
            power = power.wrapping_mul(b);
        }
    }
    (power, sum)
}

/// Lanes folded over the ranks of a thread of a (merged) trace.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LaneSum {
    /// Calls of all ranks.
    pub calls: u64,
    /// One sum per lane, modulo 2^128.
    pub hash: [u128; LANES],
    /// Bit `1 << lane` is set if a lossy option has voided the lane.
    pub voided: u8,
}

impl LaneSum {
    /// Adds the ranks of another trace.
    pub fn merge(&mut self, other: &Self) {
        self.calls = self.calls.wrapping_add(other.calls);
        for (a, b) in self.hash.iter_mut().zip(other.hash) {
            *a = a.wrapping_add(b);
        }
        self.voided |= other.voided;
    }
    /// Whether a lane has been voided.
    #[must_use]
    pub fn is_voided(&self, lane: Lane) -> bool {
        self.voided >> (lane as u8) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(w: u64) -> [u128; LANES] {
        let mut d = Digest::new();
        d.word(w);
        [d.value(); LANES]
    }

    #[test]
    fn a_series_is_the_power_of_its_element() {
        for n in [1, 2, 3, 7, 64, 1000] {
            let (mut a, mut b) = (Lanes::new(), Lanes::new());
            a.enter(&digest(5), n);
            for _ in 0..n {
                b.enter(&digest(5), 1);
            }
            assert_eq!(a, b);
        }
    }

    #[test]
    fn order_rank_and_thread_matter() {
        let run = |v: &[u64]| {
            let mut l = Lanes::new();
            v.iter().for_each(|&w| l.enter(&digest(w), 1));
            l
        };
        assert_ne!(run(&[1, 2]), run(&[2, 1]));
        assert_ne!(run(&[1]).keyed(0, 0).hash, run(&[1]).keyed(1, 0).hash);
        assert_ne!(run(&[1]).keyed(0, 0).hash, run(&[1]).keyed(0, 1).hash);
        // Swapping two ranks' lanes changes the sum.
        let mut a = run(&[1]).keyed(0, 0);
        a.merge(&run(&[2]).keyed(1, 0));
        let mut b = run(&[2]).keyed(0, 0);
        b.merge(&run(&[1]).keyed(1, 0));
        assert_ne!(a.hash, b.hash);
    }
}
