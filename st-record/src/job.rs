//! Running the job: the command itself, with the recorder where its ranks will be.
//!
//! A launcher gets options that pass the recorder on. A program that links MPI gets it directly. Anything else (a
//! script, a replayer) may start a launcher itself: it finds ours first in `PATH`, links to this very program that
//! call the real one with those options ([`stand_in`]).

use crate::args::Args;
use crate::by_path;
use crate::launcher::{self, LAUNCHERS, PRELOAD, is_launcher, preload, with_environment};
use crate::preloads::behind_recorder;
use crate::script;
use crate::target::{self, Target, of_launcher};
use crate::wrapped_command::{self, recordable};
use anyhow::{Context, Result, anyhow, bail};
use std::convert::Infallible;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Directory of the stand-ins, in the directory of the ranks' streams.
const STAND_INS: &str = "bin";
/// Directory in which the jobs that record there number themselves, in that of their streams, and the variable that names it.
const NUMBERS: &str = ".jobs";
const JOBS: &str = "ST_JOBS";
/// Names of the variables that reach the ranks.
const VARIABLES: [&str; 18] = [
    "ST_OUTPUT",
    JOBS,
    "ST_TIME",
    "ST_TIME_BUDGET",
    "ST_QUERY_TIMES",
    "ST_FOLD",
    "ST_SIG",
    "ST_STACK_DEPTH",
    "ST_PYTHON",
    "ST_SYNC",
    "ST_SYNC_INTERVAL",
    "ST_CLOCK",
    "ST_ONLY",
    "ST_MERGE",
    "ST_MERGE_TIMEOUT",
    "ST_REDUCE_EVERY",
    "ST_HISTOGRAM",
    "ST_QUIET",
];

/// Why a job could not be started.
#[derive(Debug)]
pub enum Failure {
    /// There is no such command.
    NotFound(OsString),
    /// Anything of our own.
    Own(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(e: anyhow::Error) -> Self {
        Self::Own(e)
    }
}

/// The variables of a recording into a directory, without the preloaded library.
fn variables(args: &Args, directory: &Path) -> Vec<(String, OsString)> {
    let mut all = vec![("ST_OUTPUT".to_owned(), directory.as_os_str().to_owned())];
    all.extend(args.environment().into_iter().map(|(n, v)| (n.to_owned(), v)));
    all
}

/// The same for a recording of all jobs that come, which share the directory.
fn variables_of_jobs(args: &Args, directory: &Path) -> Vec<(String, OsString)> {
    let mut all = variables(args, directory);
    all.push((JOBS.to_owned(), directory.join(NUMBERS).into_os_string()));
    all
}

/// The command that runs the job.
///
/// # Errors
///
/// If the command does not exist or is statically linked, or the recorder is missing.
pub fn command(args: &Args, directory: &Path) -> Result<Command, Failure> {
    let words = &args.command;
    let file = startable(&words[0])?;
    let mut variables = variables_of_jobs(args, directory);
    let mut command;
    if is_launcher(&words[0]) {
        recordable(words)?;
        let words = preloading(words, &mut variables)?;
        let words = with_environment(&words, &variables, of_launcher(&file));
        command = Command::new(&file);
        command.arg0(&words[0]).args(&words[1..]);
        command.envs(launcher::own_environment(&words[0], &variables));
        return Ok(command);
    }
    command = Command::new(&file);
    let recorded = wrapped_command::recorded(words);
    let target = inspect(recorded)?;
    let mut told = words.clone();
    if target == Target::Links {
        told = preloading(words, &mut variables)?;
    }
    command.arg0(&words[0]).args(&told[1..]);
    // Another one may start a launcher instead of what it is told to.
    if target == Target::Other || recorded.len() < words.len() {
        let ours = stand_ins(directory)?;
        let theirs = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(std::iter::once(ours).chain(env::split_paths(&theirs)));
        command.env("PATH", path.context("PATH")?);
        command.envs(by_path::by_environment(directory, &script::said(words))?);
    }
    command.envs(variables);
    Ok(command)
}

/// Adds the recorder to what ranks preload; returns the command's words, in which it comes before what these name.
fn preloading(words: &[OsString], variables: &mut Vec<(String, OsString)>) -> Result<Vec<OsString>> {
    let (name, all) = preload()?;
    let words = behind_recorder(words, &all);
    variables.push((name, all));
    Ok(words)
}

/// The file that a command's first word stands for.
fn startable(word: &OsStr) -> Result<PathBuf, Failure> {
    let file = target::resolve(word).ok_or_else(|| Failure::NotFound(word.to_owned()))?;
    match target::unstartable(&file) {
        Some(why) => Err(Failure::Own(anyhow!(why))),
        None => Ok(file),
    }
}

/// Looks at what a command starts.
fn inspect(words: &[OsString]) -> Result<Target> {
    match words.first().filter(|first| !is_launcher(first)).and_then(|first| target::resolve(first)) {
        Some(file) => target::inspect(&file),
        None => Ok(Target::Other),
    }
}

/// Shell commands that set what a job's ranks need to record into a directory.
///
/// # Errors
///
/// If the command does not exist, the recorder is missing, or the program is statically linked.
pub fn environment(args: &Args, directory: &Path) -> Result<Vec<u8>> {
    let usual = [OsString::from("mpirun")];
    let words = if args.command.is_empty() { &usual[..] } else { wrapped_command::recorded(&args.command) };
    if target::resolve(&words[0]).is_none() {
        bail!("{}: command not found", words[0].display());
    }
    if is_launcher(&words[0]) {
        recordable(words)?;
    } else {
        inspect(words)?;
    }
    // From here on, the next job is the first again, and replaces what is there.
    let numbers = directory.join(NUMBERS);
    if numbers.exists() {
        std::fs::remove_dir_all(&numbers).with_context(|| format!("{}: cannot remove", numbers.display()))?;
    }
    let mut all = variables_of_jobs(args, directory);
    all.push(preload()?);
    Ok(exports(&all))
}

/// Shell commands that set variables, whose values may be names of any bytes.
fn exports(variables: &[(String, OsString)]) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, value) in variables {
        text.extend(format!("export {name}='").into_bytes());
        for &byte in value.as_bytes() {
            match byte {
                b'\'' => text.extend(b"'\\''"),
                byte => text.push(byte),
            }
        }
        text.extend(b"'\n");
    }
    text
}

