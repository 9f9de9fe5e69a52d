//! Ranks that are reduced while they run.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use st_stream::{Trace, WriteOptions, write};
use st_tests::Failure;
use st_tests::process::{Outcome, Run};
use st_tests::workplace::{self, Workplace};

use crate::stages::stream;

/// Runs a test under each MPI, in a directory with the program `idle`.
fn under_each(test: impl Fn(&Workplace) -> Result<(), Failure>) {
    workplace::under_each("idle", "idle.c", &["-O1"], test);
}

/// `st-record -v OPTIONS -o trace.st -- mpirun -n N APP`.
fn record(here: &Workplace, options: &str, app: &str) -> Result<Outcome, Failure> {
    let o = here.outside(&format!("-v -o trace.st {options}"), app)?.ok()?;
    Run::st("st-view", ["--check".as_ref(), here.path("trace.st").as_os_str()])?.go()?.ok()?;
    Ok(o)
}

/// How many interim reductions st-record tells of, and how many that failed.
fn told(o: &Outcome) -> Option<(u64, u64)> {
    let counts = |l: &&str| l.starts_with(|c: char| c.is_ascii_digit()) && l.contains(" interim reductions");
    let line = o.stderr.lines().filter_map(|l| l.strip_prefix("st-record: ")).rfind(counts)?;
    let numbers = line.split(' ').filter_map(|w| w.parse().ok()).collect::<Vec<u64>>();
    let failed = if line.contains("that failed") { *numbers.get(1)? } else { 0 };
    Some((*numbers.first()?, failed))
}

/// The bytes of a trace, but for its times and who made it.
fn bytes(mut trace: Trace) -> Result<Vec<u8>, Failure> {
    trace.provenance.clear();
    trace.header.started = 0;
    trace.header.run.clear();
    trace.header.queued = None;
    trace.header.options.remove("time");
    for t in trace.sections.iter_mut().flat_map(|s| &mut s.threads) {
        t.sketches.clear();
        t.sums.clear();
    }
    let mut out = Vec::new();
    write(&trace, &mut out, WriteOptions::PIPE).map_err(|e| e.to_string())?;
    Ok(out)
}

#[test]
fn the_trace_of_the_end_is_that_without_interim_reductions() {
    under_each(|here| {
        for how in ["cluster", "plain"] {
            let app = "./idle 0 2000";
            record(here, &format!("--merge={how}"), app)?;
            let expected = bytes(stream(&here.path("trace.st"))?)?;
            let o = record(here, &format!("--merge={how} --reduce-every 0.05"), app)?;
            let made = told(&o).map_or(0, |(made, _)| made);
            if made < 3 || bytes(stream(&here.path("trace.st"))?)? != expected {
                return Err(format!("{how}: another trace, or too few reductions ({made}): {o}"));
            }
        }
        Ok(())
    });
}

/// Sizes of a recording's directory, hidden files apart, at each interim reduction that is seen.
fn sizes(here: &Workplace, done: &AtomicBool) -> Vec<u64> {
    let (mut seen, mut sizes) = (SystemTime::UNIX_EPOCH, Vec::new());
    while !done.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(10));
        let Some(run) = here.names(".").into_iter().find(|n| n.starts_with(".st-record-")) else { continue };
        let interim = fs::metadata(here.path(&run).join("interim.st")).and_then(|m| m.modified());
        let Some(written) = interim.ok().filter(|w| *w > seen) else { continue };
        seen = written;
        let files = here.names(&run).into_iter().filter(|n| !n.starts_with('.'));
        sizes.push(files.filter_map(|n| fs::metadata(here.path(&run).join(n)).ok()).map(|m| m.len()).sum());
    }
    sizes
}

#[test]
fn files_do_not_grow_with_the_number_of_reductions() {
    under_each(|here| {
        let done = AtomicBool::new(false);
        let (o, sizes) = std::thread::scope(|s| {
            let sampler = s.spawn(|| sizes(here, &done));
            let o = record(here, "--reduce-every 0.1", "./idle 0 6000");
            done.store(true, Ordering::Relaxed);
            (o, sampler.join().unwrap())
        });
        let o = o?;
        // The journal takes its second half at the first reduction.
        let (Some(early), Some(last)) = (sizes.get(2), sizes.last()) else {
            return Err(format!("{} sizes: {o}", sizes.len()));
        };
        if sizes.len() < 8 || *last > early + early / 20 || here.names(".") != ["idle", "trace.st"] {
            return Err(format!("{sizes:?}, {:?}: {o}", here.names(".")));
        }
        Ok(())
    });
}

