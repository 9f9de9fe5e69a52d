//! `mpirun` and its kin: how they pass an environment on to the ranks.

use crate::env_list;
use crate::target;
use anyhow::Result;
use st_cli::Mpi;
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// File name of the recorder.
pub const LIBRARY: &str = "libst_pmpi.so";

/// Names by which jobs are started.
pub const LAUNCHERS: [&str; 10] = [
    "mpirun",
    "mpiexec",
    "orterun",
    "prterun",
    "mpirun.openmpi",
    "mpiexec.openmpi",
    "mpirun.mpich",
    "mpiexec.mpich",
    "mpiexec.hydra",
    "srun",
];

/// Environment variables by which launchers are told what to preload into ranks: Open MPI's list of what files of parameters hand on
/// by `-x` (the other one, for all, does not go with `-x` of a command line), and Hydra's file of options.
pub const ENVIRONMENT: [&str; 2] = ["OMPI_MCA_mca_base_env_list_internal", "HYDRA_CONFIG_FILE"];

/// Whether the user leaves an MPI's variable of [`ENVIRONMENT`] to us.
#[must_use]
pub fn can_tell(mpi: Mpi) -> bool {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".mpiexec.hydra.conf"));
    match mpi {
        Mpi::Openmpi => std::env::var_os(ENVIRONMENT[0]).is_none(),
        // It reads one file only: ours would hide the user's.
        Mpi::Mpich => std::env::var_os(ENVIRONMENT[1]).is_none() && home.is_none_or(|file| !file.exists()),
    }
}

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
/// Those of `srun` that take one, beside these.
const OF_SRUN: &str = "A account B extra-node-info b begin bcast cluster-constraint C constraint cpus-per-task D chdir d dependency \
    distribution m e error epilog exclude export F nodefile G gpus gpus-per-node gpus-per-task gres gres-flags hint I \
    i input J job-name jobid L licenses mail-type mail-user mem mem-per-cpu mem-bind cpu-bind mpi N nodes w nodelist ntasks \
    ntasks-per-core ntasks-per-node ntasks-per-socket o output p partition profile prolog q qos r relative reservation S core-spec \
    t time T threads threads-per-core switches task-epilog task-prolog W wait M clusters";

/// Where the programs, with their own words, are in the words of a launcher's command line (the launcher itself is word 0). A job
/// may have several, separated by colons.
#[must_use]
pub fn programs(words: &[OsString]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 1;
    while start < words.len() {
        let end = (start..words.len()).find(|i| words[*i] == ":").unwrap_or(words.len());
        let program = operand(&words[..end], start, |word| target::resolve(word).is_some());
        found.extend(program.map(|at| at..end));
        start = end + 1;
    }
    found
}

/// Where a launcher's own words end.
fn end_of_options(words: &[OsString]) -> usize {
    programs(words).first().map_or(words.len(), |program| program.start)
}

/// The file with which `srun` is told what each rank runs.
#[must_use]
pub fn multi_prog(words: &[OsString]) -> Option<PathBuf> {
    let file = operand(words, 1, |word| Path::new(word).is_file()).filter(|_| is_srun(&words[0]))?;
    words[..file].iter().any(|word| word == "--multi-prog").then(|| PathBuf::from(&words[file]))
}

/// Index of the first word from `start` on that is no option's, and that is asked for.
fn operand(words: &[OsString], start: usize, is_it: impl Fn(&OsStr) -> bool) -> Option<usize> {
    let mut i = start;
    while i < words.len() {
        let word = words[i].to_string_lossy();
        match word.strip_prefix('-') {
            None if is_it(&words[i]) => return Some(i),
            None => i += 1,
            Some(option) => {
                let option = option.trim_start_matches('-');
                let is_in = |list: &str| list.split_whitespace().any(|o| o == option);
                let one = is_in(WITH_ARGUMENT) || (is_srun(&words[0]) && is_in(OF_SRUN));
                i += 1 + usize::from(one) + 2 * usize::from(is_in(WITH_TWO));
            }
        }
    }
    None
}

