//! What is started: which MPI a program links.

use anyhow::{Result, bail};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};
use st_tool::Mpi;
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
    let Some(interpreter) = interpreter(file)? else { return Ok(Target::Other) };
    // The loader itself says what it would map, through all levels; the program does not run.
    let listed = Command::new(interpreter).arg("--list").arg(file).env_remove("LD_PRELOAD").output();
    let listed = listed.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    Ok(flavour(&listed).map_or(Target::Other, Target::Links))
}

/// The loader that an ELF executable asks for; `None` if the file is no ELF executable.
fn interpreter(file: &Path) -> Result<Option<PathBuf>> {
    // Whatever cannot be read or understood is left to the kernel to refuse.
    let Ok(data) = fs::read(file) else { return Ok(None) };
    let data = data.as_slice();
    let Ok(header) = elf::FileHeader64::<Endianness>::parse(data) else { return Ok(None) };
    let Ok(endian) = header.endian() else { return Ok(None) };
    let Ok(segments) = header.program_headers(endian, data) else { return Ok(None) };
    let found = segments.iter().find_map(|s| s.interpreter(endian, data).ok().flatten());
    match found {
        Some(path) => Ok(Some(PathBuf::from(String::from_utf8_lossy(path).into_owned()))),
        None => bail!(
            "{}: is statically linked: the recorder cannot be preloaded into it; link it with the shared MPI library",
            file.display()
        ),
    }
}

/// The MPI among the libraries of a loader's list (`libmpi.so.40 => /usr/lib/libmpi.so.40 (0x…)`).
fn flavour(listed: &str) -> Option<Mpi> {
    listed.lines().find_map(|line| {
        let name = line.split_whitespace().next()?;
        let name = name.rsplit('/').next()?;
        // Open MPI's libmpi.so is numbered from 20 up; MPICH's ABI name for it is 12.
        let version = || name.strip_prefix("libmpi.so.")?.split('.').next()?.parse::<u32>().ok();
        match name {
            _ if name.starts_with("libmpich.so") || name.starts_with("libmpi_abi.so") => Some(Mpi::Mpich),
            _ if name.starts_with("libmpi.so") => match version() {
                Some(12) => Some(Mpi::Mpich),
                _ => Some(Mpi::Openmpi),
            },
            _ => None,
        }
    })
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
    fn libraries_tell_the_mpi() {
        let of = |name: &str| flavour(&format!("\tlibm.so.6 => /x (0x1)\n\t{name} => /y/{name} (0x2)\n"));
        assert_eq!(of("libmpi.so.40"), Some(Mpi::Openmpi));
        assert_eq!(of("libmpi.so.12"), Some(Mpi::Mpich));
        assert_eq!(of("libmpich.so.12"), Some(Mpi::Mpich));
        assert_eq!(of("libmpi_cxx.so.40"), None);
        assert_eq!(of("libc.so.6"), None);
    }

    #[test]
    fn commands_are_found_as_a_shell_finds_them() {
        assert!(resolve(OsStr::new("sh")).is_some_and(|p| p.is_absolute()));
        assert_eq!(resolve(OsStr::new("./no-such-program")), None);
        assert_eq!(resolve(OsStr::new("/tmp")), None);
        assert_eq!(inspect(&env::current_exe().unwrap()).unwrap(), Target::Other);
    }
}
