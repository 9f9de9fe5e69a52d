//! Compiles the constants that `mpi.h` has only as macros, and asserts which MPI is meant.
#![expect(clippy::print_stdout, reason = "build scripts talk to cargo on standard output")]

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use st_model::values::{AMODE, ASSERT, ERRHANDLERS, ERROR_CLASSES, KEYVALS, LOCK_TYPE, WHENCE};

/// Predefined datatypes by their C names, Fortran's included: what a trace calls them.
const TYPES: &str = include_str!("types.txt");
/// Predefined reduction operations.
const OPS: &str = include_str!("ops.txt");

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=MPICC");
    st_linking::fold_identical_code("bin=st-engine");
    st_linking::pack_relocations("bins");
    st_linking::leave_out_unused_tables("bin=st-kernels-mpi");
    for file in ["build/types.txt", "build/ops.txt", "shim/constants.c"] {
        println!("cargo::rerun-if-changed={file}");
    }
    println!("cargo::rustc-check-cfg=cfg(mpi_is, values(\"openmpi\", \"mpich\"))");
    let mpicc = env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    // lib.rs holds it against the MPI that mpi-sys found.
    println!("cargo::rustc-cfg=mpi_is=\"{}\"", flavour(&mpicc)?);

    let out = env::var("OUT_DIR")?;
    let names = Path::new(&out).join("names.h");
    fs::write(&names, lookup("MPI_Datatype", "st_type", TYPES)? + &lookup("MPI_Op", "st_op", OPS)?)?;
    fs::write(Path::new(&out).join("lists.h"), lists()?)?;
    cc::Build::new()
        .compiler(&mpicc)
        .file("shim/constants.c")
        .include(&out)
        .warnings(true)
        .try_compile("st_shim")?;
    Ok(())
}

/// Which MPI the wrapper compiles for, by what its header defines.
fn flavour(mpicc: &str) -> Result<&'static str, String> {
    let output = Command::new(mpicc)
        .args(["-dM", "-E", "-include", "mpi.h", "-x", "c", "/dev/null"])
        .output()
        .map_err(|e| format!("{mpicc}: {e}; name the MPI compiler wrapper by MPICC"))?;
    if !output.status.success() {
        return Err(format!("{mpicc}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let macros = String::from_utf8_lossy(&output.stdout).into_owned();
    match (macros.contains("#define OPEN_MPI "), macros.contains("#define MPICH_VERSION ")) {
        (true, false) => Ok("openmpi"),
        (false, true) => Ok("mpich"),
        _ => Err(format!("{mpicc} is neither Open MPI's nor MPICH's compiler wrapper")),
    }
}

/// Lengths and elements of C arrays, in the order that a trace's words have: keys of attributes, error handlers, and error
/// classes, -1 for those that the header has not.
fn lists() -> Result<String, std::fmt::Error> {
    let mut c = String::new();
    list(&mut c, "KEYVALS", &KEYVALS)?;
    list(&mut c, "ERRHANDLERS", &ERRHANDLERS)?;
    list(&mut c, "ASSERTS", &ASSERT)?;
    list(&mut c, "AMODES", &AMODE)?;
    list(&mut c, "LOCK_TYPES", &LOCK_TYPE)?;
    list(&mut c, "WHENCES", &WHENCE)?;
    for name in ERROR_CLASSES {
        writeln!(c, "#ifndef {name}\n#define {name} -1\n#endif")?;
    }
    list(&mut c, "ERRORS", &ERROR_CLASSES)?;
    Ok(c)
}

fn list(c: &mut String, what: &str, names: &[&str]) -> std::fmt::Result {
    writeln!(c, "#define ST_N_{what} {}\n#define ST_{what} {}", names.len(), names.join(", "))
}

/// A C function from name to handle, over the names that the header has.
fn lookup(handle: &str, function: &str, names: &str) -> Result<String, std::fmt::Error> {
    let mut c = format!("int {function}(const char *name, {handle} *out)\n{{\n");
    for name in names.split_whitespace() {
        writeln!(
            c,
            "#ifdef {name}\n    if (!strcmp(name, \"{name}\")) {{ *out = {name}; return 1; }}\n#endif"
        )?;
    }
    c.push_str("    return 0;\n}\n");
    Ok(c)
}
