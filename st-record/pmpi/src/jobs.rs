//! Jobs other than the launcher's: without a world (sessions), and started by another job (`MPI_Comm_spawn`).

use crate::output::NOTES;
use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Pairs of variables in which launchers tell a process its rank and the number of ranks.
#[cfg(sessions)]
const LAUNCHERS: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
];

/// Rank and number of ranks by the launcher's variables; a process without a launcher is alone.
#[cfg(sessions)]
pub(crate) fn launched() -> (u32, u32) {
    let number = |name: &str| env::var(name).ok().and_then(|v| v.parse::<u32>().ok());
    let of = |(rank, size): &(&str, &str)| Some((number(rank)?, number(size)?)).filter(|(r, n)| r < n);
    LAUNCHERS.iter().find_map(of).unwrap_or((0, 1))
}

/// The directory of a spawned job in that of the job that was launched, made now if no other rank has made it:
/// `spawn-N`, equal for all ranks of the job and different for each.
///
/// # Errors
///
/// If it cannot be made.
pub(crate) fn directory(parent: &Path) -> Result<PathBuf, String> {
    let job = env::var("PMIX_NAMESPACE").or_else(|_| env::var("PMI_JOBID")).unwrap_or_default();
    let path = parent.join(name(&job));
    let told = |e: std::io::Error| format!("{}: {e}", path.display());
    fs::create_dir_all(&path).map_err(told)?;
    // Where a launcher listens for the parents, it listens for the children.
    if parent.join(NOTES).exists()
        && let Ok(mut notes) = File::create_new(path.join(NOTES))
    {
        notes.write_all(b"\n").map_err(told)?;
    }
    Ok(path)
}

/// The directory of a job that the launcher calls so.
fn name(job: &str) -> String {
    // Open MPI numbers a launcher's jobs in the low half of the job's number, from 1, the launched one; under PMIx it is
    // the name space.
    let name = match job.parse::<u64>() {
        Ok(n) => (n & 0xffff).saturating_sub(1).to_string(),
        Err(_) if job.is_empty() => std::os::unix::process::parent_id().to_string(),
        Err(_) => job.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect(),
    };
    format!("spawn-{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_have_names_of_their_own() {
        // As Open MPI, PMIx and Hydra call the second and third job of a launcher.
        assert_eq!([name("1234567170"), name("1234567171")], ["spawn-1", "spawn-2"].map(str::to_owned));
        assert_eq!(name("prterun-node-77@2"), "spawn-prterun-node-77-2");
        assert_ne!(name("kvs_77_1_5_node_1"), name("kvs_77_2_5_node_1"));
        assert_eq!(name(""), name(""));
    }

    #[test]
    fn ranks_of_a_job_share_a_directory() {
        let parent = env::temp_dir().join(format!("st-pmpi-jobs-{}", std::process::id()));
        fs::create_dir_all(&parent).unwrap();
        fs::write(parent.join(NOTES), "name\n").unwrap();
        let one = directory(&parent).unwrap();
        assert_eq!(one, directory(&parent).unwrap());
        assert!(one.file_name().unwrap().to_string_lossy().starts_with("spawn-"));
        assert_eq!(fs::read_to_string(one.join(NOTES)).unwrap(), "\n");
        fs::remove_dir_all(&parent).unwrap();
    }
}
