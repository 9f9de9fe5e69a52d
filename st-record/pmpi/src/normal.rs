//! The library's constants as the values of [`st_model::values`].

use crate::constants as k;
use crate::real;
use st_model::num::{narrow, saturate};
use st_model::values::{ANY_SOURCE, ANY_TAG, DFLT_DARG, FOREIGN_BITS, NONE, PROC_NULL, ROOT, UNDEFINED};
use std::ffi::c_int;

/// A rank argument.
#[inline]
pub(crate) fn rank(r: c_int) -> i64 {
    if r >= 0 {
        i64::from(r)
    } else if r == k::MPI_PROC_NULL() {
        PROC_NULL
    } else if r == k::MPI_ANY_SOURCE() {
        ANY_SOURCE
    } else if r == k::MPI_ROOT() {
        ROOT
    } else if r == k::MPI_UNDEFINED() {
        UNDEFINED
    } else {
        NONE
    }
}

/// A tag argument.
#[inline]
pub(crate) fn tag(t: c_int) -> i64 {
    if t == k::MPI_ANY_TAG() { ANY_TAG } else { i64::from(t) }
}

/// Whether a receive leaves its source or tag open.
#[inline]
pub(crate) fn is_wildcard(source: c_int, tag: c_int) -> bool {
    source == k::MPI_ANY_SOURCE() || tag == k::MPI_ANY_TAG()
}

/// A colour.
pub(crate) fn color(c: c_int) -> i64 {
    if c == k::MPI_UNDEFINED() { UNDEFINED } else { i64::from(c) }
}

/// Position of a constant in a list of them, as [`st_model::values`] orders it.
fn position(v: c_int, of: &[c_int]) -> i64 {
    of.iter().position(|&x| x == v).map_or(NONE, narrow)
}

/// Result of a comparison.
pub(crate) fn compare(v: c_int) -> i64 {
    position(v, &[k::MPI_IDENT(), k::MPI_CONGRUENT(), k::MPI_SIMILAR(), k::MPI_UNEQUAL()])
}

/// Kind of topology.
pub(crate) fn topology(v: c_int) -> i64 {
    position(v, &[k::MPI_UNDEFINED(), k::MPI_GRAPH(), k::MPI_CART(), k::MPI_DIST_GRAPH()])
}

/// Order of an array's elements.
pub(crate) fn arrayorder(v: c_int) -> i64 {
    position(v, &[k::MPI_ORDER_C(), k::MPI_ORDER_FORTRAN()])
}

/// Distribution of an array's dimension.
pub(crate) fn distribution(v: c_int) -> i64 {
    position(v, &[k::MPI_DISTRIBUTE_BLOCK(), k::MPI_DISTRIBUTE_CYCLIC(), k::MPI_DISTRIBUTE_NONE()])
}

/// Argument of a distribution.
pub(crate) fn distribution_argument(v: c_int) -> i64 {
    if v == k::MPI_DISTRIBUTE_DFLT_DARG() { DFLT_DARG } else { i64::from(v) }
}

/// Kind of split.
pub(crate) fn splittype(v: c_int) -> i64 {
    if v == k::MPI_UNDEFINED() { UNDEFINED } else { position(v, &[k::MPI_COMM_TYPE_SHARED()]) }
}

/// Class of types.
pub(crate) fn typeclass(v: c_int) -> i64 {
    position(v, &[k::MPI_TYPECLASS_REAL(), k::MPI_TYPECLASS_INTEGER(), k::MPI_TYPECLASS_COMPLEX()])
}

/// Kind of lock.
pub(crate) fn locktype(v: c_int) -> i64 {
    position(v, &[k::MPI_LOCK_EXCLUSIVE(), k::MPI_LOCK_SHARED()])
}

/// Level of thread support.
pub(crate) fn threadlevel(v: c_int) -> i64 {
    position(
        v,
        &[
            k::MPI_THREAD_SINGLE(),
            k::MPI_THREAD_FUNNELED(),
            k::MPI_THREAD_SERIALIZED(),
            k::MPI_THREAD_MULTIPLE(),
        ],
    )
}

