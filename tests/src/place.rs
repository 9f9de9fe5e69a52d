//! Where things are: the source tree, built programs, what was built for an MPI, scratch files.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use st_cli::Mpi;
use tempfile::TempDir;

use crate::Failure;

/// The root of the source tree.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The target directory: `ST_TESTS_TARGET`, else the one that the running test lies in.
///
/// # Errors
///
/// If the test lies in none.
pub fn target() -> Result<PathBuf, Failure> {
    if let Some(named) = env::var_os("ST_TESTS_TARGET") {
        return Ok(named.into());
    }
    // target/<profile>/deps/test
    let exe = env::current_exe().map_err(|e| e.to_string())?;
    exe.ancestors()
        .nth(3)
        .map(Path::to_path_buf)
        .ok_or_else(|| format!("{}: no target directory", exe.display()))
}

/// The newer of `directory/release/name` and `directory/debug/name`.
fn newest(directory: &Path, name: &str) -> Result<PathBuf, Failure> {
    let changed = |p: &PathBuf| p.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let places = ["release", "debug"].map(|profile| directory.join(profile).join(name));
    let found = places.into_iter().filter(|p| p.is_file()).max_by_key(changed);
    found.ok_or_else(|| format!("{name} was not built in {}: `make build` builds it", directory.display()))
}

/// A program of st.
///
/// # Errors
///
/// If it was not built.
pub fn program(name: &str) -> Result<PathBuf, Failure> {
    newest(&target()?, name)
}

/// What was built for an MPI: the recorder's library, an engine. In the profile of the programs: they look there
/// first.
///
/// # Errors
///
/// If it was not built.
pub fn engine(mpi: Mpi, name: &str) -> Result<PathBuf, Failure> {
    if let Some(named) = env::var_os("ST_LIBRARY_PATH") {
        let named = Path::new(&named).join(mpi.name()).join(name);
        if named.is_file() {
            return Ok(named);
        }
    }
    let directory = target()?.join(mpi.name());
    let program = program("st-record")?;
    let profile = program.parent().and_then(Path::file_name).unwrap_or_default();
    let beside = directory.join(profile).join(name);
    if beside.is_file() { Ok(beside) } else { newest(&directory, name) }
}

/// A directory for this test process, removed when it ends.
///
/// # Panics
///
/// If it cannot be made.
#[expect(clippy::expect_used, reason = "no test can go on without")]
pub fn scratch() -> &'static Path {
    // A static is never dropped, so the directory is removed by a later run instead: see `sweep`.
    static SCRATCH: OnceLock<PathBuf> = OnceLock::new();
    SCRATCH.get_or_init(|| {
        let base = target().expect("a target directory").join("tmp");
        std::fs::create_dir_all(&base).expect("scratch directory");
        sweep(&base);
        let name = format!("e2e-{}-", std::process::id());
        tempfile::Builder::new().prefix(&name).tempdir_in(base).map(TempDir::keep).expect("scratch directory")
    })
}

/// Removes the directories of test processes that have ended.
fn sweep(base: &Path) {
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix("e2e-").and_then(|n| n.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            // Whatever is left of it goes next time.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A new directory below [`scratch`], removed with the value.
///
/// # Errors
///
/// If it cannot be made.
pub fn directory() -> Result<TempDir, Failure> {
    tempfile::tempdir_in(scratch()).map_err(|e| format!("scratch directory: {e}"))
}

/// A program in `PATH`.
#[must_use]
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|d| d.join(name)).find(|p| p.is_file())
}

/// The MPIs of this machine; says once which are not there, and so not tested.
#[must_use]
pub fn mpis() -> Vec<Mpi> {
    static FOUND: OnceLock<Vec<Mpi>> = OnceLock::new();
    let find = || {
        let (found, missing): (Vec<_>, Vec<_>) = Mpi::ALL.into_iter().partition(|mpi| mpirun(*mpi).is_some());
        for mpi in missing {
            say(&format!("no {mpi} on this machine: its half of the tests is SKIPPED"));
        }
        found
    };
    FOUND.get_or_init(find).clone()
}

/// The launcher of an MPI: with Debian's suffix, or plain if that says it is this MPI's.
#[must_use]
pub fn mpirun(mpi: Mpi) -> Option<PathBuf> {
    in_path(&format!("mpirun.{}", mpi.name())).or_else(|| {
        let plain = in_path("mpirun")?;
        let said = Command::new(&plain).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let word = match mpi {
            Mpi::Openmpi => "Open MPI",
            Mpi::Mpich => "HYDRA",
        };
        text.contains(word).then_some(plain)
    })
}

/// Prints a line past the capture of the test harness: what is not tested must be seen.
pub fn say(line: &str) {
    use std::io::Write;
    // A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{line}");
}
