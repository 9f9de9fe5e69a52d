//! Which call sites became slower: planted changes are found, and chance is not.

mod run;

use std::path::Path;

use crate::common::with_slow;
use clap::Parser;
use run::{Chance, Run, recorded, section};
use st_capture::record::{Options, RankRecorder};
use st_cli::Status;
use st_kernels::{Kernel, Slow};
use st_model::calls::{CallTable, names};
use st_model::header::Header;
use st_model::names::{Location, Names};
use st_model::section::Section;
use st_model::sites::{CallSites, Frame, Module};
use st_model::steps::Budget;
use st_stat::args::Args;
use st_stat::changes::{Change, Changes, Common, How, Verdict, changes};
use st_stat::times::Times;
use st_stream::{Trace, WriteOptions};

fn timed(sections: &[Section]) -> (Times, CallSites) {
    let times = Times::of(sections, &Budget::default()).unwrap().unwrap();
    (times, CallSites::of(sections.iter().map(|s| &s.sites)))
}

fn compared(a: Run, b: Run, how: How) -> Changes {
    compared_sections([a, b].map(recorded), how)
}

fn compared_sections(sections: [Vec<Section>; 2], how: How) -> Changes {
    let [a, b] = sections.map(|s| timed(&s));
    changes([&a, &b], &[], how)
}

/// What is found before calls and, apart from that, in them: the place and the verdict.
fn found(changes: &Changes, in_call: bool) -> Vec<(usize, Verdict)> {
    let rows = changes.rows.iter().filter(|r| r.in_call == in_call && r.verdict < Verdict::Alike);
    let site = |name: Option<u32>| usize::try_from(name.unwrap()).unwrap() - 1;
    let mut all: Vec<_> = rows.map(|r| (site(r.sites[0]), r.verdict)).collect();
    all.sort_unstable();
    all
}

/// All of it, for whom a test fails.
fn told(changes: &Changes) -> String {
    let row = |r: &Change| {
        let (site, judged) = (r.sites[0].unwrap_or(99), r.judged.map(|j| (j.probability, j.uncertainty)));
        format!(
            "\n{:?} site {site} in call {}: {:?} {:.1} % {judged:?}",
            r.verdict,
            r.in_call,
            r.times,
            r.percent()
        )
    };
    changes.rows.iter().map(row).collect()
}

#[test]
fn two_runs_of_one_program_do_not_differ() {
    for (ranks, steps, exact) in
        [(8, 200, true), (2, 200, true), (8, 200, false), (24, 30, true), (3, 60, false)]
    {
        for seed in 0..50 {
            let a = Run { ranks, steps, exact, seed, wave: 0.05, ..Run::default() };
            let changes = compared(a, Run { seed: seed + 1_000, ..a }, How::default());
            let said: Vec<_> = [false, true].map(|p| found(&changes, p)).concat();
            assert!(
                said.is_empty(),
                "{ranks} ranks, {steps} steps, exact {exact}, seed {seed}: {}",
                told(&changes)
            );
            assert!(changes.rows.iter().any(|r| r.verdict == Verdict::Alike));
        }
    }
}

#[test]
fn ranks_that_are_now_slow_and_now_others_are_chance() {
    for seed in 0..50 {
        let a = Run { ranks: 4, seed, apart: 0.1, ..Run::default() };
        let changes = compared(a, Run { seed: seed + 1_000, ..a }, How::default());
        assert!(found(&changes, false).is_empty(), "seed {seed}: {}", told(&changes));
    }
}

