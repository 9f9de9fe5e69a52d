//! The MPI that the library is built for: what its compiler wrapper says.

use std::env;
use std::process::Command;

/// Flags of the wrapper compiler named by `MPICC` (default `mpicc`).
#[derive(Debug)]
pub(crate) struct Toolchain {
    /// `-I` directories.
    pub(crate) includes: Vec<String>,
    /// `-L` directories.
    pub(crate) directories: Vec<String>,
    /// `-l` names.
    pub(crate) libraries: Vec<String>,
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
        Ok(Self { includes: all("-I"), directories: all("-L"), libraries: all("-l") })
    }

    /// Links libmpi although nothing refers to its symbols by name: the recorder finds them by `dlsym`, but the
    /// loader must map the MPI it was built for (Python loads MPI late).
    pub(crate) fn link(&self) {
        println!("cargo::rustc-link-arg=-Wl,--no-as-needed");
        for d in &self.directories {
            println!("cargo::rustc-link-arg=-L{d}");
        }
        for l in &self.libraries {
            println!("cargo::rustc-link-arg=-l{l}");
        }
        println!("cargo::rustc-link-arg=-Wl,--as-needed");
    }
}
