//! A program that runs: its page, and how large its trace will be.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use st_tests::Failure;
use st_tests::process::{Outcome, Run};
use st_tests::workplace::{self, Workplace};

/// Whether ranks record into a directory here: one beside the trace, or the one that is named.
fn begun(here: &Workplace, named: Option<&str>) -> bool {
    let hidden = || here.names(".").into_iter().find(|name| name.starts_with(".st-record-"));
    let directory = named.map(str::to_owned).or_else(hidden);
    directory.is_some_and(|directory| here.names(&directory).iter().any(|name| name.ends_with(".journal")))
}

/// `st-stat report --follow`, from the first journal on; and the pages that it made.
fn followed(here: &Workplace, named: Option<&str>, done: &AtomicBool) -> Result<(Outcome, usize), Failure> {
    while !begun(here, named) {
        if done.load(Ordering::Relaxed) {
            return Err("the job has ended, and nobody has seen a journal".into());
        }
        sleep(Duration::from_millis(5));
    }
    let (page, ended) = (here.path("live.html"), AtomicBool::new(false));
    std::thread::scope(|s| {
        let pages = s.spawn(|| {
            let mut pages = BTreeSet::new();
            while !ended.load(Ordering::Relaxed) {
                pages.extend(fs::read(&page).ok());
                sleep(Duration::from_millis(50));
            }
            pages
        });
        let directory = here.path(named.unwrap_or("."));
        let words = ["report", "--every", "1", "--follow"].map(std::ffi::OsString::from);
        let words = words.into_iter().chain([directory.into(), "-o".into(), page.clone().into()]);
        let followed = Run::st("st-stat", words).and_then(Run::go);
        ended.store(true, Ordering::Relaxed);
        let pages = pages.join().map_err(|_| Failure::from("reading pages"))?;
        // None is half of one.
        let whole = |page: &Vec<u8>| page.trim_ascii_end().ends_with(b"</html>");
        if !pages.iter().all(whole) {
            return Err("a page that is not whole".into());
        }
        Ok((followed?, pages.len()))
    })
}

/// Follows a job that is recorded like this; what is left at last is the page of its trace.
fn follow(
    here: &Workplace,
    (named, trace): (Option<&str>, &str),
    record: impl FnOnce() -> Result<Outcome, Failure>,
) -> Result<(), Failure> {
    let done = AtomicBool::new(false);
    let (job, followed) = std::thread::scope(|s| {
        let follower = s.spawn(|| followed(here, named, &done));
        let job = record();
        done.store(true, Ordering::Relaxed);
        (job, follower.join())
    });
    let job = job?.ok()?;
    let (o, pages) = followed.map_err(|_| Failure::from("following"))??;
    let o = o.ok()?;
    if pages < 3 || !o.stderr.contains("made anew every") || !o.stderr.contains("the run has ended; ") {
        return Err(format!("{pages} pages: {o}\n{job}"));
    }
    let [last, again] = ["live.html", "again.html"].map(|name| here.path(name));
    let words = ["report".as_ref(), here.path(trace).as_os_str(), "-o".as_ref(), again.as_os_str()]
        .map(ToOwned::to_owned);
    Run::st("st-stat", words)?.go()?.ok()?;
    if fs::read(last).ok() != fs::read(again).ok() {
        return Err(format!("the last page is not that of {trace}: {o}"));
    }
    Ok(())
}

#[test]
fn the_page_of_a_job_grows_until_it_is_that_of_its_trace() {
    workplace::under_each("idle", "idle.c", &["-O1"], |here| {
        let app = "./idle 500 12000";
        follow(here, (None, "trace.st"), || here.outside("-q -o trace.st", app))?;
        fs::remove_file(here.path("live.html")).map_err(|e| e.to_string())?;
        follow(here, (Some("run"), "run"), || here.inside("-q -o run", app))
    });
}

#[test]
fn while_a_job_runs_it_is_said_how_large_its_trace_will_be() {
    workplace::under_each("idle", "idle.c", &["-O1"], |here| {
        let app = "./idle 500 12000";
        let spoken = here.outside("-v --forecast-after 1.5 -o spoken.st", app)?.ok()?;
        let quiet = here.outside("--forecast-after 1.5 -o quiet.st", app)?.ok()?;
        let said = |o: &Outcome| o.stderr.matches("after an hour about").count();
        if said(&spoken) != 1 || said(&quiet) != 0 {
            return Err(format!("{spoken}\n{quiet}"));
        }
        // Nothing of it is in what the job leaves.
        let left: Vec<_> =
            here.names(".").into_iter().filter(|name| name.starts_with(".st-record-")).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("left: {left:?}")) }
    });
}
