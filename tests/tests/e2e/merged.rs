//! Ranks that merge their streams inside `MPI_Finalize`.

use std::ffi::OsString;
use std::fs;

use st_cli::Mpi;
use st_stream::{Trace, WriteOptions, write};
use st_tests::jobs::Job;
use st_tests::process::{Outcome, Run};
use st_tests::recordings::Subject;
use st_tests::workplace::Workplace;
use st_tests::{Failure, conclude, place};

use crate::stages::stream;

/// Something happens in `MPI_Finalize`: see `fixtures/finalize.c`.
struct Hook {
    here: Workplace,
    hook: OsString,
}

impl Hook {
    fn new(job: Job) -> Result<Self, Failure> {
        let here = Workplace::new(job)?;
        let hook = here.path("finalize.so").into_os_string();
        let source = place::root().join("tests/fixtures/finalize.c").into_os_string();
        let words = ["-shared".into(), "-fPIC".into(), "-o".into(), hook.clone(), source, "-ldl".into()];
        Run::new("cc", words).go()?.ok()?;
        fs::create_dir(here.path("kept")).map_err(|e| e.to_string())?;
        Ok(Self { here, hook })
    }

    /// `st-record OPTIONS -o trace.st -- mpirun -n N APP`, with a variable for the hook.
    fn record(&self, options: &str, app: &[OsString], what: (&str, &str)) -> Result<Outcome, Failure> {
        let words = self.here.job.words(app)?;
        let options = options.split(' ').chain(["-o", "trace.st", "--"]).map(OsString::from);
        let run = Run::st("st-record", options.chain(words))?.env("LD_PRELOAD", &self.hook);
        self.here.go(run.env(what.0, what.1))
    }

    fn trace(&self) -> Result<Trace, Failure> {
        let path = self.here.path("trace.st");
        Run::st("st-view", ["--check".as_ref(), path.as_os_str()])?.go()?.ok()?;
        stream(&path)
    }
}

/// The bytes of a trace, but for who made it, and what only the whole job or the last moment tells of it.
fn bytes(mut trace: Trace) -> Result<Vec<u8>, Failure> {
    trace.provenance.clear();
    trace.header.started = 0;
    trace.header.bindings.clear();
    trace.header.allowed.clear();
    trace.header.processors.clear();
    trace.header.queued = None;
    // They take the exact times of all ranks in one place.
    trace.explanation = None;
    trace.sections.iter_mut().flat_map(|s| &mut s.threads).for_each(|thread| thread.slow.clear());
    let mut out = Vec::new();
    write(&trace, &mut out, WriteOptions::PIPE).map_err(|e| e.to_string())?;
    Ok(out)
}

/// A program on so many ranks, its trace merged in `MPI_Finalize`, and by st-merge from the same ranks' streams: `how`, and further
/// options that both have.
fn equal(job: Job, subject: &Subject, how: &str) -> Result<(), Failure> {
    let hook = Hook::new(job)?;
    let here = &hook.here;
    let kept = here.path("kept").display().to_string();
    // Names are looked up when the job has ended, and are not in the ranks' streams.
    let options = format!("-q --no-symbols --merge={how}");
    let o = hook.record(&options, &subject.command(job)?, ("FINALIZE_KEEP", &kept))?.ok()?;
    let found = hook.trace()?;
    if o.stderr.contains("st-record: ") {
        return Err(format!("something is said: {o}"));
    }
    let (how, further) = how.split_once(' ').unwrap_or((how, ""));
    let merge = |input: &str| {
        let words = ["-o", "later.st", input].into_iter().chain(further.split_whitespace());
        here.go(Run::st("st-merge", words)?)?.ok()
    };
    if how == "plain" {
        merge("kept")?;
    } else {
        let signature = if how == "reference" { how } else { "exact" };
        let words = ["--signature", signature, "-o", "clusters.st", "kept"];
        here.go(Run::st("st-cluster", words)?)?.ok()?;
        merge("clusters.st")?;
    }
    let later = stream(&here.path("later.st"))?;
    let ranks = here.names("kept").len();
    let world = usize::try_from(job.ranks).unwrap_or(0);
    if (ranks, found.sections.len(), found.header.world) != (world, 1, job.ranks) {
        return Err(format!("{ranks} streams, {} sections", found.sections.len()));
    }
    if bytes(found)? == bytes(later)? { Ok(()) } else { Err("another trace than later".into()) }
}

#[test]
fn what_is_merged_in_finalize_is_what_is_merged_later() {
    let kernel = |line: &str| Subject::Kernel(line.split(' ').map(str::to_owned).collect());
    let program = |name: &str| Subject::Program(name.to_owned());
    let subjects =
        [kernel("stencil2d --steps 12"), kernel("amr --steps 20"), program("c_comm"), program("f08_mix")];
    let usual = Job::all().into_iter().flat_map(|job| subjects.iter().map(move |s| (job, s)));
    // More ranks than the tree joins at once.
    let many = kernel("stencil2d --steps 12");
    let large =
        place::mpis().contains(&Mpi::Openmpi).then_some((Job { mpi: Mpi::Openmpi, ranks: 20 }, &many));
    let (mut n, mut failures) = (0, Vec::new());
    for (job, subject) in usual.chain(large) {
        let drawn = "cluster --histogram dest,source,count";
        for how in ["cluster", "plain", "reference", drawn, "plain --histogram count --histogram-threshold 1"]
        {
            n += 1;
            failures
                .extend(equal(job, subject, how).map_err(|e| format!("{job}: {subject}, {how}: {e}")).err());
        }
    }
    conclude(n, &failures);
}

