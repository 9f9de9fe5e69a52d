//! Generates one wrapper per function of MPI, for all MPIs: from the standard's list of functions (`lib/model/src/calls`), the call
//! table, and the table of what families of MPI differ in (`families.txt`). No MPI is needed.
//!
//! Outputs in `OUT_DIR`: `constants.rs`, `real.rs` (what wrappers forward to), `wrappers.rs`, `exports.rs` (the symbols), and, for the
//! tests, `prototypes.txt`.

#![expect(clippy::print_stdout, reason = "how a build script talks to cargo")]

mod body;
mod families;
#[expect(unreachable_pub, reason = "public in the launcher, whose file it is")]
#[path = "../../src/left_out.rs"]
mod left_out;
mod params;
mod prototypes;
mod signature;
mod wrappers;

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
    println!("cargo::rerun-if-changed=families.txt");
    println!("cargo::rerun-if-changed=../src/left_out.rs");
    st_linking::fold_identical_code("cdylib");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let functions = prototypes::functions()?;
    let text = wrappers::generate(&functions)?;
    write(&out.join("constants.rs"), &families::generate()?)?;
    write(&out.join("real.rs"), &text.real)?;
    write(&out.join("wrappers.rs"), &text.wrappers)?;
    write(&out.join("exports.rs"), &text.exports)?;
    write(&out.join("prototypes.txt"), &prototypes::text(&functions))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