/// Makes the stand-ins of launchers; returns their directory.
fn stand_ins(directory: &Path) -> Result<PathBuf> {
    let bin = directory.join(STAND_INS);
    let make = || {
        let us = env::current_exe()?;
        std::fs::create_dir(&bin)?;
        // Only launchers that exist: a program may choose by what it finds.
        LAUNCHERS
            .iter()
            .filter(|l| target::resolve(OsStr::new(l)).is_some())
            .try_for_each(|l| symlink(&us, bin.join(l)))
    };
    make().with_context(|| format!("{}: cannot create", bin.display()))?;
    Ok(bin)
}

/// The launcher of a name in the directories of `PATH`, and those of them that have none of our stand-ins of it: whose they are does
/// not matter, a recording within another has those of both before it.
fn behind_us(name: &OsStr, path: &OsStr, us: &Path) -> Option<(PathBuf, Vec<PathBuf>)> {
    let is_us =
        |directory: &PathBuf| std::fs::canonicalize(directory.join(name)).is_ok_and(|file| file == us);
    let rest: Vec<PathBuf> = env::split_paths(path).filter(|directory| !is_us(directory)).collect();
    let real = rest.iter().map(|d| d.join(name)).find(|f| f.is_file())?;
    Some((real, rest))
}

/// Called under a launcher's name: becomes the real launcher, passing the recorder on. If only `PATH` has come here of what was set for
/// the recording, as behind `env -i PATH=…`, the job is not recorded.
///
/// # Errors
///
/// If there is no real launcher, or no recorder for its job. There is no other way to return.
pub fn stand_in(words: &[OsString]) -> Result<Infallible> {
    let path = env::var_os("PATH").unwrap_or_default();
    let name = Path::new(&words[0]).file_name().unwrap_or_default().to_owned();
    let us = env::current_exe().and_then(std::fs::canonicalize).context("this program's own file")?;
    let found = behind_us(&name, &path, &us);
    let (real, rest) = found.with_context(|| format!("{}: no such launcher in PATH", name.display()))?;
    if env::var_os("ST_OUTPUT").is_none() {
        let path = env::join_paths(rest).context("PATH")?;
        let error = Command::new(&real).args(&words[1..]).env("PATH", path).exec();
        return Err(anyhow::Error::new(error).context(format!("{}: cannot start", real.display())));
    }
    let mut words = words.to_vec();
    words[0] = real.clone().into_os_string();
    let mut variables: Vec<_> =
        VARIABLES.iter().filter_map(|n| Some(((*n).to_owned(), env::var_os(n)?))).collect();
    recordable(&words)?;
    let words = preloading(&words, &mut variables)?;
    let words = with_environment(&words, &variables, of_launcher(&real));
    let path = env::join_paths(rest).context("PATH")?;
    let mut command = Command::new(&real);
    // Said once is enough.
    for name in launcher::ENVIRONMENT {
        command.env_remove(name);
    }
    // The launcher itself is none of its ranks.
    match launcher::preloaded_by_others() {
        Some(theirs) => command.env(PRELOAD, theirs),
        None => command.env_remove(PRELOAD),
    };
    command.envs(launcher::own_environment(real.as_os_str(), &variables));
    let error = command.args(&words[1..]).env("PATH", path).exec();
    Err(anyhow::Error::new(error).context(format!("{}: cannot start", real.display())))
}

