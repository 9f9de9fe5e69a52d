//! Several jobs in one recording, and what tells them apart; waits for ranks that are not recorded.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use st_tests::process::{Outcome, Run};
use st_tests::workplace::{self, Workplace};
use st_tests::{Failure, render};

use crate::launch::{check, complete, under_each};
use crate::stages::stream;

/// File name of the launcher.
fn mpirun(p: &Workplace) -> Result<String, Failure> {
    let words = p.job.words(["x"])?;
    Ok(Path::new(&words[0]).file_name().unwrap_or_default().to_string_lossy().into_owned())
}

/// Runs a script as a command of st-record.
fn record(p: &Workplace, options: &str, script: &str) -> Result<Outcome, Failure> {
    fs::write(p.path("job.sh"), script).map_err(|e| e.to_string())?;
    p.go(Run::st("st-record", options.split_whitespace().chain(["--", "sh", "job.sh"]))?)
}

/// A job of all ranks, and then one of a single one by another program.
fn two(p: &Workplace) -> Result<String, Failure> {
    fs::copy(p.path("leaves"), p.path("other")).map_err(|e| e.to_string())?;
    let mpirun = mpirun(p)?;
    Ok(format!("{mpirun} -n {} ./leaves; {mpirun} -n 1 ./other 3", p.job.ranks))
}

/// The run's identity.
fn identity(trace: &Path) -> Result<String, Failure> {
    Ok(stream(trace)?.header.run)
}

/// The trace of one rank with 20 exchanges.
fn alone(trace: &Path) -> Result<(), Failure> {
    Run::st("st-view", ["--check".as_ref(), trace.as_os_str()])?.go()?.ok()?;
    let ranks = render::viewed(trace)?;
    let exchanges = ranks.values().flatten().filter(|c| c["call"] == "MPI_Sendrecv").count();
    if ranks.len() == 1 && exchanges == 20 { Ok(()) } else { Err(format!("{}: {ranks:?}", trace.display())) }
}

/// What the closing lines say of a trace.
fn said(o: &Outcome, file: &str, trace: &Path) -> Result<(), Failure> {
    let calls: usize = render::viewed(trace)?.values().map(Vec::len).sum();
    let ranks = render::viewed(trace)?.len();
    let line = format!("{ranks} {}, {calls} calls → {file}, ", if ranks == 1 { "rank" } else { "ranks" });
    check(o.stderr.contains(&line), &line, o)
}

#[test]
fn each_job_of_a_script_is_a_trace_of_its_own() {
    under_each(|p| {
        let script = two(p)?;
        for options in ["", "--merge", "--no-sync"] {
            let o = record(p, &format!("--must-record -o p.st {options}"), &script)?.expect(3)?;
            let there = ["job.sh", "leaves", "other", "p-2.st", "p.st"];
            check(p.names(".") == there, &format!("{options}: files {:?}", p.names(".")), &o)?;
            complete(p, &p.path("p.st"))?;
            alone(&p.path("p-2.st"))?;
            for file in ["p.st", "p-2.st"] {
                said(&o, file, &p.path(file))?;
                let sections = stream(&p.path(file))?.sections.len();
                check(options != "--merge" || sections == 1, &format!("{file} is merged"), &o)?;
            }
            check(o.stderr.contains(": 2 jobs in ") && o.stderr.contains("; exit 3"), "the end", &o)?;
            let runs = [identity(&p.path("p.st"))?, identity(&p.path("p-2.st"))?];
            check(runs[0] != runs[1] && runs.iter().all(|r| r.len() == 32), &format!("{runs:?}"), &o)?;
        }
        Ok(())
    });
}

#[test]
fn jobs_at_the_same_time_are_traces_of_their_own() {
    under_each(|p| {
        let line = format!("{} -n 2 ./leaves", mpirun(p)?);
        let o = record(p, "--must-record", &format!("{line} & {line} & {line} & wait"))?.ok()?;
        let names = ["job.sh", "leaves", "leaves-2r-2.st", "leaves-2r-3.st", "leaves-2r.st"];
        check(p.names(".") == names, &format!("files {:?}", p.names(".")), &o)?;
        let traces: Vec<_> = names[2..].iter().map(|name| p.path(name)).collect();
        let exchanges = |t: &std::path::PathBuf| -> Result<usize, Failure> {
            let ranks = render::viewed(t)?;
            Ok(ranks.values().flatten().filter(|c| c["call"] == "MPI_Sendrecv").count())
        };
        let all = traces.iter().map(exchanges).collect::<Result<Vec<_>, _>>()?;
        check(all == [40; 3], &format!("exchanges {all:?}"), &o)?;
        let runs = traces.iter().map(|t| identity(t)).collect::<Result<BTreeSet<_>, _>>()?;
        check(runs.len() == 3, &format!("{runs:?}"), &o)
    });
}

