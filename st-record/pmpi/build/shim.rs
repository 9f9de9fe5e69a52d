//! Constants that only a C compiler can see: handles and pointers that are macros with casts.

use crate::toolchain::Toolchain;
use st_model::values::{AMODE, ASSERT, COMBINERS, ERROR_CLASSES, KEYVALS};
use std::collections::BTreeSet;
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

/// Pointers that the library takes for something else.
const MARKS: &[&str] = &["MPI_IN_PLACE", "MPI_STATUS_IGNORE", "MPI_STATUSES_IGNORE"];

/// Handles, recorded as machine words. Open MPI's are addresses of what its library holds.
const HANDLES: &[&str] = &[
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

/// Pointers that are macros in some libraries, and variables in others.
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

/// What comes before the constants. Open MPI defines what MPI-3.0 removed as an error. The library is not linked: what its headers
/// give the addresses of is looked up in the one that the program has loaded, by `find`.
const BEGIN: &str = r#"#include <stdint.h>
#include <stddef.h>
#include <mpi.h>
#ifdef MPICH_VERSION
#define H(x) ((const void *)(uintptr_t)(unsigned)(x))
#else
#define H(x) ((const void *)(x))
#undef MPI_LB
#undef MPI_UB
#endif
#ifdef OMPI_PREDEFINED_GLOBAL
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) ((type)find(#global))
#endif
#ifndef MPI_SESSION_NULL
#define MPI_SESSION_NULL 0
#endif
#define W(x) ((uint64_t)(uintptr_t)(const void *)(x))
struct named { const char *name; const void *handle; };
typedef const void *find_function(const char *);
"#;

/// Writes, compiles and links the shim; returns the Rust declarations of what it holds.
pub(crate) fn build(toolchain: &Toolchain, out: &Path) -> Result<String, String> {
    let (mut c, mut rust) = (String::from(BEGIN), String::from("unsafe extern \"C\" {\n"));
    constants(&mut c, &mut rust, &expanded(toolchain, out)?);
    let declared = words(&mut c, &mut rust);
    rust.push_str("}\n");
    rust.push_str(&declared);
    let file = out.join("shim.c");
    std::fs::write(&file, c).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut compiler = cc::Build::new();
    for define in &toolchain.defines {
        compiler.define(define, None);
    }
    compiler
        .file(&file)
        .includes(&toolchain.includes)
        .warnings(false)
        .pic(true)
        .try_compile("st_shim")
        .map_err(|e| e.to_string())?;
    Ok(rust)
}

/// The words of the headers once macros are gone: constants that are enumerators, as those of the standard's binary interface, are
/// among them.
fn expanded(toolchain: &Toolchain, out: &Path) -> Result<BTreeSet<String>, String> {
    let file = out.join("header.c");
    std::fs::write(&file, "#include <mpi.h>\n").map_err(|e| format!("{}: {e}", file.display()))?;
    let mut compiler = cc::Build::new();
    for define in &toolchain.defines {
        compiler.define(define, None);
    }
    let text = compiler.file(&file).includes(&toolchain.includes).warnings(false).try_expand();
    let text = String::from_utf8_lossy(&text.map_err(|e| e.to_string())?).into_owned();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    Ok(text.split(|c| !is_word(c)).filter(|word| word.starts_with("MPI_")).map(str::to_owned).collect())
}

/// What is the same in every process.
fn constants(c: &mut String, rust: &mut String, enumerators: &BTreeSet<String>) {
    for name in INTS.iter().chain(&ASSERT).chain(&AMODE) {
        let _ = writeln!(c, "const int st_{name} = {name};");
        let _ = writeln!(rust, "pub(crate) safe static st_{name}: ::std::os::raw::c_int;");
    }
    for name in MARKS {
        let _ = writeln!(c, "const void *const st_{name} = (const void *)({name});");
        let _ = writeln!(rust, "pub(crate) safe static st_{name}: usize;");
    }
    for (table, names) in [("keyvals", &KEYVALS[..]), ("combiners", &COMBINERS[..])] {
        let _ = writeln!(c, "const int st_{table}[] = {{{}}};", names.join(", "));
        let _ =
            writeln!(rust, "pub(crate) safe static st_{table}: [::std::os::raw::c_int; {}];", names.len());
    }
    let _ = writeln!(c, "const int st_errors[] = {{");
    for name in ERROR_CLASSES {
        let known = u8::from(enumerators.contains(name));
        let _ = writeln!(c, "#if defined({name}) || {known}\n{name},\n#else\n-1,\n#endif");
    }
    let _ = writeln!(c, "}};");
    let _ =
        writeln!(rust, "pub(crate) safe static st_errors: [::std::os::raw::c_int; {}];", ERROR_CLASSES.len());
}

/// What the library that was loaded says, filled in by `st_fill`; returns functions that read it.
fn words(c: &mut String, rust: &mut String) -> String {
    let tables = [("types", TYPES), ("ops", OPS), ("errhandlers", ERRHANDLERS)];
    for (table, names) in tables {
        let rows = names.split_whitespace().count() + 1;
        let _ = writeln!(c, "struct named st_{table}[{rows}];");
        let _ = writeln!(rust, "pub(crate) static st_{table}: [PredefinedName; 0];");
    }
    let n = HANDLES.len() + VARIABLES.len();
    let _ = writeln!(c, "uint64_t st_words[{n}];");
    let _ = writeln!(rust, "safe static st_words: [::std::sync::atomic::AtomicU64; {n}];");
    let find = "find: extern \"C\" fn(*const ::std::os::raw::c_char) -> *const ::std::os::raw::c_void";
    let _ = writeln!(rust, "pub(crate) fn st_fill({find});");
    let _ = writeln!(c, "void st_fill(find_function *find) {{\nstruct named *row;");
    let mut declared = String::new();
    for (i, name) in HANDLES.iter().enumerate() {
        // Files are pointers under every library.
        let cast = if name.contains("FILE") { "" } else { "H" };
        let _ = writeln!(c, "st_words[{i}] = W({cast}({name}));");
        let _ = writeln!(
            declared,
            "pub(crate) fn st_{name}() -> u64 {{ st_words[{i}].load(::std::sync::atomic::Ordering::Relaxed) }}"
        );
    }
    for (i, name) in (HANDLES.len()..).zip(VARIABLES) {
        let _ = writeln!(
            c,
            "#ifdef {name}\nst_words[{i}] = W({name});\n#else\n{{ const void *const *at = find(\"{name}\"); \
             st_words[{i}] = at ? W(*at) : 0; }}\n#endif"
        );
        let _ = writeln!(
            declared,
            "pub(crate) fn st_{name}() -> usize {{ st_words[{i}].load(::std::sync::atomic::Ordering::Relaxed) as usize }}"
        );
    }
    for (table, names) in tables {
        let _ = writeln!(c, "row = st_{table};");
        for n in names.split_whitespace() {
            // What this version of the library does not have is left out.
            let _ = writeln!(
                c,
                "#ifdef MPI_{n}\nrow->handle = H(MPI_{n});\nif (row->handle) (row++)->name = \"MPI_{n}\";\n#endif"
            );
        }
    }
    let _ = writeln!(c, "}}");
    declared
}
