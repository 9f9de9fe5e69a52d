//! Predefined objects that sources name without saying what they are.

use st_model::calls::Object;
use st_model::objects::{Op, Type};

use crate::objects::Definition;

/// What stands for a datatype that is not told.
pub(crate) const BYTE: &str = "MPI_BYTE";
/// What stands for an operation that is not told, of bytes.
pub(crate) const BITWISE: &str = "MPI_BOR";
/// The same of other types.
pub(crate) const SUM: &str = "MPI_SUM";

/// Bytes of an element on 64-bit Linux, by type.
///
/// Source: MPI 4.1, section 3.2.2, and the x86-64 ABI.
const SIZES: [(i64, &[&str]); 6] = [
    (
        1,
        &[
            BYTE,
            "MPI_CHAR",
            "MPI_SIGNED_CHAR",
            "MPI_UNSIGNED_CHAR",
            "MPI_PACKED",
            "MPI_CHARACTER",
            "MPI_INT8_T",
            "MPI_UINT8_T",
            "MPI_C_BOOL",
            "MPI_CXX_BOOL",
            "MPI_INTEGER1",
        ],
    ),
    (2, &["MPI_SHORT", "MPI_UNSIGNED_SHORT", "MPI_INT16_T", "MPI_UINT16_T", "MPI_INTEGER2"]),
    (
        4,
        &[
            "MPI_INT",
            "MPI_UNSIGNED",
            "MPI_FLOAT",
            "MPI_WCHAR",
            "MPI_INTEGER",
            "MPI_REAL",
            "MPI_LOGICAL",
            "MPI_INT32_T",
            "MPI_UINT32_T",
            "MPI_INTEGER4",
            "MPI_REAL4",
        ],
    ),
    (
        8,
        &[
            "MPI_LONG",
            "MPI_UNSIGNED_LONG",
            "MPI_LONG_LONG",
            "MPI_LONG_LONG_INT",
            "MPI_UNSIGNED_LONG_LONG",
            "MPI_DOUBLE",
            "MPI_DOUBLE_PRECISION",
            "MPI_COMPLEX",
            "MPI_C_COMPLEX",
            "MPI_C_FLOAT_COMPLEX",
            "MPI_CXX_FLOAT_COMPLEX",
            "MPI_INT64_T",
            "MPI_UINT64_T",
            "MPI_INTEGER8",
            "MPI_REAL8",
            "MPI_COMPLEX8",
            "MPI_AINT",
            "MPI_OFFSET",
            "MPI_COUNT",
            "MPI_2INT",
            "MPI_2INTEGER",
            "MPI_2REAL",
            "MPI_FLOAT_INT",
        ],
    ),
    (12, &["MPI_DOUBLE_INT", "MPI_LONG_INT"]),
    (
        16,
        &[
            "MPI_LONG_DOUBLE",
            "MPI_REAL16",
            "MPI_DOUBLE_COMPLEX",
            "MPI_C_DOUBLE_COMPLEX",
            "MPI_CXX_DOUBLE_COMPLEX",
            "MPI_COMPLEX16",
            "MPI_2DOUBLE_PRECISION",
        ],
    ),
];

const OPS: [&str; 14] = [
    SUM,
    BITWISE,
    "MPI_MAX",
    "MPI_MIN",
    "MPI_PROD",
    "MPI_LAND",
    "MPI_BAND",
    "MPI_LOR",
    "MPI_LXOR",
    "MPI_BXOR",
    "MPI_MINLOC",
    "MPI_MAXLOC",
    "MPI_REPLACE",
    "MPI_NO_OP",
];

/// What a name stands for that MPI itself defines, and that is the same for all ranks; `None` if it is none.
pub(crate) fn predefined(object: Object, name: &str) -> Option<Definition> {
    match object {
        Object::Type => {
            let (size, _) = SIZES.iter().find(|(_, names)| names.contains(&name))?;
            // The integer behind a double or long is followed by a gap.
            let extent = if *size == 12 { 16 } else { *size };
            let (words, parts) = (Vec::new(), Vec::new());
            Some(Definition::Type(Type { kind: name.into(), words, parts, size: *size, lb: 0, extent }))
        }
        Object::Op => OPS.contains(&name).then(|| Definition::Op(Op { kind: name.into(), commutes: true })),
        _ => None,
    }
}
