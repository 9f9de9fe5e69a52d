//! What a kernel calls on paper is what it calls in a real run.

use std::collections::BTreeMap;

use serde_json::Value;
use st_tests::jobs::Job;
use st_tests::process::Run;
use st_tests::recordings::{self, Subject};
use st_tests::render::{Object, Ranks};
use st_tests::{Failure, compare, conclude, place, render};

fn on_paper(args: &[String], job: Job) -> Result<Ranks, Failure> {
    let directory = place::directory()?;
    let file = directory.path().join("paper.st");
    let ranks = job.ranks.to_string();
    let words = args.iter().map(String::as_str).chain(["--paper", "--ranks", &ranks, "-o"]);
    Run::st("st-kernels", words.map(AsRef::as_ref).chain([file.as_os_str()]))?.go()?.ok()?;
    render::viewed(&file)
}

/// How often each thing happened on a rank, whatever the order: calls without the requests they name (which is free
/// depends on the order), completions one by one, and not the polls and waits themselves.
fn happenings(calls: &[Object]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let mut add = |what: String| *found.entry(what).or_insert(0) += 1;
    for call in calls {
        let mut call = call.clone();
        for apart in ["rank", "thread", "i", "site", "enter", "exit", "request", "requests"] {
            call.remove(apart);
        }
        // How often somebody polled in vain.
        call.remove("times");
        if call.get("flag") == Some(&Value::Bool(false)) {
            continue;
        }
        match call.remove("completed") {
            Some(Value::Array(completed)) => {
                for one in completed {
                    add(format!("completed {} {} {}", one["source"], one["tag"], one["bytes"]));
                }
            }
            _ => {
                // Names of communicators, which paper gives by itself.
                let made =
                    |v: &Value| v.as_str().is_some_and(|s| s.starts_with("MPI_Comm_") && s.contains('-'));
                call.values_mut().filter(|v| made(v)).for_each(|v| *v = "a communicator".into());
                add(Value::Object(call).to_string());
            }
        }
    }
    found
}

fn up_to_order(paper: &Ranks, real: &Ranks) -> Result<(), Failure> {
    for (rank, calls) in paper {
        let empty = Vec::new();
        let (a, mut b) = (happenings(calls), happenings(real.get(rank).unwrap_or(&empty)));
        for (what, n) in a {
            let m = b.remove(&what).unwrap_or(0);
            if n != m {
                return Err(format!("rank {rank}: {n} times on paper, {m} times recorded: {what}"));
            }
        }
        if let Some((what, n)) = b.first_key_value() {
            return Err(format!("rank {rank}: never on paper, {n} times recorded: {what}"));
        }
    }
    Ok(())
}

fn as_on_paper(job: Job, subject: &Subject, args: &[String]) -> Result<(), Failure> {
    let paper = on_paper(args, job)?;
    let recording = recordings::of(job, subject)?;
    recording.recorded.clone().ok()?;
    let real = render::viewed(&recording.trace)?;
    match args[0].as_str() {
        "workers" => {}
        // Its messages are taken in the order they come, and polled for until then.
        "halo" => return up_to_order(&paper, &real),
        _ => return compare::ranks(&paper, &real),
    }
    // Its master takes answers as they come; the workers' calls are always the same.
    up_to_order(&paper, &real)?;
    let workers =
        |ranks: &Ranks| ranks.iter().filter(|(r, _)| **r > 0).map(|(r, c)| (*r, c.clone())).collect();
    compare::ranks(&workers(&paper), &workers(&real))
}

#[test]
fn kernels_call_what_they_call_on_paper() {
    let mut failures = Vec::new();
    let mut cases = 0;
    for job in Job::all() {
        for subject in Subject::kernels() {
            let Subject::Kernel(args) = &subject else { continue };
            cases += 1;
            if let Err(e) = as_on_paper(job, &subject, args) {
                failures.push(format!("{subject}, {job}: {e}"));
            }
        }
    }
    conclude(cases, &failures);
}
