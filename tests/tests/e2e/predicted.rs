//! What `st-stat predict` says of a changed program is what that takes, and what a replay that is changed alike takes.

use std::ffi::OsString;

use st_tests::jobs::Job;
use st_tests::process::Run;
use st_tests::workplace::Workplace;
use st_tests::{Failure, conclude};

/// Rows of what a program prints as JSON, an object a line.
fn rows(text: &str) -> Result<Vec<serde_json::Value>, Failure> {
    let row = |line: &str| serde_json::from_str(line).map_err(|e| format!("{line}: {e}"));
    text.lines().map(row).collect()
}

/// Run time by st-stat predict, s: of a row by what it is.
fn predicted(p: &Workplace, trace: &str, options: &[&str], what: &str) -> Result<f64, Failure> {
    let words = ["predict", "-q", "--format", "json"].into_iter().chain(options.iter().copied());
    let words = words.map(OsString::from).chain([p.path(trace).into()]);
    let all = rows(&Run::st("st-stat", words)?.go()?.ok()?.text())?;
    let found = all.iter().find(|row| row["what"].as_str().is_some_and(|w| w.starts_with(what)));
    let ns = found.and_then(|row| row["time_ns"].as_f64());
    ns.map(|ns| ns / 1e9).ok_or_else(|| format!("{what} is not among {all:?}"))
}

/// Sleeps are never too short; on a busy machine they may be too long, and ranks may be late.
fn alike(what: &str, said: f64, takes: f64) -> Result<(), Failure> {
    if said * 0.9 <= takes && takes <= said * 1.25 {
        return Ok(());
    }
    Err(format!("{what}: {said:.3} s was said, {takes:.3} s it takes"))
}

fn run(p: &Workplace) -> Result<(), Failure> {
    p.outside("-q -o late.st", "./paced 500 50")?.ok()?;
    let whole = predicted(p, "late.st", &[], "recorded")?;
    alike("nothing is changed", predicted(p, "late.st", &[], "model")?, whole)?;

    p.outside("-q -o even.st", "./paced 275 275")?.ok()?;
    let said = predicted(p, "late.st", &["--balance", "reduce"], "balanced")?;
    alike("balanced", said, predicted(p, "even.st", &[], "recorded")?)?;

    p.outside("-q -o fast.st", "./paced 250 25")?.ok()?;
    let said = predicted(p, "late.st", &["--speedup", "reduce=2"], "computation")?;
    alike("twice as fast", said, predicted(p, "fast.st", &[], "recorded")?)?;

    let words = ["--json", "--scale", "reduce=0.5"].map(OsString::from);
    let replay = Run::st("st-replay", words.into_iter().chain([p.path("late.st").into()]))?;
    let ranks = rows(&p.go(replay)?.ok()?.text())?;
    let longest = ranks.iter().filter_map(|row| row["replayed_s"].as_f64()).fold(0.0, f64::max);
    alike("replayed twice as fast", said, longest)
}

#[test]
fn changed_programs_and_replays_take_what_is_predicted() {
    let one = |job: &Job| {
        let p = Workplace::new(Job { ranks: 2, ..*job })?;
        p.compile("paced", "paced.c", &["-Wall"])?.ok()?;
        run(&p).or_else(|_| run(&p)).or_else(|_| run(&p))
    };
    let jobs = Job::all();
    let failures: Vec<Failure> =
        jobs.iter().filter_map(|job| one(job).map_err(|e| format!("{job}: {e}")).err()).collect();
    conclude(jobs.len(), &failures);
}
