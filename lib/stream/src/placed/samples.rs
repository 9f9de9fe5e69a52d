//! Numbers to try coders of exact times with.

use super::Numbers;
use proptest::prelude::*;

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
