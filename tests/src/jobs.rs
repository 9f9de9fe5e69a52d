//! MPI jobs, one at a time.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use st_cli::Mpi;

use crate::process::{Outcome, Run};
use crate::{Failure, place};

/// A launcher with a number of ranks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Job {
    /// The MPI.
    pub mpi: Mpi,
    /// Number of ranks.
    pub ranks: u32,
}

/// Two cores have room for one job.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job {
    /// The usual job of an MPI: 4 ranks of Open MPI; 2 of MPICH, which spins while it waits.
    #[must_use]
    pub fn of(mpi: Mpi) -> Self {
        Self { mpi, ranks: if mpi == Mpi::Openmpi { 4 } else { 2 } }
    }

    /// The usual jobs of the MPIs of this machine.
    #[must_use]
    pub fn all() -> Vec<Self> {
        place::mpis().into_iter().map(Self::of).collect()
    }

    /// `mpirun -n N` and what follows it.
    ///
    /// # Errors
    ///
    /// If there is no launcher.
    pub fn words<S: AsRef<OsStr>>(self, app: impl IntoIterator<Item = S>) -> Result<Vec<OsString>, Failure> {
        let mpirun = place::mpirun(self.mpi).ok_or_else(|| format!("no mpirun of {}", self.mpi))?;
        let start = [mpirun.into_os_string(), "-n".into(), self.ranks.to_string().into()];
        Ok(start.into_iter().chain(app.into_iter().map(|w| w.as_ref().to_owned())).collect())
    }

    /// Runs a program under the launcher.
    ///
    /// # Errors
    ///
    /// As [`Run::go`].
    pub fn run<S: AsRef<OsStr>>(self, app: impl IntoIterator<Item = S>) -> Result<Outcome, Failure> {
        let words = self.words(app)?;
        self.go(Run::new(&words[0], &words[1..]))
    }

    /// Runs a command that starts ranks: in its turn, with the environment that the MPI needs here.
    ///
    /// # Errors
    ///
    /// As [`Run::go`].
    pub fn go(self, run: Run) -> Result<Outcome, Failure> {
        let run = match self.mpi {
            Mpi::Openmpi => run
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
                .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
                .env("OMPI_MCA_mpi_yield_when_idle", "1"),
            Mpi::Mpich => run,
        };
        let _turn = turn();
        run.go()
    }

    /// `st-record -q -o FILE -- mpirun -n N APP…`.
    ///
    /// # Errors
    ///
    /// If there is no launcher or no st-record.
    pub fn record<S: AsRef<OsStr>>(
        self,
        file: &Path,
        app: impl IntoIterator<Item = S>,
    ) -> Result<Run, Failure> {
        let mut args: Vec<OsString> = vec!["-q".into(), "-o".into(), file.into(), "--".into()];
        args.extend(self.words(app)?);
        Run::st("st-record", args)
    }

    /// Builds the programs that say what they call; returns their directory and names.
    ///
    /// # Errors
    ///
    /// If one does not build.
    pub fn programs(self) -> Result<(PathBuf, Vec<String>), Failure> {
        let out = place::target()?.join("tmp").join(format!("programs-{}", self.mpi.name()));
        let from = place::root().join("tests/programs");
        let make = |goal: &str| {
            let args: [&OsStr; 5] =
                ["-s".as_ref(), "-C".as_ref(), from.as_ref(), "-j2".as_ref(), goal.as_ref()];
            let (mpi, out) = (format!("MPI={}", self.mpi.name()), format!("OUT={}", out.display()));
            let run = Run::new("make", args.into_iter().chain([mpi.as_ref(), out.as_ref()]));
            // The numbers of jobs of the make that runs the tests are not for this one.
            run.env("MAKEFLAGS", "").limit(std::time::Duration::from_secs(300)).go()?.ok()
        };
        let _turn = turn();
        make("all")?;
        let list = make("list")?.text();
        Ok((out.clone(), list.split_whitespace().map(str::to_owned).collect()))
    }
}

impl std::fmt::Display for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {} ranks", self.mpi, self.ranks)
    }
}
