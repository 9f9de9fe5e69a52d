//! Special values, the same under every MPI library. The recorder translates each library's constants.

/// `MPI_PROC_NULL`.
pub const PROC_NULL: i64 = -1;
/// `MPI_ANY_SOURCE`.
pub const ANY_SOURCE: i64 = -2;
/// `MPI_ROOT` (root argument in the root's group of an intercommunicator).
pub const ROOT: i64 = -3;
/// `MPI_ANY_TAG`.
pub const ANY_TAG: i64 = -1;
/// `MPI_UNDEFINED` (colour, outcount, topology).
pub const UNDEFINED: i64 = -32766;
/// A null handle in a slot that refers to an object table or a request.
pub const NULL: i64 = -1;
/// `MPI_INFO_ENV`.
pub const INFO_ENV: i64 = -2;
/// Nothing to say: not a receive, not a wildcard, not known.
pub const NONE: i64 = -9;
/// `bytes` of a completed operation that had been cancelled.
pub const CANCELLED: i64 = -10;

/// `MPI_IDENT`, `MPI_CONGRUENT`, `MPI_SIMILAR`, `MPI_UNEQUAL` in this order, as `outcompare` words.
pub const COMPARE: [&str; 4] = ["MPI_IDENT", "MPI_CONGRUENT", "MPI_SIMILAR", "MPI_UNEQUAL"];
/// `MPI_ORDER_C`, `MPI_ORDER_FORTRAN` in this order, as `arrayorder` words.
pub const ORDER: [&str; 2] = ["MPI_ORDER_C", "MPI_ORDER_FORTRAN"];
/// `distribs` words.
pub const DISTRIBUTE: [&str; 3] = ["MPI_DISTRIBUTE_BLOCK", "MPI_DISTRIBUTE_CYCLIC", "MPI_DISTRIBUTE_NONE"];
/// `MPI_DISTRIBUTE_DFLT_DARG` in a `dargs` list.
pub const DFLT_DARG: i64 = -1;
/// `splittype` words; other kinds of a library are recorded as [`NONE`].
pub const SPLIT_TYPE: [&str; 1] = ["MPI_COMM_TYPE_SHARED"];
/// `outtopo` words.
pub const TOPOLOGY: [&str; 4] = ["MPI_UNDEFINED", "MPI_GRAPH", "MPI_CART", "MPI_DIST_GRAPH"];
/// `typeclass` words.
pub const TYPE_CLASS: [&str; 3] = ["MPI_TYPECLASS_REAL", "MPI_TYPECLASS_INTEGER", "MPI_TYPECLASS_COMPLEX"];
/// A `weights` list that was `MPI_UNWEIGHTED` has this one element; `MPI_WEIGHTS_EMPTY` is an empty list.
pub const UNWEIGHTED: i64 = -1;

/// `locktype` words.
pub const LOCK_TYPE: [&str; 2] = ["MPI_LOCK_EXCLUSIVE", "MPI_LOCK_SHARED"];
/// `whence` words.
pub const WHENCE: [&str; 3] = ["MPI_SEEK_SET", "MPI_SEEK_CUR", "MPI_SEEK_END"];
/// Bits of `assert` words, lowest first. What else a library sets stands [`FOREIGN_BITS`] higher.
pub const ASSERT: [&str; 5] =
    ["MPI_MODE_NOCHECK", "MPI_MODE_NOSTORE", "MPI_MODE_NOPUT", "MPI_MODE_NOPRECEDE", "MPI_MODE_NOSUCCEED"];
