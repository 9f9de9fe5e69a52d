//! The library's constants as the values of [`st_model::values`].

use crate::ffi::constants as k;
use crate::real;
use st_model::num::{narrow, saturate};
use st_model::values::{ANY_SOURCE, ANY_TAG, DFLT_DARG, FOREIGN_BITS, NONE, PROC_NULL, ROOT, UNDEFINED};
use std::ffi::c_int;

/// A rank argument.
#[inline]
pub(crate) fn rank(r: c_int) -> i64 {
    if r >= 0 {
        i64::from(r)
    } else if r == k::st_MPI_PROC_NULL {
        PROC_NULL
    } else if r == k::st_MPI_ANY_SOURCE {
        ANY_SOURCE
    } else if r == k::st_MPI_ROOT {
        ROOT
    } else if r == k::st_MPI_UNDEFINED {
        UNDEFINED
    } else {
        NONE
    }
}

/// A tag argument.
#[inline]
pub(crate) fn tag(t: c_int) -> i64 {
    if t == k::st_MPI_ANY_TAG { ANY_TAG } else { i64::from(t) }
}

/// Whether a receive leaves its source or tag open.
#[inline]
pub(crate) fn is_wildcard(source: c_int, tag: c_int) -> bool {
    source == k::st_MPI_ANY_SOURCE || tag == k::st_MPI_ANY_TAG
}

/// A colour.
pub(crate) fn color(c: c_int) -> i64 {
    if c == k::st_MPI_UNDEFINED { UNDEFINED } else { i64::from(c) }
}

/// Position of a constant in a list of them, as [`st_model::values`] orders it.
fn position(v: c_int, of: &[c_int]) -> i64 {
    of.iter().position(|&x| x == v).map_or(NONE, narrow)
}

/// Result of a comparison.
pub(crate) fn compare(v: c_int) -> i64 {
    position(v, &[k::st_MPI_IDENT, k::st_MPI_CONGRUENT, k::st_MPI_SIMILAR, k::st_MPI_UNEQUAL])
}

/// Kind of topology.
pub(crate) fn topology(v: c_int) -> i64 {
    position(v, &[k::st_MPI_UNDEFINED, k::st_MPI_GRAPH, k::st_MPI_CART, k::st_MPI_DIST_GRAPH])
}

/// Order of an array's elements.
pub(crate) fn arrayorder(v: c_int) -> i64 {
    position(v, &[k::st_MPI_ORDER_C, k::st_MPI_ORDER_FORTRAN])
}

/// Distribution of an array's dimension.
pub(crate) fn distribution(v: c_int) -> i64 {
    position(v, &[k::st_MPI_DISTRIBUTE_BLOCK, k::st_MPI_DISTRIBUTE_CYCLIC, k::st_MPI_DISTRIBUTE_NONE])
}

/// Argument of a distribution.
pub(crate) fn distribution_argument(v: c_int) -> i64 {
    if v == k::st_MPI_DISTRIBUTE_DFLT_DARG { DFLT_DARG } else { i64::from(v) }
}

/// Kind of split.
pub(crate) fn splittype(v: c_int) -> i64 {
    if v == k::st_MPI_UNDEFINED { UNDEFINED } else { position(v, &[k::st_MPI_COMM_TYPE_SHARED]) }
}

/// Class of types.
pub(crate) fn typeclass(v: c_int) -> i64 {
    position(v, &[k::st_MPI_TYPECLASS_REAL, k::st_MPI_TYPECLASS_INTEGER, k::st_MPI_TYPECLASS_COMPLEX])
}

/// Kind of lock.
pub(crate) fn locktype(v: c_int) -> i64 {
    position(v, &[k::st_MPI_LOCK_EXCLUSIVE, k::st_MPI_LOCK_SHARED])
}

/// What an offset counts from.
pub(crate) fn whence(v: c_int) -> i64 {
    position(v, &[k::st_MPI_SEEK_SET, k::st_MPI_SEEK_CUR, k::st_MPI_SEEK_END])
}

/// A sum of constants as bits in the order of a list of them; others stand higher up.
fn bits(v: c_int, of: &[c_int]) -> i64 {
    let mut rest = v;
    let mut word = 0;
    for (i, &bit) in of.iter().enumerate() {
        if rest & bit == bit {
            rest &= !bit;
            word |= 1_i64 << i;
        }
    }
    word | i64::from(rest.cast_unsigned()) << FOREIGN_BITS
}

