//! The buckets of a sketch: bounds by exact integers, and how a duration finds its own.

/// Number of buckets but the one for zero: bounds below 2^62 ns.
const BUCKETS: usize = count();

/// Upper bounds of the buckets in ns, ascending. The last one is not a bound: any longer duration falls into it.
static BOUNDS: [u64; BUCKETS] = bounds();

/// As [`BOUNDS`], for finding a bucket: nothing lies beyond the last.
static CEILINGS: [u64; BUCKETS] = ceilings();

/// Parts of an octave: each holds one bound at most.
const PARTS: usize = 64;

/// Index of the first bound not below (64 + m)/64 · 2^k, at 64·k + m; of the last bound if there is none.
static STARTS: [u16; PARTS * 64 + 1] = starts();

/// Buckets of the durations below so many ns, which are most where calls come fast: one load instead of two that wait for each
/// other.
const SHORT: usize = 4096;
static BUCKET_OF: [u16; SHORT] = bucket_of();

/// By bucket, what stands for it: a statistic asks for millions, and each takes a division of 128 bits.
static REPRESENTATIVES: [u64; BUCKETS + 1] = representatives();

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

const fn ceilings() -> [u64; BUCKETS] {
    let mut out = bounds();
    out[BUCKETS - 1] = u64::MAX;
    out
}

#[expect(clippy::cast_possible_truncation, reason = "there are some two thousand bounds")]
const fn starts() -> [u16; PARTS * 64 + 1] {
    let bounds = bounds();
    let mut out = [0; PARTS * 64 + 1];
    let (mut i, mut at) = (0, 0);
    while i < out.len() {
        let low = ((PARTS as u128 + (i % PARTS) as u128) << (i / PARTS)).div_ceil(PARTS as u128);
        while at < BUCKETS - 1 && (bounds[at] as u128) < low {
            at += 1;
        }
        out[i] = at as u16;
        i += 1;
    }
    out
}

#[expect(clippy::cast_possible_truncation, reason = "there are some two thousand bounds")]
const fn bucket_of() -> [u16; SHORT] {
    let bounds = bounds();
    let mut out = [0; SHORT];
    let (mut ns, mut at) = (1, 0);
    while ns < SHORT {
        while bounds[at] < ns as u64 {
            at += 1;
        }
        out[ns] = at as u16 + 1;
        ns += 1;
    }
    out
}

#[expect(clippy::cast_possible_truncation, reason = "a mean of two bounds")]
const fn representatives() -> [u64; BUCKETS + 1] {
    let bounds = bounds();
    let mut out = [0; BUCKETS + 1];
    out[1] = 1;
    let mut i = 1;
    while i < BUCKETS {
        let (low, high) = (bounds[i - 1] as u128 + 1, bounds[i] as u128);
        // The value whose relative distance to both ends is equal: 2·l·h/(l+h).
        out[i + 1] = ((2 * low * high + (low + high) / 2) / (low + high)) as u64;
        i += 1;
    }
    out
}

/// Index of the bucket of a duration in ns: 0 for zero, else 1 + index of the first bound that is not below it.
#[must_use]
#[inline]
pub fn bucket(ns: u64) -> u16 {
    let short = usize::try_from(ns).ok().and_then(|ns| BUCKET_OF.get(ns));
    if let Some(bucket) = short {
        return *bucket;
    }
    let shift = ns.leading_zeros() as usize;
    let i = PARTS * (63 - shift) + ((ns << shift) >> 57) as usize - PARTS;
    let at = STARTS[i];
    at + 1 + u16::from(CEILINGS[usize::from(at)] < ns)
}

/// A duration in ns that stands for a bucket: within 1 % of every duration in it.
#[must_use]
#[inline]
pub fn representative(bucket: u16) -> u64 {
    REPRESENTATIVES[usize::from(bucket).min(BUCKETS)]
}

/// The shortest and the longest duration in a bucket, ns. The last bucket has all that are longer, too.
#[must_use]
pub fn edges(bucket: u16) -> (u64, u64) {
    let end = |i: usize| BOUNDS.get(i).copied();
    match usize::from(bucket).min(BUCKETS) {
        0 => (0, 0),
        1 => (1, 1),
        i if i == BUCKETS => (end(i - 2).map_or(0, |low| low + 1), u64::MAX),
        i => (end(i - 2).map_or(0, |low| low + 1), end(i - 1).unwrap_or(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 1,036 bucket widths of 1 % from 1 µs to 1000 s: the logarithm of 10⁹ to the base g.
    #[test]
    fn as_many_buckets_as_stated() {
        assert_eq!(bucket(1_000_000_000_000) - bucket(1_001), 1036);
    }

    proptest! {
        #[test]
        fn a_bucket_is_found_as_by_plain_search(x in prop_oneof![0u64..5000, 4000u64..5000, 0u64..1 << 60, any::<u64>()]) {
            let plain = BOUNDS.partition_point(|&b| b < x).min(BUCKETS - 1) + 1;
            prop_assert_eq!(usize::from(bucket(x)), if x == 0 { 0 } else { plain });
        }

        #[test]
        fn edges_hold_what_is_in_the_bucket_and_meet(x in prop_oneof![0u64..5000, 0u64..1 << 60, any::<u64>()]) {
            let b = bucket(x);
            let (low, high) = edges(b);
            prop_assert!(low <= x && x <= high && low <= representative(b) && representative(b) <= high);
            prop_assert_eq!((bucket(low), bucket(high)), (b, b));
            prop_assert_eq!(edges(b + 1).0, if high == u64::MAX { low } else { high + 1 });
        }

        #[test]
        fn representative_is_within_one_percent(x in prop_oneof![0u64..5000, 0u64..1 << 60]) {
            let r = representative(bucket(x));
            prop_assert!(u128::from(r.abs_diff(x)) * 100 <= u128::from(x) + 50, "{x} {r}");
        }
    }
}
