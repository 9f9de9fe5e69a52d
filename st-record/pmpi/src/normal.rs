//! The library's constants as the values of [`st_trace::values`].

use crate::ffi::constants as k;
use st_trace::values::{ANY_SOURCE, ANY_TAG, DFLT_DARG, NONE, PROC_NULL, ROOT, UNDEFINED};
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

/// Position of a constant in a list of them, as [`st_trace::values`] orders it.
fn position(v: c_int, of: &[c_int]) -> i64 {
    of.iter().position(|&x| x == v).and_then(|i| i64::try_from(i).ok()).unwrap_or(NONE)
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

/// A library's error class, numbered from 1 in the order of [`st_trace::values::ERROR_CLASSES`]; classes of the library's
/// or the program's own come after these.
pub(crate) fn error_class(class: c_int) -> u32 {
    let known = k::st_errors.iter().position(|c| *c == class);
    let own = || k::st_errors.len() + usize::try_from(class).unwrap_or(0);
    u32::try_from(known.unwrap_or_else(own)).unwrap_or(u32::MAX - 1) + 1
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
        assert_eq!(st_trace::values::error_class(error_class(truncate)), Some("MPI_ERR_TRUNCATE"));
        assert_eq!(st_trace::values::error_class(error_class(1 << 20)), None);
        assert_eq!(color(k::st_MPI_UNDEFINED), UNDEFINED);
    }
}
