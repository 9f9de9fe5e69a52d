//! The MPI whose headers the library is built from: where they are, as its compiler wrapper says. Its library is not linked.

use std::env;
use std::process::Command;

/// Flags of the wrapper compiler named by `MPICC` (default `mpicc`).
#[derive(Debug)]
pub(crate) struct Toolchain {
    /// `-I` directories.
    pub(crate) includes: Vec<String>,
    /// `-D` names.
    pub(crate) defines: Vec<String>,
}

impl Toolchain {
    /// Asks the wrapper (`-show` is understood by Open MPI, MPICH and everything derived from them).
    pub(crate) fn detect() -> Result<Self, String> {
        println!("cargo::rerun-if-env-changed=MPICC");
        let mpicc = env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
        let output = Command::new(&mpicc)
            .arg("-show")
            .output()
            .map_err(|e| format!("{mpicc}: {e}; name the MPI compiler wrapper by MPICC"))?;
        if !output.status.success() {
            return Err(format!("{mpicc} -show: {}", output.status));
        }
        let line = String::from_utf8_lossy(&output.stdout).into_owned();
        let all = |flag: &str| {
            line.split_whitespace().filter_map(|w| w.strip_prefix(flag).map(str::to_owned)).collect()
        };
        Ok(Self { includes: all("-I"), defines: all("-D") })
    }
}