/// A job whose ranks are killed, all of them at once, after an interim reduction; then some of what they have left is
/// removed.
fn killed(here: &Workplace, removes: &str) -> Result<Outcome, Failure> {
    let words = here.job.words(["./idle", "0", "100000"])?;
    let launcher = Path::new(&words[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let rest: Vec<_> = words[1..].iter().map(|w| w.to_string_lossy()).collect();
    let script = format!(
        "{launcher} {} &\n\
         while [ ! -e $ST_OUTPUT/interim.st ]; do sleep 0.02; done\nsleep 0.5\n\
         for j in $ST_OUTPUT/rank-*.journal; do j=${{j%.journal}}; kill -9 ${{j##*.}}; done\n\
         wait\ncd $ST_OUTPUT && rm -f {removes}\nexit 9\n",
        rest.join(" ")
    );
    fs::write(here.path("job.sh"), script).map_err(|e| e.to_string())?;
    let options = ["-v", "--reduce-every", "0.2", "-o", "trace.st", "--", "sh", "job.sh"].map(OsString::from);
    here.go(Run::st("st-record", options)?)?.expect(9)
}

/// A trace of these ranks that is proved.
fn proved(here: &Workplace, name: &str, ranks: &[u32]) -> Result<u64, Failure> {
    let path = here.path(name);
    Run::st("st-view", ["--check".as_ref(), path.as_os_str()])?.go()?.ok()?;
    let trace = stream(&path)?;
    let found: Vec<u32> = trace.sections.iter().flat_map(|s| s.ranks.iter().collect::<Vec<_>>()).collect();
    if found != ranks {
        return Err(format!("{name}: ranks {found:?}"));
    }
    let ended: Vec<_> = trace.sections.iter().flat_map(|s| &s.ended).map(|e| e.calls).collect();
    if ended.len() != ranks.len() {
        return Err(format!("{name}: {} ranks ended early", ended.len()));
    }
    Ok(ended.iter().sum())
}

#[test]
fn a_killed_job_leaves_what_all_ranks_had_at_the_last_reduction() {
    under_each(|here| {
        let all: Vec<u32> = (0..here.job.ranks).collect();
        // Nothing is lost: every rank to its last call.
        let o = killed(here, "nothing")?;
        proved(here, "trace.st", &all).map_err(|e| format!("{e}: {o}"))?;
        if o.stderr.contains("has left nothing") {
            return Err(format!("all ranks have left their journals: {o}"));
        }
        let o = killed(here, "rank-000001.*")?;
        let calls = proved(here, "trace.st", &all).map_err(|e| format!("{e}: {o}"))?;
        let others: Vec<u32> = all.iter().copied().filter(|r| *r != 1).collect();
        proved(here, "trace.rest.st", &others).map_err(|e| format!("{e}: {o}"))?;
        let said =
            o.stderr.contains("rank 1 has left nothing: trace.st has all ranks, up to their last reduction");
        if calls < 50 || !said {
            return Err(format!("{calls} calls: {o}"));
        }
        let o = killed(here, "rank-*")?;
        proved(here, "trace.st", &all).map_err(|e| format!("{e}: {o}"))?;
        Ok(())
    });
}

#[test]
fn a_rank_that_stops_in_a_reduction_holds_nobody_up_for_long() {
    under_each(|here| {
        here.compile("interim.so", "interim.c", &["-shared", "-fPIC", "-ldl"])?.ok()?;
        let app = "./idle 0 3000";
        let plain = here.plain(app)?.ok()?;
        for rank in [here.job.ranks - 1, 0] {
            let words =
                "-v --reduce-every 0.2 --merge-timeout 1 -o trace.st --".split(' ').map(OsString::from);
            let run = Run::st("st-record", words.chain(here.job.words(app.split(' '))?))?;
            let run = run.env("LD_PRELOAD", here.path("interim.so")).env("INTERIM_STOP", format!("{rank}:4"));
            let o = here.go(run)?.ok()?;
            Run::st("st-view", ["--check".as_ref(), here.path("trace.st").as_os_str()])?.go()?.ok()?;
            let late = if rank > 0 { rank } else { 1 };
            let why = format!("rank 0: rank {late} was not there in time; no interim reduction this time");
            let said = o.stderr.lines().filter(|l| l.contains("no interim reduction")).count();
            let sections = stream(&here.path("trace.st"))?.sections.len();
            let made = told(&o).is_some_and(|(made, failed)| made > 0 && failed == 1);
            if o.stdout != plain.stdout || said != 1 || !o.stderr.contains(&why) || !made || sections != 1 {
                return Err(format!("rank {rank}: expected {why:?} once, and others that succeed: {o}"));
            }
        }
        Ok(())
    });
}

#[test]
fn a_program_in_which_nobody_waits_for_all_is_told_so_once() {
    under_each(|here| {
        let o = record(here, "--reduce-every 0.1", "./idle 200 0")?;
        let said: Vec<_> =
            o.stderr.lines().filter(|l| l.contains("no interim reduction took place")).collect();
        if said.len() == 1 && told(&o).is_none() { Ok(()) } else { Err(format!("{said:?}: {o}")) }
    });
}
