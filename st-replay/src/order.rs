//! In which order a rank draws durations: how ranks that draw from one distribution were slow, together, in turns, or each for
//! itself.
//!
//! Each of n draws takes another of n positions in the distribution. The order of positions is a permutation by chance, the same
//! each time: without more knowledge another one on each rank, so that ranks are slow independently. For a share of the steps it
//! may be *coupled*: all ranks take the same position (a file system is slow for all), or positions evenly apart (what is slow
//! moves from rank to rank).
//!
//! Source: our own. Latin hypercube sampling (McKay, Beckman, Conover 1979) has positions evenly apart for the same purpose.

use st_model::num::{narrow, saturate};
use xxhash_rust::xxh3::xxh3_64;

/// What a share of steps is counted in.
pub const WHOLE: u64 = 1 << 16;

/// How ranks' positions at one step depend on each other, where they do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coupled {
    /// They are the same.
    Together,
    /// They are evenly apart: the rank's place among so many ranks.
    InTurns(u64, u64),
}

/// An order of positions.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// By which steps are chosen, the same on all ranks.
    common: u64,
    /// By which the rank's own order is.
    own: u64,
    coupled: Coupled,
    /// In how many of [`WHOLE`] steps.
    share: u64,
}

impl Order {
    /// The order of a rank's draws from one of a section's distributions; `of` tells distributions apart.
    #[must_use]
    pub fn new(of: u64, rank: u32) -> Self {
        Self { common: hash(of, u64::MAX), own: hash(of, rank.into()), coupled: Coupled::Together, share: 0 }
    }

    /// Another order by chance for each number; the same for 0. Ranks that are coupled take the same number.
    #[must_use]
    pub fn shuffled(self, by: u64) -> Self {
        if by == 0 {
            return self;
        }
        Self { common: hash(self.common, by), own: hash(self.own, by), ..self }
    }

    /// The same order, coupled to that of other ranks in a share of the steps, at most [`WHOLE`].
    #[must_use]
    pub fn coupled(self, coupled: Coupled, share: u64) -> Self {
        Self { coupled, share: share.min(WHOLE), ..self }
    }

    /// Position of the j-th draw of `n`, both from 0. *Cost:* O(log n).
    #[must_use]
    pub fn position(&self, j: u64, n: u64) -> u64 {
        if n < 2 {
            return 0;
        }
        let wide = u128::from(n) * u128::from(self.share) / u128::from(WHOLE);
        let spread = Spread { m: narrow(wide), n };
        let step = permuted(j % n, n, self.common);
        match step.checked_sub(spread.m) {
            Some(rest) => spread.other(permuted(rest, n - spread.m, self.own)),
            None => {
                let ahead = match self.coupled {
                    Coupled::Together => 0,
                    Coupled::InTurns(place, ranks) => {
                        let ahead = u128::from(place) * u128::from(spread.m) / u128::from(ranks.max(1));
                        narrow::<u64>(ahead)
                    }
                };
                spread.one((step + ahead) % spread.m)
            }
        }
    }
}

/// `m` of `n` positions, evenly spread.
#[derive(Clone, Copy, Debug)]
struct Spread {
    m: u64,
    n: u64,
}

impl Spread {
    /// The a-th of them: (a + ½)·n/m, rounded down.
    fn one(self, a: u64) -> u64 {
        let twice = (2 * u128::from(a) + 1) * u128::from(self.n);
        narrow(twice / (2 * u128::from(self.m.max(1))))
    }

    /// How many of them are below a position.
    fn below(self, position: u64) -> u64 {
        let n = u128::from(self.n);
        let over = (2 * u128::from(self.m) * u128::from(position)).saturating_sub(n);
        saturate::<u64>(over.div_ceil(2 * n)).min(self.m)
    }

    /// The b-th of the others.
    fn other(self, b: u64) -> u64 {
        let (mut low, mut high) = (b, b + self.m);
        while low < high {
            let middle = low.midpoint(high);
            if middle + 1 - self.below(middle + 1) > b {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

/// Where a permutation of 0 … n−1 takes i. Each step can be undone in numbers of so many bits; what is beyond n goes on
/// (cycle walking: Black, Rogaway 2002).
fn permuted(i: u64, n: u64, key: u64) -> u64 {
    let bits = u64::BITS - n.saturating_sub(1).max(1).leading_zeros();
    let mask = u64::MAX >> (u64::BITS - bits);
    let mut x = i;
    loop {
        for round in 0..4_u32 {
            let key = key.rotate_left(16 * round);
            x = x.wrapping_add(key).wrapping_mul(key >> 32 | 1) & mask;
            x ^= x >> bits.div_ceil(2);
        }
        if x < n {
            return x;
        }
    }
}

fn hash(a: u64, b: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&a.to_le_bytes());
    bytes[8..].copy_from_slice(&b.to_le_bytes());
    xxh3_64(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_is_taken_once() {
        for n in [1, 2, 3, 5, 16, 60, 1000] {
            for share in [0, WHOLE / 3, WHOLE / 2, WHOLE] {
                for coupled in [Coupled::Together, Coupled::InTurns(2, 4)] {
                    let order = Order::new(7, 3).coupled(coupled, share);
                    let mut positions: Vec<u64> = (0..n).map(|j| order.position(j, n)).collect();
                    positions.sort_unstable();
                    assert_eq!(positions, (0..n).collect::<Vec<_>>(), "{share} {coupled:?}");
                }
            }
        }
    }

    /// In how many of 800 steps any of eight ranks is among the slowest eighth.
    fn slow(coupled: impl Fn(u64) -> Coupled, share: u64) -> u64 {
        let orders: Vec<Order> =
            (0..8).map(|rank| Order::new(7, rank).coupled(coupled(rank.into()), share)).collect();
        (0..800).map(|j| u64::from(orders.iter().any(|o| o.position(j, 800) >= 700))).sum()
    }

    #[test]
    fn ranks_are_slow_independently_together_or_in_turns() {
        // 1 − (7/8)^8 = 0.656.
        let alone = slow(|_| Coupled::Together, 0);
        assert!((495..=555).contains(&alone), "{alone}");
        assert_eq!(slow(|_| Coupled::Together, WHOLE), 100);
        assert_eq!(slow(|rank| Coupled::InTurns(rank, 8), WHOLE), 800);
        // Half of the steps: half of the difference.
        let half = slow(|_| Coupled::Together, WHOLE / 2);
        assert!((280..=350).contains(&half), "{half}");
    }
}
