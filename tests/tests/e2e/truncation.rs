//! Traces that end too early, or are damaged: a clear error, whatever is left on request, never a crash.

use std::fs;
use std::path::Path;

use st_tests::jobs::Job;
use st_tests::process::Run;
use st_tests::recordings::{self, Subject};
use st_tests::{Failure, conclude, place};

/// Positions to cut at: the first bytes, the last, and some between.
const BETWEEN: usize = 40;

/// Where the minor version is: streams of any are read.
const MINOR: usize = 9;

fn positions(length: usize) -> Vec<usize> {
    let mut all: Vec<_> = (0..=BETWEEN).map(|k| k * (length - 1) / BETWEEN).collect();
    all.extend([1, 7, 8, 9, 12, 20, length - 2, length - 9, length - 16]);
    all.sort_unstable();
    all.dedup();
    all
}

/// Whole calls that a damaged file still has; what is said otherwise.
fn cut(file: &Path, whole: &[u8], at: usize, calls: usize) -> Result<(), Failure> {
    fs::write(file, &whole[..at]).map_err(|e| e.to_string())?;
    let refused = Run::st("st-view", ["--calls".as_ref(), file.as_os_str()])?.go()?.expect(3)?;
    let message = refused.stderr.trim_end();
    if !message.starts_with("st-view: ") || !message.contains("cut.st") || message.contains('\n') {
        return Err(format!("no clear message: {refused}"));
    }
    let partial = Run::st("st-view", ["--partial".as_ref(), "--calls".as_ref(), file.as_os_str()])?.go()?;
    match partial.status {
        0 if partial.text().lines().count() <= calls => Ok(()),
        // Nothing can be told from less than a header.
        3 if partial.stdout.is_empty() && at < 2000 => Ok(()),
        _ => Err(format!("--partial: {partial}")),
    }
}

fn subject() -> (Job, Subject) {
    let jobs = Job::all();
    (*jobs.last().unwrap(), Subject::Program("c_coll".into()))
}

#[test]
fn a_trace_cut_anywhere_is_refused_and_read_on_request() {
    let (job, subject) = subject();
    let recording = recordings::of(job, &subject).unwrap();
    let directory = place::directory().unwrap();
    let merged = directory.path().join("merged.st");
    let merge = ["-o".as_ref(), merged.as_os_str(), recording.trace.as_os_str()];
    Run::st("st-merge", merge).unwrap().go().unwrap().ok().unwrap();
    let file = directory.path().join("cut.st");
    let (mut failures, mut cases) = (Vec::new(), 0);
    for trace in [&recording.trace, &merged] {
        let view =
            Run::st("st-view", ["--calls".as_ref(), trace.as_os_str()]).unwrap().go().unwrap().ok().unwrap();
        let whole = fs::read(trace).unwrap();
        for at in positions(whole.len()) {
            cases += 1;
            if let Err(e) = cut(&file, &whole, at, view.text().lines().count()) {
                failures.push(format!("cut at {at} of {}: {e}", whole.len()));
            }
        }
    }
    conclude(cases, &failures);
}

#[test]
fn a_damaged_byte_is_found() {
    let (job, subject) = subject();
    let recording = recordings::of(job, &subject).unwrap();
    let directory = place::directory().unwrap();
    let file = directory.path().join("damaged.st");
    let whole = fs::read(&recording.trace).unwrap();
    let (mut failures, mut cases) = (Vec::new(), 0);
    for at in positions(whole.len()).into_iter().filter(|at| *at != MINOR) {
        cases += 1;
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&file, bytes).unwrap();
        let check = Run::st("st-view", ["--check".as_ref(), file.as_os_str()]).unwrap().go().unwrap();
        // 4: what was read is not what was recorded. A damaged checksum or length is an invalid stream.
        if ![3, 4].contains(&check.status) || check.stderr.contains("panicked") {
            failures.push(format!("byte {at} of {} damaged: {check}", whole.len()));
        }
    }
    conclude(cases, &failures);
}
