//! `mpirun` and its kin: how they pass an environment on to the ranks.

use crate::target::{self, Target};
use anyhow::{Context, Result};
use st_tool::Mpi;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// File name of the recorder.
pub const LIBRARY: &str = "libst_pmpi.so";

/// Names by which jobs are started.
pub const LAUNCHERS: [&str; 9] = [
    "mpirun",
    "mpiexec",
    "orterun",
    "prterun",
    "mpirun.openmpi",
    "mpiexec.openmpi",
    "mpirun.mpich",
    "mpiexec.mpich",
    "mpiexec.hydra",
];

/// Whether a command is an MPI launcher.
#[must_use]
pub fn is_launcher(command: &OsStr) -> bool {
    let name = Path::new(command).file_name().unwrap_or_default();
    LAUNCHERS.iter().any(|l| name == *l)
}

/// Options of launchers that take one argument, without leading dashes; those not listed take none, or their argument
/// is no executable and is skipped for that reason.
const WITH_ARGUMENT: &str = "n np c N host hosts H hostfile machinefile f configfile wdir wd path x map-by bind-to \
    rank-by ppn perhost npernode npersocket genvlist envlist prefix output-filename timeout report-pid stdin launcher \
    iface display-map mca-base-env-list rf rankfile cpu-set personality tune am gtune";
/// Those that take two.
const WITH_TWO: &str = "mca gmca pmixmca prtemca env genv";

/// Index of the program in the words of a launcher's command line (the launcher itself is word 0).
#[must_use]
pub fn program(words: &[OsString]) -> Option<usize> {
    let mut i = 1;
    while i < words.len() {
        let word = words[i].to_string_lossy();
        match word.strip_prefix('-') {
            None if target::resolve(&words[i]).is_some() => return Some(i),
            None => i += 1,
            Some(option) => {
                let option = option.trim_start_matches('-');
                let is_in = |list: &str| list.split_whitespace().any(|o| o == option);
                i += 1 + usize::from(is_in(WITH_ARGUMENT)) + 2 * usize::from(is_in(WITH_TWO));
            }
        }
    }
    None
}

/// The MPI whose recorder a job needs: that of its program, or for a script that of the launcher.
///
/// # Errors
///
/// If the program is statically linked, or neither tells.
pub fn mpi_of(words: &[OsString]) -> Result<Mpi> {
    if let Some(file) = program(words).and_then(|i| target::resolve(&words[i]))
        && let Target::Links(mpi) = target::inspect(&file)?
    {
        return Ok(mpi);
    }
    let launcher = target::resolve(&words[0]);
    launcher
        .and_then(|l| target::of_launcher(&l))
        .with_context(|| format!("{}: neither Open MPI's nor MPICH's launcher", words[0].display()))
}

/// A launcher's command line that gives its ranks these variables. The launcher itself is not preloaded.
#[must_use]
pub fn with_environment(
    words: &[OsString],
    variables: &[(String, OsString)],
    launcher: Option<Mpi>,
) -> Vec<OsString> {
    let mut options = Vec::new();
    for (name, value) in variables {
        if launcher == Some(Mpi::Mpich) {
            options.extend(["-genv".into(), OsString::from(name), value.clone()]);
        } else {
            let mut pair = OsString::from(name);
            pair.push("=");
            pair.push(value);
            options.extend(["-x".into(), pair]);
        }
    }
    let mut out = Vec::new();
    for (i, word) in words.iter().enumerate() {
        out.push(word.clone());
        // Open MPI's -x holds up to the next program of a job of several.
        if i == 0 || (word == ":" && launcher != Some(Mpi::Mpich)) {
            out.extend(options.iter().cloned());
        }
    }
    out
}

/// The variables of the recorder itself: preloaded before whatever else is.
///
/// # Errors
///
/// If it was not built for this MPI.
pub fn preload(mpi: Mpi) -> Result<(String, OsString)> {
    let mut value = mpi.find(LIBRARY)?.into_os_string();
    if let Some(theirs) = std::env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
        value.push(":");
        value.push(theirs);
    }
    Ok(("LD_PRELOAD".into(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_program_is_found_among_options() {
        let at = |line: &str| program(&words(line));
        assert_eq!(at("mpirun -n 4 sh -c true"), Some(3));
        assert_eq!(at("mpirun --oversubscribe --mca btl self,vader -np 2 -x PATH=/bin sh"), Some(9));
        assert_eq!(at("mpiexec.hydra -genv A sh -ppn 2 -hosts localhost sh"), Some(8));
        assert_eq!(at("mpirun -n 4 ./no-such-program"), None);
    }

    #[test]
    fn variables_reach_every_program_of_a_job() {
        let variables = [("A".to_owned(), OsString::from("1"))];
        let line = words("mpirun -n 1 a : -n 2 b");
        let join = |v: Vec<OsString>| v.join(OsStr::new(" ")).into_string().unwrap();
        assert_eq!(
            join(with_environment(&line, &variables, Some(Mpi::Openmpi))),
            "mpirun -x A=1 -n 1 a : -x A=1 -n 2 b"
        );
        assert_eq!(
            join(with_environment(&line, &variables, Some(Mpi::Mpich))),
            "mpirun -genv A 1 -n 1 a : -n 2 b"
        );
    }

    #[test]
    fn launchers_by_name() {
        assert!(is_launcher(OsStr::new("/usr/bin/mpirun.openmpi")) && is_launcher(OsStr::new("mpiexec")));
        assert!(!is_launcher(OsStr::new("st-replay")));
    }
}
