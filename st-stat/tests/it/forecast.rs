//! Forecasts from short runs against the traces of long ones.

use std::cell::Cell;

use crate::common::{Rank, rows};
use clap::Parser;
use st_capture::record::{Options, RankRecorder};
use st_cli::Status;
use st_forecast::{Recorded, Told};
use st_kernels::{Kernel, paper};
use st_model::calls::CallTable;
use st_model::columns::Column;
use st_model::header::{Header, TIME_BUDGET};
use st_model::rank_times::rank_times;
use st_model::section::Section;
use st_model::steps::Budget;
use st_reduce::kept::Kept;
use st_reduce::merge::merge;
use st_stat::args::Args;
use st_stream::{ReadOptions, Trace, WriteOptions};

/// A kernel's ranks on paper; each step takes as long.
fn kernel(kernel: Kernel, ranks: u32, steps: i32) -> Vec<Section> {
    let seconds = f64::from(steps) * 1e-3;
    let options = st_kernels::Options { steps: Some(steps), seconds, ..st_kernels::Options::default() };
    paper::sections(kernel, &options, ranks).map(Result::unwrap).collect()
}

/// A file of these sections.
fn file(sections: Vec<Section>) -> Vec<u8> {
    file_at(sections, WriteOptions::FILE.level)
}

fn file_at(sections: Vec<Section>, level: u8) -> Vec<u8> {
    let world = sections.iter().filter_map(|s| s.ranks.highest()).max().map_or(1, |r| r + 1);
    let header = Header { world, program: "app".into(), ..Header::default() };
    let trace = Trace { header, sections, ..Trace::default() };
    let mut bytes = Vec::new();
    st_stream::write(&trace, &mut bytes, WriteOptions { level }).unwrap();
    bytes
}

/// What is expected of a run of so many ns, all parts together: at least, likely, at most.
fn sums(ns: u128, file: &[u8]) -> [f64; 3] {
    let seconds = format!("{}", st_model::num::float(ns) / 1e9);
    let rows = rows(&forecast(file, &["--for", &seconds, "--format", "csv"]).unwrap());
    ["least_bytes", "then_bytes", "most_bytes"]
        .map(|key| rows.iter().map(|row| row[key].parse::<f64>().unwrap()).sum())
}

fn longest(sections: &[Section]) -> u128 {
    sections.iter().flat_map(rank_times).map(|t| t.whole).max().unwrap()
}

fn forecast(short: &[u8], options: &[&str]) -> anyhow::Result<String> {
    let dir = tempfile::tempdir().unwrap();
    let [stream, out] = ["app.st", "out"].map(|n| dir.path().join(n).to_str().unwrap().to_owned());
    std::fs::write(&stream, short).unwrap();
    let words = ["st-stat", "forecast", "-q", "-o", &out, &stream];
    let status = st_stat::run(&Args::try_parse_from(words.iter().chain(options))?)?;
    assert_eq!(status, Status::Ok);
    Ok(std::fs::read_to_string(out)?)
}

#[test]
fn all_calls_that_are_recorded_again_are_told_of() {
    let sections = kernel(Kernel::Stencil2d, 8, 200);
    let bytes = file(sections.clone());
    let frames = st_stream::frame_sizes(&bytes[..], ReadOptions::default()).unwrap();
    let (file, level) = (bytes.len() as u64, WriteOptions::FILE.level);
    let trace = Recorded { file, frames: &frames, sections: &sections, level, budget: None, waits: 0 };
    let [expected, done] = [Cell::new(0), Cell::new(0)];
    let tell = |told: Told| match told {
        Told::Expected(n) => expected.set(expected.get() + n),
        Told::Done(n) => done.set(done.get() + n),
    };
    st_forecast::parts(&trace, 8.0, &Budget::new(u64::MAX), &tell).unwrap();
    assert_eq!(done, expected);
    assert!(done.get() > 8 * 200, "{done:?}");
}

/// What is expected of each part, and between what, of a run that takes as long as another one: structure, distributions, exact times, others.
fn expected(short: &[Section], long: &[Section], file: &[u8]) -> [[f64; 3]; 4] {
    let ns = longest(long);
    assert!(ns > 5 * longest(short));
    let seconds = format!("{}", st_model::num::float(ns) / 1e9);
    let rows = rows(&forecast(file, &["--for", &seconds, "--format", "csv"]).unwrap());
    let mut all = [[0.0; 3]; 4];
    for row in rows {
        let part = NAMES.iter().position(|n| *n == row["part"]).unwrap_or(3);
        for (sum, key) in all[part].iter_mut().zip(["least_bytes", "then_bytes", "most_bytes"]) {
            *sum += row[key].parse::<f64>().unwrap();
        }
    }
    all
}

const NAMES: [&str; 3] = ["structure and parameters", "distributions of times", "exact times"];
const FRAMES: [&[&str]; 3] =
    [&["STRUCT"], &["SKETCH", "QUANTILES", "DURATIONS", "DERIVED"], &["COLUMN", "SPANS"]];