/// Inside a job: becomes the program, with the recorder preloaded.
///
/// # Errors
///
/// If the program does not exist or is statically linked, or the recorder is missing. There is no other way to return.
pub fn become_rank(args: &Args, directory: &Path) -> Result<Infallible, Failure> {
    let words = &args.command;
    let file = startable(&words[0])?;
    inspect(wrapped_command::recorded(words))?;
    let mut variables = variables(args, directory);
    // Each is a recording of its own, also within another.
    variables.push((JOBS.to_owned(), OsString::new()));
    let told = preloading(words, &mut variables)?;
    let error = Command::new(&file).arg0(&words[0]).args(&told[1..]).envs(variables).exec();
    Err(anyhow::Error::new(error).context(format!("{}: cannot start", file.display())).into())
}

/// Runs the command to its end. What asks us to end is passed on to the job, which ends by it; we go on to pack.
///
/// # Errors
///
/// If it cannot be started.
pub fn run(mut command: Command) -> Result<ExitStatus> {
    let name = Path::new(command.get_program()).display().to_string();
    signals::catch();
    let child = command.spawn().with_context(|| format!("{name}: cannot start"));
    let mut child = child.inspect_err(|_| signals::forget())?;
    signals::pass_to(child.id());
    let status = child.wait();
    signals::forget();
    status.with_context(|| format!("{name}: waiting"))
}

#[expect(unsafe_code, reason = "signal handlers have no safe interface in std")]
mod signals {
    use libc::{c_int, c_void, pid_t, siginfo_t};
    use std::sync::atomic::{AtomicI32, Ordering};

    /// The job's process; 0 before it runs and after it has ended.
    static JOB: AtomicI32 = AtomicI32::new(0);
    /// A signal that came before the job ran.
    static EARLY: AtomicI32 = AtomicI32::new(0);

    /// Signals that ask a program to end.
    const ASKING: [c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

    extern "C" fn pass(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
        // The terminal sends its signals to the job, too: passed on they would arrive twice, which launchers take for
        // impatience.
        // SAFETY: the kernel hands over a valid siginfo_t.
        let from_terminal = unsafe { (*info).si_code } > 0;
        match JOB.load(Ordering::Relaxed) {
            _ if from_terminal => {}
            0 => EARLY.store(signal, Ordering::Relaxed),
            // SAFETY: may be called in a handler; the process is ours and not waited for yet.
            job => drop(unsafe { libc::kill(job, signal) }),
        }
    }

    /// From now on signals that ask us to end are kept for the job.
    pub(super) fn catch() {
        for signal in ASKING {
            // SAFETY: zero is a valid sigaction; the handler does what handlers may.
            unsafe {
                let mut before: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &raw mut before);
                // What we were started to ignore (nohup), the job ignores by itself.
                if before.sa_sigaction == libc::SIG_IGN {
                    continue;
                }
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = pass as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
    }

    /// The job runs.
    pub(super) fn pass_to(job: u32) {
        let job: pid_t = st_model::num::narrow(job);
        JOB.store(job, Ordering::Relaxed);
        let early = EARLY.swap(0, Ordering::Relaxed);
        if early != 0 && job != 0 {
            // SAFETY: the process is ours and not waited for yet.
            unsafe { libc::kill(job, early) };
        }
    }

    /// The job has ended: there is nobody to pass signals to. They still do not end us while its trace is packed.
    pub(super) fn forget() {
        JOB.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt as _;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_shell_reads_names_of_any_bytes() {
        let value = OsString::from_vec(b"a 'quoted' $HOME\\ \xff\n\xc3\xa9 b".to_vec());
        let mut script = exports(&[("ONE".to_owned(), "".into()), ("OTHER".to_owned(), value.clone())]);
        script.extend(b"printf '%s|%s' \"$ONE\" \"$OTHER\"");
        let told = Command::new("sh").arg("-c").arg(OsString::from_vec(script)).output().unwrap();
        assert_eq!(told.stdout, [b"|", value.as_bytes()].concat());
    }

    #[test]
    fn the_launcher_is_behind_all_stand_ins() {
        let home = tempfile::tempdir().unwrap();
        let [outer, inner, none, real] =
            ["outer", "inner", "none", "real"].map(|name| home.path().join(name));
        let us = std::fs::canonicalize(env::current_exe().unwrap()).unwrap();
        for directory in [&outer, &inner, &none, &real] {
            std::fs::create_dir(directory).unwrap();
        }
        symlink(&us, outer.join("mpirun")).unwrap();
        symlink(&us, inner.join("mpirun")).unwrap();
        let launcher = real.join("mpirun");
        std::fs::write(&launcher, "").unwrap();
        std::fs::set_permissions(&launcher, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = env::join_paths([&inner, &none, &outer, &real]).unwrap();
        assert_eq!(behind_us("mpirun".as_ref(), &path, &us), Some((launcher, vec![none, real])));
        assert_eq!(behind_us("mpirun".as_ref(), outer.as_os_str(), &us), None);
    }
}
