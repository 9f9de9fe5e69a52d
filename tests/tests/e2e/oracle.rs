//! The independent oracle: what programs say they call is what is recorded, and recording changes nothing.

use st_cli::Mpi;
use st_tests::jobs::Job;
use st_tests::recordings::{self, ABORTS, Subject};
use st_tests::{Failure, compare, conclude, place, render};

/// Output and exit status are those of the program, whatever it is.
fn unchanged(job: Job, subject: &Subject) -> Result<(), Failure> {
    let r = recordings::of(job, subject)?;
    let same = r.plain.status == r.recorded.status && r.plain.stdout == r.recorded.stdout;
    if !same {
        return Err(format!("not the same with the recorder: {} and {}", r.plain, r.recorded));
    }
    if r.recorded.stderr.contains("st-record") {
        return Err(format!("not quiet: {}", r.recorded));
    }
    Ok(())
}

fn as_stated(job: Job, subject: &Subject) -> Result<(), Failure> {
    unchanged(job, subject)?;
    let r = recordings::of(job, subject)?;
    if r.plain.status != 0 || !r.plain.text().contains(": ok ") {
        return Err(format!("the program fails: {}", r.plain));
    }
    compare::ranks(&r.stated()?, &render::viewed(&r.trace)?)
}

fn programs_as_stated(mpi: Mpi) {
    if !place::mpis().contains(&mpi) {
        return;
    }
    let job = Job::of(mpi);
    let subjects = Subject::programs(job).unwrap();
    let mut failures = Vec::new();
    for subject in subjects.iter().filter(|s| **s != Subject::Program(ABORTS.into())) {
        if let Err(e) = as_stated(job, subject) {
            failures.push(format!("{subject}, {job}: {e}"));
        }
    }
    conclude(subjects.len() - 1, &failures);
}

#[test]
fn programs_are_recorded_as_they_state_under_open_mpi() {
    programs_as_stated(Mpi::Openmpi);
}

#[test]
fn programs_are_recorded_as_they_state_under_mpich() {
    programs_as_stated(Mpi::Mpich);
}

#[test]
fn kernels_are_not_changed_by_recording() {
    let mut failures = Vec::new();
    let mut cases = 0;
    for job in Job::all() {
        for subject in Subject::kernels() {
            cases += 1;
            if let Err(e) = unchanged(job, &subject) {
                failures.push(format!("{subject}, {job}: {e}"));
            }
        }
    }
    conclude(cases, &failures);
}

#[test]
fn an_aborted_job_keeps_its_status_and_output() {
    let jobs = Job::all();
    let mut failures = Vec::new();
    for job in &jobs {
        let subject = Subject::Program(ABORTS.into());
        let ends_with_3 = |()| recordings::of(*job, &subject)?.plain.clone().expect(3).map(drop);
        if let Err(e) = unchanged(*job, &subject).and_then(ends_with_3) {
            failures.push(format!("{job}: {e}"));
        }
    }
    conclude(jobs.len(), &failures);
}
