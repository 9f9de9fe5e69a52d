//! Constants that only a C compiler can see: handles and pointers that are macros with casts.

use crate::toolchain::Toolchain;
use st_model::values::{AMODE, ASSERT, COMBINERS, ERROR_CLASSES, KEYVALS};
use std::fmt::Write as _;
use std::path::Path;

/// Integer constants.
const INTS: &[&str] = &[
    "MPI_ANY_SOURCE",
    "MPI_ANY_TAG",
    "MPI_PROC_NULL",
    "MPI_ROOT",
    "MPI_UNDEFINED",
    "MPI_IDENT",
    "MPI_CONGRUENT",
    "MPI_SIMILAR",
    "MPI_UNEQUAL",
    "MPI_ORDER_C",
    "MPI_ORDER_FORTRAN",
    "MPI_DISTRIBUTE_BLOCK",
    "MPI_DISTRIBUTE_CYCLIC",
    "MPI_DISTRIBUTE_NONE",
    "MPI_DISTRIBUTE_DFLT_DARG",
    "MPI_COMM_TYPE_SHARED",
    "MPI_GRAPH",
    "MPI_CART",
    "MPI_DIST_GRAPH",
    "MPI_TYPECLASS_REAL",
    "MPI_TYPECLASS_INTEGER",
    "MPI_TYPECLASS_COMPLEX",
    "MPI_THREAD_SINGLE",
    "MPI_THREAD_MULTIPLE",
    "MPI_LOCK_EXCLUSIVE",
    "MPI_LOCK_SHARED",
    "MPI_SEEK_SET",
    "MPI_SEEK_CUR",
    "MPI_SEEK_END",
    "MPI_KEYVAL_INVALID",
];

/// Pointers and handles, recorded as machine words.
const HANDLES: &[&str] = &[
    "MPI_IN_PLACE",
    "MPI_STATUS_IGNORE",
    "MPI_STATUSES_IGNORE",
    "MPI_COMM_NULL",
    "MPI_COMM_WORLD",
    "MPI_COMM_SELF",
    "MPI_GROUP_NULL",
    "MPI_GROUP_EMPTY",
    "MPI_DATATYPE_NULL",
    "MPI_OP_NULL",
    "MPI_NO_OP",
    "MPI_REQUEST_NULL",
    "MPI_MESSAGE_NULL",
    "MPI_MESSAGE_NO_PROC",
    "MPI_WIN_NULL",
    "MPI_FILE_NULL",
    "MPI_INFO_NULL",
    "MPI_INFO_ENV",
    "MPI_ERRHANDLER_NULL",
    "MPI_SESSION_NULL",
    "MPI_ERRORS_RETURN",
    "MPI_BYTE",
    "MPI_BAND",
];

/// Pointers that are variables in some libraries.
const VARIABLES: &[&str] = &["MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY"];

/// Reduction operations that need no creation.
const OPS: &str = "MAX MIN SUM PROD LAND BAND LOR BOR LXOR BXOR MINLOC MAXLOC REPLACE NO_OP";

/// Error handlers that need no creation.
const ERRHANDLERS: &str = "ERRORS_ARE_FATAL ERRORS_RETURN ERRORS_ABORT";

/// Predefined datatypes of MPI-4.0, annex A.1.1. Of two names for one handle the first is used.
const TYPES: &str = "CHAR SIGNED_CHAR UNSIGNED_CHAR BYTE WCHAR SHORT UNSIGNED_SHORT INT UNSIGNED LONG UNSIGNED_LONG \
    LONG_LONG_INT LONG_LONG UNSIGNED_LONG_LONG FLOAT DOUBLE LONG_DOUBLE INT8_T INT16_T INT32_T INT64_T UINT8_T UINT16_T \
    UINT32_T UINT64_T C_BOOL C_COMPLEX C_FLOAT_COMPLEX C_DOUBLE_COMPLEX C_LONG_DOUBLE_COMPLEX AINT OFFSET COUNT PACKED \
    FLOAT_INT DOUBLE_INT LONG_INT 2INT SHORT_INT LONG_DOUBLE_INT CXX_BOOL CXX_FLOAT_COMPLEX CXX_DOUBLE_COMPLEX \
    CXX_LONG_DOUBLE_COMPLEX LB UB CHARACTER LOGICAL INTEGER REAL DOUBLE_PRECISION COMPLEX DOUBLE_COMPLEX 2REAL \
    2DOUBLE_PRECISION 2INTEGER 2COMPLEX 2DOUBLE_COMPLEX INTEGER1 INTEGER2 INTEGER4 INTEGER8 INTEGER16 REAL2 REAL4 REAL8 \
    REAL16 COMPLEX4 COMPLEX8 COMPLEX16 COMPLEX32 LOGICAL1 LOGICAL2 LOGICAL4 LOGICAL8";

