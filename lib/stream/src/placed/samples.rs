//! Numbers to try coders of exact times with.

use super::Numbers;
use crate::error::DecodeError;
use proptest::prelude::*;
use st_model::num::narrow;

/// How a coder writes numbers, and reads so many events of them.
type Compress = fn(&Numbers) -> Option<(Vec<u8>, u64)>;
type Expand = fn(&[u8], u32) -> Result<(Numbers, u64), DecodeError>;

/// A number, near others or anywhere.
pub(in super::super) fn number() -> impl Strategy<Value = i64> {
    prop_oneof![Just(40i64), Just(50i64), -3i64..3, 900i64..1_100, 1_000_000i64..2_000_000, any::<i64>()]
}

/// Gaps and durations by event.
pub(in super::super) fn numbers(v: impl IntoIterator<Item = (i64, i64)>) -> Numbers {
    let (gaps, durations) = v.into_iter().unzip();
    Numbers { gaps, durations }
}

/// A short call, a long one, a computation, with noise; by a clock that ticks so many ns.
pub(in super::super) fn noisy(events: usize, tick: i64) -> Numbers {
    let mut noise = 1u64;
    numbers([(40, 300), (90, 25_000), (400_000, 1_200)].into_iter().cycle().take(events).map(
        |(gap, duration)| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let part =
                |n: i64, by: u32| (n + ((n * (noise >> by & 0xffff).cast_signed()) >> 18)) / tick * tick;
            (part(gap, 30), part(duration, 47))
        },
    ))
}

/// Checks that numbers, so many times one after the other, come back, and not from a part of their bytes or with those behind them.
pub(in super::super) fn come_back(
    v: &[(i64, i64)],
    times: usize,
    compress: Compress,
    expand: Expand,
    behind: &[u8],
) -> Result<(), TestCaseError> {
    let all = numbers(v.iter().copied().cycle().take(v.len() * times));
    let events = narrow(all.gaps.len());
    let packed = compress(&all).unwrap().0;
    prop_assert_eq!(expand(&packed, events).unwrap().0, all);
    for cut in [packed.len() - 1, packed.len() / 2] {
        prop_assert!(expand(&packed[..cut], events).is_err());
    }
    prop_assert!(expand(&[&packed[..], behind].concat(), events).is_err());
    Ok(())
}

/// Checks that what is read of bytes one of which is another are as many numbers, if anything.
pub(in super::super) fn damaged(
    v: &[(i64, i64)],
    at: prop::sample::Index,
    xor: u8,
    compress: Compress,
    expand: Expand,
) -> Result<(), TestCaseError> {
    let mut packed = compress(&numbers(v.iter().copied())).unwrap().0;
    let at = at.index(packed.len());
    packed[at] ^= xor;
    if let Ok((read, _)) = expand(&packed, narrow(v.len())) {
        prop_assert!(read.gaps.len() == v.len() && read.durations.len() == v.len());
    }
    Ok(())
}
