//! What is started: which MPI a program links.

use crate::binary::{self, Kind};
use anyhow::{Result, bail};
use st_cli::Mpi;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An executable file, as far as recording goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Links this MPI.
    Links(Mpi),
    /// A script, or a program that links no MPI itself.
    Other,
}

/// The executable that a command's word stands for, found as a shell would.
#[must_use]
pub fn resolve(word: &OsStr) -> Option<PathBuf> {
    let path = Path::new(word);
    if path.components().count() > 1 {
        return is_executable(path).then(|| path.to_owned());
    }
    let directories = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&directories).map(|d| d.join(word)).find(|p| is_executable(p))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Looks at an executable.
///
/// # Errors
///
/// If it is statically linked: nothing can be preloaded into it.
pub fn inspect(file: &Path) -> Result<Target> {
    match binary::kind(file) {
        Kind::Static => bail!(
            "{}: is statically linked: the recorder cannot be preloaded into it; link it with the shared MPI library",
            file.display()
        ),
        Kind::Dynamic(loader) => {
            let found = binary::libraries(&loader, file).iter().find_map(|l| binary::mpi(&l.name));
            Ok(found.map_or(Target::Other, Target::Links))
        }
        Kind::Script(_) | Kind::Foreign | Kind::Unknown => Ok(Target::Other),
    }
}

/// The MPI of a launcher, by what its `--version` says.
#[must_use]
pub fn of_launcher(launcher: &Path) -> Option<Mpi> {
    let output = Command::new(launcher).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.contains("Open MPI") || text.contains("OpenRTE") {
        Some(Mpi::Openmpi)
    } else if text.contains("HYDRA") || text.contains("Intel(R) MPI") || text.contains("MPICH") {
        Some(Mpi::Mpich)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_as_a_shell_finds_them() {
        assert!(resolve(OsStr::new("sh")).is_some_and(|p| p.is_absolute()));
        assert_eq!(resolve(OsStr::new("./no-such-program")), None);
        assert_eq!(resolve(OsStr::new("/tmp")), None);
        assert_eq!(inspect(&env::current_exe().unwrap()).unwrap(), Target::Other);
    }
}
