//! Which MPI started us, and where what was built for that MPI lies.
//!
//! The programs link no MPI. What must (the engines) is built once per MPI library and installed in `lib/st/<mpi>/` beside the
//! programs' `bin/`, or lies in the build tree in `target/<mpi>/<profile>/`; the recorder, one for all, in `lib/st/`, or where
//! the build tree has the programs.

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

/// Names a directory to look in first, with the recorder and one subdirectory per MPI.
const LIBRARY_PATH: &str = "ST_LIBRARY_PATH";

/// The file `name` that is built once for all MPIs.
///
/// # Errors
///
/// As [`Mpi::find`].
pub fn find_common(name: &str) -> Result<PathBuf> {
    find_common_for(&env::current_exe().context("looking for our own program file")?, name)
}

/// The file that `program` would find by [`find_common`].
///
/// # Errors
///
/// As [`Mpi::find`].
pub fn find_common_for(program: &Path, name: &str) -> Result<PathBuf> {
    find_in(program, None, name)
}

/// The file `name` that was built for an MPI, or for all.
fn find_in(program: &Path, mpi: Option<Mpi>, name: &str) -> Result<PathBuf> {
    let named = env::var_os(LIBRARY_PATH).map(PathBuf::from);
    let places = places(program, named.as_deref(), mpi.map_or("", Mpi::name), name);
    if let Some(found) = places.iter().find(|place| place.is_file()) {
        return Ok(found.clone());
    }
    let looked: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    let whose = mpi.map_or_else(String::new, |mpi| format!(" for {mpi}"));
    bail!("{name} was not built{whose}: no {}", looked.join(", no "))
}

/// MPI libraries that engines are built for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, ValueEnum)]
pub enum Mpi {
    /// Open MPI
    Openmpi,
    /// MPICH and its descendants
    Mpich,
}

impl Mpi {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Openmpi, Self::Mpich];

    /// Name in paths and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Openmpi => "openmpi",
            Self::Mpich => "mpich",
        }
    }

    /// The file `name` that was built for this MPI: in `$ST_LIBRARY_PATH/<mpi>/`, if that is set, or beside the
    /// running program.
    ///
    /// # Errors
    ///
    /// If it is neither there, nor installed beside the running program, nor in its build tree; the message says
    /// where it was looked for.
    pub fn find(self, name: &str) -> Result<PathBuf> {
        self.find_for(&env::current_exe().context("looking for our own program file")?, name)
    }

    /// The file that `program` would find by [`Mpi::find`].
    ///
    /// # Errors
    ///
    /// As [`Mpi::find`].
    pub fn find_for(self, program: &Path, name: &str) -> Result<PathBuf> {
        find_in(program, Some(self), name)
    }
}

impl fmt::Display for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Openmpi => "Open MPI",
            Self::Mpich => "MPICH",
        })
    }
}

/// Where a file may be, best first: where the environment says, `PREFIX/lib/st/<mpi>/`, then the build tree of
/// `target/<profile>/program`, its own profile first.
fn places(program: &Path, named: Option<&Path>, directory: &str, name: &str) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = named.map(|dir| dir.join(directory).join(name)).into_iter().collect();
    let Some(dir) = program.parent() else { return places };
    if let Some(prefix) = dir.parent() {
        places.push(prefix.join("lib/st").join(directory).join(name));
    }
    // Test programs lie one level deeper, in `target/<profile>/deps/`.
    let debug = dir.ancestors().take(2).any(|d| d.ends_with("debug"));
    let profiles = if debug { ["debug", "release"] } else { ["release", "debug"] };
    for target in dir.ancestors().skip(1).take(2) {
        places.extend(profiles.map(|profile| target.join(directory).join(profile).join(name)));
    }
    places
}

/// What the launcher of an MPI job told this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launch {
    /// The launcher's MPI; `None` if it starts programs of any (`srun`).
    pub mpi: Option<Mpi>,
    /// This process's rank.
    pub rank: u32,
    /// Number of ranks.
    pub size: u32,
}

impl Launch {
    /// The launch that this process is part of; `None` outside of a launcher.
    #[must_use]
    pub fn current() -> Option<Self> {
        Self::from(|name| env::var(name).ok())
    }

    fn from(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name| variable(name)?.parse().ok();
        let by = |mpi, rank, size| Some(Self { mpi, rank: number(rank)?, size: number(size)? });
        // The last two are set in the steps that srun starts, not in a batch script.
        by(Some(Mpi::Openmpi), "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
            .or_else(|| by(Some(Mpi::Mpich), "PMI_RANK", "PMI_SIZE"))
            .or_else(|| by(None, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"))
    }

    /// How many processes of the job run on this node, if the launcher says so.
    #[must_use]
    pub fn on_this_node() -> Option<usize> {
        ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"]
            .iter()
            .find_map(|name| env::var(name).ok()?.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_told_apart() {
        let with = |pairs: &'static [(&str, &str)]| {
            Launch::from(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        let of = |mpi, rank, size| Some(Launch { mpi, rank, size });
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("SLURM_PROCID", "0")]), None);
        assert_eq!(with(&[("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "8")]), of(None, 3, 8));
        assert_eq!(with(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")]), of(Some(Mpi::Mpich), 1, 2));
        assert_eq!(
            with(&[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4"), ("PMI_RANK", "x")]),
            of(Some(Mpi::Openmpi), 1, 4)
        );
    }

    #[test]
    fn installed_files_come_before_the_build_tree() {
        let installed =
            places(Path::new("/usr/local/bin/st-replay"), Some(Path::new("/x")), Mpi::Mpich.name(), "engine");
        assert_eq!(installed[0], Path::new("/x/mpich/engine"));
        assert_eq!(installed[1], Path::new("/usr/local/lib/st/mpich/engine"));
        for (program, own) in
            [("/src/target/release/st-replay", "release"), ("/src/target/debug/deps/cli-0", "debug")]
        {
            let places = places(Path::new(program), None, Mpi::Openmpi.name(), "engine");
            let built: Vec<_> = places.iter().filter(|p| p.starts_with("/src/target/openmpi")).collect();
            assert_eq!(built.len(), 2, "{places:?}");
            assert_eq!(built[0], &Path::new("/src/target/openmpi").join(own).join("engine"));
        }
    }

    #[test]
    fn what_was_not_built_is_named() {
        let error = Mpi::Openmpi.find("no-such-engine").unwrap_err().to_string();
        assert!(error.starts_with("no-such-engine was not built for Open MPI: no /"), "{error}");
    }
}
