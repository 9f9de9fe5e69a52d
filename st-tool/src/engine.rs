//! Finding what links MPI: the recorder's library and the engines, one of each per MPI.
//!
//! Programs that people start link no MPI. Inside a job they look up, by the launcher's environment, which MPI the job
//! runs under, and become the engine built for it.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow};

/// A directory to look in before all others, with one subdirectory per MPI.
pub const LIBRARY_PATH: &str = "ST_LIBRARY_PATH";

/// An MPI library, as launchers tell them apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mpi {
    /// Open MPI, and others started through `PMIx`.
    OpenMpi,
    /// MPICH and its relatives, started through PMI.
    Mpich,
}

impl Mpi {
    /// Name of its directory below `lib/st` and of its target directory.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
        }
    }
}

impl fmt::Display for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
        })
    }
}

/// The job that this process was started in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launcher {
    /// The MPI that the launcher speaks.
    pub mpi: Mpi,
    /// This process's rank, if the launcher says so.
    pub rank: Option<u32>,
    /// Number of processes, if the launcher says so.
    pub size: Option<u32>,
}

/// The launcher that started this process, by its environment; `None` outside a job.
#[must_use]
pub fn launcher() -> Option<Launcher> {
    launcher_in(|name| env::var(name).ok())
}

fn launcher_in(variable: impl Fn(&str) -> Option<String>) -> Option<Launcher> {
    let number = |names: &[&str]| names.iter().find_map(|n| variable(n)?.parse().ok());
    let open = number(&["OMPI_COMM_WORLD_RANK", "PMIX_RANK"]);
    let open_size = number(&["OMPI_COMM_WORLD_SIZE"]);
    // Slurm counts the tasks whatever the MPI.
    let slurm_size = number(&["SLURM_STEP_NUM_TASKS"]);
    if open.is_some() || open_size.is_some() {
        return Some(Launcher { mpi: Mpi::OpenMpi, rank: open, size: open_size.or(slurm_size) });
    }
    let rank = number(&["PMI_RANK"]);
    let size = number(&["PMI_SIZE"]);
    let started = rank.is_some() || size.is_some() || variable("HYDI_CONTROL_FD").is_some();
    started.then_some(Launcher { mpi: Mpi::Mpich, rank, size: size.or(slurm_size) })
}

/// The path of a file (`st-replay-engine`, `libst_pmpi.so`) built for an MPI.
///
/// Looked for below `$ST_LIBRARY_PATH`, in `../lib/st` beside the running program's directory, and in the target
/// directories above the program; there the program's own profile goes first.
///
/// # Errors
///
/// If it is nowhere; says how to build it.
pub fn find(file: &str, mpi: Mpi) -> Result<PathBuf> {
    let exe = env::current_exe().context("this program's own path is unknown")?;
    let named = env::var_os(LIBRARY_PATH);
    candidates(&exe, named.map(PathBuf::from).as_deref(), file, mpi)
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| {
            let name = mpi.name();
            anyhow!(
                "{file} for {mpi} not found: it belongs in ../lib/st/{name} beside this program, or name \
                 by {LIBRARY_PATH} the directory that has {name}/{file}; `make install` puts it there"
            )
        })
}

fn candidates(exe: &Path, named: Option<&Path>, file: &str, mpi: Mpi) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = named.map(|n| n.join(mpi.name()).join(file)).into_iter().collect();
    let Some(directory) = exe.parent() else { return paths };
    if let Some(prefix) = directory.parent() {
        paths.push(prefix.join("lib/st").join(mpi.name()).join(file));
    }
    let debug = exe.components().any(|c| c.as_os_str() == "debug");
    let profiles = if debug { ["debug", "release"] } else { ["release", "debug"] };
    for above in directory.ancestors() {
        for target in [above.join(mpi.name()), above.join("target").join(mpi.name())] {
            paths.extend(profiles.iter().map(|profile| target.join(profile).join(file)));
        }
    }
    paths
}

/// Turns this process into an engine, with these arguments. Returns only on failure.
#[must_use]
pub fn become_engine(engine: &Path, args: impl IntoIterator<Item = OsString>) -> anyhow::Error {
    let error = Command::new(engine).args(args).exec();
    anyhow::Error::new(error).context(format!("{}: cannot start", engine.display()))
}

/// Fails if the launcher started several processes and MPI sees one: the engine joined another MPI's job, and would
/// run once per process instead of once.
///
/// # Errors
///
/// If so.
pub fn check_world(mpi: Mpi, world: i32) -> Result<()> {
    match launcher().and_then(|l| l.size) {
        Some(size) if size > 1 && world == 1 => Err(anyhow!(
            "the launcher started {size} processes, but {mpi} sees one: it is not the MPI of this launcher"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(variables: &[(&str, &str)]) -> Option<Launcher> {
        launcher_in(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn launchers_are_known_by_their_environment() {
        assert_eq!(among(&[("PATH", "/bin"), ("SLURM_STEP_NUM_TASKS", "4")]), None);
        let open = among(&[("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "3"), ("PMI_RANK", "9")]);
        assert_eq!(open, Some(Launcher { mpi: Mpi::OpenMpi, rank: Some(3), size: Some(4) }));
        let pmix = among(&[("PMIX_RANK", "1"), ("SLURM_STEP_NUM_TASKS", "2")]);
        assert_eq!(pmix, Some(Launcher { mpi: Mpi::OpenMpi, rank: Some(1), size: Some(2) }));
        let hydra = among(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]);
        assert_eq!(hydra, Some(Launcher { mpi: Mpi::Mpich, rank: Some(0), size: Some(2) }));
    }

    #[test]
    fn installed_files_go_before_built_ones_and_the_profile_is_kept() {
        let paths = candidates(Path::new("/x/target/debug/st"), Some(Path::new("/n")), "e", Mpi::Mpich);
        let texts: Vec<_> = paths.iter().map(|p| p.to_str().unwrap()).collect();
        assert_eq!(texts[..2], ["/n/mpich/e", "/x/target/lib/st/mpich/e"]);
        let place = |t: &str| texts.iter().position(|x| *x == t).unwrap();
        assert!(place("/x/target/mpich/debug/e") < place("/x/target/mpich/release/e"));
        let tests = candidates(Path::new("/x/target/release/deps/t"), None, "e", Mpi::OpenMpi);
        assert!(tests.contains(&PathBuf::from("/x/target/openmpi/release/e")));
    }

    #[test]
    fn a_missing_engine_is_named_with_its_mpi() {
        let e = find("no-such-engine", Mpi::OpenMpi).unwrap_err().to_string();
        assert!(e.starts_with("no-such-engine for Open MPI not found"), "{e}");
    }
}