#[test]
fn later_jobs_take_no_name_that_is_anothers() {
    under_each(|p| {
        let script = two(p)?;
        record(p, "-q -o p-2.st", &format!("{} -n 1 ./leaves", mpirun(p)?))?.ok()?;
        let before = identity(&p.path("p-2.st"))?;
        for _ in 0..2 {
            let o = record(p, "-q -o p.st", &script)?.expect(3)?;
            let there = ["job.sh", "leaves", "other", "p-2.st", "p-3.st", "p.st"];
            check(p.names(".") == there, &format!("files {:?}", p.names(".")), &o)?;
            check(identity(&p.path("p-2.st"))? == before, "a trace of that name stays", &o)?;
            alone(&p.path("p-3.st"))?;
            fs::remove_file(p.path("p-3.st")).map_err(|e| e.to_string())?;
        }
        // What the user makes of a recording stays.
        fs::copy(p.path("p.st"), p.path("p-2.st")).map_err(|e| e.to_string())?;
        let o = record(p, "-q -o p.st", "true")?.ok()?;
        check(p.names(".").contains(&"p-2.st".to_owned()), "a copy of that name stays", &o)?;
        fs::remove_file(p.path("p-2.st")).map_err(|e| e.to_string())?;
        // Without it, the later jobs' traces of a recording go when the next one begins.
        record(p, "-q -o p.st", &script)?.expect(3)?;
        let o = record(p, "-q -o p.st", "true")?.ok()?;
        check(p.names(".") == ["job.sh", "leaves", "other"], &format!("files {:?}", p.names(".")), &o)
    });
}

#[test]
fn jobs_that_are_killed_or_recovered_are_told_apart() {
    workplace::under_each("accident", "accident.c", &["-pthread", "-ldl"], |p| {
        p.compile("leaves", "leaves.c", &[])?.ok()?;
        let mpirun = mpirun(p)?;
        let n = p.job.ranks;
        let script = format!("{mpirun} -n {n} ./leaves; {mpirun} -n 1 ./accident kill; exit 9");
        let o = record(p, "-o p.st", &script)?.expect(9)?;
        complete(p, &p.path("p.st"))?;
        let killed = stream(&p.path("p-2.st"))?;
        check(killed.sections.iter().any(|s| !s.ended.is_empty()), "the second job was killed", &o)?;
        check(o.stderr.contains("1 of 1 rank ended early"), "and that is said", &o)?;
        // What a killed st-record leaves of two jobs.
        let left = ".st-record-left";
        let launcher = "launcher=99999999";
        for (directory, notes) in [("", format!("here.st\n{launcher}\n")), ("/job-2", "here-2.st\n".into())] {
            let directory = format!("{left}{directory}");
            fs::create_dir(p.path(&directory)).map_err(|e| e.to_string())?;
            fs::write(p.path(&directory).join("notes"), notes).map_err(|e| e.to_string())?;
            p.inside(&format!("-q -o {directory}"), "./leaves")?.ok()?;
        }
        let o = p.go(Run::st("st-record", ["--recover", left])?)?.ok()?;
        check(!p.names(".").contains(&left.to_owned()), "it is packed", &o)?;
        complete(p, &p.path("here.st"))?;
        complete(p, &p.path("here-2.st"))
    });
}

#[test]
fn jobs_below_one_environment_have_directories_of_their_own() {
    under_each(|p| {
        let (n, mpirun) = (p.job.ranks, mpirun(p)?);
        let st_record = st_tests::place::program("st-record")?;
        let script = format!(
            "eval \"$({} --env -q -o run -- {mpirun} ./leaves)\"\n{mpirun} -n {n} ./leaves; {mpirun} -n 1 ./leaves",
            st_record.display()
        );
        for _ in 0..2 {
            let o = p.go(Run::new("sh", ["-c", &script]))?.ok()?;
            complete(p, &p.path("run"))?;
            alone(&p.path("run/job-2"))?;
            let there: Vec<_> = p.names("run").into_iter().filter(|n| !n.starts_with("rank-")).collect();
            check(there == [".jobs", "job-2"], &format!("files {there:?}"), &o)?;
        }
        Ok(())
    });
}

