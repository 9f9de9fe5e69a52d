//! Where things are: the source tree, built programs, what was built for an MPI, scratch files.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

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
    Ok(built(&running()?, named())?.0)
}

fn running() -> Result<PathBuf, Failure> {
    env::current_exe().map_err(|e| e.to_string())
}

fn named() -> Option<PathBuf> {
    env::var_os("ST_TESTS_TARGET").map(PathBuf::from)
}

/// Target directory, and in it the directory of the profile that a test, `target/<profile>/deps/test`, was built in: another
/// build beside it changes nothing.
fn built(test: &Path, named: Option<PathBuf>) -> Result<(PathBuf, PathBuf), Failure> {
    let profile = test.ancestors().nth(2);
    let found = profile.and_then(|profile| Some((profile.parent()?, profile.file_name()?)));
    let (own, profile) = found.ok_or_else(|| format!("{}: no target directory", test.display()))?;
    let target = named.unwrap_or_else(|| own.to_owned());
    let profile = target.join(profile);
    Ok((target, profile))
}

/// A program of st.
///
/// # Errors
///
/// If it was not built.
pub fn program(name: &str) -> Result<PathBuf, Failure> {
    program_for(&running()?, named(), name)
}

fn program_for(test: &Path, named: Option<PathBuf>, name: &str) -> Result<PathBuf, Failure> {
    let (_, profile) = built(test, named)?;
    let program = profile.join(name);
    let missing =
        || format!("{name} was not built in {}: `make build` builds the profile release", profile.display());
    program.is_file().then_some(program.clone()).ok_or_else(missing)
}

/// The recorder's library that the programs take.
///
/// # Errors
///
/// If it was not built.
pub fn recorder() -> Result<PathBuf, Failure> {
    st_cli::find_common_for(&program("st-record")?, "libst_pmpi.so").map_err(|e| format!("{e:#}"))
}

/// What was built for an MPI, as an engine. The one that the programs take.
///
/// # Errors
///
/// If it was not built.
pub fn engine(mpi: Mpi, name: &str) -> Result<PathBuf, Failure> {
    mpi.find_for(&program("st-record")?, name).map_err(|e| format!("{e:#}"))
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

/// A copy of a directory of stored streams and journals, these unpacked.
///
/// # Errors
///
/// If it cannot be made.
pub fn unpacked(stored: &Path) -> Result<TempDir, Failure> {
    let made = tempfile::tempdir().map_err(|e| format!("scratch directory: {e}"))?;
    let copy = |file: &Path| {
        let to = made.path().join(file.file_name().unwrap_or_default());
        if file.extension().is_some_and(|e| e == "zst") {
            zstd::stream::copy_decode(File::open(file)?, File::create(to.with_extension(""))?)
        } else {
            fs::copy(file, to).map(|_| ())
        }
    };
    let files = fs::read_dir(stored).map_err(|e| format!("{}: {e}", stored.display()))?;
    for file in files.flatten().map(|entry| entry.path()) {
        copy(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(made)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_those_of_the_tests_profile() {
        let home = tempfile::tempdir().unwrap();
        let [target, other] = ["target", "other"].map(|t| home.path().join(t));
        for file in ["release/st-view", "debug/st-view", "release/st-stat"].map(|f| target.join(f)) {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
        }
        let test = |profile: &str| target.join(profile).join("deps/e2e-0123");
        let of = |profile: &str, name: &str| program_for(&test(profile), None, name);
        assert_eq!(of("release", "st-view"), Ok(target.join("release/st-view")));
        assert_eq!(of("debug", "st-view"), Ok(target.join("debug/st-view")));
        // Another profile's may be of another version.
        assert!(of("debug", "st-stat").unwrap_err().contains("was not built in"));
        let named = program_for(&test("release"), Some(other.clone()), "st-view").unwrap_err();
        assert!(named.contains(&other.join("release").display().to_string()), "{named}");
        assert!(built(Path::new("test"), None).is_err());
    }
}