#[test]
fn what_chance_may_have_made_is_not_called_alike() {
    let mut unsure = 0;
    for seed in 0..10 {
        let a = Run { ranks: 2, seed, apart: 0.8, ..Run::default() };
        let changes = compared(a, Run { seed: seed + 1_000, ..a }, How::default());
        let whole: f64 = changes.rows.iter().map(|r| r.expected).sum();
        let large =
            |r: &&Change| r.percent().abs() > 20.0 && r.percent().abs() / 100.0 * r.expected > whole / 20.0;
        for row in changes.rows.iter().filter(large) {
            assert_ne!(row.verdict, Verdict::Alike, "seed {seed}: {}", told(&changes));
            unsure += usize::from(row.verdict == Verdict::Unsure);
        }
        // They are told, before what has not changed.
        let text = said([a, Run { seed: seed + 1_000, ..a }].map(recorded), &["--time"]).unwrap().0;
        let listed = text.lines().filter(|line| line.starts_with("unsure  ")).count();
        assert_eq!(listed, changes.rows.iter().filter(|r| r.verdict == Verdict::Unsure).count(), "{text}");
        let last = changes.rows.iter().rposition(|r| r.verdict == Verdict::Unsure);
        let alike = changes.rows.iter().position(|r| r.verdict == Verdict::Alike);
        assert!(alike.is_none() || last < alike, "seed {seed}: {}", told(&changes));
    }
    assert!(unsure > 0);
}

#[test]
fn what_is_new_and_takes_next_to_no_time_is_counted_and_not_listed() {
    let calls = [(2e6, 102e6), (102e6, 102.001e6), (102.001e6, 112e6)];
    let runs = || [&calls[..1], &calls].map(|calls| vec![section(0, calls, true)]);
    let text = said(runs(), &["--time"]).unwrap().0;
    assert!(text.contains(", 2 new (1 below "), "{text}");
    assert!(text.contains(" step\n") && !text.contains(" east\n"), "{text}");
    let all = said(runs(), &["--time", "--all"]).unwrap().0;
    assert!(all.contains(" step\n") && all.contains(" east\n"), "{all}");
    // One call tells nothing of chance, but that it takes much longer matters.
    let longer = [(2e6, 102e6), (102e6, 102.001e6), (102.001e6, 212e6)];
    let runs = [&calls, &longer].map(|calls| vec![section(0, calls, true)]);
    let text = said(runs, &["--time"]).unwrap().0;
    let rows: Vec<_> = text.lines().filter(|line| line.starts_with("too few  ")).collect();
    assert!(rows.len() == 1 && rows[0].contains(" MPI_Barrier "), "{text}");
}

#[test]
fn phases_of_the_program_are_no_chance() {
    for seed in 0..10 {
        let a = Run { seed, rise: 9.0, ..Run::default() };
        let b = Run { seed: seed + 1_000, factors: [1.0, 1.0, 1.0, 1.2], ..a };
        assert_eq!(found(&compared(a, b, How::default()), false), [(3, Verdict::Slower)], "seed {seed}");
    }
}

#[test]
fn what_became_slower_or_faster_is_found_where_it_is() {
    for (ranks, steps, exact, longer) in
        [(8, 200, true, 1.2), (2, 200, true, 2.0), (8, 400, false, 1.2), (24, 30, true, 1.2)]
    {
        for seed in 0..10 {
            let a = Run { ranks, steps, exact, seed, ..Run::default() };
            let b = Run { seed: seed + 1_000, factors: [longer, 1.0, 1.0, 1.0], ..a };
            let there = compared(a, b, How::default());
            assert_eq!(
                found(&there, false),
                [(0, Verdict::Slower)],
                "{ranks} {steps} {exact} {seed} {}",
                told(&there)
            );
            let back = compared(b, a, How::default());
            assert_eq!(found(&back, false), [(0, Verdict::Faster)], "{ranks} {steps} {exact} {seed}");
        }
    }
}

/// How ranks differ from run to run: all at once, each for the whole run, and each at each place.
const CHANCE: [(f64, f64, f64); 2] = [(0.05, 0.05, 0.1), (0.05, 0.0, 0.25)];

#[test]
fn ranks_that_differ_at_places_are_chance_however_few_they_are() {
    for (ranks, steps) in [(2, 40), (4, 40), (16, 12)] {
        let mut wrong = Vec::new();
        for (seed, (wave, apart, placed)) in (0..25).flat_map(|seed| CHANCE.map(|how| (seed, how))) {
            let a = Run { ranks, steps, seed, wave, apart, placed, ..Run::default() };
            let changes = compared(a, Run { seed: seed + 1_000_000, ..a }, How::default());
            wrong.extend((changes.rows.iter().any(|r| r.verdict < Verdict::Alike)).then(|| told(&changes)));
        }
        assert!(wrong.len() <= 2, "{ranks} ranks: {} of 50: {wrong:?}", wrong.len());
    }
}

