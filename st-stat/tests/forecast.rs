//! Forecasts from short runs against the traces of long ones.
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

mod common;

use clap::Parser;
use common::rows;
use st_capture::record::{Options, RankRecorder};
use st_cli::Status;
use st_kernels::{Kernel, paper};
use st_model::calls::CallTable;
use st_model::columns::Column;
use st_model::header::Header;
use st_model::rank_times::rank_times;
use st_model::section::Section;
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
    let world = sections.iter().filter_map(|s| s.ranks.highest()).max().map_or(1, |r| r + 1);
    let header = Header { world, program: "app".into(), ..Header::default() };
    let trace = Trace { header, sections, ..Trace::default() };
    let mut bytes = Vec::new();
    st_stream::write(&trace, &mut bytes, WriteOptions::FILE).unwrap();
    bytes
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
const FRAMES: [&[&str]; 3] = [&["STRUCT"], &["SKETCH", "QUANTILES"], &["COLUMN", "SERIES"]];

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

#[test]
fn ten_times_the_steps_take_what_was_said() {
    // Constant structure, levels of a multigrid.
    let regular = [(Kernel::Stencil2d, 60), (Kernel::Wavefront, 20), (Kernel::Multigrid, 30)];
    // Sizes that depend on data, and whose turn it is. (Not amr: what it does at first, it does no more later.)
    let irregular = [(Kernel::Sort, 40), (Kernel::Workers, 40)];
    for (i, (of, steps)) in regular.into_iter().chain(irregular).enumerate() {
        let [short, long] = [steps, 10 * steps].map(|steps| kernel(of, 4, steps));
        let (now, then) = (file(short.clone()), file(long.clone()));
        let (said, truth) = (expected(&short, &long, &now), parts(&then));
        if i >= regular.len() {
            let [least, _, most] = said[0];
            assert!(0.9 * least < truth[0] && truth[0] < 1.1 * most, "{of:?}: {said:?} of {truth:?}");
            continue;
        }
        // Times on paper hardly vary: what they take says nothing of others.
        near(&format!("{of:?}"), &said, truth, &[0, 3]);
        let merged = |sections: Vec<Section>| vec![merge(sections, false).unwrap()];
        let (short, long) = (merged(short), merged(long));
        let (now, then) = (file(short.clone()), file(long.clone()));
        near(&format!("{of:?} merged"), &expected(&short, &long, &now), parts(&then), &[0, 3]);
    }
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
    let mut sections = kernel(Kernel::Stencil1d, 2, 10);
    for thread in sections.iter_mut().flat_map(|s| &mut s.threads) {
        (thread.sketches, thread.sums) = (Vec::new(), Vec::new());
        thread.columns.clear();
    }
    assert!(told(&file(sections), &[]).contains("holds no times"));
    let text = forecast(&short, &[]).unwrap();
    assert!(text.starts_with("1.") && text.contains(": in 3,600 s about "), "{text}");
    assert!(text.contains("structure and") && text.contains("\ntotal "), "{text}");
}

#[test]
fn exact_times_whose_budget_is_spent_stay_as_they_are() {
    let sections = kernel(Kernel::Stencil2d, 2, 200);
    let forecast_of = |budget: Option<u64>| {
        let header = Header { world: 2, program: "app".into(), ..Header::default() };
        let options = budget.map(|bytes| ("time-budget".to_owned(), bytes.into()));
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
