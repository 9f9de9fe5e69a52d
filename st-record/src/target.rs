//! What is started, and whether it can be recorded.

use crate::binary::{self, FileKind};
use anyhow::{Result, bail};
use st_cli::Mpi;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
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

/// The program that starts the processes of a launcher's jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Starter {
    /// Open MPI's before its version 5.
    Orte,
    /// Open MPI's from then on, which is another program.
    Prrte,
    /// MPICH's and its kin's.
    Hydra,
}

impl Starter {
    /// Told by the launcher's file, which is not executed: nobody has asked for that where only a text names it.
    #[must_use]
    pub fn of(launcher: &Path) -> Option<Self> {
        let data = contents(launcher, LONGEST_LAUNCHER)?;
        let holds = |text: &str| data.windows(text.len()).any(|at| at == text.as_bytes());
        // Open MPI 5's `mpirun` need not name the program that it starts, beside it.
        let has_beside = || Some(fs::canonicalize(launcher).ok()?.parent()?.join(PRTERUN).exists());
        let is_srun = launcher.file_name() == Some(OsStr::new("srun"));
        if holds("libopen-rte") {
            Some(Self::Orte)
        } else if holds("HYDRA") || holds("mpiexec.hydra") {
            Some(Self::Hydra)
        } else if holds(PRTERUN) || (!is_srun && has_beside() == Some(true)) {
            Some(Self::Prrte)
        } else {
            None
        }
    }
}

const PRTERUN: &str = "prterun";
/// Hydra, linked statically, has some 5 MB.
const LONGEST_LAUNCHER: u64 = 64 << 20;

/// More bytes are not read of what commands and texts name.
pub const MOST_BYTES: u64 = 4 << 20;

/// What is in a file of so many bytes at most. A pipe would wait for who writes to it, and a device need not end.
#[must_use]
pub fn contents(file: &Path, most: u64) -> Option<Vec<u8>> {
    fs::metadata(file).is_ok_and(|m| m.is_file() && m.len() <= most).then_some(())?;
    let mut data = Vec::new();
    File::open(file).ok()?.take(most).read_to_end(&mut data).ok()?;
    Some(data)
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

    #[test]
    fn launchers_are_told_by_their_files_without_starting_them() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mpirun");
        let of = |text: &str| {
            fs::write(&file, format!("#!/bin/sh\necho >>{}\n# {text}\n", dir.path().join("ran").display()))
                .unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            Starter::of(&file)
        };
        assert_eq!(of("libopen-rte.so.40"), Some(Starter::Orte));
        assert_eq!(of("/opt/bin/prterun"), Some(Starter::Prrte));
        assert_eq!(of("mpiexec.hydra"), Some(Starter::Hydra));
        assert_eq!(of("srun"), None);
        fs::write(dir.path().join(PRTERUN), "").unwrap();
        assert_eq!(of(""), Some(Starter::Prrte));
        assert!(!dir.path().join("ran").exists());
    }

    #[test]
    fn what_has_no_end_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, long) = (dir.path().join("pipe"), dir.path().join("long"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        fs::write(&long, "12345").unwrap();
        assert_eq!([Path::new("/dev/zero"), &pipe, &long].map(|file| contents(file, 4)), [const { None }; 3]);
        assert_eq!(contents(&long, 5).unwrap(), b"12345");
    }
}