/// The same parts of a file.
fn parts(file: &[u8]) -> [f64; 4] {
    let frames = st_stream::frame_sizes(file, ReadOptions::default()).unwrap();
    let mut all = [0.0, 0.0, 0.0, st_model::num::float(file.len() as u128)];
    for f in frames {
        if let Some(part) = FRAMES.iter().position(|kinds| kinds.contains(&&*f.kind)) {
            let bytes = st_model::num::float(f.stored.into());
            all[part] += bytes;
            all[3] -= bytes;
        }
    }
    all
}

/// That these parts together are as large as said within a fifth, or hardly anything.
fn near(what: &str, said: &[[f64; 3]; 4], truth: [f64; 4], of: &[usize]) {
    let sum = |part: &dyn Fn(usize) -> f64| of.iter().map(|p| part(*p)).sum::<f64>();
    let (likely, all) = (sum(&|p| said[p][1]), sum(&|p| truth[p]));
    assert!((likely / all - 1.0).abs() < 0.2 || all < 1_000.0, "{what}: {likely} of {all}");
}

/// Traces of the same ranks: in one file, one rank's stream as it is recorded, merged, and merged with exact times; with the level of
/// their compression.
fn forms(sections: &[Section]) -> [(&'static str, Vec<Section>, u8); 4] {
    let merged = |columns: bool| {
        let mut merged = merge(sections.iter().cloned(), columns).unwrap();
        Kept::default().apply(&mut merged, &mut Header::default());
        vec![merged]
    };
    let rank = vec![sections[0].clone()];
    [
        ("packed", sections.to_vec(), 19),
        ("rank", rank, 9),
        ("merged", merged(false), 19),
        ("merged with times", merged(true), 19),
    ]
}

/// Steps of short runs of kernels whose later steps do what the first did, and how many times as many steps the long ones have. (Not
/// amr: what it does at first, it does no more later.)
const TABLE: [(Kernel, u32, i32, i32); 11] = [
    (Kernel::Stencil1d, 4, 10, 4),
    (Kernel::Stencil1d, 4, 40, 16),
    (Kernel::Stencil2d, 4, 20, 16),
    (Kernel::Multigrid, 4, 10, 4),
    (Kernel::Sort, 4, 40, 4),
    (Kernel::Ocean, 4, 40, 4),
    (Kernel::Workers, 8, 40, 4),
    (Kernel::Halo, 4, 40, 4),
    (Kernel::Fft, 4, 40, 4),
    (Kernel::Rma, 4, 40, 16),
    (Kernel::Threads, 2, 20, 4),
];

#[test]
fn longer_runs_take_what_was_said_in_all_forms() {
    let mut outside = Vec::new();
    let (mut cases, mut widths) = (0, Vec::new());
    for (of, ranks, steps, times) in TABLE {
        let [short, long] = [steps, times * steps].map(|steps| kernel(of, ranks, steps));
        for ((form, short, level), (_, long, _)) in forms(&short).into_iter().zip(forms(&long)) {
            let ns = longest(&long);
            let [now, then] = [short, long].map(|sections| file_at(sections, level));
            let said = sums(ns, &now);
            let truth = st_model::num::float(then.len() as u128);
            cases += 1;
            if !(said[0] <= truth && truth <= said[2]) {
                outside.push(format!("{of:?} {steps} x {times} {form}: {truth} is not within {said:?}"));
            }
            // Bounds that say nothing hold always.
            widths.push(said[2] / said[0]);
        }
    }
    assert!(outside.len() * 20 <= cases, "{} of {cases}:\n{}", outside.len(), outside.join("\n"));
    widths.sort_by(f64::total_cmp);
    let [half, all] = [widths[cases / 2], widths[cases - 1]];
    assert!(half < 1.5 && all < 3.0, "{half} {all}");
}

/// A rank of so many rounds, whose times are drawn at random.
fn noisy(rounds: u32) -> Section {
    let mut recorder = RankRecorder::new(0, Options::default());
    let thread = recorder.open_thread(0);
    let sites = ["short", "long", "computed"].map(|label| recorder.sites.label(label));
    let call = CallTable::builtin().by_name("MPI_Barrier").unwrap().id;
    let syms = sites.map(|site| recorder.symbol(call, site, 0));
    let (mut column, mut at, mut noise) = (Column::default(), 0i64, 1u64);
    for _ in 0..rounds {
        for (sym, [gap, duration]) in syms.iter().zip([[40, 300], [90, 25_000], [400_000, 1_200]]) {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let some = |n: i64, by: u32| n + ((n * (noise >> by & 0xffff).cast_signed()) >> 18);
            let enter = at + some(gap, 30);
            at = enter + some(duration, 47);
            column.chunks.extend(recorder.record(thread, *sym, &[0], enter, at).map(|c| *c));
        }
    }
    column.chunks.extend(recorder.flush_columns().into_iter().map(|(_, chunk)| chunk));
    let mut section = recorder.finish("node");
    section.threads[0].columns = vec![(0, column)];
    section
}

#[test]
fn exact_times_take_what_was_said_beyond_the_first_mebibyte() {
    // 0.1 and 1.2 MiB before compression.
    let [short, long] = [9_000, 88_000].map(|rounds| vec![noisy(rounds)]);
    let (now, then) = (file(short.clone()), file(long.clone()));
    let truth = parts(&then);
    let said = expected(&short, &long, &now);
    near("noise", &said, truth, &[0, 1, 2, 3]);
    assert!((said[2][1] / truth[2] - 1.0).abs() < 0.1, "{said:?} of {truth:?}");
}

#[test]
fn what_cannot_be_said_is_refused() {
    let short = file(kernel(Kernel::Stencil1d, 2, 10));
    let told = |file: &[u8], options: &[&str]| format!("{:#}", forecast(file, options).unwrap_err());
    assert!(told(&short, &["--for", "0.000001"]).contains("the trace is of a longer run"));
    assert!(told(&short, &["--for", "0"]).contains("not from 0.000000001 to 315,360,000 seconds"));
    let mut sections = kernel(Kernel::Stencil1d, 2, 10);
    for thread in sections.iter_mut().flat_map(|s| &mut s.threads) {
        (thread.sketches, thread.sums) = (Vec::new(), Vec::new());
        thread.columns.clear();
    }
    assert!(told(&file(sections), &[]).contains("app.st: the trace holds no times"));
    assert!(told(&short, &["--max-steps", "1"]).contains("app.st: to go through it takes "));
    let text = forecast(&short, &[]).unwrap();
    assert!(text.starts_with("1.") && text.contains(": in 3,600 s about "), "{text}");
    assert!(text.contains("structure and") && text.contains("\ntotal "), "{text}");
}

/// One rank that calls at 40 places once, and then so many times at one, whose times are drawn at random.
fn set_up(rounds: usize) -> Section {
    let (mut rank, mut at, mut noise) = (Rank::new(0, 1), 1000i64, 1u64);
    rank.call("MPI_Init", "main", &[], (0, 1000));
    let setup = (0..40).map(|n| (format!("set up {n}"), 100));
    for (place, usual) in setup.chain((0..rounds).map(|_| ("step".to_owned(), 1_000_000))) {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let enter = at + usual + ((usual * (noise >> 40 & 0xffff).cast_signed()) >> 18);
        at = enter + (noise >> 20 & 0x3ff).cast_signed();
        rank.call("MPI_Barrier", &place, &[0], (enter, at));
    }
    rank.call("MPI_Finalize", "main", &[], (at, at));
    rank.finish("host")
}

#[test]
fn what_happens_once_happens_once_in_a_longer_run() {
    let mut rank = Rank::new(0, 1);
    rank.call("MPI_Init", "main", &[], (0, 1000));
    rank.call("MPI_Finalize", "main", &[], (113_000, 114_000));
    let file_of_one = file(vec![rank.finish("host")]);
    let [least, likely, most] = sums(3_600_000_000_000, &file_of_one);
    let now = st_model::num::float(file_of_one.len() as u128);
    assert!(0.8 * now < least && (likely / now - 1.0).abs() < 0.05 && most < 1.2 * now, "{likely} of {now}");
    assert!(forecast(&file_of_one, &[]).unwrap().contains("no call is made twice"));
    // With calls that repeat, only these go on.
    let [short, long] = [40, 640].map(|rounds| vec![set_up(rounds)]);
    let (said, truth) = (expected(&short, &long, &file(short.clone()))[2], parts(&file(long.clone()))[2]);
    assert!(said[0] < truth && truth < said[2] && said[1] < 1.5 * truth, "{said:?} of {truth}");
}

#[test]
fn exact_times_whose_budget_is_spent_stay_as_they_are() {
    let sections = kernel(Kernel::Stencil2d, 2, 200);
    let forecast_of = |budget: Option<u64>| {
        let header = Header { world: 2, program: "app".into(), ..Header::default() };
        let options = budget.map(|bytes| (TIME_BUDGET.to_owned(), bytes.into()));
        let header = Header { options: options.into_iter().collect(), ..header };
        let trace = Trace { header, sections: sections.clone(), ..Trace::default() };
        let mut bytes = Vec::new();
        st_stream::write(&trace, &mut bytes, WriteOptions::FILE).unwrap();
        let all = rows(&forecast(&bytes, &["--format", "csv"]).unwrap());
        let row = all.iter().find(|row| row["part"] == "exact times").unwrap();
        ["now_bytes", "least_bytes", "then_bytes", "most_bytes"].map(|key| row[key].parse::<u64>().unwrap())
    };
    let [now, rest @ ..] = forecast_of(Some(1));
    assert_eq!(rest, [now; 3]);
    let [now, least, ..] = forecast_of(None);
    assert!(least > 10 * now, "{least} of {now}");
}
