//! The run's identity, by which its ranks' streams are told from those of any other job: drawn at random by rank 0 where
//! the recorder has a communicator ([`crate::sync`]), else what follows from the launcher's variables, else none.

use crate::ancestry::{ancestors, stat};
use st_model::header::run_of;
use std::env;
use std::fs;

/// Hydra's process on each node, which starts the ranks there.
const PROXY: &str = "hydra_pmi_proxy";

/// A random identity.
pub(crate) fn drawn() -> Option<u128> {
    let mut bytes = [0_u8; size_of::<u128>()];
    // SAFETY: the buffer has the stated length.
    let n = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    (usize::try_from(n) == Ok(bytes.len())).then_some(u128::from_le_bytes(bytes))
}

/// The identity as a header has it; empty if there is none.
pub(crate) fn identity(drawn: Option<u128>) -> String {
    match drawn {
        Some(id) => format!("{id:032x}"),
        None => facts(&|name| env::var(name).ok(), proxy).map_or_else(String::new, |facts| run_of(&facts)),
    }
}

/// What all ranks of a job are told alike, and no other job is.
fn facts(
    variable: &dyn Fn(&str) -> Option<String>,
    proxy: impl FnOnce() -> Option<String>,
) -> Option<String> {
    if let Some(job) = variable("PMIX_NAMESPACE") {
        // Numbers of jobs come again; Open MPI tells its ranks a random number, too.
        let random = variable("OMPI_MCA_orte_precondition_transports").unwrap_or_default();
        return Some(format!("PMIx {job} {random}"));
    }
    // Hydra's ranks may inherit Slurm's variables from the step that all its jobs run in. Of its own it has none that names the
    // job: on one node the process that has started all ranks does.
    if variable("HYDI_CONTROL_FD").is_some() {
        let one_node = variable("PMI_SIZE").is_some() && variable("PMI_SIZE") == variable("MPI_LOCALNRANKS");
        return if one_node { proxy() } else { None };
    }
    Some(format!("Slurm {} {}", variable("SLURM_JOB_ID")?, variable("SLURM_STEP_ID")?))
}

/// The nearest of Hydra's processes that this one descends from: its number, its start and that of the machine.
fn proxy() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let found = ancestors().find_map(|pid| stat(pid).filter(|s| s.name == PROXY).map(|s| (pid, s.started)));
    found.map(|(pid, started)| format!("Hydra {pid} {started} {}", boot.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_told_apart_by_what_their_launchers_say() {
        let of = |pairs: &[(&str, &str)]| {
            let variable = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            facts(&variable, || Some("proxy".into()))
        };
        assert_eq!(of(&[]), None);
        let slurm = [("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "2")];
        assert_eq!(of(&slurm).as_deref(), Some("Slurm 7 2"));
        assert_eq!(of(&slurm[..1]), None);
        let hydra = |local| {
            [slurm[0], slurm[1], ("HYDI_CONTROL_FD", "7"), ("PMI_SIZE", "4"), ("MPI_LOCALNRANKS", local)]
        };
        assert_eq!([of(&hydra("4")), of(&hydra("2"))], [Some("proxy".into()), None]);
        let openmpi = [("PMIX_NAMESPACE", "9"), ("OMPI_MCA_orte_precondition_transports", "a-b"), slurm[0]];
        assert_eq!(of(&openmpi).as_deref(), Some("PMIx 9 a-b"));
    }

    #[test]
    fn what_is_drawn_differs() {
        let (a, b) = (drawn(), drawn());
        assert!(a.is_some() && a != b);
        assert_eq!(identity(Some(255)), format!("{:0>32}", "ff"));
    }
}
