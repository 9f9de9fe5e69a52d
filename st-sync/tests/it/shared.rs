//! Several processes, here threads, give what one gives.

use std::path::{Path, PathBuf};

use crate::clc::run;
use crate::program::Program;
use clap::Parser;
use st_cli::Status;
use st_cli::transport::{self, Thread, Transport};
use st_match::graph::{Barriers, Ends, Issues, Latency, Matcher, Span, Survey, roll, survey};
use st_model::columns::{Comparison, Offset};
use st_model::header::Header;
use st_model::section::Section;
use st_stream::{Trace, WriteOptions, write};
use st_sync::args::Args;
use st_sync::clc::{Correction, Moves, Options, correct};
use st_sync::run_in;
use st_sync::team::Team;

/// All that comes out.
#[derive(Clone, PartialEq, Debug)]
struct Found {
    corrected: Vec<Vec<i64>>,
    outcome: Correction,
    issues: Issues,
    before: Survey,
    after: Survey,
}

/// Points of a section's threads; they never decrease.
pub(crate) fn points(section: &Section) -> Vec<Vec<i64>> {
    let of = |(rank, thread): (u32, &st_model::section::Thread)| {
        let column = thread.columns.iter().find(|(r, _)| *r == rank);
        let mut last = i64::MIN;
        let times = column.into_iter().flat_map(|(_, c)| c.times()).flat_map(|(a, b)| [a, b]);
        times
            .map(|t| {
                last = last.max(t);
                last
            })
            .collect()
    };
    let ranks = section.ranks.iter();
    let threads =
        ranks.flat_map(|r| section.threads.iter().filter(move |t| t.ranks.contains(r)).map(move |t| (r, t)));
    threads.map(of).collect()
}

fn alone(sections: &[Section], barriers: Barriers, options: &Options) -> Found {
    let mut matcher = Matcher::new(barriers);
    sections.iter().for_each(|s| matcher.add(s).unwrap());
    let graph = matcher.finish();
    let times: Vec<Vec<i64>> = sections.iter().flat_map(points).collect();
    let (corrected, outcome) = run(&graph, &times, options);
    let of = |times: &[Vec<i64>]| survey(&graph, |s| times[s].iter().copied(), options.latency);
    Found { before: of(&times), after: of(&corrected), corrected, outcome, issues: graph.issues }
}

/// What one of several processes does, with its sections.
fn one(job: &mut Thread, sections: &[Section], barriers: Barriers, options: &Options) -> Found {
    let me = job.rank();
    let rolls = transport::all(job, &roll(sections, |_| true)).unwrap();
    let mut matcher = Matcher::new(barriers);
    matcher.share(me, &rolls).unwrap();
    sections.iter().for_each(|s| matcher.add(s).unwrap());
    let sent = matcher.sent();
    let came = transport::swap(job, sent).unwrap();
    let matched = matcher.matched(&came).unwrap();
    let came = transport::swap(job, matched).unwrap();
    let (graph, links) = matcher.finish_shared(&came).unwrap();
    let mut mine = sections.iter().flat_map(points);
    let mut team = Team::of(job);
    team.links = links;
    let times: Vec<Vec<i64>> = (0..graph.streams.len())
        .map(|s| if team.has(s) { mine.next().unwrap() } else { Vec::new() })
        .collect();
    let (moves, outcome) = correct(&graph, &times[..], options, &mut team).unwrap();
    let apply = |(m, t): (&Moves, &Vec<i64>)| m.apply(t.iter().copied()).collect();
    let corrected: Vec<Vec<i64>> = moves.iter().zip(&times).map(apply).collect();
    let mut of = |times: &[Vec<i64>]| {
        let points = |s: usize| times[s].iter().copied();
        let mut ends = Ends::new(&graph, &team.links, points);
        let came = team.swap_times(std::mem::take(&mut ends.out)).unwrap();
        ends.take_in(&team.links, &came);
        ends.tally(&graph, points, options.latency, ends.span.unwrap_or_default())
    };
    let (before, after) = (of(&times), of(&corrected));
    Found { before, after, corrected, outcome, issues: graph.issues }
}

/// All that does not depend on when anything happened as a whole.
fn comparable(mut f: Found) -> Found {
    for s in [&mut f.before, &mut f.after] {
        s.span = Span::default();
        s.over_time.clear();
    }
    f
}

/// Several processes find what one finds. Each has some ranks one after the other, or none.
pub(crate) fn check(
    sections: &[Section],
    barriers: Barriers,
    latency: Latency,
    processes: usize,
    jobs: usize,
) {
    let options = Options { latency, jobs, ..Options::default() };
    let expected = alone(sections, barriers, &options);
    let share = |p: usize| &sections[p * sections.len() / processes..(p + 1) * sections.len() / processes];
    let found: Vec<Found> = std::thread::scope(|scope| {
        let start = |(p, mut job)| scope.spawn(move || one(&mut job, share(p), barriers, &options));
        let running: Vec<_> = transport::threads(processes).into_iter().enumerate().map(start).collect();
        running.into_iter().map(|r| r.join().unwrap()).collect()
    });
    let mut all = found[0].clone();
    for other in &found[1..] {
        assert_eq!(other.outcome, all.outcome);
        for (a, b) in all.corrected.iter_mut().zip(&other.corrected) {
            a.extend(b);
        }
        all.issues.add(&other.issues);
        all.before.absorb(&other.before);
        all.after.absorb(&other.after);
    }
    assert_eq!(comparable(all), comparable(expected));
}

