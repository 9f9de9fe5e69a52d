//! Time sketches: the distribution of durations with a guaranteed relative error, exact totals, and merging that
//! gives the same bits in any order.
//!
//! A DDSketch with relative error α = 1 %: bucket i holds durations x with g^(i-1) < x ≤ g^i nanoseconds,
//! g = (1+α)/(1−α). Bucket bounds are integers computed by integer arithmetic, so that all machines agree.
//!
//! Source: algorithms after Masson, Rim, Lee 2019 (DDSketch); keys by predecessor as in Ratn, Mueller, de Supinski,
//! Schulz 2008, section 3 (path-sensitive delta times).

use std::collections::BTreeMap;

/// Number of buckets but the one for zero: bounds below 2^62 ns.
const BUCKETS: usize = count();

/// Upper bounds of the buckets in ns, ascending; a longer duration falls into the last.
static BOUNDS: [u64; BUCKETS] = bounds();

/// Parts of an octave: each holds one bound at most.
const PARTS: usize = 64;

/// Index of the first bound not below (64 + m)/64 · 2^k, at 64·k + m.
static STARTS: [u16; PARTS * 64 + 1] = starts();

/// The next bound of g = 101/99 in 64.64 fixed point: x ← ⌊x·101/99⌋, exact integers on every machine.
const fn next_bound(x: u128) -> u128 {
    x / 99 * 101 + x % 99 * 101 / 99
}

const fn count() -> usize {
    let (mut x, mut last, mut n) = (1u128 << 64, 0, 0);
    while x >> 64 < 1 << 62 {
        if x >> 64 != last {
            last = x >> 64;
            n += 1;
        }
        x = next_bound(x);
    }
    n
}

#[expect(clippy::cast_possible_truncation, reason = "bounds are below 2^62")]
const fn bounds() -> [u64; BUCKETS] {
    let mut out = [0; BUCKETS];
    let (mut x, mut last, mut n) = (1u128 << 64, 0, 0);
    while x >> 64 < 1 << 62 {
        if x >> 64 != last {
            last = x >> 64;
            out[n] = last as u64;
            n += 1;
        }
        x = next_bound(x);
    }
    out
}

#[expect(clippy::cast_possible_truncation, reason = "there are some two thousand bounds")]
const fn starts() -> [u16; PARTS * 64 + 1] {
    let bounds = bounds();
    let mut out = [0; PARTS * 64 + 1];
    let (mut i, mut at) = (0, 0);
    while i < out.len() {
        let low = ((PARTS as u128 + (i % PARTS) as u128) << (i / PARTS)).div_ceil(PARTS as u128);
        while at < BUCKETS && (bounds[at] as u128) < low {
            at += 1;
        }
        out[i] = at as u16;
        i += 1;
    }
    out
}

/// Index of the bucket of a duration in ns: 0 for zero, else 1 + index of the first bound that is not below it.
#[must_use]
#[inline]
pub fn bucket(ns: u64) -> u16 {
    if ns == 0 {
        return 0;
    }
    let shift = ns.leading_zeros() as usize;
    let i = PARTS * (63 - shift) + ((ns << shift) >> 57) as usize - PARTS;
    let at = usize::from(STARTS[i]).min(BUCKETS - 1);
    let at = (at + usize::from(BOUNDS[at] < ns)).min(BUCKETS - 1);
    u16::try_from(at + 1).unwrap_or(u16::MAX)
}

/// A duration in ns that stands for a bucket: within 1 % of every duration in it.
#[must_use]
pub fn representative(bucket: u16) -> u64 {
    let b = &BOUNDS;
    match usize::from(bucket) {
        0 => 0,
        1 => 1,
        i => {
            let i = (i - 1).min(b.len() - 1);
            let (low, high) = (u128::from(b[i - 1]) + 1, u128::from(b[i]));
            // The value whose relative distance to both ends is equal: 2·l·h/(l+h).
            u64::try_from((2 * low * high + (low + high) / 2) / (low + high)).unwrap_or(u64::MAX)
        }
    }
}

/// Distribution of one phase's durations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sketch {
    /// Number of durations.
    pub count: u64,
    /// Sum in ns.
    pub sum: u128,
    /// Sum of squares in ns².
    pub squares: u128,
    /// Shortest, with the lowest rank that had it.
    pub min: (u64, u32),
    /// Longest, with the lowest rank that had it.
    pub max: (u64, u32),
    /// Bucket index → number.
    buckets: BTreeMap<u16, u64>,
}

