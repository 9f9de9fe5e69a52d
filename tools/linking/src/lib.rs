//! For build scripts: what makes smaller what is installed. Functions of the same machine code are kept once (identical code folding),
//! which takes some 5 % off, and where a program's addresses are adjusted when it is loaded is stored packed, which takes 3 %.
//!
//! Rust's own linker can do the first, GNU ld cannot, and glibc reads the second from 2.36 on: what is linked is tried first, and run.
//! Both are for release builds only: others are linked often and installed never.

#![expect(clippy::print_stdout, reason = "how a build script talks to cargo")]

use std::env;
use std::io::{Error, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const FOLDING: &str = "-Wl,--icf=all";
const BY_GNU_LD: &str = "-fuse-ld=bfd";
const PACKING: &str = "-Wl,-z,pack-relative-relocs";

/// With this in the environment what is built is for older systems, too (`tools/dist`).
const PORTABLE: &str = "ST_PORTABLE";

/// Asks cargo to fold identical code of a target: `bins`, `bin=NAME` or `cdylib`, as in `cargo::rustc-link-arg-…`.
///
/// Not for programs whose call sites are looked at (the kernels): two functions that became one have one name.
pub fn fold_identical_code(target: &str) {
    ask(target, FOLDING);
}

/// Asks cargo to pack the relocations of a target that is loaded on machines such as this one.
///
/// Not for the recorder: containers that it is loaded in have other C libraries.
pub fn pack_relocations(target: &str) {
    println!("cargo::rerun-if-env-changed={PORTABLE}");
    if env::var_os(PORTABLE).is_none() {
        ask(target, PACKING);
    }
}

/// Asks cargo to link a target whose code is not folded by GNU ld: Rust's own linker keeps what functions have for panics that it leaves
/// out, a fifth of a small program.
pub fn leave_out_unused_tables(target: &str) {
    ask(target, BY_GNU_LD);
}

fn ask(target: &str, argument: &str) {
    for name in ["RUSTC", "RUSTC_LINKER", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") && works(argument).unwrap_or(false) {
        println!("cargo::rustc-link-arg-{target}={argument}");
    }
}

/// Whether an empty program can be linked so, and runs.
fn works(argument: &str) -> Result<bool, Error> {
    let out = env::var_os("OUT_DIR").map(PathBuf::from).ok_or_else(|| Error::other("OUT_DIR is not set"))?;
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    // As what is linked later: another linker may be asked for.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let linker = env::var("RUSTC_LINKER").map(|linker| format!("-Clinker={linker}"));
    let probe = out.join("probe");
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
            &format!("link-arg={argument}"),
            "-o",
        ])
        .arg(&probe)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut input) = compiler.stdin.take() {
        input.write_all(b"fn main() {}")?;
    }
    // What is for another machine does not run here, and is linked as everybody can.
    Ok(compiler.wait()?.success() && Command::new(probe).stderr(Stdio::null()).status()?.success())
}