/// A few ranks with messages, collective operations and clocks that disagree.
fn sections() -> Vec<Section> {
    let mut p = Program::new(&[0, 0, 1, 1]);
    for step in 0..20 {
        for me in 0..4usize {
            let late = [0, 40, -30, 70][me];
            let t = 1000 + step * 100 + late;
            let (right, left) = (i64::try_from((me + 1) % 4).unwrap(), i64::try_from((me + 3) % 4).unwrap());
            p.call(me, "MPI_Send", &[("count", 1.into()), ("dest", right.into())], (t, t + 5));
            p.call(me, "MPI_Recv", &[("count", 1.into()), ("source", left.into())], (t + 10, t + 20));
            p.call(me, "MPI_Barrier", &[], (t + 30, t + 40));
        }
    }
    p.call(3, "MPI_Send", &[("count", 1.into()), ("dest", 0.into()), ("tag", 9.into())], (9000, 9001));
    let mut sections = p.sections();
    let point = |local| Offset { local, offset: 3, error: 1 };
    let clock = Comparison { points: vec![point(0), point(9000)], near: 4, far: 8 };
    sections[2].threads[0].columns[0].1.clock = clock;
    sections
}

fn save(path: &Path, sections: Vec<Section>, world: u32) {
    let header = Header { world, ..Header::default() };
    let trace = Trace { header, sections, ..Trace::default() };
    write(&trace, std::fs::File::create(path).unwrap(), WriteOptions::FILE).unwrap();
}

/// All files below a directory, with what they hold.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    all.into_iter().map(|p| (p.file_name().unwrap().into(), std::fs::read(&p).unwrap())).collect()
}

/// Runs the program as so many processes.
fn program(args: &[&str], processes: usize) -> Vec<Result<Status, String>> {
    let args = Args::parse_from([&["st-sync", "-q"], args].concat());
    if processes == 1 {
        return vec![run_in(&args, &mut Team::alone()).map_err(|e| format!("{e:#}"))];
    }
    std::thread::scope(|scope| {
        let start = |mut job: Thread| {
            let args = &args;
            scope.spawn(move || run_in(args, &mut Team::of(&mut job)).map_err(|e| format!("{e:#}")))
        };
        let running: Vec<_> = transport::threads(processes).into_iter().map(start).collect();
        running.into_iter().map(|r| r.join().unwrap()).collect()
    })
}

#[test]
fn the_program_writes_the_same_files() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::create_dir(at("run")).unwrap();
    for (i, s) in sections().into_iter().enumerate() {
        save(&at("run").join(format!("rank{i}.st")), vec![s], 4);
    }
    save(&at("packed.st"), sections(), 4);
    let [run, packed] = [at("run"), at("packed.st")].map(|p| p.to_str().unwrap().to_owned());
    for (input, method) in [(&run, "clc"), (&packed, "clc"), (&packed, "linear"), (&run, "none")] {
        let (to, report) = (at("result"), at("result").join("report.json"));
        for output in ["one.st", ""] {
            let mut expected = None;
            // As many as inputs, as sections, and more than ranks.
            for processes in [1, 2, 3, 4, 6] {
                std::fs::create_dir(&to).unwrap();
                let out = format!("{}/{output}", to.display());
                let args = ["--method", method, "-o", &out, "--report", report.to_str().unwrap(), input];
                let ended = program(&args, processes);
                assert!(ended.iter().all(Result::is_ok), "{ended:?}");
                let found = files(&to);
                assert!(found.len() > 1);
                let expected = expected.get_or_insert_with(|| found.clone());
                assert!(found == *expected, "{processes} processes, {input}, {method}, {output}");
                std::fs::remove_dir_all(&to).unwrap();
            }
        }
    }
}

#[test]
fn a_fault_that_one_process_finds_ends_all() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::create_dir(at("run")).unwrap();
    for (i, s) in sections().into_iter().enumerate() {
        save(&at("run").join(format!("rank{i}.st")), vec![s], 4);
    }
    let said = |processes: usize, args: &[&str]| {
        let ended = program(args, processes);
        assert!(ended.iter().all(Result::is_err), "{ended:?}");
        let elsewhere = "another process of the job failed";
        let said: Vec<_> = ended.into_iter().filter_map(Result::err).filter(|e| e != elsewhere).collect();
        assert_eq!(said.len(), 1, "{said:?}");
        said[0].clone()
    };
    let (run, out) = (at("run"), at("out.st"));
    let args = ["-o", out.to_str().unwrap(), run.to_str().unwrap()];
    assert!(said(2, &args[..2]).contains("standard input reaches one process only"));
    let last = run.join("rank3.st");
    save(&last, vec![sections().remove(3)], 5);
    assert!(said(2, &args).contains("rank3.st: of another run"));
    save(&last, vec![sections().remove(1)], 4);
    assert!(said(4, &args).contains("holds rank 1, as "));
    std::fs::write(&last, "nonsense").unwrap();
    assert!(said(3, &args).contains("rank3.st"));
    std::fs::remove_file(last).unwrap();
    assert!(said(3, &["-o", "/no/such/directory/out.st", run.to_str().unwrap()]).contains("cannot create"));
    assert!(!out.exists());
}
