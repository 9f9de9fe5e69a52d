//! Whether the ranks of a job may compare their clocks.
//!
//! For that all ranks make communicators together in `MPI_Init`: a rank without recorder would never come, and the others
//! wait for ever. Started around the launcher, st-record gives all ranks the recorder. Started by the launcher, it is one
//! rank, and must know that the launcher was told to start it everywhere. All ranks come to the same answer, since they
//! go by what the launcher tells all of them.

use st_cli::{Launch, Mpi};
use std::ffi::OsStr;
use std::path::Path;

/// Whether the launcher has started all ranks of the job as this one, by the command `own`.
#[must_use]
pub fn all_recorded(launch: &Launch, own: Option<&OsStr>, variable: impl Fn(&str) -> Option<String>) -> bool {
    // Open MPI tells its ranks how many commands it was given, and which one. (A script may start us on some ranks only.)
    // Other launchers tell nothing.
    let name = |command: &OsStr| Path::new(command).file_name().map(OsStr::to_owned);
    let command = variable("OMPI_COMMAND").and_then(|c| name(OsStr::new(&c)));
    launch.size == 1
        || launch.mpi == Some(Mpi::Openmpi)
            && variable("OMPI_NUM_APP_CTX").as_deref() == Some("1")
            && command.is_some()
            && command == own.and_then(name)
}

/// Whether the job is known to run on one node, where there is one clock.
#[must_use]
pub fn one_node(launch: &Launch, variable: impl Fn(&str) -> Option<String>) -> bool {
    let size = launch.size.to_string();
    ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"].iter().any(|n| variable(n).as_ref() == Some(&size))
        || variable("SLURM_STEP_NUM_NODES").as_deref() == Some("1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_launcher_tells_all_ranks_counts() {
        let with = |mpi, pairs: &'static [(&str, &str)]| {
            let launch = Launch { mpi, rank: 1, size: 2 };
            let variable = |n: &str| pairs.iter().find(|(name, _)| *name == n).map(|(_, v)| (*v).to_owned());
            let own = Some(OsStr::new("/usr/bin/st-record"));
            (all_recorded(&launch, own, variable), one_node(&launch, variable))
        };
        let mpi = Some(Mpi::Openmpi);
        assert!(with(mpi, &[("OMPI_COMMAND", "st-record"), ("OMPI_NUM_APP_CTX", "1")]).0);
        assert!(!with(mpi, &[("OMPI_COMMAND", "st-record"), ("OMPI_NUM_APP_CTX", "2")]).0);
        assert!(!with(mpi, &[("OMPI_COMMAND", "sh"), ("OMPI_NUM_APP_CTX", "1")]).0);
        assert!(!with(mpi, &[]).0);
        assert_eq!(with(Some(Mpi::Mpich), &[("MPI_LOCALNRANKS", "2")]), (false, true));
        assert_eq!(with(Some(Mpi::Mpich), &[("MPI_LOCALNRANKS", "1")]), (false, false));
        assert_eq!(with(None, &[("SLURM_STEP_NUM_NODES", "1")]), (false, true));
        assert!(all_recorded(&Launch { mpi: None, rank: 0, size: 1 }, None, |_| None));
    }
}
