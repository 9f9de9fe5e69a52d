//! Jobs: where each has its streams, of several that are recorded together (started by one script, or by another job with
//! `MPI_Comm_spawn`); and what is known of one without a world (sessions).

use crate::settings::Settings;
use crate::trace_name::numbered;
use st_stream::directory::NOTES;
use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Pairs of variables in which launchers tell a process its rank and the number of ranks.
const LAUNCHERS: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
];

/// Rank and number of ranks by the launcher's variables; a process without a launcher is alone.
pub(crate) fn launched() -> (u32, u32) {
    let number = |name: &str| env::var(name).ok().and_then(|v| v.parse::<u32>().ok());
    let of = |(rank, size): &(&str, &str)| Some((number(rank)?, number(size)?)).filter(|(r, n)| r < n);
    LAUNCHERS.iter().find_map(of).unwrap_or((0, 1))
}

/// The directory of a job, the same for all its ranks, made now if no other rank has made it: that of the settings, or in it
/// `job-N` for jobs of one recording after the first, and `spawn-N` for spawned ones.
///
/// # Errors
///
/// If it cannot be made.
pub(crate) fn directory(settings: &Settings, run: &str, spawned: bool) -> Result<PathBuf, String> {
    let output = &settings.output;
    let asked = env::var("PMIX_NAMESPACE").or_else(|_| env::var("PMI_JOBID")).unwrap_or_default();
    let name = if spawned { name(&asked) } else { "job".to_owned() };
    let number = match &settings.jobs {
        Some(jobs) if !run.is_empty() => {
            claim(jobs, &name, run).map_err(|e| format!("{}: {e}", jobs.display()))?
        }
        _ => 1,
    };
    let path = match (spawned, number) {
        (false, 1) => return Ok(output.clone()),
        (true, 1) => output.join(name),
        (_, n) => output.join(format!("{name}-{n}")),
    };
    let told = |e: std::io::Error| format!("{}: {e}", path.display());
    fs::create_dir_all(&path).map_err(told)?;
    // Where a launcher listens for the first job, it listens for this one.
    if let Ok(notes) = fs::read_to_string(output.join(NOTES))
        && let Ok(mut own) = File::create_new(path.join(NOTES))
    {
        let first = notes.lines().next().filter(|name| !spawned && !name.is_empty() && *name != "-");
        let name =
            first.map_or_else(String::new, |name| numbered(name.as_ref(), number).display().to_string());
        own.write_all(format!("{name}\n").as_bytes()).map_err(told)?;
    }
    Ok(path)
}

/// The number of a job among those of a name, from 1, in the order in which they come: each has a link in the directory that
/// says its identity. A link is made with what it says, or not at all.
fn claim(jobs: &Path, name: &str, run: &str) -> io::Result<u32> {
    fs::create_dir_all(jobs)?;
    for number in 1.. {
        let link = jobs.join(format!("{name}-{number}"));
        // All ranks but the first find it.
        let found = match fs::read_link(&link) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => match symlink(run, &link) {
                Ok(()) => return Ok(number),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => fs::read_link(&link)?,
                Err(e) => return Err(e),
            },
            found => found?,
        };
        if found.as_os_str() == run {
            return Ok(number);
        }
    }
    Err(io::ErrorKind::QuotaExceeded.into())
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
    fn jobs_are_numbered_as_they_come_and_ranks_of_one_find_its_number() {
        let jobs = env::temp_dir().join(format!("st-pmpi-claims-{}", std::process::id()));
        let ranks: Vec<_> = (0..8_u8).map(|i| if i % 2 == 0 { "even" } else { "odd" }).collect();
        let numbers: Vec<_> = std::thread::scope(|s| {
            let started = |run: &'static str| {
                let jobs = &jobs;
                (run, s.spawn(move || claim(jobs, "job", run).unwrap()))
            };
            let all: Vec<_> = ranks.into_iter().map(started).collect();
            all.into_iter().map(|(run, claimed)| (run, claimed.join().unwrap())).collect()
        });
        let of = |name| numbers.iter().filter(|(run, _)| *run == name).map(|(_, n)| *n).collect::<Vec<_>>();
        let (even, odd) = (of("even"), of("odd"));
        assert!(even == [even[0]; 4] && odd == [odd[0]; 4] && even[0] + odd[0] == 3, "{numbers:?}");
        assert_eq!(
            [claim(&jobs, "job", "third").unwrap(), claim(&jobs, "spawn-1", "third").unwrap()],
            [3, 1]
        );
        fs::remove_dir_all(&jobs).unwrap();
    }
}
