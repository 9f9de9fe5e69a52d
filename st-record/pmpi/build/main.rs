//! Generates, for the MPI named by `MPICC`, one wrapper per function of its headers.
//!
//! Outputs in `OUT_DIR`: `types.rs` (types and numeric constants), `constants.rs` (what only C can see), `real.rs` (what wrappers
//! forward to) and `wrappers.rs`. Sets `cfg(openmpi)` or `cfg(mpich)`.

#![expect(clippy::print_stdout, reason = "how a build script talks to cargo")]

mod body;
mod header;
mod params;
mod shim;
mod signature;
mod toolchain;
mod wrappers;

use st_model::calls::names;
use std::env;
use std::path::{Path, PathBuf};

fn main() {
    if let Err(e) = run() {
        println!("cargo::error=st-pmpi: {e}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rustc-check-cfg=cfg(openmpi, mpich, sessions)");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let toolchain = toolchain::Toolchain::detect()?;
    let header = header::Header::read(&toolchain)?;
    let flavour = if header.flavour == "MPICH" { "mpich" } else { "openmpi" };
    println!("cargo::rustc-cfg={flavour}");
    if header.functions.contains_key(names::MPI_Session_init) {
        println!("cargo::rustc-cfg=sessions");
    }
    println!("cargo::rustc-env=ST_MPI_LIBRARY={}", header.flavour);
    let constants = shim::build(&toolchain, &out)?;
    let text = wrappers::generate(&header)?;
    write(&out.join("types.rs"), &header.types)?;
    write(&out.join("constants.rs"), &constants)?;
    write(&out.join("real.rs"), &text.real)?;
    write(&out.join("wrappers.rs"), &text.wrappers)?;
    toolchain.link();
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