#[test]
fn ten_times_as_long_is_found_of_four_ranks_and_of_one_of_them() {
    let slow = |run| Run { factors: [10.0, 1.0, 1.0, 1.0], ..run };
    let one = |run| Run { alone: (1, 0, 10.0), ..run };
    let a = Run { ranks: 4, apart: 0.01, placed: 0.02, ..Run::default() };
    let more = Run { apart: 0.05, placed: 0.1, ..a };
    let folded = Run { exact: false, ..more };
    let cases = [(a, slow(a)), (a, one(a)), (more, slow(more)), (folded, slow(folded))];
    for (seed, (a, b)) in (0..8).flat_map(|seed| cases.map(|case| (seed, case))) {
        let changes = compared(Run { seed, ..a }, Run { seed: seed + 1_000_000, ..b }, How::default());
        assert_eq!(found(&changes, false), [(0, Verdict::Slower)], "{seed}: {}", told(&changes));
    }
}

/// One of two ranks computes ten times as long before all calls: on paper, and where ranks vary.
#[test]
fn a_rank_that_takes_ten_times_as_long_everywhere_is_slower_and_beyond_any_threshold() {
    let gate = How { threshold: Some(100.0), ..How::default() };
    for (seed, ranks) in (0..8).flat_map(|seed| [2, 4].map(|ranks| (seed, ranks))) {
        let a = Run { ranks, seed, apart: 0.02, placed: 0.05, ..Run::default() };
        let b = Run { seed: seed + 1_000_000, everywhere: (1, 10.0), ..a };
        let changes = compared(a, b, gate);
        assert!(changes.beyond(), "{ranks} ranks, seed {seed}: {}", told(&changes));
        let before = found(&changes, false);
        assert!(
            before.iter().any(|(_, v)| *v == Verdict::Slower),
            "{ranks} ranks, seed {seed}: {}",
            told(&changes)
        );
    }
}

/// Eight calls of each rank are too few for most of what call sites tell, but the run takes two and a half times as long.
#[test]
fn a_run_that_takes_longer_is_beyond_the_threshold_also_where_no_call_site_is() {
    let a = Run { ranks: 4, steps: 2, late: 0.0, ..Run::default() };
    let b = Run { seed: 7, factors: [2.8; 4], ..a };
    let (text, status) = said([a, b].map(recorded), &["--time", "--threshold", "10"]).unwrap();
    assert_eq!(status, Status::Difference, "{text}");
    assert!(
        text.contains("\nthe run takes +") && text.contains("no call site can be named for sure"),
        "{text}"
    );
    assert_eq!(said([a, b].map(recorded), &["--time", "--threshold", "500"]).unwrap().1, Status::Ok);
    assert_eq!(said([b, a].map(recorded), &["--time", "--threshold", "10"]).unwrap().1, Status::Ok);
    // More runs of the first program that differ as much tell that it is chance.
    let others = [2.6, 1.6].map(|by| recorded(Run { seed: 9, factors: [by; 4], ..a }));
    let all = [recorded(a), recorded(b)].into_iter().chain(others).collect();
    assert_eq!(said_of(all, &["--time", "--threshold", "10"]).unwrap().1, Status::Ok);
}

/// By the whole run and by call sites, without and with more runs of the first program.
#[test]
fn equal_runs_pass_a_gate() {
    let gate = How { threshold: Some(10.0), ..How::default() };
    for ranks in [2, 4] {
        let mut wrong = [[0; 2]; 2];
        for (seed, (wave, apart, placed)) in (0..50).flat_map(|seed| CHANCE.map(|how| (seed, how))) {
            let a = Run { ranks, steps: 40, seed, wave, apart, placed, ..Run::default() };
            let [x, y, base, third] =
                [0, 1, 2, 3].map(|n| timed(&recorded(Run { seed: seed + n * 1_000_000, ..a })));
            for (wrong, bases) in wrong.iter_mut().zip([&[][..], &[base, third]]) {
                let found = changes([&x, &y], bases, gate);
                let of_site = found.rows.iter().any(|r| r.verdict == Verdict::Slower && r.percent() > 10.0);
                wrong[usize::from(of_site)] += u32::from(found.beyond());
            }
        }
        assert!(wrong.iter().flatten().all(|n| *n <= 2), "{ranks} ranks: {wrong:?} of 100");
    }
}

