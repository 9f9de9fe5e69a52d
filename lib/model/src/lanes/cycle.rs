//! What the rounds of a loop add to the lanes: one sum per lane, which changes with the digests of the round's calls.
//!
//! A round of n calls takes a lane's hash `h` to `h·Bⁿ + s`, where `s = Σ dᵢ·Bⁿ⁻¹⁻ⁱ`; a digest that changes from d to d'
//! changes the sum by `(d' − d)·Bⁿ⁻¹⁻ⁱ`. So a round costs nothing for calls that come again as they were, and rounds
//! without any change are entered together.

use super::{B, Lanes, geometric, lanes_of};
use crate::calls::LANES;

/// A call's digests, by lane.
type Digests = [u128; LANES];

/// So many rounds without a change are entered one by one, which is faster.
const FEW: u64 = 4;

/// How a call's digest in a lane has moved away from that in the lane's sum, in rounds that are entered later.
#[derive(Debug, Clone, Copy, Default)]
struct Moved {
    /// What it adds to the rounds before `round`, but for the power of the call's place; and by how much it has moved since.
    so_far: u128,
    by: u128,
    round: u64,
}

/// The rounds of a loop in progress.
#[derive(Debug, Clone, Default)]
pub struct Cycle {
    /// `B⁰, B¹, …, Bⁿ`; none before a digest changes.
    powers: Vec<u128>,
    sums: Digests,
    /// Rounds that the lanes have taken.
    entered: [u64; LANES],
    /// Of the call whose changes are being entered, in the lanes whose bits are set.
    moved: [Moved; LANES],
    which: u8,
}

impl Cycle {
    /// Takes the digests of all calls, before any of them changes for the first time.
    #[inline]
    pub fn know<'a>(&mut self, round: impl ExactSizeIterator<Item = &'a Digests>) {
        if self.powers.is_empty() {
            self.sum(round);
        }
    }

    #[cold]
    fn sum<'a>(&mut self, round: impl ExactSizeIterator<Item = &'a Digests>) {
        self.powers
            .extend(std::iter::successors(Some(1), |p: &u128| Some(p.wrapping_mul(B))).take(round.len() + 1));
        let mut sums = Lanes { calls: 0, hash: [0; LANES] };
        round.for_each(|digests| sums.enter(digests, 1));
        self.sums = sums.hash;
    }

    /// The digest of a call of the round, by its place, is more by `by` in a lane from now on. So many whole rounds have gone by.
    #[inline]
    pub fn change(&mut self, place: usize, lane: usize, by: u128, whole: u64, lanes: &mut Lanes) {
        let after = self.powers.len().checked_sub(place + 2);
        let Some(power) = after.and_then(|n| self.powers.get(n).copied()) else { return };
        self.take(lane, whole, lanes);
        self.sums[lane] = self.sums[lane].wrapping_add(by.wrapping_mul(power));
    }

    /// The digest of a call of the round is more by `by` in a lane from a round on, which may be over: its changes are told in
    /// order, and then [entered](Cycle::enter).
    #[inline]
    pub fn note(&mut self, round: u64, lane: usize, by: u128) {
        let bit = 1 << lane;
        if self.which & bit == 0 {
            self.which |= bit;
            self.moved[lane] = Moved { round, ..Moved::default() };
        }
        let power = self.powers.last().copied().unwrap_or(1);
        let moved = &mut self.moved[lane];
        moved.go_on(power, round);
        moved.by = moved.by.wrapping_add(by);
    }

    /// Enters the changes of a call, by its place, after so many whole rounds.
    pub fn enter(&mut self, place: usize, whole: u64, lanes: &mut Lanes) {
        let after = self.powers.len().checked_sub(place + 2);
        let power = after.and_then(|n| self.powers.get(n).copied()).unwrap_or(1);
        let step = self.powers.last().copied().unwrap_or(1);
        for lane in lanes_of(std::mem::take(&mut self.which)) {
            self.take(lane, whole, lanes);
            let moved = &mut self.moved[lane];
            moved.go_on(step, whole);
            lanes.hash[lane] = lanes.hash[lane].wrapping_add(moved.so_far.wrapping_mul(power));
            self.sums[lane] = self.sums[lane].wrapping_add(moved.by.wrapping_mul(power));
        }
    }

    /// Ends the loop: enters what has not been of `whole` rounds, and the first `at` calls of another.
    pub fn end<'a>(
        &mut self,
        round: impl ExactSizeIterator<Item = &'a Digests> + Clone,
        whole: u64,
        at: usize,
        lanes: &mut Lanes,
    ) {
        if whole > 0 {
            self.know(round.clone());
            (0..LANES).for_each(|lane| self.take(lane, whole, lanes));
        }
        let calls = lanes.calls;
        round.take(at).for_each(|digests| lanes.enter(digests, 1));
        // They have been counted.
        lanes.calls = calls;
        self.powers.clear();
        self.entered = [0; LANES];
    }

    /// Enters the rounds that a lane has not taken.
    #[inline]
    fn take(&mut self, lane: usize, whole: u64, lanes: &mut Lanes) {
        let power = self.powers.last().copied().unwrap_or(1);
        turn(&mut lanes.hash[lane], power, self.sums[lane], whole - self.entered[lane]);
        self.entered[lane] = whole;
    }
}