impl Sketch {
    /// Adds a duration of a rank.
    pub fn add(&mut self, ns: u64, rank: u32) {
        let one = Self {
            count: 1,
            sum: u128::from(ns),
            squares: u128::from(ns) * u128::from(ns),
            min: (ns, rank),
            max: (ns, rank),
            buckets: BTreeMap::new(),
        };
        self.totals(&one);
        *self.buckets.entry(bucket(ns)).or_insert(0) += 1;
    }
    /// Adds another sketch. Commutative and associative, bit for bit.
    pub fn merge(&mut self, other: &Self) {
        self.totals(other);
        for (&b, &n) in &other.buckets {
            *self.buckets.entry(b).or_insert(0) += n;
        }
    }
    fn totals(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            (self.min, self.max) = (other.min, other.max);
        } else {
            self.min = self.min.min(other.min);
            if other.max.0 > self.max.0 || (other.max.0 == self.max.0 && other.max.1 < self.max.1) {
                self.max = other.max;
            }
        }
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
    }
    /// Buckets in ascending order with their numbers.
    pub fn buckets(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.buckets.iter().map(|(&b, &n)| (b, n))
    }
    /// From decoded parts.
    #[must_use]
    pub fn from_parts(totals: Self, buckets: impl IntoIterator<Item = (u16, u64)>) -> Self {
        Self { buckets: buckets.into_iter().collect(), ..totals }
    }
    /// A duration within 1 % of the ⌈q·count⌉-th shortest; 0 if there is none. `q` in thousandths.
    #[must_use]
    pub fn quantile(&self, q: u64) -> u64 {
        let target = (u128::from(self.count) * u128::from(q.min(1000))).div_ceil(1000).max(1);
        let mut seen = 0u128;
        for (b, n) in self.buckets() {
            seen += u128::from(n);
            if seen >= target {
                return representative(b).clamp(self.min.0, self.max.0);
            }
        }
        self.max.0
    }
    /// Mean in ns, rounded down; 0 if empty.
    #[must_use]
    pub fn mean(&self) -> u64 {
        u64::try_from(self.sum / u128::from(self.count.max(1))).unwrap_or(u64::MAX)
    }
}

/// A sketch that is being filled by one rank: buckets in a dense window, so that adding is a few instructions.
#[derive(Clone, Debug, Default)]
pub struct LiveSketch {
    sum: u128,
    squares: u128,
    /// The shortest, as its distance from the longest possible.
    inverse_min: u64,
    max: u64,
    low: usize,
    window: Vec<u64>,
}

impl LiveSketch {
    /// Adds a duration.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        let wide = u128::from(ns);
        self.sum += wide;
        self.squares = self.squares.saturating_add(wide * wide);
        self.inverse_min = self.inverse_min.max(!ns);
        self.max = self.max.max(ns);
        let b = usize::from(bucket(ns));
        match self.window.get_mut(b.wrapping_sub(self.low)) {
            Some(n) => *n += 1,
            None => self.widen(b),
        }
    }
    #[cold]
    fn widen(&mut self, b: usize) {
        if self.window.is_empty() {
            self.low = b;
        } else if b < self.low {
            self.window.splice(0..0, std::iter::repeat_n(0, self.low - b));
            self.low = b;
        }
        if self.window.len() <= b - self.low {
            self.window.resize(b - self.low + 1, 0);
        }
        self.window[b - self.low] += 1;
    }
    /// Goes on with the sketch of a rank.
    #[must_use]
    pub fn resume(sketch: &Sketch) -> Self {
        let Some((first, _)) = sketch.buckets().next() else { return Self::default() };
        let low = usize::from(first);
        let mut window = Vec::new();
        for (b, n) in sketch.buckets() {
            window.resize(usize::from(b) - low, 0);
            window.push(n);
        }
        let Sketch { sum, squares, min, max, .. } = sketch;
        Self { sum: *sum, squares: *squares, inverse_min: !min.0, max: max.0, low, window }
    }
    /// The sketch of a rank.
    #[must_use]
    pub fn finish(self, rank: u32) -> Sketch {
        let Self { sum, squares, inverse_min, max, low, window } = self;
        let count = window.iter().sum();
        if count == 0 {
            return Sketch::default();
        }
        let totals =
            Sketch { count, sum, squares, min: (!inverse_min, rank), max: (max, rank), ..Sketch::default() };
        let buckets = window.into_iter().enumerate().filter(|(_, n)| *n > 0);
        Sketch::from_parts(totals, buckets.map(|(i, n)| (u16::try_from(low + i).unwrap_or(u16::MAX), n)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_is_found_as_by_plain_search(x in prop_oneof![0u64..5000, 0u64..1 << 60, any::<u64>()]) {
            let plain = BOUNDS.partition_point(|&b| b < x).min(BUCKETS - 1) + 1;
            prop_assert_eq!(usize::from(bucket(x)), if x == 0 { 0 } else { plain });
        }

        #[test]
        fn representative_is_within_one_percent(x in prop_oneof![0u64..5000, 0u64..1 << 60]) {
            let r = representative(bucket(x));
            prop_assert!(u128::from(r.abs_diff(x)) * 100 <= u128::from(x) + 50, "{x} {r}");
        }

        #[test]
        fn merge_order_does_not_matter(v in proptest::collection::vec((0u64..1 << 50, 0u32..8), 1..60), cut in 0usize..60) {
            let build = |v: &[(u64, u32)]| {
                let mut s = Sketch::default();
                v.iter().for_each(|&(x, r)| s.add(x, r));
                s
            };
            let cut = cut.min(v.len());
            let (a, b) = (build(&v[..cut]), build(&v[cut..]));
            let (mut ab, mut ba) = (a.clone(), b.clone());
            ab.merge(&b);
            ba.merge(&a);
            prop_assert_eq!(&ab, &ba);
            prop_assert_eq!(&ab, &build(&v));
            let mut live = LiveSketch::default();
            v.iter().for_each(|&(x, _)| live.add(x));
            let mut plain = Sketch::default();
            v.iter().for_each(|&(x, _)| plain.add(x, 0));
            prop_assert_eq!(live.finish(0), plain);
            let mut sorted: Vec<u64> = v.iter().map(|x| x.0).collect();
            sorted.sort_unstable();
            let median = sorted[v.len().div_ceil(2) - 1];
            let q = ab.quantile(500);
            prop_assert!(u128::from(q.abs_diff(median)) * 100 <= u128::from(median) + 100, "{q} {median}");
        }
    }
}