/// Eight times as many ranks do the same work: each an eighth of it, but all of it before the barrier.
#[test]
fn what_does_not_scale_is_slower_than_its_share() {
    let a = Run { ranks: 8, late: 0.0, ..Run::default() };
    let eighths = Run { ranks: 64, seed: 99, factors: [0.125, 0.125, 1.0, 0.125], ..a };
    let strong = compared(a, eighths, How::default());
    assert_eq!(found(&strong, false), [(2, Verdict::Slower)], "{}", told(&strong));
    let step = strong.rows.iter().find(|r| !r.in_call && r.sites[0] == Some(3)).unwrap();
    assert!((step.percent() - 700.0).abs() < 50.0, "{}", told(&strong));
    let weak = compared(a, Run { factors: [1.0; 4], ..eighths }, How { weak: true, ..How::default() });
    assert_eq!(found(&weak, false), [], "{}", told(&weak));
    let lost = compared(a, Run { factors: [1.0; 4], ..eighths }, How::default());
    assert_eq!(found(&lost, false).len(), 4, "{}", told(&lost));
}

#[test]
fn a_threshold_is_one_for_what_is_slower() {
    let (a, b) = (Run::default(), Run { seed: 7, factors: [1.2, 1.0, 1.0, 1.0], ..Run::default() });
    let beyond = |a, b, percent| compared(a, b, How { threshold: Some(percent), ..How::default() }).beyond();
    assert!(beyond(a, b, 10.0) && !beyond(a, b, 40.0) && !beyond(b, a, 0.0));
    assert!(!compared(a, b, How::default()).beyond());
}

/// A rank that makes calls of these functions, ten times each, from these lines of a build of a program.
fn built(build_id: &str, lines: &[(&str, u32)]) -> Vec<Section> {
    built_of("/src/app.c", build_id, lines)
}

/// The same of another source.
fn built_of(source: &str, build_id: &str, lines: &[(&str, u32)]) -> Vec<Section> {
    let places: Vec<_> = lines.iter().map(|(f, line)| (*f, *line, u64::from(*line) * 16)).collect();
    built_at(source, build_id, &places)
}

/// The same at these offsets of the program.
fn built_at(source: &str, build_id: &str, places: &[(&str, u32, u64)]) -> Vec<Section> {
    let mut r = RankRecorder::new(0, Options::default());
    let program = Module { path: "/bin/app".into(), build_id: build_id.into() };
    let (key, module) = (program.key(), r.sites.module(program));
    let mut named = Names::default();
    r.open_thread(0);
    let barrier = CallTable::builtin().by_name(names::MPI_Barrier).unwrap().id;
    let mut now = 0;
    for (function, line, offset) in places {
        let offset = *offset;
        let site = r.sites.stack(vec![Frame { module, offset }]);
        let sym = r.symbol(barrier, site, 0);
        let (function, file) = (Some((*function).into()), Some(source.into()));
        named.insert((key, offset), vec![Location { function, file, line: Some(*line), displacement: None }]);
        for _ in 0..10 {
            r.record(0, sym, &[0], now + 1_000, now + 2_000);
            now += 2_000;
        }
    }
    r.sites.add_names(&named);
    vec![r.finish("host")]
}

/// Call sites of two traces that are taken for one.
fn joined(a: Vec<Section>, b: Vec<Section>) -> Vec<[Option<u32>; 2]> {
    let changes = compared_sections([a, b], How::default());
    let mut all: Vec<_> = changes.rows.iter().filter(|r| r.in_call).map(|r| r.sites).collect();
    all.sort_unstable();
    all
}