/// Promises about a synchronisation of one-sided communication.
pub(crate) fn assertion(v: c_int) -> i64 {
    bits(
        v,
        &[
            k::st_MPI_MODE_NOCHECK,
            k::st_MPI_MODE_NOSTORE,
            k::st_MPI_MODE_NOPUT,
            k::st_MPI_MODE_NOPRECEDE,
            k::st_MPI_MODE_NOSUCCEED,
        ],
    )
}

/// Mode in which a file is opened.
pub(crate) fn amode(v: c_int) -> i64 {
    bits(
        v,
        &[
            k::st_MPI_MODE_CREATE,
            k::st_MPI_MODE_RDONLY,
            k::st_MPI_MODE_WRONLY,
            k::st_MPI_MODE_RDWR,
            k::st_MPI_MODE_DELETE_ON_CLOSE,
            k::st_MPI_MODE_UNIQUE_OPEN,
            k::st_MPI_MODE_EXCL,
            k::st_MPI_MODE_APPEND,
            k::st_MPI_MODE_SEQUENTIAL,
        ],
    )
}

/// What a type was made by.
pub(crate) fn combiner(v: c_int) -> i64 {
    position(v, &k::st_combiners)
}

/// A library's error class, numbered from 1 in the order of [`st_model::values::ERROR_CLASSES`]; classes of the library's
/// or the program's own come after these.
pub(crate) fn error_class(class: c_int) -> u32 {
    let known = k::st_errors.iter().position(|c| *c == class);
    let own = || k::st_errors.len() + saturate::<usize>(class);
    narrow::<u32>(known.unwrap_or_else(own)) + 1
}

/// The library's number of `MPI_ERR_UNKNOWN`: that of a call which failed without returning a code. (`MPI_ERR_OTHER` is
/// a known error that has no class.)
pub(crate) fn unknown_error() -> c_int {
    let at = st_model::values::ERROR_CLASSES.iter().position(|name| *name == "MPI_ERR_UNKNOWN");
    at.and_then(|i| k::st_errors.get(i)).copied().unwrap_or(1)
}

/// Error class of a code, numbered as [`st_model::values::ERROR_CLASSES`].
pub(crate) fn class_of(code: i64) -> u32 {
    let mut class: c_int = 0;
    if let Ok(code) = c_int::try_from(code) {
        // SAFETY: `class` is a valid place for the answer.
        unsafe { real::MPI_Error_class(code, &raw mut class) };
    }
    error_class(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_every_library_have_one_value() {
        assert_eq!(rank(k::st_MPI_PROC_NULL), PROC_NULL);
        assert_eq!(rank(k::st_MPI_ANY_SOURCE), ANY_SOURCE);
        assert_eq!(rank(k::st_MPI_ROOT), ROOT);
        assert_eq!((rank(0), rank(7)), (0, 7));
        assert_eq!((tag(k::st_MPI_ANY_TAG), tag(3)), (ANY_TAG, 3));
        assert!(
            is_wildcard(k::st_MPI_ANY_SOURCE, 3) && is_wildcard(0, k::st_MPI_ANY_TAG) && !is_wildcard(0, 3)
        );
        assert_eq!((compare(k::st_MPI_SIMILAR), topology(k::st_MPI_CART)), (2, 2));
        assert_eq!((topology(k::st_MPI_UNDEFINED), arrayorder(k::st_MPI_ORDER_FORTRAN)), (0, 1));
        assert_eq!((splittype(k::st_MPI_COMM_TYPE_SHARED), splittype(12345)), (0, NONE));
        let truncate = k::st_errors[14];
        assert_eq!(st_model::values::error_class(error_class(truncate)), Some("MPI_ERR_TRUNCATE"));
        assert_eq!(st_model::values::error_class(error_class(1 << 20)), None);
        assert_eq!(color(k::st_MPI_UNDEFINED), UNDEFINED);
        assert_eq!((locktype(k::st_MPI_LOCK_SHARED), whence(k::st_MPI_SEEK_END)), (1, 2));
        assert_eq!(assertion(k::st_MPI_MODE_NOPUT | k::st_MPI_MODE_NOSUCCEED), 0b10100);
        assert_eq!(amode(k::st_MPI_MODE_CREATE | k::st_MPI_MODE_RDWR), 0b1001);
        assert_eq!(amode(k::st_MPI_MODE_RDONLY | 1 << 20), 0b10 | 1 << (20 + FOREIGN_BITS));
    }
}
