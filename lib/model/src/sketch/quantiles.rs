//! A distribution by its durations at fixed ranks: some ten bytes, however wide it is.
//!
//! Of `n` durations in ascending order those at positions 1 and ⌈n·s⌉ are kept, for the shares s of [`SHARES`], each as its
//! bucket of 1 %; those between two of them count as evenly spread from one to the other. Where that is not so (durations of
//! two kinds, say) further positions are kept, where what is made is furthest from what was measured, until the area between
//! the two is at most a part of the sum ([`ERROR`], 2 %) and few durations are off by more than 4 %, or [`most`] have been added.
//!
//! Source: the papers' balanced bins hold equal shares of the durations, too (Ratn, Mueller, de Supinski, Schulz 2008); here
//! shares are finer at the ends, where what is slow stands.

use super::buckets::{bucket, edges, representative};
use crate::num::{Exact as _, narrow, saturate};

/// Shares, in thousandths, at whose ends a duration is kept, beside the shortest.
pub const SHARES: [u16; 11] = [10, 50, 100, 250, 500, 750, 900, 950, 990, 999, 1000];

/// Measured and made durations are near if the area between them is at most this many millionths of the sum, unless asked
/// otherwise, and if those that are more than two buckets apart are so by one bucket for one duration in twelve at most; in
/// less, the smaller the area.
pub const ERROR: u32 = 20_000;
const FAR: u32 = 12;
const MILLION: u128 = 1_000_000;

/// Further positions of a distribution that may be this many millionths of its sum away from what was measured: 8, and the more
/// the less that is.
#[must_use]
pub fn most(error: u32) -> usize {
    (8 * ERROR / error.clamp(1, ERROR)).to_usize()
}

/// Bytes that sum of squares, shortest and longest take where they are exact; a bucket, or a duration that is kept, takes about
/// one, a further position two.
const TOTALS: usize = 14;

/// Durations at fixed ranks, and how far durations are from their mean.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quantiles {
    /// Further positions, ascending: of each its duration is kept, and the next.
    more: Vec<u64>,
    /// Their buckets in ascending order: one per position ([`positions`]), or a single one in which all lie.
    buckets: Vec<u16>,
    /// Bucket of the standard deviation.
    deviation: u16,
}

/// The places of `n` durations in ascending order, from 1, of which the durations are kept.
#[must_use]
pub fn positions(n: u64, more: &[u64]) -> Vec<u64> {
    let at = |share: &u16| narrow((u128::from(n) * u128::from(*share)).div_ceil(1000));
    let mut all: Vec<u64> = std::iter::once(1).chain(SHARES.iter().map(at)).collect();
    if !more.is_empty() {
        all.extend(more.iter().flat_map(|at| [*at, at.saturating_add(1)]));
        all.sort_unstable();
    }
    all.dedup();
    all
}

impl Quantiles {
    /// Of durations in buckets, ascending, each with how many are in it; `deviation` is their standard deviation, ns; `error`, in
    /// millionths of the sum, how far from these they may be. *Cost:* O(buckets · [`most`]).
    pub(super) fn of(measured: &[(u16, u64)], n: u64, deviation: u64, error: u32) -> Self {
        let deviation = bucket(deviation);
        let mut more = Vec::new();
        loop {
            let places = positions(n, &more);
            let made = Self { buckets: at(measured, &places), more, deviation };
            // Once buckets take less room these are not kept.
            let on = made.more.len() < most(error) && made.is_smaller_than(measured.len());
            let next = if on { made.furthest(measured, &places, error) } else { None };
            more = made.more.clone();
            match next.map(|place| (place, more.binary_search(&place))) {
                Some((place, Err(i))) => more.insert(i, place),
                _ => return made,
            }
        }
    }

    /// The position at which what is made is furthest from what was measured, between the two kept ones between which they are
    /// most apart in all; nothing if they are near. Apart are durations by their difference, if that is large, else by their
    /// ratio.
    fn furthest(&self, measured: &[(u16, u64)], places: &[u64], error: u32) -> Option<u64> {
        let n = places.last().copied()?;
        let sum: u128 = measured.iter().map(|(b, n)| u128::from(representative(*b)) * u128::from(*n)).sum();
        let area = sum.saturating_mul(error.into()) / MILLION;
        let place = self
            .apart(measured, places, area, |made, was| representative(made).abs_diff(representative(was)));
        let place = place.or_else(|| {
            let far = u128::from(n) * u128::from(error) / u128::from(ERROR * FAR);
            self.apart(measured, places, far, |made, was| match made.abs_diff(was) {
                0..=2 => 0,
                far => far.into(),
            })
        });
        place.filter(|place| (1..n).contains(place))
    }

    /// The same by some distance, where that is more than `near` in all.
    fn apart(
        &self,
        measured: &[(u16, u64)],
        places: &[u64],
        near: u128,
        distance: impl Fn(u16, u16) -> u64,
    ) -> Option<u64> {
        let mut made = self.spread(places.last().copied()?);
        let (mut making, mut ends) = (made.next()?, places.iter().copied().peekable());
        let (mut all, mut seen) = (0u128, 0u64);
        // Between two kept positions: all distances, and the largest with its place.
        let (mut here, mut worst) = ((0u128, (0u64, 0u64)), (0u128, (0u64, 0u64)));
        for &(bucket, mut left) in measured {
            let (from, to) = (seen, seen + left);
            while left > 0 {
                while ends.next_if(|end| *end <= seen).is_some() {
                    worst = worst.max(std::mem::take(&mut here));
                }
                let times = left.min(making.1).min(ends.peek().map_or(left, |end| end - seen));
                let apart = distance(making.0, bucket);
                // Where it is too long yet the next one is the jump, else the one before.
                let place = if bucket < making.0 { to } else { from };
                here.0 += u128::from(apart) * u128::from(times);
                here.1 = here.1.max((apart, place));
                all += u128::from(apart) * u128::from(times);
                (left, seen) = (left - times, seen + times);
                making.1 -= times;
                if making.1 == 0 {
                    making = made.next().unwrap_or((making.0, u64::MAX));
                }
            }
        }
        let (_, (apart, place)) = worst.max(here);
        (all > near && apart > 0).then_some(place)
    }

