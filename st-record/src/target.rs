//! What is started, and whether it can be recorded.

use crate::binary::{self, FileKind};
use anyhow::{Result, bail};
use st_cli::Mpi;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is said of a program that was linked with a static library of MPI.
pub const MPI_INSIDE: &str =
    "MPI is statically linked into it: the recorder cannot come between; link it with the shared MPI library";

/// An executable file, as far as recording goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Links an MPI.
    Links,
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

/// Why the system cannot start an executable whose file is there: what it takes to run it is not.
#[must_use]
pub fn unstartable(file: &Path) -> Option<String> {
    let (what, needed) = match binary::kind(file) {
        // The system takes all up to a blank, also what an editor of another system left at the line's end.
        FileKind::Script(line) => ("interpreter", PathBuf::from(line.split([' ', '\t']).next()?)),
        FileKind::Dynamic(loader) => ("dynamic loader", loader),
        FileKind::Static | FileKind::Foreign | FileKind::Unknown => return None,
    };
    let is_missing = !needed.as_os_str().is_empty() && !needed.exists();
    is_missing.then(|| format!("{}: its {what} {needed:?} is not there, and it cannot start", file.display()))
}

/// Looks at an executable.
///
/// # Errors
///
/// If it, or the MPI in it, is statically linked, and nothing preloaded can come between; if it links several MPIs.
pub fn inspect(file: &Path) -> Result<Target> {
    match binary::kind(file) {
        FileKind::Static => bail!(
            "{}: is statically linked: the recorder cannot be preloaded into it; link it with the shared MPI library",
            file.display()
        ),
        FileKind::Dynamic(loader) => {
            let libraries = binary::libraries(&loader, file);
            let mut found: Vec<_> = libraries.iter().filter(|l| binary::interface(l).is_some()).collect();
            found.dedup_by(|a, b| a.path == b.path);
            if let [_, _, ..] = found.as_slice() {
                let names: Vec<_> = found.iter().map(|l| l.name.as_str()).collect();
                bail!(
                    "{}: links several MPIs ({}): it can be recorded with one",
                    file.display(),
                    names.join(", ")
                );
            }
            if found.is_empty() && binary::holds_mpi(file) {
                bail!("{}: {MPI_INSIDE}", file.display());
            }
            Ok(if found.is_empty() { Target::Other } else { Target::Links })
        }
        FileKind::Script(_) | FileKind::Foreign | FileKind::Unknown => Ok(Target::Other),
    }
}

/// The MPI of a launcher, by what its `--version` says.
#[must_use]
pub fn of_launcher(launcher: &Path) -> Option<Mpi> {
    let text = version(launcher)?;
    if text.contains("Open MPI") || text.contains("OpenRTE") {
        Some(Mpi::Openmpi)
    } else if text.contains("HYDRA") || text.contains("Intel(R) MPI") || text.contains("MPICH") {
        Some(Mpi::Mpich)
    } else {
        None
    }
}

/// Whether a launcher is Open MPI's from its version 5 on, which is another program than before.
#[must_use]
pub fn of_openmpi_5(launcher: &Path) -> bool {
    let Some(text) = version(launcher) else { return false };
    let number = text.split_once("(Open MPI) ").and_then(|(_, rest)| rest.split('.').next()?.parse().ok());
    number.is_some_and(|number: u32| number >= 5)
}

/// What a launcher says of itself.
fn version(launcher: &Path) -> Option<String> {
    let output = Command::new(launcher).arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
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