impl Moved {
    #[inline]
    fn go_on(&mut self, power: u128, round: u64) {
        turn(&mut self.so_far, power, self.by, round - self.round);
        self.round = round;
    }
}

/// `h ← h·p + s`, so many times.
#[inline]
fn turn(hash: &mut u128, power: u128, sum: u128, times: u64) {
    if times <= FEW {
        (0..times).for_each(|_| *hash = hash.wrapping_mul(power).wrapping_add(sum));
    } else {
        let (power, times) = geometric(power, times);
        *hash = hash.wrapping_mul(power).wrapping_add(sum.wrapping_mul(times));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rounds_are_their_calls(
            first in proptest::collection::vec(any::<Digests>(), 1..6),
            // After how many calls another call's digests are others, in which lanes, and which.
            changes in proptest::collection::vec((0usize..40, any::<u8>(), any::<Digests>()), 0..20),
            rest in 0usize..40,
        ) {
            let (mut plain, mut lanes, mut cycle) = (Lanes::new(), Lanes::new(), Cycle::default());
            let (mut round, n) = (first, changes.len());
            let (mut at, mut noted) = (0, Vec::new());
            for (i, (calls, which, digests)) in changes.into_iter().chain([(rest, 0, [0; LANES])]).enumerate() {
                for _ in 0..calls {
                    plain.enter(&round[at % round.len()], 1);
                    at += 1;
                }
                if i == n {
                    break;
                }
                let (place, whole) = (at % round.len(), u64::try_from(at / round.len()).unwrap());
                cycle.know(round.iter());
                for lane in lanes_of(which) {
                    let old = std::mem::replace(&mut round[place][lane], digests[lane]);
                    let by = digests[lane].wrapping_sub(old);
                    // Changes of some calls are told at once, of others later.
                    if place % 2 == 0 {
                        cycle.change(place, lane, by, whole, &mut lanes);
                    } else {
                        noted.push((place, whole, lane, by));
                    }
                }
            }
            let whole = u64::try_from(at / round.len()).unwrap();
            noted.sort_by_key(|n| n.0);
            for of in noted.chunk_by(|a, b| a.0 == b.0) {
                of.iter().for_each(|(_, round, lane, by)| cycle.note(*round, *lane, *by));
                cycle.enter(of[0].0, whole, &mut lanes);
            }
            cycle.end(round.iter(), whole, at % round.len(), &mut lanes);
            prop_assert_eq!(lanes.hash, plain.hash);
        }
    }
}