    /// All durations in the bucket of their mean.
    pub(super) fn of_mean(mean: u64, deviation: u64) -> Self {
        Self { more: Vec::new(), buckets: vec![bucket(mean)], deviation: bucket(deviation) }
    }

    /// From decoded parts of `n` durations; `None` if positions and buckets do not ascend, a bucket is none, or there are not as
    /// many buckets as places, and not one.
    #[must_use]
    pub fn from_parts(more: Vec<u64>, buckets: Vec<u16>, deviation: u16, n: u64) -> Option<Self> {
        let inside = more.is_sorted_by(|a, b| a < b) && more.iter().all(|place| (1..n).contains(place));
        let places = buckets.len() == 1 && more.is_empty() || buckets.len() == positions(n, &more).len();
        let buckets_are = buckets.is_sorted() && buckets.last().is_some_and(|last| *last <= bucket(u64::MAX));
        (n > 0 && inside && places && buckets_are).then_some(Self { more, buckets, deviation })
    }

    /// Whether these take less room than so many buckets, and the exact totals beside them.
    pub(super) fn is_smaller_than(&self, buckets: usize) -> bool {
        self.buckets.len() + 2 * self.more.len() < buckets + TOTALS
    }

    /// Further positions than the fixed ones.
    #[must_use]
    pub fn more(&self) -> &[u64] {
        &self.more
    }

    /// The buckets that are kept.
    #[must_use]
    pub fn buckets(&self) -> &[u16] {
        &self.buckets
    }

    /// Bucket of the standard deviation.
    #[must_use]
    pub fn deviation(&self) -> u16 {
        self.deviation
    }

    /// Buckets in ascending order with how many of `n` durations count as being in each. *Cost:* by the buckets between the
    /// first and the last.
    pub(super) fn spread(&self, n: u64) -> impl Iterator<Item = (u16, u64)> + '_ {
        let one = (self.buckets.len() == 1).then(|| (self.buckets[0], n));
        let positions = if one.is_some() { Vec::new() } else { positions(n, &self.more) };
        let places: Vec<(u16, u64)> = self.buckets.iter().copied().zip(positions).collect();
        let first = places.first().map(|(bucket, _)| (*bucket, 1));
        let next = places.clone().into_iter().skip(1);
        let parts = places.into_iter().zip(next).flat_map(|((from, before), (to, at))| {
            let n = at - before;
            let (low, high) = (representative(from), representative(to));
            // Evenly from one to the other, the last in the next bucket that is kept.
            let up_to = move |bucket: u16| match edges(bucket).1 {
                _ if bucket >= to => n,
                end => share(n, end.saturating_sub(low), high - low),
            };
            let less = move |bucket: u16| if bucket > from { up_to(bucket - 1) } else { 0 };
            (from..=to).map(move |bucket| (bucket, up_to(bucket) - less(bucket)))
        });
        Joined { parts: one.into_iter().chain(first).chain(parts), last: None }
    }

    /// What is made of count and sum beside them: sum of squares, shortest and longest.
    pub(super) fn made(&self, count: u64, sum: u128) -> (u128, u64, u64) {
        let n = u128::from(count.max(1));
        let (mean, above): (u64, u64) = (saturate(sum / n), saturate(sum.div_ceil(n)));
        let deviation = u128::from(representative(self.deviation));
        let square = u128::from(mean) * u128::from(mean) + deviation.saturating_mul(deviation);
        let squares = square.saturating_mul(n);
        match self.buckets[..] {
            [first, .., last] if self.deviation > 0 || first < last => {
                (squares, representative(first).min(mean), representative(last).max(above))
            }
            // They are all alike.
            _ => (squares, mean, above),
        }
    }
}

/// The buckets of durations at positions.
fn at(measured: &[(u16, u64)], places: &[u64]) -> Vec<u16> {
    let (mut kept, mut seen) = (Vec::with_capacity(places.len()), 0u64);
    let (mut places, longest) = (places.iter().peekable(), bucket(u64::MAX));
    for (bucket, n) in measured {
        seen = seen.saturating_add(*n);
        while places.next_if(|at| **at <= seen).is_some() {
            // Of the durations in the last one is not known how long they are.
            kept.push((*bucket).min(longest));
        }
    }
    kept
}

/// ⌊n·way/wide⌋; where there is no way, nothing.
fn share(n: u64, way: u64, wide: u64) -> u64 {
    narrow(u128::from(n) * u128::from(way.min(wide)) / u128::from(wide.max(1)))
}

/// Equal buckets in a row as one, and none that holds nothing.
struct Joined<I> {
    parts: I,
    last: Option<(u16, u64)>,
}

impl<I: Iterator<Item = (u16, u64)>> Iterator for Joined<I> {
    type Item = (u16, u64);

    fn next(&mut self) -> Option<(u16, u64)> {
        loop {
            match (self.parts.next(), self.last) {
                (Some((_, 0)), _) => {}
                (Some((bucket, n)), Some((last, all))) if bucket == last => self.last = Some((last, all + n)),
                (next, last) => {
                    self.last = next;
                    if last.is_some() || next.is_none() {
                        return last;
                    }
                }
            }
        }
    }
}