/// What an offset counts from.
pub(crate) fn whence(v: c_int) -> i64 {
    position(v, &[k::MPI_SEEK_SET(), k::MPI_SEEK_CUR(), k::MPI_SEEK_END()])
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
            k::MPI_MODE_NOCHECK(),
            k::MPI_MODE_NOSTORE(),
            k::MPI_MODE_NOPUT(),
            k::MPI_MODE_NOPRECEDE(),
            k::MPI_MODE_NOSUCCEED(),
        ],
    )
}

/// Mode in which a file is opened.
pub(crate) fn amode(v: c_int) -> i64 {
    bits(
        v,
        &[
            k::MPI_MODE_CREATE(),
            k::MPI_MODE_RDONLY(),
            k::MPI_MODE_WRONLY(),
            k::MPI_MODE_RDWR(),
            k::MPI_MODE_DELETE_ON_CLOSE(),
            k::MPI_MODE_UNIQUE_OPEN(),
            k::MPI_MODE_EXCL(),
            k::MPI_MODE_APPEND(),
            k::MPI_MODE_SEQUENTIAL(),
        ],
    )
}

/// What a type was made by.
pub(crate) fn combiner(v: c_int) -> i64 {
    position(v, &k::combiners())
}

/// A library's error class, numbered from 1 in the order of [`st_model::values::ERROR_CLASSES`]; classes of the library's
/// or the program's own come after these.
pub(crate) fn error_class(class: c_int) -> u32 {
    let classes = k::error_classes();
    let known = classes.iter().position(|c| *c == class);
    let own = || classes.len() + saturate::<usize>(class);
    narrow::<u32>(known.unwrap_or_else(own)) + 1
}

/// The library's number of `MPI_ERR_UNKNOWN`: that of a call which failed without returning a code. (`MPI_ERR_OTHER` is
/// a known error that has no class.)
pub(crate) fn unknown_error() -> c_int {
    k::MPI_ERR_UNKNOWN()
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

/// What a function of the tools' interface has returned, as a code whose class can be asked for. Open MPI ends the program that asks for
/// the class of a negative one.
pub(crate) fn tools_code(code: c_int) -> i64 {
    i64::from(if code < 0 { unknown_error() } else { code })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::Family;

    #[test]
    fn constants_of_every_family_have_one_value() {
        for family in [Family::Openmpi, Family::Mpich, Family::Standard] {
            let _selected = k::selected(family);
            one_value();
        }
    }

    fn one_value() {
        assert_eq!(rank(k::MPI_PROC_NULL()), PROC_NULL);
        assert_eq!(rank(k::MPI_ANY_SOURCE()), ANY_SOURCE);
        assert_eq!(rank(k::MPI_ROOT()), ROOT);
        assert_eq!((rank(0), rank(7)), (0, 7));
        assert_eq!((tag(k::MPI_ANY_TAG()), tag(3)), (ANY_TAG, 3));
        assert!(
            is_wildcard(k::MPI_ANY_SOURCE(), 3) && is_wildcard(0, k::MPI_ANY_TAG()) && !is_wildcard(0, 3)
        );
        assert_eq!((compare(k::MPI_SIMILAR()), topology(k::MPI_CART())), (2, 2));
        assert_eq!((topology(k::MPI_UNDEFINED()), arrayorder(k::MPI_ORDER_FORTRAN())), (0, 1));
        assert_eq!((splittype(k::MPI_COMM_TYPE_SHARED()), splittype(12345)), (0, NONE));
        let truncate = k::error_classes()[14];
        assert_eq!(st_model::values::error_class(error_class(truncate)), Some("MPI_ERR_TRUNCATE"));
        assert_eq!(st_model::values::error_class(error_class(1 << 20)), None);
        assert_eq!((threadlevel(k::MPI_THREAD_SINGLE()), threadlevel(k::MPI_THREAD_MULTIPLE())), (0, 3));
        assert_eq!(color(k::MPI_UNDEFINED()), UNDEFINED);
        assert_eq!((locktype(k::MPI_LOCK_SHARED()), whence(k::MPI_SEEK_END())), (1, 2));
        assert_eq!(assertion(k::MPI_MODE_NOPUT() | k::MPI_MODE_NOSUCCEED()), 0b10100);
        assert_eq!(amode(k::MPI_MODE_CREATE() | k::MPI_MODE_RDWR()), 0b1001);
        assert_eq!(amode(k::MPI_MODE_RDONLY() | 1 << 20), 0b10 | 1 << (20 + FOREIGN_BITS));
    }
}