#[test]
fn sites_of_another_version_are_joined_by_their_functions() {
    let one = || built("01", &[("f", 3), ("f", 5), ("g", 9)]);
    let same = [[Some(0), Some(0)], [Some(1), Some(1)], [Some(2), Some(2)]];
    assert_eq!(joined(one(), one()), same);
    assert_eq!(joined(one(), built("02", &[("f", 3), ("f", 5), ("g", 9)])), same);
    assert_eq!(joined(one(), built("02", &[("f", 4), ("f", 7), ("g", 11)])), same);
    // One line has stayed, and tells which is which.
    assert_eq!(
        joined(one(), built("02", &[("f", 5), ("f", 1), ("g", 9)])),
        [[Some(0), Some(1)], [Some(1), Some(0)], [Some(2), Some(2)]]
    );
    // Which of three is none of the two cannot be told.
    let apart = joined(one(), built("02", &[("f", 4), ("f", 6), ("f", 7), ("g", 9)]));
    assert_eq!(
        apart.iter().filter(|s| s[0].is_some() && s[1].is_some()).collect::<Vec<_>>(),
        [&[Some(2), Some(3)]]
    );
    assert_eq!(apart.len(), 6);
}

/// A rank that makes calls from these offsets of one line.
fn copied(build_id: &str, offsets: &[u64]) -> Vec<Section> {
    let places: Vec<_> = offsets.iter().map(|at| ("f", 3, *at)).collect();
    built_at("/src/app.c", build_id, &places)
}

#[test]
fn call_sites_of_one_line_are_apart_in_one_build_and_counted_in_others() {
    let together = |a, b| {
        let changes = compared_sections([a, b], How::default());
        let rows = changes.rows.iter().filter(|r| r.in_call);
        let mut all: Vec<_> = rows.map(|r| (r.sites, r.events, r.together)).collect();
        all.sort_unstable();
        all
    };
    let one = |site| ([Some(site); 2], [Some(10); 2], 1);
    assert_eq!(together(copied("01", &[16, 32]), copied("01", &[16, 32])), [one(0), one(1)]);
    assert_eq!(
        together(copied("01", &[16, 32]), copied("02", &[48, 64])),
        [([Some(0); 2], [Some(20); 2], 2)]
    );
    let (text, _) = said([copied("01", &[16, 32]), copied("02", &[48, 64])], &["--time", "--all"]).unwrap();
    assert!(text.contains("  sites  site  place"), "{text}");
}

fn write(path: &Path, sections: Vec<Section>) {
    let last = sections.iter().flat_map(|s| s.ranks.iter()).max().unwrap_or(0);
    let header = Header { world: 8.max(last + 1), program: "app".into(), ..Header::default() };
    let trace = Trace { header, sections, level: 0, ..Trace::default() };
    let mut file = std::fs::File::create(path).unwrap();
    st_stream::write(&trace, &mut file, WriteOptions { level: 0 }).unwrap();
}

/// What `st-stat diff` says of two traces.
fn said(sections: [Vec<Section>; 2], options: &[&str]) -> anyhow::Result<(String, Status)> {
    said_of(sections.to_vec(), options)
}

/// What it says of two traces, and of more of the first program.
fn said_of(traces: Vec<Vec<Section>>, options: &[&str]) -> anyhow::Result<(String, Status)> {
    let dir = tempfile::tempdir()?;
    let out = dir.path().join("out");
    let mut words = ["st-stat", "diff", "-q", "-o"].map(str::to_owned).to_vec();
    words.push(out.display().to_string());
    words.extend(options.iter().map(|o| (*o).to_owned()));
    for (i, (name, sections)) in ["a.st", "b.st", "c.st", "d.st"].iter().zip(traces).enumerate() {
        let path = dir.path().join(name);
        write(&path, sections);
        words.extend((i > 1).then(|| "--base".to_owned()));
        words.push(path.display().to_string());
    }
    let status = st_stat::run(&Args::try_parse_from(words)?)?;
    Ok((std::fs::read_to_string(&out)?, status))
}

fn slower() -> [Vec<Section>; 2] {
    let b = Run { seed: 7, factors: [1.2, 1.0, 1.0, 1.0], ..Run::default() };
    [Run::default(), b].map(recorded)
}

