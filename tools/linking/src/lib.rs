//! For build scripts: functions of the same machine code are kept once (identical code folding), which takes some 5 % off what is
//! installed. Rust's own linker can do it, GNU ld cannot: what is linked is tried first.
//!
//! Not for programs whose call sites are looked at (the kernels): two functions that became one have one name.

#![expect(clippy::print_stdout, reason = "how a build script talks to cargo")]

use std::env;
use std::io::{Error, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const ARGUMENT: &str = "-Wl,--icf=all";

/// Asks cargo to fold identical code of a target: `bins`, `bin=NAME` or `cdylib`, as in `cargo::rustc-link-arg-…`. Release builds only:
/// others are linked often and installed never.
pub fn fold_identical_code(target: &str) {
    for name in ["RUSTC", "RUSTC_LINKER", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") && can_fold().unwrap_or(false) {
        println!("cargo::rustc-link-arg-{target}={ARGUMENT}");
    }
}

/// Whether an empty program can be linked so.
fn can_fold() -> Result<bool, Error> {
    let out = env::var_os("OUT_DIR").map(PathBuf::from).ok_or_else(|| Error::other("OUT_DIR is not set"))?;
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    // As what is linked later: another linker may be asked for.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let linker = env::var("RUSTC_LINKER").map(|linker| format!("-Clinker={linker}"));
    let mut compiler = Command::new(rustc)
        .args(flags.split('\x1f').filter(|flag| !flag.is_empty()))
        .args(env::var("TARGET").map(|target| format!("--target={target}")))
        .args(linker)
        .args([
            "--crate-name",
            "probe",
            "--crate-type",
            "bin",
            "-",
            "-C",
            &format!("link-arg={ARGUMENT}"),
            "-o",
        ])
        .arg(out.join("probe"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut input) = compiler.stdin.take() {
        input.write_all(b"fn main() {}")?;
    }
    Ok(compiler.wait()?.success())
}
