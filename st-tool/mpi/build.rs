//! Finds out which MPI is meant, for lib.rs to hold against what the `mpi` crate found.

use std::env;
use std::process::Command;

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-env-changed=MPICC");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(mpi_is, values(\"openmpi\", \"mpich\"))");
    let mpicc = env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    println!("cargo::rustc-cfg=mpi_is=\"{}\"", flavour(&mpicc)?);
    Ok(())
}

/// Which MPI the compiler wrapper is for, by what its header defines.
fn flavour(mpicc: &str) -> Result<&'static str, String> {
    let output = Command::new(mpicc)
        .args(["-dM", "-E", "-include", "mpi.h", "-x", "c", "/dev/null"])
        .output()
        .map_err(|e| format!("{mpicc}: {e}; name the MPI compiler wrapper by MPICC"))?;
    if !output.status.success() {
        return Err(format!("{mpicc}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let macros = String::from_utf8_lossy(&output.stdout);
    match (macros.contains("#define OPEN_MPI "), macros.contains("#define MPICH_VERSION ")) {
        (true, false) => Ok("openmpi"),
        (false, true) => Ok("mpich"),
        _ => Err(format!("{mpicc} is neither Open MPI's nor MPICH's compiler wrapper")),
    }
}