#[test]
fn the_table_fits_and_the_status_is_for_scripts() {
    let (text, status) = said(slower(), &["--time"]).unwrap();
    let expected = "\
37.7 ms → 39.4 ms per rank (+4.3 %)
call sites, before and in their calls: 1 slower, 7 alike

verdict  time    function        first   second   change  of run  site  place
slower   before  MPI_Sendrecv  8.23 ms  10.0 ms  +21.6 %  +4.5 %     1  west
(no room for: ±; COLUMNS=200 or --format csv shows all)
";
    assert_eq!(text, expected);
    assert_eq!(status, Status::Ok);
    assert_eq!(said(slower(), &["--time", "--threshold", "10"]).unwrap().1, Status::Difference);
    assert_eq!(said(slower(), &["--time", "--threshold", "30"]).unwrap().1, Status::Ok);
    let (all, _) = said(slower(), &["--time", "--all", "--limit", "3"]).unwrap();
    assert!(all.ends_with("… and 5 more (--limit)\n") && all.lines().count() == 9, "{all}");
}

#[test]
fn a_rank_that_computes_longer_alone_is_named_where_others_wait_for_it() {
    let run = |factor| with_slow(Kernel::Stencil2d, 8, 200, &[Slow { rank: 3, factor }]);
    let (text, _) = said([run(1.0), run(1.3)], &["--time"]).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("rank 3 computes ") && text.contains(" longer before MPI_Irecv"), "{text}");
    let (text, _) = said([run(1.0), run(1.0)], &["--time"]).unwrap();
    assert!(!text.contains("computes"), "{text}");
}

#[test]
fn of_more_ranks_than_are_kept_apart_neighbours_are_named() {
    let run = |factor| with_slow(Kernel::Stencil2d, 128, 200, &[Slow { rank: 67, factor }]);
    let (text, _) = said([run(1.0), run(1.3)], &["--time"]).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("ranks 66, 67 compute ") && text.contains(" together longer before MPI_Irecv"),
        "{text}"
    );
    let (text, _) = said([run(1.0), run(1.0)], &["--time"]).unwrap();
    assert!(!text.contains(" compute "), "{text}");
}

#[test]
fn csv_and_json_hold_all_call_sites() {
    let (csv, _) = said(slower(), &["--time", "--format", "csv"]).unwrap();
    let head = "verdict,phase,function,first_calls,second_calls,first_ns,second_ns,change_percent,uncertainty_percent,\
                run_percent,probability,speedup,efficiency_percent,sites,site,place";
    assert_eq!(csv.lines().next(), Some(head));
    assert_eq!(csv.lines().count(), 1 + 8, "{csv}");
    assert!(csv.contains("\nslower,before,MPI_Sendrecv,1600,1600,"), "{csv}");
    let (json, _) = said(slower(), &["--time", "--format", "json"]).unwrap();
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&first["verdict"], &first["place"]), (&"slower".into(), &"west".into()));
    assert!((first["change_percent"].as_f64().unwrap() - 20.0).abs() < 3.0, "{first}");
}

#[test]
fn a_comparison_of_calls_says_how_times_differ() {
    let (text, status) = said(slower(), &[]).unwrap();
    let times = "times: 37.7 ms → 39.4 ms per rank (+4.3 %)\n\
                 call sites, before and in their calls: 1 slower, 7 alike (--time)\n";
    assert!(text.starts_with("no difference: ") && text.ends_with(times), "{text}");
    assert_eq!(status, Status::Ok);
    let mut timeless = slower();
    timeless[1]
        .iter_mut()
        .flat_map(|s| &mut s.threads)
        .for_each(|t| (t.sketches, t.columns) = Default::default());
    let (text, _) = said(timeless.clone(), &[]).unwrap();
    assert!(text.ends_with("not compared: times, which not both traces hold\n"), "{text}");
    let refused = said(timeless, &["--time"]).unwrap_err();
    assert!(refused.to_string().ends_with("b.st: no times"), "{refused:#}");
    let (text, _) = said(slower(), &["--max-steps", "30000"]).unwrap();
    assert!(text.contains("\nnot compared: times: ") && text.contains("--max-steps allows 30000"), "{text}");
}