/// A launcher's command line that gives its ranks these variables. The launcher itself is not preloaded.
#[must_use]
pub fn with_environment(
    words: &[OsString],
    variables: &[(String, OsString)],
    launcher: Option<Mpi>,
) -> Vec<OsString> {
    if is_srun(&words[0]) {
        return with_export(words, variables);
    }
    if launcher != Some(Mpi::Mpich)
        && let Some(out) = env_list::with_list(words, end_of_options(words), variables)
    {
        return out;
    }
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

/// Whether a command starts ranks of any MPI.
#[must_use]
pub fn is_srun(command: &OsStr) -> bool {
    Path::new(command).file_name().is_some_and(|n| n == "srun")
}

/// The command line of `srun` with these variables among those that it exports: beside all, unless it says otherwise.
fn with_export(words: &[OsString], variables: &[(String, OsString)]) -> Vec<OsString> {
    let said = (1..end_of_options(words)).find_map(|i| {
        let word = words[i].to_str()?;
        let value = word.strip_prefix("--export=").map(str::to_owned);
        value.map(|v| (i, 1, v)).or_else(|| {
            (word == "--export").then(|| Some((i, 2, words.get(i + 1)?.to_str()?.to_owned()))).flatten()
        })
    });
    let (at, n, theirs) = said.unwrap_or((1, 0, "ALL".into()));
    let mut ours = OsString::new();
    // What they have ranks preload is behind the recorder there.
    let known = |name: &str| name == PRELOAD && theirs.split(',').any(|v| v.starts_with("LD_PRELOAD="));
    for (name, value) in variables.iter().filter(|(name, _)| !known(name)) {
        ours.push(format!(",{name}="));
        ours.push(value);
    }
    // `NONE` is only known alone; a list without `ALL` exports no more than it lists.
    let theirs = if theirs == "NONE" { "SLURM_JOB_ID".into() } else { theirs };
    let mut option = OsString::from(format!("--export={theirs}"));
    option.push(ours);
    let mut out = words.to_vec();
    out.splice(at..at + n, [option]);
    out
}

/// The variables of the recorder itself: preloaded before whatever else is.
///
/// # Errors
///
/// If it was not built.
pub fn preload() -> Result<(String, OsString)> {
    let mut value = st_cli::find_common(LIBRARY)?.into_os_string();
    if let Some(theirs) = preloaded_by_others() {
        value.push(":");
        value.push(theirs);
    }
    Ok((PRELOAD.into(), value))
}

/// What the loader is told to load first.
pub const PRELOAD: &str = "LD_PRELOAD";

/// What is preloaded beside the recorder.
#[must_use]
pub fn preloaded_by_others() -> Option<OsString> {
    let all = std::env::var_os(PRELOAD)?;
    let is_ours =
        |word: &[u8]| Path::new(OsStr::from_bytes(word)).file_name().is_some_and(|name| name == LIBRARY);
    let words = all.as_bytes().split(|b| b": ".contains(b));
    let theirs: Vec<_> = words.filter(|word| !word.is_empty() && !is_ours(word)).collect();
    (!theirs.is_empty()).then(|| OsString::from_vec(theirs.join(&b':')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_program_is_found_among_options() {
        let at = |line: &str| programs(&words(line)).first().map(|program| program.start);
        assert_eq!(programs(&words("mpirun -n 1 sh -c true : -n 2 env A=1 : -n 1 ./none")), [3..6, 9..11]);
        assert_eq!(at("mpirun -n 4 sh -c true"), Some(3));
        assert_eq!(at("mpirun --oversubscribe --mca btl self,vader -np 2 -x PATH=/bin sh"), Some(9));
        assert_eq!(at("mpiexec.hydra -genv A sh -ppn 2 -hosts localhost sh"), Some(8));
        assert_eq!(at("mpirun -n 4 ./no-such-program"), None);
        assert_eq!(at("srun -J test -p sh --mpi=pmix --time 10 -n 4 sh"), Some(10));
        assert_eq!(at("mpirun -J sh"), Some(2));
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
    fn srun_exports_what_it_did_and_ours() {
        let variables = [("A".to_owned(), OsString::from("1")), ("B".to_owned(), OsString::from("2"))];
        let with = |line: &str| {
            with_environment(&words(line), &variables, None).join(OsStr::new(" ")).into_string().unwrap()
        };
        assert_eq!(with("srun -n 2 sh"), "srun --export=ALL,A=1,B=2 -n 2 sh");
        assert_eq!(with("/bin/srun --export=X -n 2 sh"), "/bin/srun --export=X,A=1,B=2 -n 2 sh");
        assert_eq!(with("srun -n 2 --export NONE sh"), "srun -n 2 --export=SLURM_JOB_ID,A=1,B=2 sh");
        assert_eq!(with("srun sh --export=X"), "srun --export=ALL,A=1,B=2 sh --export=X");
    }

    #[test]
    fn launchers_by_name() {
        assert!(is_launcher(OsStr::new("/usr/bin/mpirun.openmpi")) && is_launcher(OsStr::new("mpiexec")));
        assert!(!is_launcher(OsStr::new("st-replay")));
    }
}
