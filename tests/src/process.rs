//! Running programs: with a time limit, without a process left behind.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use st_cli::Mpi;

use crate::{Failure, place};

/// Environment variable that marks all processes of a command.
const MARK: &str = "ST_TESTS_MARK";
/// How long a command may take, unless said otherwise.
pub const LIMIT: Duration = Duration::from_secs(60);
/// Time for processes to end after their parent, or after they were asked to.
const GRACE: Duration = Duration::from_secs(5);

/// What a command did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The command, for messages.
    pub line: String,
    /// Exit status, as a shell has it: 128 + the signal if it was killed.
    pub status: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
}

impl Outcome {
    /// Standard output as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// This outcome, if the exit status is the one expected.
    ///
    /// # Errors
    ///
    /// If it is another: with all that was said.
    pub fn expect(self, status: i32) -> Result<Self, Failure> {
        if self.status == status { Ok(self) } else { Err(format!("expected status {status}: {self}")) }
    }

    /// This outcome, if the job ended because ranks of it ended with a status. MPICH's launcher kills the other ranks then, and
    /// reports the bits of all statuses: also of that (9), if it comes to kill a rank.
    ///
    /// # Errors
    ///
    /// If the status is another: with all that was said.
    pub fn broken_off(self, mpi: Mpi, status: i32) -> Result<Self, Failure> {
        if mpi == Mpi::Mpich && self.status == status | 9 { Ok(self) } else { self.expect(status) }
    }

    /// This outcome, if the exit status is 0.
    ///
    /// # Errors
    ///
    /// If it is another: with all that was said.
    pub fn ok(self) -> Result<Self, Failure> {
        self.expect(0)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "`{}` ended with status {}\n{}{}",
            self.line,
            self.status,
            tail(&self.text()),
            tail(&self.stderr)
        )
    }
}

/// The last lines of a text.
fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    let from = lines.len().saturating_sub(25);
    lines[from..].iter().map(|l| format!("    {}\n", l.chars().take(400).collect::<String>())).collect()
}

/// A command to run.
#[derive(Debug)]
pub struct Run {
    command: Command,
    input: Option<PathBuf>,
    limit: Duration,
}

impl Run {
    /// A program with its arguments, in the scratch directory, outside of any MPI job, with no input.
    pub fn new<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = S>) -> Self {
        let mut command = Command::new(program);
        command.args(args).current_dir(place::scratch());
        // The tests may themselves run below a launcher, or with settings for the recorder.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["OMPI_COMM_WORLD_", "PMI_", "PMIX_", "SLURM_"].iter().any(|p| text.starts_with(p))
                || (text.starts_with("ST_") && text != "ST_LIBRARY_PATH")
            {
                command.env_remove(&name);
            }
        }
        command.env_remove("LD_PRELOAD");
        Self { command, input: None, limit: LIMIT }
    }

    /// A program of st.
    ///
    /// # Errors
    ///
    /// If it was not built.
    pub fn st<S: AsRef<OsStr>>(name: &str, args: impl IntoIterator<Item = S>) -> Result<Self, Failure> {
        Ok(Self::new(place::program(name)?, args))
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs in another directory.
    #[must_use]
    pub fn within(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Reads standard input from a file.
    #[must_use]
    pub fn input(mut self, file: &Path) -> Self {
        self.input = Some(file.to_owned());
        self
    }

    /// Allows more time, or less.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the command to its end.
    ///
    /// # Errors
    ///
    /// If it cannot be started, takes too long, or leaves processes behind (which are then killed).
    pub fn go(mut self) -> Result<Outcome, Failure> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let line = shown(&self.command);
        let files = [".out", ".err"].map(|ext| place::scratch().join(format!("run-{mark}{ext}")));
        let told = |e: std::io::Error| format!("`{line}`: {e}");
        let [out, err] = [File::create(&files[0]).map_err(told)?, File::create(&files[1]).map_err(told)?];
        let input = match &self.input {
            Some(file) => File::open(file).map_err(told)?.into(),
            None => Stdio::null(),
        };
        self.command.env(MARK, &mark).stdin(input).stdout(out).stderr(err).process_group(0);
        let mut child = self.command.spawn().map_err(told)?;
        let ended = wait(&mut child, self.limit).map_err(told)?;
        let left = if ended.is_some() { leave(&mark) } else { kill_all(&mark) };
        if ended.is_none() {
            // The processes are gone, so this returns at once.
            child.wait().map_err(told)?;
        }
        let [stdout, stderr] = [fs::read(&files[0]).map_err(told)?, fs::read(&files[1]).map_err(told)?];
        files.iter().try_for_each(fs::remove_file).map_err(told)?;
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        let status = ended.map_or(-1, code);
        let outcome = Outcome { line: line.clone(), status, stdout, stderr };
        if ended.is_none() {
            return Err(format!("killed after {} s: {outcome}", self.limit.as_secs()));
        }
        if !left.is_empty() {
            return Err(format!("left processes behind ({}): {outcome}", left.join(", ")));
        }
        Ok(outcome)
    }
}