/// Writes, compiles and links the shim; returns the Rust declarations of what it holds.
pub(crate) fn build(toolchain: &Toolchain, out: &Path) -> Result<String, String> {
    // Open MPI defines what MPI-3.0 removed as an error.
    let mut c = String::from(
        "#include <stdint.h>\n#include <stddef.h>\n#include <mpi.h>\n\
         #ifdef MPICH_VERSION\n#define H(x) ((const void *)(uintptr_t)(unsigned)(x))\n\
         #else\n#define H(x) ((const void *)(x))\n#undef MPI_LB\n#undef MPI_UB\n#endif\n\
         #ifndef MPI_SESSION_NULL\n#define MPI_SESSION_NULL 0\n#endif\n\
         struct named { const char *name; const void *handle; };\n",
    );
    let mut rust = String::from("unsafe extern \"C\" {\n");
    for name in INTS.iter().chain(&ASSERT).chain(&AMODE) {
        let _ = writeln!(c, "const int st_{name} = {name};");
        let _ = writeln!(rust, "pub(crate) safe static st_{name}: ::std::os::raw::c_int;");
    }
    for name in HANDLES {
        let pointer = name.contains("IN_PLACE") || name.contains("IGNORE") || name.contains("WEIGHT");
        // Files are pointers under every library.
        let cast = if pointer || name.contains("FILE") { "(const void *)" } else { "H" };
        let _ = writeln!(c, "const void *const st_{name} = {cast}({name});");
        let word = if pointer { "usize" } else { "u64" };
        let _ = writeln!(rust, "pub(crate) safe static st_{name}: {word};");
    }
    for name in VARIABLES {
        let _ = writeln!(c, "const void *st_{name}(void) {{ return {name}; }}");
        let _ = writeln!(rust, "pub(crate) safe fn st_{name}() -> usize;");
    }
    for (table, names) in [("types", TYPES), ("ops", OPS), ("errhandlers", ERRHANDLERS)] {
        let _ = writeln!(c, "const struct named st_{table}[] = {{");
        for n in names.split_whitespace() {
            let _ = writeln!(c, "#ifdef MPI_{n}\n{{\"MPI_{n}\", H(MPI_{n})}},\n#endif");
        }
        let _ = writeln!(c, "{{NULL, NULL}}}};");
        let _ = writeln!(rust, "pub(crate) static st_{table}: [PredefinedName; 0];");
    }
    for (table, names) in [("keyvals", &KEYVALS[..]), ("combiners", &COMBINERS[..])] {
        let _ = writeln!(c, "const int st_{table}[] = {{{}}};", names.join(", "));
        let _ =
            writeln!(rust, "pub(crate) safe static st_{table}: [::std::os::raw::c_int; {}];", names.len());
    }
    let _ = writeln!(c, "const int st_errors[] = {{");
    for name in ERROR_CLASSES {
        let _ = writeln!(c, "#ifdef {name}\n{name},\n#else\n-1,\n#endif");
    }
    let _ = writeln!(c, "}};");
    let _ =
        writeln!(rust, "pub(crate) safe static st_errors: [::std::os::raw::c_int; {}];", ERROR_CLASSES.len());
    rust.push_str("}\n");
    let file = out.join("shim.c");
    std::fs::write(&file, c).map_err(|e| format!("{}: {e}", file.display()))?;
    cc::Build::new()
        .file(&file)
        .includes(&toolchain.includes)
        .warnings(false)
        .pic(true)
        .try_compile("st_shim")
        .map_err(|e| e.to_string())?;
    Ok(rust)
}