/// Bits of `amode` words, lowest first. What else a library sets stands [`FOREIGN_BITS`] higher.
pub const AMODE: [&str; 9] = [
    "MPI_MODE_CREATE",
    "MPI_MODE_RDONLY",
    "MPI_MODE_WRONLY",
    "MPI_MODE_RDWR",
    "MPI_MODE_DELETE_ON_CLOSE",
    "MPI_MODE_UNIQUE_OPEN",
    "MPI_MODE_EXCL",
    "MPI_MODE_APPEND",
    "MPI_MODE_SEQUENTIAL",
];
/// Where bits of a library's that have no name here begin in a word.
pub const FOREIGN_BITS: u32 = 32;
/// Attribute keys, error handlers and sessions that a program made are numbered from 0; predefined ones count down from
/// here, in the order of [`KEYVALS`] and [`ERRHANDLERS`].
pub const FIRST_NAMED: i64 = -2;
/// Predefined attribute keys, as `keyval` words.
pub const KEYVALS: [&str; 12] = [
    "MPI_TAG_UB",
    "MPI_HOST",
    "MPI_IO",
    "MPI_WTIME_IS_GLOBAL",
    "MPI_UNIVERSE_SIZE",
    "MPI_LASTUSEDCODE",
    "MPI_APPNUM",
    "MPI_WIN_BASE",
    "MPI_WIN_SIZE",
    "MPI_WIN_DISP_UNIT",
    "MPI_WIN_CREATE_FLAVOR",
    "MPI_WIN_MODEL",
];
/// Predefined error handlers, as `errhandler` words.
pub const ERRHANDLERS: [&str; 3] = ["MPI_ERRORS_ARE_FATAL", "MPI_ERRORS_RETURN", "MPI_ERRORS_ABORT"];
/// `outcombiner` words; other combiners of a library are recorded as [`NONE`].
pub const COMBINERS: [&str; 16] = [
    "MPI_COMBINER_NAMED",
    "MPI_COMBINER_DUP",
    "MPI_COMBINER_CONTIGUOUS",
    "MPI_COMBINER_VECTOR",
    "MPI_COMBINER_HVECTOR",
    "MPI_COMBINER_INDEXED",
    "MPI_COMBINER_HINDEXED",
    "MPI_COMBINER_INDEXED_BLOCK",
    "MPI_COMBINER_HINDEXED_BLOCK",
    "MPI_COMBINER_STRUCT",
    "MPI_COMBINER_SUBARRAY",
    "MPI_COMBINER_DARRAY",
    "MPI_COMBINER_F90_REAL",
    "MPI_COMBINER_F90_COMPLEX",
    "MPI_COMBINER_F90_INTEGER",
    "MPI_COMBINER_RESIZED",
];

/// Error classes: class `n` of a recorded call is the `n`-th of these names, counted from 1; class 0 is success. A class
/// that is not listed here is recorded as this list's length + 1 + its number.
pub const ERROR_CLASSES: [&str; 60] = [
    "MPI_ERR_BUFFER",
    "MPI_ERR_COUNT",
    "MPI_ERR_TYPE",
    "MPI_ERR_TAG",
    "MPI_ERR_COMM",
    "MPI_ERR_RANK",
    "MPI_ERR_REQUEST",
    "MPI_ERR_ROOT",
    "MPI_ERR_GROUP",
    "MPI_ERR_OP",
    "MPI_ERR_TOPOLOGY",
    "MPI_ERR_DIMS",
    "MPI_ERR_ARG",
    "MPI_ERR_UNKNOWN",
    "MPI_ERR_TRUNCATE",
    "MPI_ERR_OTHER",
    "MPI_ERR_INTERN",
    "MPI_ERR_IN_STATUS",
    "MPI_ERR_PENDING",
    "MPI_ERR_ACCESS",
    "MPI_ERR_AMODE",
    "MPI_ERR_ASSERT",
    "MPI_ERR_BAD_FILE",
    "MPI_ERR_BASE",
    "MPI_ERR_CONVERSION",
    "MPI_ERR_DISP",
    "MPI_ERR_DUP_DATAREP",
    "MPI_ERR_FILE_EXISTS",
    "MPI_ERR_FILE_IN_USE",
    "MPI_ERR_FILE",
    "MPI_ERR_INFO_KEY",
    "MPI_ERR_INFO_NOKEY",
    "MPI_ERR_INFO_VALUE",
    "MPI_ERR_INFO",
    "MPI_ERR_IO",
    "MPI_ERR_KEYVAL",
    "MPI_ERR_LOCKTYPE",
    "MPI_ERR_NAME",
    "MPI_ERR_NO_MEM",
    "MPI_ERR_NOT_SAME",
    "MPI_ERR_NO_SPACE",
    "MPI_ERR_NO_SUCH_FILE",
    "MPI_ERR_PORT",
    "MPI_ERR_QUOTA",
    "MPI_ERR_READ_ONLY",
    "MPI_ERR_RMA_CONFLICT",
    "MPI_ERR_RMA_SYNC",
    "MPI_ERR_SERVICE",
    "MPI_ERR_SIZE",
    "MPI_ERR_SPAWN",
    "MPI_ERR_UNSUPPORTED_DATAREP",
    "MPI_ERR_UNSUPPORTED_OPERATION",
    "MPI_ERR_WIN",
    "MPI_ERR_RMA_RANGE",
    "MPI_ERR_RMA_ATTACH",
    "MPI_ERR_RMA_FLAVOR",
    "MPI_ERR_RMA_SHARED",
    "MPI_ERR_SESSION",
    "MPI_ERR_PROC_ABORTED",
    "MPI_ERR_VALUE_TOO_LARGE",
];

/// Name of an error class; `None` for success and for classes that have no name here.
#[must_use]
pub fn error_class(class: u32) -> Option<&'static str> {
    ERROR_CLASSES.get(usize::try_from(class).ok()?.checked_sub(1)?).copied()
}
