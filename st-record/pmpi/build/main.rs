//! Generates, for the MPI named by `MPICC`, one wrapper per function of its headers.
//!
//! Outputs in `OUT_DIR`: `types.rs` (types and numeric constants), `constants.rs` (what only C can see), `real.rs` (what wrappers
//! forward to), `wrappers.rs`, and `exports.rs` (the symbols). Sets `cfg(openmpi)`, `cfg(mpich)` or `cfg(standard)`.

#![expect(clippy::print_stdout, reason = "how a build script talks to cargo")]

mod body;
mod header;
#[expect(unreachable_pub, reason = "public in the launcher, whose file it is")]
#[path = "../../src/left_out.rs"]
mod left_out;
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
    st_linking::fold_identical_code("cdylib");
    println!("cargo::rerun-if-changed=../src/left_out.rs");
    println!("cargo::rustc-check-cfg=cfg(openmpi, mpich, standard, sessions)");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let toolchain = toolchain::Toolchain::detect()?;
    let header = header::Header::read(&toolchain)?;
    println!("cargo::rustc-cfg={}", header.family);
    if header.functions.contains_key(names::MPI_Session_init) {
        println!("cargo::rustc-cfg=sessions");
    }
    let constants = shim::build(&toolchain, &out)?;
    let text = wrappers::generate(&header)?;
    write(&out.join("types.rs"), &header.types)?;
    write(&out.join("constants.rs"), &constants)?;
    write(&out.join("real.rs"), &text.real)?;
    write(&out.join("wrappers.rs"), &text.wrappers)?;
    write(&out.join("exports.rs"), &text.exports)?;
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
