//! Other tools' formats and the page, of every program and kernel: each call is there, or what is not is named.

use st_tests::jobs::Job;
use st_tests::process::{Outcome, Run};
use st_tests::recordings::{self, ABORTS, Subject};
use st_tests::{Failure, conclude, place};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Formats that take all programs; and those that refuse some, with status 1 or 2 and words.
const ALWAYS: [&str; 7] = ["csv", "parquet", "chrome", "perfetto", "paraver", "extrap", "cube"];
const SOMETIMES: [&str; 2] = ["simgrid", "goal"];

fn converted(trace: &Path, format: &str, to: &Path) -> Result<Outcome, Failure> {
    let words = ["--to", format, "-q", "-o"].map(Into::into).into_iter();
    Run::st("st-convert", words.chain([to.as_os_str().to_owned(), trace.as_os_str().to_owned()]))?.go()
}

/// Calls by st-stat.
fn calls(trace: &Path) -> Result<u64, Failure> {
    let words = ["calls", "--format", "json"].map(Into::into).into_iter();
    let said = Run::st("st-stat", words.chain([trace.as_os_str().to_owned()]))?.go()?;
    said.clone().ok()?;
    let rows = serde_json::Deserializer::from_slice(&said.stdout).into_iter::<serde_json::Value>();
    rows.map(|row| Ok(row.map_err(|e| e.to_string())?["calls"].as_u64().unwrap_or(0))).sum()
}

fn all_formats(job: Job, subject: &Subject) -> Result<(), Failure> {
    let trace = recordings::of(job, subject)?.trace.clone();
    let directory = place::directory()?;
    for format in ALWAYS {
        converted(&trace, format, &directory.path().join(format))?
            .ok()
            .map_err(|e| format!("{format}: {e}"))?;
    }
    for format in SOMETIMES {
        let to = directory.path().join(format);
        let said = converted(&trace, format, &to)?;
        let refused = [1, 2].contains(&said.status) && said.stderr.contains("threads") && !to.exists();
        if said.status != 0 && !refused {
            return Err(format!("{format}: {said}"));
        }
    }
    let page = directory.path().join("page.html");
    let words = ["report", "-q", "-o"].map(Into::into).into_iter();
    Run::st("st-stat", words.chain([page.as_os_str().to_owned(), trace.as_os_str().to_owned()]))?
        .go()?
        .ok()?;
    let mut events =
        csv::Reader::from_path(directory.path().join("csv/events.csv")).map_err(|e| e.to_string())?;
    // A series of polls is one row, with their number.
    let (rows, calls) = (events.deserialize::<HashMap<String, String>>(), calls(&trace)?);
    let rows: Option<u64> = rows.map(|row| row.ok()?.get("calls")?.parse::<u64>().ok()).sum();
    let length = fs::metadata(&page).map_err(|e| e.to_string())?.len();
    if rows != Some(calls) || length > 5_000_000 {
        return Err(format!("{rows:?} calls in rows of {calls} calls, a page of {length} bytes"));
    }
    Ok(())
}

#[test]
fn every_program_goes_into_every_format() {
    let (mut cases, mut failures) = (0, Vec::new());
    for job in Job::all() {
        let programs = Subject::programs(job).unwrap().into_iter().chain(Subject::kernels());
        for subject in programs.filter(|s| *s != Subject::Program(ABORTS.into())) {
            cases += 1;
            if let Err(e) = all_formats(job, &subject) {
                failures.push(format!("{subject}, {job}: {e}"));
            }
        }
    }
    conclude(cases, &failures);
}
