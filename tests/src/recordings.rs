//! Programs run and recorded once, for all tests that look at them.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::jobs::Job;
use crate::process::{Outcome, Run};
use crate::render::{self, Ranks};
use crate::{Failure, place};

/// The program that ends its job: only rank 0 writes a list, which ends with MPI_Abort.
pub const ABORTS: &str = "c_abort";

/// What is run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Subject {
    /// A program in `tests/programs`.
    Program(String),
    /// A kernel with its arguments.
    Kernel(Vec<String>),
}

/// The kernels, with arguments that make them short.
pub const KERNELS: [&str; 18] = [
    "stencil1d --steps 6",
    "stencil1d --steps 6 --open",
    "stencil3d --steps 3",
    "multigrid --steps 3",
    "multigrid3d --steps 3",
    "fft --steps 3",
    "sort --steps 3",
    "stencil2d --steps 12",
    "stencil2d --steps 7 --open",
    "wavefront --steps 4",
    "sweeps --steps 4",
    "transpose --steps 4",
    "ocean --steps 60",
    "workers --steps 8",
    "amr --steps 20",
    "halo --steps 10",
    "rma --steps 6",
    "threads --steps 6",
];

impl Subject {
    /// All programs that an MPI's compilers build.
    ///
    /// # Errors
    ///
    /// If one does not build.
    pub fn programs(job: Job) -> Result<Vec<Self>, Failure> {
        Ok(job.programs()?.1.into_iter().map(Self::Program).collect())
    }

    /// The kernels.
    #[must_use]
    pub fn kernels() -> Vec<Self> {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect();
        KERNELS.iter().map(|line| Self::Kernel(words(line))).collect()
    }

    /// The command, without launcher.
    ///
    /// # Errors
    ///
    /// If it was not built.
    pub fn command(&self, job: Job) -> Result<Vec<OsString>, Failure> {
        match self {
            Self::Program(name) => Ok(vec![job.programs()?.0.join(name).into()]),
            Self::Kernel(args) => {
                let start = place::program("st-kernels")?.into_os_string();
                Ok(std::iter::once(start).chain(args.iter().map(OsString::from)).collect())
            }
        }
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program(name) => f.write_str(name),
            Self::Kernel(args) => write!(f, "kernel {}", args.join(" ")),
        }
    }
}

/// A program run twice: by itself, and recorded.
#[derive(Debug)]
pub struct Recording {
    /// Without the recorder.
    pub plain: Outcome,
    /// With the recorder.
    pub recorded: Outcome,
    /// The trace.
    pub trace: PathBuf,
    /// Prefix of the lists that a program wrote while it was recorded.
    pub lists: PathBuf,
    job: Job,
}

impl Recording {
    /// The program's own list of its calls.
    ///
    /// # Errors
    ///
    /// As [`render::stated`].
    pub fn stated(&self) -> Result<Ranks, Failure> {
        render::stated(&self.lists, self.job.ranks)
    }
}

type Results = HashMap<(Job, Subject), Result<Arc<Recording>, Failure>>;

/// The recording of a program, made when it is first asked for.
///
/// # Errors
///
/// If the program cannot be run, with or without recorder, or leaves processes behind.
pub fn of(job: Job, subject: &Subject) -> Result<Arc<Recording>, Failure> {
    static MADE: Mutex<Option<Results>> = Mutex::new(None);
    // Held while the job runs: another test that wants the same waits for it.
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let made = made.get_or_insert_default();
    if let Some(found) = made.get(&(job, subject.clone())) {
        return found.clone();
    }
    let result = make(job, subject, made.len()).map(Arc::new).map_err(|e| format!("{subject}, {job}: {e}"));
    made.insert((job, subject.clone()), result.clone());
    result
}

fn make(job: Job, subject: &Subject, number: usize) -> Result<Recording, Failure> {
    let name: String =
        subject.to_string().chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    let base = place::scratch().join(format!("{number}-{}-{name}", job.mpi.name()));
    let command = subject.command(job)?;
    let plain = job.run(&command)?;
    let trace = base.with_extension("st");
    let recorded = job.go(job.record(&trace, &command)?.env("ST_ORACLE", &base))?;
    Ok(Recording { plain, recorded, trace, lists: base, job })
}

/// Does with a trace all that a trace must survive: it is checked, merged, checked, clustered and merged, checked, replayed,
/// the replay is recorded, and all of them are compared. Files are written beside the trace.
///
/// # Errors
///
/// If a step fails, with what it said.
pub fn round_trip(job: Job, trace: &Path) -> Result<(), Failure> {
    let [merged, clusters, clustered, again] =
        ["merged.st", "clusters.st", "clustered.st", "again.st"].map(|ext| trace.with_extension(ext));
    let st = |name: &str, args: &[&std::ffi::OsStr]| Run::st(name, args)?.go()?.ok();
    st("st-view", &["--check".as_ref(), trace.as_ref()])?;
    for (name, from, to) in
        [("st-merge", trace, &merged), ("st-cluster", trace, &clusters), ("st-merge", &clusters, &clustered)]
    {
        st(name, &[from.as_ref(), "-o".as_ref(), to.as_ref()])?;
        st("st-view", &["--check".as_ref(), to.as_ref()])?;
    }
    let replay =
        [place::program("st-replay")?.into(), "--compute".into(), "none".into(), clustered.clone().into()];
    let replay: [OsString; 4] = replay;
    job.go(job.record(&again, replay)?)?.ok()?;
    st("st-view", &["--check".as_ref(), again.as_ref()])?;
    // Neither merge has lost anything, and the replay, of representatives for their clusters, did what was recorded.
    for other in [&merged, &clustered, &again] {
        let said = st("st-stat", &["diff".as_ref(), trace.as_ref(), other.as_ref()])?;
        if !said.text().contains("no difference") {
            return Err(format!("expected \"no difference\": {said}"));
        }
    }
    Ok(())
}