#[test]
fn more_runs_of_the_first_program_are_read_and_have_its_ranks() {
    let [a, b] = slower();
    let again = recorded(Run { seed: 3, factors: [1.4; 4], ..Run::default() });
    let (text, _) = said_of(vec![a.clone(), b.clone(), again.clone(), again], &["--time", "--all"]).unwrap();
    assert!(
        text.starts_with("46.9 ms → 39.4 ms per rank")
            && text.contains("0 slower, ")
            && text.contains("before   MPI_Sendrecv   10.4 ms  10.0 ms"),
        "{text}"
    );
    let fewer = recorded(Run { ranks: 7, ..Run::default() });
    let refused = said_of(vec![a, b, fewer], &["--time"]).unwrap_err();
    assert!(
        refused.is::<st_cli::InvalidStream>() && refused.to_string().contains("has other ranks than"),
        "{refused:#}"
    );
}

#[test]
fn a_base_is_another_run() {
    let [a, b] = slower();
    let dir = tempfile::tempdir().unwrap();
    let paths = [("a.st", &a, "1"), ("b.st", &b, "2"), ("again.st", &a, "1"), ("other.st", &a, "3")].map(
        |(name, sections, run)| {
            let path = dir.path().join(name);
            let header = Header { world: 8, program: "app".into(), run: run.repeat(32), ..Header::default() };
            let trace = Trace { header, sections: sections.clone(), level: 0, ..Trace::default() };
            let mut file = std::fs::File::create(&path).unwrap();
            st_stream::write(&trace, &mut file, WriteOptions { level: 0 }).unwrap();
            path.display().to_string()
        },
    );
    let [first, second, again, other] = paths.each_ref().map(String::as_str);
    let out = dir.path().join("out").display().to_string();
    let with = |bases: &[&str]| {
        let mut words = vec!["st-stat", "diff", "-q", "-o", &out, "--time", "--all", first, second];
        words.extend(bases.iter().flat_map(|base| ["--base", base]));
        st_stat::run(&Args::try_parse_from(words).unwrap())
    };
    for bases in [&[first][..], &[second], &[again], &[other, other]] {
        let refused = with(bases).unwrap_err();
        assert!(refused.is::<st_cli::UsageError>(), "{refused:#}");
        assert!(refused.to_string().contains("is of the same run as"), "{refused:#}");
    }
    assert_eq!(with(&[other]).unwrap(), Status::Ok);
    assert!(!std::fs::read_to_string(&out).unwrap().contains("--base"));
}

fn common(sections: &[Vec<Section>; 2]) -> Common {
    let [a, b] = sections.each_ref().map(|s| timed(s));
    Common::of([&a, &b])
}

#[test]
fn another_program_is_told_from_another_build() {
    let lines = [("main", 3), ("main", 5)];
    let one = || built("01", &lines);
    let moved = built("02", &[("main", 4), ("main", 9)]);
    let elsewhere = built_of("/home/me/app.c", "02", &[("main", 4), ("main", 9)]);
    let grown = built("02", &[("main", 3), ("f", 4), ("g", 5)]);
    let other = built_of("/src/other.c", "02", &lines);
    assert_eq!(common(&[one(), moved.clone()]), Common::Most);
    assert_eq!(common(&[one(), elsewhere]), Common::Most);
    assert_eq!(common(&[one(), grown]), Common::Little);
    assert_eq!(common(&[one(), other.clone()]), Common::Names);
    assert!(said_of(vec![one(), one(), moved], &["--time"]).is_ok());
    assert!(said_of(vec![one(), other.clone()], &["--time"]).is_ok());
    let refused = said_of(vec![one(), one(), other], &["--time"]).unwrap_err();
    let told = refused.to_string();
    assert!(
        refused.is::<st_cli::InvalidStream>() && told.contains("c.st: is no other run of the program of"),
        "{told}"
    );
}

