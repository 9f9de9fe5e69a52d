//! Replays of another program than the recorded one, replays that stall, and replays of what is only known by histograms.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use st_cli::Mpi;
use st_tests::jobs::Job;
use st_tests::process::{Outcome, Run};
use st_tests::recordings::{self, Subject};
use st_tests::{Failure, conclude, place};

use crate::handmade::{Call, as_histograms, two_ranks};

fn kernel(line: &str) -> Subject {
    Subject::Kernel(line.split(' ').map(str::to_owned).collect())
}

/// Numbers of calls per function, but for polls, of which a replay repeats only the successful ones.
fn calls(trace: &Path) -> Result<BTreeMap<String, u64>, Failure> {
    let args = ["calls", "--functions", "--format", "csv"].map(AsRef::as_ref);
    let said = Run::st("st-stat", args.into_iter().chain([trace.as_os_str()]))?.go()?.ok()?.text();
    let rows = said.lines().skip(1).filter_map(|l| {
        let mut fields = l.split(',');
        Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
    });
    Ok(rows.filter(|(name, _): &(String, u64)| !name.contains("Test") && !name.contains("probe")).collect())
}

/// Replays a trace with options, recording it.
fn replay(job: Job, options: &[&str], trace: &Path, again: &Path) -> Result<Outcome, Failure> {
    let mut words: Vec<OsString> =
        vec![place::program("st-replay")?.into(), "--compute".into(), "none".into()];
    words.extend(options.iter().map(Into::into));
    words.push(trace.into());
    job.go(job.record(again, words)?)
}

fn checked(trace: &Path) -> Result<(), Failure> {
    Run::st("st-replay", ["--check".as_ref(), trace.as_os_str()])?.go()?.ok().map(drop)
}

#[test]
fn replays_that_stop_early_end_in_order() {
    let mut failures = Vec::new();
    let mut cases = 0;
    for job in Job::all() {
        for line in ["stencil2d --steps 12", "wavefront --steps 4", "workers --steps 8", "ocean --steps 4"] {
            for limit in ["7", "40", "0.002s", "100000"] {
                cases += 1;
                let stop = || {
                    let trace = &recordings::of(job, &kernel(line))?.trace;
                    let again = trace.with_extension("stopped.st");
                    replay(job, &["--stop-after", limit], trace, &again)?.ok()?;
                    // What was replayed is a program of its own.
                    let (all, some) = (calls(trace)?, calls(&again)?);
                    let sum = |c: &BTreeMap<String, u64>| c.values().sum::<u64>();
                    let most = limit.parse().map_or(u64::MAX, |n: u64| (n + 1) * u64::from(job.ranks));
                    let finals = some.get("MPI_Finalize") == Some(&u64::from(job.ranks));
                    if finals && sum(&some) <= most.min(sum(&all)) {
                        return Ok(());
                    }
                    Err::<(), Failure>(format!("{some:?} of {all:?}"))
                };
                if let Err(e) = stop() {
                    failures.push(format!("{line}, {job}, --stop-after {limit}: {e}"));
                }
            }
        }
    }
    conclude(cases, &failures);
}

#[test]
fn moved_and_scaled_ranks_do_what_was_recorded() {
    let mut failures = Vec::new();
    let jobs = Job::all();
    for job in &jobs {
        let both = || {
            let trace = &recordings::of(*job, &kernel("stencil2d --steps 12"))?.trace;
            let again = trace.with_extension("what-if.st");
            replay(*job, &["--scale-bytes", "0.3", "--scale", "MPI_Waitall=2"], trace, &again)?.ok()?;
            checked(&again)?;
            if calls(trace)? != calls(&again)? {
                return Err::<(), Failure>("other numbers of calls with smaller messages".into());
            }
            let order: Vec<String> = (0..job.ranks).rev().map(|r| r.to_string()).collect();
            replay(*job, &["--place", &order.join(",")], trace, &again)?.ok()?;
            if calls(trace)? != calls(&again)? {
                return Err("other numbers of calls in other places".into());
            }
            Ok(())
        };
        if let Err(e) = both() {
            failures.push(format!("{job}: {e}"));
        }
    }
    conclude(jobs.len(), &failures);
}

/// Two ranks that each receive before they send: everything matches, and nothing gets on.
fn head_to_head(other: i64) -> Vec<Call> {
    vec![
        ("MPI_Init", vec![], 0, 0),
        ("MPI_Recv", vec![1, 0, other, 7, 0, -9, -9, 4], 0, 0),
        ("MPI_Send", vec![1, 0, other, 7, 0], 0, 0),
        ("MPI_Finalize", vec![], 0, 0),
    ]
}

#[test]
fn a_replay_that_stalls_names_rank_and_call_site() {
    let mut failures = Vec::new();
    let jobs: Vec<Job> = Job::all().into_iter().map(|job| Job { ranks: 2, ..job }).collect();
    for job in &jobs {
        let stalls = || {
            let trace = place::scratch().join(format!("stalls-{}.st", job.mpi.name()));
            two_ranks(&trace, job.mpi, head_to_head);
            checked(&trace)?;
            let words: [OsString; 4] =
                [place::program("st-replay")?.into(), "--watchdog".into(), "2".into(), trace.into()];
            let said = job.run(words)?.broken_off(job.mpi, 1)?;
            if said.stderr.contains("no progress for")
                && said.stderr.contains("MPI_Recv (site 1, MPI_Recv of the test)")
            {
                return Ok(());
            }
            Err::<(), Failure>(format!("expected rank and call: {said}"))
        };
        if let Err(e) = stalls() {
            failures.push(format!("{job}: {e}"));
        }
    }
    conclude(jobs.len(), &failures);
}

/// Kernels whose messages are drawn.
const DRAWN: [&str; 8] = [
    "stencil1d --steps 6",
    "stencil2d --steps 12",
    "multigrid --steps 3",
    "wavefront --steps 4",
    "transpose --steps 4",
    "workers --steps 8",
    "halo --steps 10",
    "ocean --steps 4",
];

fn drawn(job: Job, line: &str) -> Result<(), Failure> {
    let trace = &recordings::of(job, &kernel(line))?.trace;
    let [merged, again] = ["drawn.st", "drawn-again.st"].map(|ext| trace.with_extension(ext));
    as_histograms(trace, &merged)?;
    replay(job, &[], &merged, &again)?.ok()?;
    let (recorded, replayed) = (calls(trace)?, calls(&again)?);
    if recorded == replayed { Ok(()) } else { Err(format!("{recorded:?}, replayed {replayed:?}")) }
}

#[test]
fn drawn_messages_leave_the_numbers_of_calls() {
    let mut jobs = Job::all();
    if place::mpis().contains(&Mpi::Openmpi) {
        jobs.push(Job { mpi: Mpi::Openmpi, ranks: 16 });
    }
    let mut failures = Vec::new();
    let mut cases = 0;
    for job in &jobs {
        for line in DRAWN {
            cases += 1;
            if let Err(e) = drawn(*job, line) {
                failures.push(format!("{line}, {job}: {e}"));
            }
        }
    }
    conclude(cases, &failures);
}
