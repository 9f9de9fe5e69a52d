//! Numbers of one type as those of another: exactly, because all of them fit; checked, because a reason says that they do;
//! or the nearest there is, where that is what is meant.
//!
//! Addresses have 64 bits wherever this is built, so that `usize` and `u64` are the same numbers.

use std::any::type_name;
use std::fmt::Display;

const _: () = assert!(usize::BITS == u64::BITS, "st is for machines whose addresses have 64 bits");

/// Numbers that are one of `u64` and of `usize`, whatever they are.
pub trait Exact: Copy {
    /// The same number.
    fn to_u64(self) -> u64;
    /// The same number.
    fn to_usize(self) -> usize;
}

impl Exact for u32 {
    #[inline(always)]
    fn to_u64(self) -> u64 {
        self.into()
    }

    #[inline(always)]
    fn to_usize(self) -> usize {
        self as usize
    }
}

impl Exact for u64 {
    #[inline(always)]
    fn to_u64(self) -> u64 {
        self
    }

    #[expect(clippy::cast_possible_truncation, reason = "usize has 64 bits")]
    #[inline(always)]
    fn to_usize(self) -> usize {
        self as usize
    }
}

impl Exact for usize {
    #[inline(always)]
    fn to_u64(self) -> u64 {
        self as u64
    }

    #[inline(always)]
    fn to_usize(self) -> usize {
        self
    }
}

/// The same number in a type that does not have all of them, for a reason that stands where this is called or that the
/// machine gives: nothing in memory has 2^63 elements.
///
/// # Panics
///
/// If the reason is wrong, with the place of the call. Going on would mean to write something that never was; the recorder
/// stops recording then (`guarded` in st-pmpi), and the program it is in goes on.
#[inline]
#[must_use]
#[track_caller]
pub fn narrow<T>(n: impl TryInto<T> + Display + Copy) -> T {
    match n.try_into() {
        Ok(n) => n,
        Err(_) => too_large(&n, type_name::<T>()),
    }
}

#[expect(clippy::panic, reason = "the program is wrong about its own numbers")]
#[cold]
#[inline(never)]
#[track_caller]
fn too_large(n: &dyn Display, what: &str) -> ! {
    panic!("{n} is no {what}")
}

/// The same number, or the nearest that the type has: for what people read, for times, for limits, and for counts of
/// which a negative one means none.
#[inline]
#[must_use]
pub fn saturate<T: Limited>(n: impl TryInto<T> + Default + PartialOrd + Copy) -> T {
    n.try_into().unwrap_or(if n < Default::default() { T::LEAST } else { T::MOST })
}

/// A number as a float, for statistics and ratios: beyond 2^53 the nearest that there is.
#[expect(clippy::cast_precision_loss, reason = "statistics need no more than 53 bits")]
#[inline]
#[must_use]
pub fn float(n: u128) -> f64 {
    n as f64
}

/// The nearest whole number that is not negative; 0 of what is no number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; what is no number becomes 0"
)]
#[inline]
#[must_use]
pub fn rounded(x: f64) -> u64 {
    x.round() as u64
}

/// Types of numbers with an end on both sides.
pub trait Limited {
    /// The smallest number.
    const LEAST: Self;
    /// The largest.
    const MOST: Self;
}

macro_rules! limited {
    ($($t:ty),*) => {$(
        impl Limited for $t {
            const LEAST: Self = Self::MIN;
            const MOST: Self = Self::MAX;
        }
    )*};
}

limited!(u8, u16, u32, u64, usize, i32, i64);

/// What a number taken from a trace points at, if it points at anything.
#[inline]
#[must_use]
pub fn at<T>(list: &[T], n: impl TryInto<usize>) -> Option<&T> {
    list.get(n.try_into().ok()?)
}

#[cfg(test)]
mod tests {
    use super::{at, narrow, saturate};

    #[test]
    fn numbers_that_fit_are_the_same() {
        assert_eq!(narrow::<u8>(255_usize), 255);
        assert_eq!(narrow::<i64>(7_usize), 7);
        assert_eq!(saturate::<u32>(7_i64), 7);
    }

    #[test]
    #[should_panic(expected = "256 is no u8")]
    fn numbers_that_must_fit_and_do_not_are_found_out() {
        let _: u8 = narrow(256_u64);
    }

    #[test]
    fn numbers_outside_become_the_nearest() {
        assert_eq!([saturate::<u8>(-1_i64), saturate(256_i64)], [0, 255]);
        assert_eq!([saturate::<i64>(i128::MIN), saturate(i128::MAX)], [i64::MIN, i64::MAX]);
        assert_eq!(saturate::<i64>(u128::MAX), i64::MAX);
    }

    #[test]
    fn numbers_outside_a_list_point_at_nothing() {
        assert_eq!([at(&[7], 0_i64), at(&[7], 1_i64), at(&[7], -1_i64)], [Some(&7), None, None]);
    }
}