#[test]
fn traces_without_a_call_site_in_common_are_refused() {
    let other = [recorded(Run::default()), built("01", &[("f", 3)])];
    assert_eq!(common(&other), Common::Nothing);
    let (text, _) = said(other.clone(), &[]).unwrap();
    assert!(text.ends_with(" gone, none in both\n") && !text.contains("--time"), "{text}");
    let refused = said(other, &["--time"]).unwrap_err();
    assert!(
        refused.is::<st_cli::InvalidStream>() && refused.to_string().contains("no call site in common"),
        "{refused:#}"
    );
}

#[test]
fn options_of_times_need_to_be_about_times() {
    for options in [
        &["--threshold", "3"][..],
        &["--weak"],
        &["--all"],
        &["--time", "--sites"],
        &["--base", "x.st"],
        &["--time", "--threshold", "-1"],
    ] {
        assert!(said(slower(), options).unwrap_err().is::<clap::Error>(), "{options:?}");
    }
}

/// A run on a machine that is now faster and now slower, by 15 % in the mean; what it has to do is `work` times as much at one place.
fn unquiet(seed: u64, work: f64) -> (Times, CallSites) {
    let load = (0.15 * Chance::new(seed, 1 << 21).normal()).exp();
    timed(&recorded(Run { seed, factors: [load * work, load, load, load], ..Run::default() }))
}

#[test]
fn more_runs_of_the_first_program_tell_what_is_chance() {
    let (mut alone, mut known, mut doubled) = (0, 0, 0);
    for seed in 0..50 {
        let [a, b, twice] =
            [(0, 1.0), (1_000, 1.0), (2_000, 2.0)].map(|(more, work)| unquiet(seed + more, work));
        let bases: Vec<_> = (3..6).map(|more| unquiet(seed + 1_000 * more, 1.0)).collect();
        let any = |b, bases: &[_]| {
            let changes = changes([&a, b], bases, How::default());
            changes.rows.iter().any(|r| matches!(r.verdict, Verdict::Slower | Verdict::Faster))
        };
        alone += u32::from(any(&b, &[]));
        known += u32::from(any(&b, &bases));
        doubled += u32::from(any(&twice, &bases));
    }
    assert!(alone > 30 && known <= 2 && doubled > 40, "{alone} {known} {doubled}");
}

/// One of two ranks computes much longer, so that the other waits, each time alike: between two runs what ranks wait cannot be told from
/// chance, beside three runs it can.
#[test]
fn what_takes_a_fiftieth_is_found_beside_three_runs_that_agree() {
    let run = |seed, factor| {
        let run = Run { ranks: 2, seed, apart: 0.005, alone: (1, 2, 10.0), ..Run::default() };
        timed(&recorded(Run { steps: 40, factors: [1.0, 1.0, factor, 1.0], ..run }))
    };
    let waiting = |a: &_, b: &_, bases: &[_]| {
        let found = changes([a, b], bases, How::default());
        let row = found.rows.iter().find(|r| r.in_call && r.sites[0] == Some(3)).unwrap();
        (row.verdict, told(&found))
    };
    for seed in 0..8 {
        let [a, b, c, equal] = [0, 1_000, 2_000, 3_000].map(|more| run(seed + more, 1.0));
        let (shorter, bases) = (run(seed + 4_000, 0.02), [b, c]);
        let (alone, said) = waiting(&a, &shorter, &[]);
        assert_eq!(alone, Verdict::Unsure, "{seed}: {said}");
        let (found, said) = waiting(&a, &shorter, &bases);
        assert_eq!(found, Verdict::Faster, "{seed}: {said}");
        let (none, said) = waiting(&a, &equal, &bases);
        assert!(none >= Verdict::Alike, "{seed}: {said}");
    }
}

/// What is called once, as the program begins, at times takes ten times as long: three runs that agree do not tell how often.
#[test]
fn single_calls_are_not_judged_however_many_runs_agree() {
    let runs = [102e6, 102.1e6, 101.9e6, 202e6].map(|exit| timed(&[section(0, &[(2e6, exit)], true)]));
    let [a, b, c, longer] = runs;
    let found = changes([&a, &longer], &[b, c], How::default());
    assert!(found.rows.iter().all(|r| r.verdict == Verdict::Unjudged), "{}", told(&found));
}