#[test]
fn ranks_of_a_run_have_one_identity_and_runs_have_others() {
    under_each(|p| {
        for run in ["a", "b"] {
            p.inside(&format!("-q --sync -o {run}"), "./leaves")?.ok()?;
            p.inside(&format!("-q --no-sync -o {run}-told"), "./leaves")?.ok()?;
        }
        p.outside("-q -o whole.st --anonymise", "./leaves")?.ok()?;
        let of = |directory: &str| -> Result<BTreeSet<String>, Failure> {
            let ranks = 0..p.job.ranks;
            ranks.map(|rank| identity(&p.path(directory).join(format!("rank-{rank:06}.st")))).collect()
        };
        let mut all = BTreeSet::from([identity(&p.path("whole.st"))?]);
        for run in ["a", "b", "a-told", "b-told"] {
            let ids = of(run)?;
            if ids.len() != 1 {
                return Err(format!("{run}: {ids:?}"));
            }
            all.extend(ids);
        }
        if all.len() != 5 || all.contains("") {
            return Err(format!("{all:?}"));
        }
        // Whatever is made of a run has its identity, and no rank of another is taken for one of it.
        let merged = p.path("merged.st");
        let o = Run::st("st-merge", [p.path("a").as_os_str(), "-o".as_ref(), merged.as_ref()])?.go()?.ok()?;
        check(of("a")?.contains(&identity(&merged)?), "merged", &o)?;
        let [a, b] = ["a/rank-000000.st", "b/rank-000001.st"].map(|name| p.path(name));
        let o = Run::st("st-stat", [a.as_os_str(), b.as_os_str()])?.go()?.expect(3)?;
        check(o.stderr.contains("rank-000001.st: of another run than "), "both are named", &o)?;
        check(o.stderr.contains(": give the streams of one run"), "what to do", &o)
    });
}

/// Processor time that st-record says its own work took, in ms.
fn own_cost(o: &Outcome) -> Option<f64> {
    let said = o.stderr.split("own cost ").nth(1)?;
    let (number, rest) = said.split_once(' ')?;
    let number: f64 = number.parse().ok()?;
    Some(if rest.starts_with("ms") { number } else { number * 1000.0 })
}

/// The least time, and the least processor time in ms, of a few recordings. Two ranks: each has a processor.
fn least(p: &Workplace, options: &str, app: &str) -> Result<(Duration, f64), Failure> {
    let two = st_tests::jobs::Job { ranks: 2, ..p.job };
    let mut all = Vec::new();
    for _ in 0..4 {
        let words = two.words(app.split(' '))?;
        let args = options.split(' ').map(Into::into).chain(["--".into()]).chain(words);
        let begun = Instant::now();
        let o = p.go(Run::st("st-record", args)?)?.ok()?;
        all.push((begun.elapsed(), own_cost(&o).ok_or_else(|| format!("no cost: {o}"))?));
    }
    let time = all.iter().map(|(t, _)| *t).min().unwrap_or_default();
    Ok((time, all.iter().map(|(_, c)| *c).fold(f64::MAX, f64::min)))
}

#[test]
fn nobody_waits_for_ranks_that_are_not_recorded() {
    under_each(|p| {
        let rank = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}";
        let script = format!("[ {rank} = 1 ] && export ST_TIME=never\nexec ./leaves\n");
        fs::write(p.path("one.sh"), script).map_err(|e| e.to_string())?;
        for (options, app) in [
            ("--only 0 -o here.st", "./leaves"),
            ("--only 1 -o here.st", "./leaves"),
            ("-o here.st", "sh one.sh"),
            ("--merge -o here.st", "sh one.sh"),
        ] {
            let (time, cost) = least(p, options, app)?;
            // Ranks that are late are waited for 2 s.
            if time > Duration::from_millis(1_900) || cost > 500.0 {
                return Err(format!("{options} {app}: {time:?}, {cost} ms of processor time"));
            }
        }
        Ok(())
    });
}
