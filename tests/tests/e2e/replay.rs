//! Every recording is checked, merged, checked, replayed; the replay is recorded, and there is no difference.

use st_tests::jobs::Job;
use st_tests::recordings::{self, Subject};
use st_tests::{Failure, conclude, place};
use st_tool::Mpi;

/// Beginnings of the names of programs that cannot be replayed to an equal recording, and why.
const APART: [(&str, &str); 2] = [
    ("c_abort", "has no end: rank 0 kills the others"),
    ("large_", "is replayed by the functions without large counts, which every MPI has"),
];

fn round_trip(job: Job, subject: &Subject) -> Result<(), Failure> {
    let recording = recordings::of(job, subject)?;
    recording.recorded.clone().ok()?;
    recordings::round_trip(job, &recording.trace)
}

fn round_trips(job: Job, subjects: &[Subject]) {
    let apart = |s: &Subject| match s {
        Subject::Program(name) => APART.iter().any(|(apart, _)| name.starts_with(apart)),
        Subject::Kernel(_) => false,
    };
    let mut failures = Vec::new();
    let mut cases = 0;
    for subject in subjects.iter().filter(|s| !apart(s)) {
        cases += 1;
        if let Err(e) = round_trip(job, subject) {
            failures.push(format!("{subject}, {job}: {e}"));
        }
    }
    conclude(cases, &failures);
}

fn of(mpi: Mpi, subjects: impl Fn(Job) -> Vec<Subject>) {
    if place::mpis().contains(&mpi) {
        let job = Job::of(mpi);
        round_trips(job, &subjects(job));
    }
}

#[test]
fn kernels_under_open_mpi() {
    of(Mpi::Openmpi, |_| Subject::kernels());
}

#[test]
fn kernels_under_mpich() {
    of(Mpi::Mpich, |_| Subject::kernels());
}

#[test]
fn programs_under_open_mpi() {
    of(Mpi::Openmpi, |job| Subject::programs(job).unwrap());
}

#[test]
fn programs_under_mpich() {
    of(Mpi::Mpich, |job| Subject::programs(job).unwrap());
}
