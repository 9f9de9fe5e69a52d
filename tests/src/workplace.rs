//! A directory of a test's own, with a program built for one MPI.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::jobs::Job;
use crate::process::{Outcome, Run};
use crate::{Failure, conclude, place};

/// Where commands run, and what programs they find.
#[derive(Debug)]
pub struct Workplace {
    /// How programs are started.
    pub job: Job,
    /// Gone with the test.
    pub directory: tempfile::TempDir,
}

impl Workplace {
    /// An empty one.
    ///
    /// # Errors
    ///
    /// If no directory can be made.
    pub fn new(job: Job) -> Result<Self, Failure> {
        Ok(Self { job, directory: place::directory()? })
    }

    /// Builds a fixture, a program in C or C++, under a name.
    ///
    /// # Errors
    ///
    /// If no compiler can be started.
    pub fn compile(&self, name: &str, fixture: &str, options: &[&str]) -> Result<Outcome, Failure> {
        let wrapper = if fixture.ends_with(".c") { "mpicc" } else { "mpicxx" };
        let named = place::in_path(&format!("{wrapper}.{}", self.job.mpi.name()));
        let source = place::root().join("tests/fixtures").join(fixture);
        let words = [OsString::from("-o"), self.path(name).into(), source.into()];
        let options = options.iter().map(OsString::from);
        Run::new(named.unwrap_or_else(|| wrapper.into()), words.into_iter().chain(options)).go()
    }

    /// Compiles a fixture that links no MPI.
    ///
    /// # Errors
    ///
    /// If there is no compiler.
    pub fn compile_plain(&self, name: &str, fixture: &str) -> Result<Outcome, Failure> {
        let source = place::root().join("tests/fixtures").join(fixture);
        let words: [OsString; 4] = ["-o".into(), self.path(name).into(), source.into(), "-ldl".into()];
        Run::new("cc", words).go()
    }

    /// Something in it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file that can be executed.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn script(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.path(name);
        fs::write(&path, text).map_err(|e| e.to_string())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(|e| e.to_string())
    }

    /// Runs a command in it that may start ranks.
    ///
    /// # Errors
    ///
    /// As [`Run::go`].
    pub fn go(&self, run: Run) -> Result<Outcome, Failure> {
        self.job.go(run.within(self.directory.path()))
    }

    /// `mpirun -n N APP`.
    ///
    /// # Errors
    ///
    /// As [`Run::go`].
    pub fn plain(&self, app: &str) -> Result<Outcome, Failure> {
        let words = self.job.words(app.split(' '))?;
        self.go(Run::new(&words[0], &words[1..]))
    }

    /// `st-record OPTIONS -- mpirun -n N APP`.
    ///
    /// # Errors
    ///
    /// As [`Run::go`].
    pub fn outside(&self, options: &str, app: &str) -> Result<Outcome, Failure> {
        let words = self.job.words(app.split(' '))?;
        let args = options.split_whitespace().map(OsString::from).chain(["--".into()]).chain(words);
        self.go(Run::st("st-record", args)?)
    }

    /// `mpirun -n N st-record OPTIONS -- APP`.
    ///
    /// # Errors
    ///
    /// As [`Run::go`].
    pub fn inside(&self, options: &str, app: &str) -> Result<Outcome, Failure> {
        let start = std::iter::once(place::program("st-record")?.into_os_string());
        let options = options.split_whitespace().map(OsString::from);
        let app = app.split(' ').map(OsString::from);
        let words = self.job.words(start.chain(options).chain(["--".into()]).chain(app))?;
        self.go(Run::new(&words[0], &words[1..]))
    }

    /// Names of what is in a directory here, sorted; hidden files too.
    #[must_use]
    pub fn names(&self, below: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(below)).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// Runs a test under each MPI, in a directory with a fixture's program.
///
/// # Panics
///
/// If the test fails under one.
pub fn under_each(
    name: &str,
    fixture: &str,
    options: &[&str],
    test: impl Fn(&Workplace) -> Result<(), Failure>,
) {
    let jobs = Job::all();
    let one = |job: &Job| {
        let here = Workplace::new(*job)?;
        here.compile(name, fixture, options)?.ok()?;
        test(&here)
    };
    let failed = |job: &Job| one(job).map_err(|e| format!("{job}: {e}")).err();
    let failures: Vec<_> = jobs.iter().filter_map(failed).collect();
    conclude(jobs.len(), &failures);
}
