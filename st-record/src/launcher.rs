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
    parts(words).into_iter().map(|(_, program)| program).filter(|program| !program.is_empty()).collect()
}

/// The same with the launcher's own words before each, also where no program is found behind them.
fn parts(words: &[OsString]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut found = Vec::new();
    let mut start = 1;
    while start < words.len() {
        let end = (start..words.len()).find(|i| words[*i] == ":").unwrap_or(words.len());
        let program = operand(&words[..end], start, |word| target::resolve(word).is_some()).unwrap_or(end);
        found.push((start..program, program..end));
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
        return with_export(words, variables, std::env::var_os(USUAL_EXPORT));
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

/// What `srun` exports where its command line does not say it; `sbatch --export` sets it.
const USUAL_EXPORT: &str = "SLURM_EXPORT_ENV";
/// Its option for that.
const EXPORT: &[u8] = b"--export";

/// What a launcher itself must be started with, beside its command line, to give its ranks these variables: `srun` ends the values in
/// its list at commas, and is told names alone.
#[must_use]
pub fn own_environment<'a>(
    launcher: &OsStr,
    variables: &'a [(String, OsString)],
) -> Vec<(&'a str, &'a OsStr)> {
    let named = variables.iter().filter(|(name, value)| is_srun(launcher) && by_name(name, value));
    named.map(|(name, value)| (&**name, &**value)).collect()
}

/// Whether `srun` is told a variable's name alone: all but what is to be preloaded, if it can be, into the ranks alone.
fn by_name(name: &str, value: &OsStr) -> bool {
    name != PRELOAD || value.as_bytes().contains(&b',')
}

/// The command line of `srun` that exports these variables beside what it does: the `usual` ones, or all, unless it says otherwise.
fn with_export(
    words: &[OsString],
    variables: &[(String, OsString)],
    usual: Option<OsString>,
) -> Vec<OsString> {
    let mut out = words.to_vec();
    let parts = parts(words);
    // From the last on: what is before stays where it is. A part that says nothing exports what the one before it does.
    for (n, (options, _)) in parts.iter().enumerate().rev() {
        match export(words, options.clone()) {
            Some((at, theirs)) => drop(out.splice(at, [option(theirs, variables)])),
            None if n == 0 => {
                let theirs = usual.as_deref().map_or(&b"ALL"[..], OsStr::as_bytes);
                out.insert(1, option(theirs, variables));
            }
            None => {}
        }
    }
    out
}

/// The option among these words that says what is exported, the last, and what it says.
fn export(words: &[OsString], options: Range<usize>) -> Option<(Range<usize>, &[u8])> {
    options.clone().rev().find_map(|i| match words[i].as_bytes().strip_prefix(EXPORT)? {
        [] if i + 1 < options.end => Some((i..i + 2, words[i + 1].as_bytes())),
        [b'=', value @ ..] => Some((i..i + 1, value)),
        _ => None,
    })
}

/// The option that exports `theirs` and ours.
fn option(theirs: &[u8], variables: &[(String, OsString)]) -> OsString {
    let assigns = [PRELOAD.as_bytes(), b"="].concat();
    // `NONE` and `NIL` are only known alone; a list without `ALL` exports no more than it lists, and Slurm's own.
    let alone = [&b""[..], b"NONE", b"NIL"].iter().any(|word| theirs.eq_ignore_ascii_case(word));
    let theirs = if alone { b"SLURM_JOB_ID" } else { theirs };
    let mut list: Vec<Vec<u8>> = theirs.split(|b| *b == b',').map(<[u8]>::to_vec).collect();
    let preloaded = list.iter().position(|word| word.starts_with(&assigns));
    for (name, value) in variables {
        let value = value.as_bytes();
        match preloaded.filter(|_| name == PRELOAD) {
            // What they have ranks preload is behind the recorder.
            Some(at) => {
                let ours = value.split(|b| *b == b':').next().unwrap_or_default();
                if !list[at][assigns.len()..].starts_with(ours) {
                    list[at] = [&assigns, ours, b":", &list[at][assigns.len()..]].concat();
                }
            }
            None if by_name(name, OsStr::from_bytes(value)) => list.push(name.clone().into_bytes()),
            None => list.push([name.as_bytes(), b"=", value].concat()),
        }
    }
    OsString::from_vec([EXPORT, b"=", &list.join(&b',')].concat())
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
        let variables = [("A", "1,2"), (PRELOAD, "/r.so")].map(|(n, v)| (n.to_owned(), OsString::from(v)));
        let with = |line: &str, usual: Option<&str>| {
            let out = with_export(&words(line), &variables, usual.map(OsString::from));
            out.join(OsStr::new(" ")).into_string().unwrap()
        };
        for (line, usual, told) in [
            ("srun -n 2 sh", None, "srun --export=ALL,A,LD_PRELOAD=/r.so -n 2 sh"),
            ("srun sh --export=X", None, "srun --export=ALL,A,LD_PRELOAD=/r.so sh --export=X"),
            ("srun --export=X -n 2 sh", Some("NONE"), "srun --export=X,A,LD_PRELOAD=/r.so -n 2 sh"),
            ("srun -n 2 --export NONE sh", None, "srun -n 2 --export=SLURM_JOB_ID,A,LD_PRELOAD=/r.so sh"),
            ("srun --export=X --export=Y sh", None, "srun --export=X --export=Y,A,LD_PRELOAD=/r.so sh"),
            ("srun sh", Some("NONE"), "srun --export=SLURM_JOB_ID,A,LD_PRELOAD=/r.so sh"),
            ("srun sh", Some("LD_PRELOAD=/x,Y"), "srun --export=LD_PRELOAD=/r.so:/x,Y,A sh"),
            ("srun --export=LD_PRELOAD=/r.so:/x sh", None, "srun --export=LD_PRELOAD=/r.so:/x,A sh"),
            (
                "srun sh : --export=X sh",
                None,
                "srun --export=ALL,A,LD_PRELOAD=/r.so sh : --export=X,A,LD_PRELOAD=/r.so sh",
            ),
        ] {
            assert_eq!(with(line, usual), told);
        }
        let own = |launcher: &str| own_environment(OsStr::new(launcher), &variables);
        assert_eq!((own("/bin/srun"), own("mpirun")), (vec![("A", OsStr::new("1,2"))], vec![]));
        // Where the list would cut it, srun itself has it.
        assert!(by_name(PRELOAD, OsStr::new("/a,b/r.so")));
    }

    #[test]
    fn launchers_by_name() {
        assert!(is_launcher(OsStr::new("/usr/bin/mpirun.openmpi")) && is_launcher(OsStr::new("mpiexec")));
        assert!(!is_launcher(OsStr::new("st-replay")));
    }
}