fn shown(command: &Command) -> String {
    let set = command.get_envs().filter_map(|(n, v)| Some((n, v?)));
    let set = set.map(|(n, v)| format!("{}={}", n.to_string_lossy(), v.to_string_lossy()));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    set.chain(words.map(|w| w.to_string_lossy().into_owned())).collect::<Vec<_>>().join(" ")
}

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(-1)
}

/// Waits for the child; `None` if it takes longer than the limit.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            return Ok(None);
        }
        sleep(Duration::from_millis(5));
    }
}

/// Waits for the processes of a command that has ended; kills those that stay. Returns them.
fn leave(mark: &str) -> Vec<String> {
    let start = Instant::now();
    while start.elapsed() < GRACE {
        if marked(mark).is_empty() {
            return Vec::new();
        }
        sleep(Duration::from_millis(20));
    }
    kill_all(mark)
}

/// Asks all processes of a command to end, then kills what is left. Returns them.
fn kill_all(mark: &str) -> Vec<String> {
    let first = marked(mark);
    signal("-TERM", &first);
    let start = Instant::now();
    while start.elapsed() < GRACE && !marked(mark).is_empty() {
        sleep(Duration::from_millis(20));
    }
    signal("-KILL", &marked(mark));
    while start.elapsed() < 2 * GRACE && !marked(mark).is_empty() {
        sleep(Duration::from_millis(20));
    }
    first
}

fn signal(which: &str, processes: &[String]) {
    for p in processes {
        let pid = p.split(' ').next().unwrap_or_default();
        // A process that has ended meanwhile makes kill fail.
        let _ = Command::new("kill").args([which, pid]).stderr(Stdio::null()).status();
    }
}

/// The processes that have the mark in their environment: number and name. (Those that have ended have none.)
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let has = |pid: &str| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|b| *b == 0).any(|v| v == wanted.as_bytes())
    };
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if pid.bytes().all(|b| b.is_ascii_digit()) && has(&pid) {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            found.push(format!("{pid} {}", name.trim()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Run {
        Run::new("sh", ["-c", script])
    }

    #[test]
    fn output_and_status_are_what_the_command_says() {
        let o = sh("echo out; echo err >&2; exit 7").go().unwrap();
        assert_eq!((o.status, o.text().as_str(), o.stderr.as_str()), (7, "out\n", "err\n"));
        assert!(o.expect(0).unwrap_err().contains("status 7"));
        assert_eq!(sh("kill -SEGV $$").go().unwrap().status, 128 + 11);
    }

    #[test]
    fn what_takes_too_long_is_killed_with_its_children() {
        let run = sh("sleep 1000 & sh -c 'sleep 1000'").limit(Duration::from_millis(200));
        let failure = run.go().unwrap_err();
        assert!(failure.contains("killed after"), "{failure}");
        let all: String = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|e| fs::read_to_string(e.path().join("cmdline")).ok())
            .filter(|c| c.starts_with("sleep\x001000"))
            .collect();
        assert_eq!(all, "");
    }

    #[test]
    fn what_is_left_behind_is_a_failure() {
        let failure = sh("setsid sleep 999 & sleep 0.1; exit 0").go().unwrap_err();
        assert!(failure.contains("left processes behind") && failure.contains("sleep"), "{failure}");
    }
}