fn under_each(test: impl Fn(&Hook) -> Result<(), Failure>) {
    let jobs = Job::all();
    let failed = |job: &Job| Hook::new(*job).and_then(|h| test(&h)).map_err(|e| format!("{job}: {e}")).err();
    let failures: Vec<_> = jobs.iter().filter_map(failed).collect();
    conclude(jobs.len(), &failures);
}

#[test]
fn what_each_level_takes_is_told_where_more_is_asked_for() {
    under_each(|hook| {
        let job = hook.here.job;
        let options = ["-v", "--merge", "-o", "trace.st", "--"].map(OsString::from);
        let words = options.into_iter().chain(job.words(&app(job)?)?);
        let o = hook.here.go(Run::st("st-record", words)?)?.ok()?;
        let last = job.ranks.next_power_of_two().trailing_zeros();
        let between = (1..=last).map(|level| format!("level {level} of {last}"));
        let levels: Vec<String> =
            ["own calls".to_owned()].into_iter().chain(between).chain(["result".to_owned()]).collect();
        let told: Vec<&str> =
            o.stderr.lines().filter_map(|l| l.strip_prefix("st-record: merging, ")).collect();
        let fits = |(told, level): (&&str, &String)| {
            let handed = told.contains(" handed on by ");
            told.starts_with(&format!("{level}: ")) && handed == level.starts_with("level ")
        };
        if told.len() == levels.len() && told.iter().zip(&levels).all(fits) {
            Ok(())
        } else {
            Err(format!("{told:?}, not of {levels:?}"))
        }
    });
}

/// A short program.
fn app(job: Job) -> Result<Vec<OsString>, Failure> {
    Subject::Kernel(["stencil1d", "--steps", "6"].map(str::to_owned).to_vec()).command(job)
}

/// The trace is that of all ranks, side by side, as if none had tried to merge.
fn side_by_side(hook: &Hook) -> Result<(), Failure> {
    let trace = hook.trace()?;
    let ranks: Vec<u32> = trace.sections.iter().flat_map(|s| s.ranks.iter().collect::<Vec<_>>()).collect();
    let world: Vec<u32> = (0..hook.here.job.ranks).collect();
    if (trace.sections.len(), &ranks) == (world.len(), &world) {
        Ok(())
    } else {
        Err(format!("{} sections of ranks {ranks:?}", trace.sections.len()))
    }
}

/// Name of a rank's stream.
fn name(rank: u32) -> String {
    format!("rank-{rank:06}.st")
}

#[test]
fn ranks_wait_for_one_that_stops_and_keep_their_streams() {
    under_each(|hook| {
        let job = hook.here.job;
        let app = app(job)?;
        let plain = job.run(&app)?.ok()?;
        for rank in [job.ranks - 1, 0] {
            let what = format!("{}:6", name(rank));
            let o = hook.record("-q --merge --merge-timeout 1", &app, ("FINALIZE_STOP", &what))?.ok()?;
            side_by_side(hook).map_err(|e| format!("{e}: {o}"))?;
            let said: Vec<&str> = o.stderr.lines().filter(|l| l.contains("not merged")).collect();
            let late = if rank > 0 { rank } else { 1 };
            let why = format!("rank 0: rank {late} was not there in time; ");
            if o.stdout != plain.stdout || said.len() != 1 || !said[0].contains(&why) {
                return Err(format!("expected {why:?} once: {o}"));
            }
        }
        Ok(())
    });
}

#[test]
fn a_rank_that_is_killed_in_finalize_takes_no_stream_with_it() {
    under_each(|hook| {
        let last = name(hook.here.job.ranks - 1);
        let app = app(hook.here.job)?;
        let o = hook.record("-q --merge", &app, ("FINALIZE_KILL", &last))?;
        side_by_side(hook).map_err(|e| format!("{e}: {o}"))?;
        if o.status == 0 {
            return Err(format!("nobody was killed: {o}"));
        }
        // Rank 0 has written the merged stream, and nobody has heard of it.
        let o = hook.record("-q --merge", &app, ("FINALIZE_KILL", "merged.st"))?;
        match (hook.trace()?.sections.len(), o.status) {
            (1, 1..) => Ok(()),
            (n, _) => Err(format!("{n} sections: {o}")),
        }
    });
}

#[test]
fn a_directory_holds_the_merged_stream_or_those_of_the_ranks() {
    under_each(|hook| {
        let (here, job) = (&hook.here, hook.here.job);
        let kernel =
            [place::program("st-kernels")?.display().to_string(), "stencil1d --steps 6".into()].join(" ");
        let streams: Vec<String> = (0..job.ranks).map(name).collect();
        let o = here.inside("--sync --merge -o run", &kernel)?.ok()?;
        if here.names("run") != ["merged.st"] || !o.stderr.contains("run/merged.st; next: st-stat ") {
            return Err(format!("{:?}: {o}", here.names("run")));
        }
        here.go(Run::st("st-view", ["--check", "run"])?)?.ok()?;
        let o = here.inside("--sync -o run", &kernel)?.ok()?;
        if here.names("run") != streams {
            return Err(format!("expected the ranks' streams alone, not {:?}: {o}", here.names("run")));
        }
        // Whether all ranks are recorded Open MPI tells, and MPICH does not.
        let o = here.inside("--merge -o other", &kernel)?.ok()?;
        let merged = job.mpi == Mpi::Openmpi;
        let expected = if merged { vec!["merged.st".to_owned()] } else { streams };
        if here.names("other") != expected || o.stderr.contains("are not merged") == merged {
            return Err(format!("expected {expected:?}: {o}"));
        }
        Ok(())
    });
}
