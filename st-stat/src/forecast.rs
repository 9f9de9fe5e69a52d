//! How large the trace of a longer run of the same program will be.
//!
//! What a trace consists of grows in different ways. Exact times grow with the number of calls; what is known of the run as a
//! whole does not grow. In between is the structure: whether parameters follow a pattern, and distributions have seen all they will,
//! shows in how much both have grown from a quarter of the run to a half and from there to its end. So some ranks are recorded
//! again from the trace, as far as that, and each step of twice the time adds as much as the last one, or more by as much
//! as that added more than the one before.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Result, bail};
use st_capture::record::{Options, RankRecorder};
use st_cli::{Output, Screen, Status, UsageError, wrapped};
use st_model::columns::Column as Times;
use st_model::num::{Exact, float, rounded};
use st_model::rank_times::rank_times;
use st_model::section::Section;
use st_model::steps::Budget;
use st_stream::{ReadOptions, Trace, WriteOptions, frame_sizes};

use crate::args::ForecastArgs;
use crate::input::Lacking;
use crate::sizes::Sizes;
use crate::table::{Cell, Column, Format, Table, bytes, duration};

/// Ranks that are recorded again.
const SAMPLE: usize = 4;
/// What a part may grow by within a step and still be one that does not: of its bytes, and in any case.
const NOISE: (f64, f64) = (0.01, 48.0);
/// What a step adds at least and at most for each byte that the one before has added: no less than half, whatever chance has shown; twice
/// where every call takes its bytes. Distributions have an end: values that are new become rare.
const SLOWEST: f64 = 0.5;
const FASTEST: f64 = 2.0;
const ENDING: f64 = 1.0;
/// Exact times of a level that has two ways to store them change from one to the other after so many bytes.
const FIRST: f64 = 1_048_576.0;
/// That level.
const LEVEL: u8 = WriteOptions::FILE.level;

/// Bytes: what is expected, and between what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bytes {
    pub(crate) least: f64,
    pub(crate) likely: f64,
    pub(crate) most: f64,
}

impl Bytes {
    fn of(n: f64) -> Self {
        Self { least: n, likely: n, most: n }
    }
}

/// A part of the trace.
#[derive(Clone, Debug)]
struct Part {
    name: &'static str,
    now: u64,
    then: Bytes,
    why: String,
}

/// `st-stat forecast`.
pub(crate) fn forecast(args: &ForecastArgs) -> Result<Status> {
    let sizes = Sizes::of("forecast", &args.stream, &args.input, &args.talk)?;
    let ns = sizes.sections.iter().flat_map(rank_times).map(|t| t.whole).max().unwrap_or(0);
    if ns == 0 {
        bail!(Lacking("the trace holds no times: how long the run took is not known".into()));
    }
    let run = seconds(ns);
    if args.time < run {
        let (asked, run) = (shown(args.time), shown(run));
        bail!(UsageError(format!("--for {asked}: the trace is of a longer run, {run}")));
    }
    let parts = parts(&sizes, args.time / run, &args.steps.budget())?;
    let mut out = Output::text(&args.output.output)?;
    let screen = Screen::of(&out);
    if args.format == Format::Text {
        let now: u64 = parts.iter().map(|p| p.now).sum();
        let all = sum(&parts);
        let line = format!(
            "{} of {}: in {} about {} ({} to {})",
            bytes(now),
            shown(run),
            shown(args.time),
            bytes(rounded(all.likely)),
            bytes(rounded(all.least)),
            bytes(rounded(all.most)),
        );
        wrapped(line.split(' '), screen.width, ["", ""])
            .iter()
            .try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out)?;
    }
    table(&parts).write(args.format, screen, &mut out)?;
    out.commit()?;
    Ok(Status::Ok)
}

fn shown(seconds: f64) -> String {
    duration(rounded(seconds * 1e9))
}

fn seconds(ns: u128) -> f64 {
    float(ns) / 1e9
}

fn real(n: u64) -> f64 {
    float(n.into())
}

fn sum(parts: &[Part]) -> Bytes {
    let all = |of: fn(&Bytes) -> f64| parts.iter().map(|p| of(&p.then)).sum();
    Bytes { least: all(|b| b.least), likely: all(|b| b.likely), most: all(|b| b.most) }
}

fn table(parts: &[Part]) -> Table {
    let row = |name: &str, now: u64, then: Bytes, why: &str| {
        vec![
            Cell::text(name),
            Cell::bytes(now.into()),
            Cell::bytes(rounded(then.likely).into()),
            Cell::bytes(rounded(then.least).into()),
            Cell::bytes(rounded(then.most).into()),
            Cell::text(why),
        ]
    };
    let columns = vec![
        Column::left("part", "part"),
        Column::right("now", "now_bytes", 0),
        Column::right("then", "then_bytes", 0),
        Column::right("at least", "least_bytes", 1),
        Column::right("at most", "most_bytes", 1),
        Column::left("since", "cause"),
    ];
    let rows = parts.iter().map(|p| row(p.name, p.now, p.then, &p.why)).collect();
    let now = parts.iter().map(|p| p.now).sum();
    Table { columns, rows, total: Some(row("total", now, sum(parts), "")) }
}

/// The parts of the trace of a run so many times as long.
fn parts(sizes: &Sizes, times: f64, budget: &Budget) -> Result<Vec<Part>> {
    let mut kinds: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for f in &sizes.frames {
        let of = kinds.entry(&f.kind).or_default();
        *of = (of.0 + f.stored, of.1 + f.expanded);
    }
    let stored = |names: &[&str]| names.iter().filter_map(|n| kinds.get(n)).map(|k| k.0).sum::<u64>();
    let doublings = times.log2();
    let grown = again(&sizes.sections, budget)?;
    let growing = |name, now: u64, at: Option<[f64; 3]>, fastest: f64| {
        let (then, why) = match at {
            Some(at) if now > 0 => extrapolated(real(now), at, doublings, fastest),
            _ if now == 0 => (Bytes::of(0.0), "there is none".to_owned()),
            // Nothing tells how it has grown.
            _ => {
                let now = real(now);
                let most = now * (1.0 + doublings);
                (
                    Bytes { least: now, likely: now, most },
                    "the trace does not tell how it has grown".to_owned(),
                )
            }
        };
        Part { name, now, then, why }
    };
    let fixed =
        |name, now: u64, why: &str| Part { name, now, then: Bytes::of(real(now)), why: why.to_owned() };
    let mut parts = vec![growing("structure and parameters", stored(&["STRUCT"]), grown.structure, FASTEST)];
    if stored(&["SKETCH"]) > 0 {
        parts.push(growing("distributions of times", stored(&["SKETCH"]), grown.sketches, ENDING));
    }
    if stored(&["QUANTILES"]) > 0 {
        parts.push(fixed("distributions of times", stored(&["QUANTILES"]), "durations at fixed ranks"));
    }
    parts.push(fixed("times per rank, wait states", stored(&["SUMS", "WAITS"]), "sums"));
    let times_now = stored(&["COLUMN", "SERIES"]);
    if times_now > 0 {
        parts.push(exact(sizes, &kinds, times));
    }
    let others = sizes.file - parts.iter().map(|p| p.now).sum::<u64>();
    parts.push(fixed("call sites, objects, heads", others, "the program's, not the run's"));
    Ok(parts)
}

/// Exact times: linear, as they are stored beyond the first MiB, up to what is kept of them.
fn exact(sizes: &Sizes, kinds: &BTreeMap<&str, (u64, u64)>, times: f64) -> Part {
    let of = |name: &str| kinds.get(name).map_or((0.0, 0.0), |k| (real(k.0), real(k.1)));
    let ((coded, coded_raw), (series, series_raw)) = (of("COLUMN"), of("SERIES"));
    let now = coded + series;
    let columns = || sizes.sections.iter().flat_map(|s| &s.threads).flat_map(|t| &t.columns);
    let ranks = columns().map(|(rank, _)| *rank).collect::<std::collections::BTreeSet<_>>().len().to_u64();
    let first = if coded_raw > 0.0 { coded / coded_raw } else { 0.0 };
    let rest = if sizes.level != LEVEL {
        first
    } else if series_raw > FIRST {
        series / series_raw
    } else {
        let longest = columns().map(|(_, c)| c).max_by_key(|c| c.events());
        longest.and_then(ratio).unwrap_or(first)
    };
    let raw = (coded_raw + series_raw) * times;
    let most = sizes.budget.map_or(f64::INFINITY, |each| real(each) * real(ranks) * BUDGET);
    let kept = raw.min(most);
    let coded = if sizes.level == LEVEL { kept.min(FIRST) } else { 0.0 };
    let likely = coded * first + (kept - coded) * rest;
    let why = if kept < raw {
        "each call, until --time-budget is spent".to_owned()
    } else {
        "each call takes as much".to_owned()
    };
    // What is there stays, and is all where the budget is spent already.
    let then = if kept < coded_raw + series_raw {
        Bytes::of(now)
    } else {
        Bytes { least: (0.9 * likely).max(now), likely: likely.max(now), most: (1.1 * likely).max(now) }
    };
    Part { name: "exact times", now: rounded(now), then, why }
}

/// Bytes before compression for one that counts as written while a program runs, where little time is taken for it.
const BUDGET: f64 = 1.25;

/// Bytes for a byte before compression, of times beyond the first MiB.
fn ratio(column: &Times) -> Option<f64> {
    let (stored, raw) = st_stream::times_size(column)?;
    Some(real(stored) / real(raw))
}

/// Bytes at a quarter of the run, at half of it, and at its end.
#[derive(Debug, Default)]
struct Grown {
    structure: Option<[f64; 3]>,
    sketches: Option<[f64; 3]>,
}

/// What some ranks' own traces take after a part of their calls.
fn again(sections: &[Section], budget: &Budget) -> Result<Grown> {
    let all: Vec<(&Section, u32)> =
        sections.iter().flat_map(|s| s.ranks.iter().map(move |r| (s, r))).collect();
    let step = all.len().div_ceil(SAMPLE).max(1);
    let mut grown = Grown::default();
    for (section, rank) in all.into_iter().step_by(step) {
        let [structure, sketches] = after_parts(section, rank, budget)?;
        for (to, more) in [(&mut grown.structure, structure), (&mut grown.sketches, sketches)] {
            let Some(more) = more else { continue };
            let sum = to.get_or_insert([0.0; 3]);
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }
    Ok(grown)
}

/// A rank's own structure and, where it has exact times of every call, distributions after parts of its calls, as files have them.
fn after_parts(section: &Section, rank: u32, budget: &Budget) -> Result<[Option<[f64; 3]>; 2]> {
    let (mut structure, mut sketches) = ([0.0; 3], Some([0.0; 3]));
    let held = (0..).zip(&section.threads).filter(|(_, t)| t.ranks.contains(rank));
    for (thread, t) in held {
        let total = section.calls_of(t, rank).iter().fold(0u64, |sum, n| sum.saturating_add(*n));
        budget.take(total)?;
        let column = t.columns.iter().find(|(of, c)| *of == rank && c.events() == total).map(|(_, c)| c);
        sketches = sketches.filter(|_| column.is_some());
        let mut recorder = RankRecorder::new(rank, Options { columns: false, ..Options::default() });
        recorder.open_thread(column.and_then(|c| c.chunks.first()).map_or(0, |c| c.base));
        let Some(mut calls) = section.project(thread, rank) else { continue };
        let mut times = column.into_iter().flat_map(Times::times);
        let (mut words, mut done) = (Vec::new(), 0);
        for (part, upto) in [total.div_ceil(4), total.div_ceil(2), total].into_iter().enumerate() {
            while done < upto
                && let Some(sym) = calls.next_call(&mut words)?
            {
                let symbol = section.symbols[sym as usize];
                let sym = recorder.symbol(symbol.call, symbol.site, symbol.error);
                let (enter, exit) = times.next().unwrap_or_default();
                recorder.record(0, sym, &words, enter, exit);
                done += 1;
            }
            let [of_structure, of_sketches] = stored(recorder.clone().finish(""))?;
            structure[part] += of_structure;
            sketches.iter_mut().for_each(|all| all[part] += of_sketches);
        }
    }
    Ok([Some(structure), sketches])
}

/// What a section's structure and distributions take in a file.
fn stored(section: Section) -> Result<[f64; 2]> {
    let trace = Trace { sections: vec![section], ..Trace::default() };
    let mut bytes = Vec::new();
    st_stream::write(&trace, &mut bytes, WriteOptions::FILE)?;
    let frames = frame_sizes(&bytes[..], ReadOptions::default())?;
    let of = |kind: &str| frames.iter().filter(|f| f.kind == kind).map(|f| real(f.stored)).sum();
    Ok([of("STRUCT"), of("SKETCH")])
}

/// What becomes of bytes that are so many now, after so many steps of twice the time, from what was seen at a quarter of the run, at
/// half of it, and at its end; and in words how it grows. `fastest`: what a step adds for each byte that the one before has added, at most.
fn extrapolated(now: f64, [quarter, half, end]: [f64; 3], doublings: f64, fastest: f64) -> (Bytes, String) {
    let (before, last) = ((half - quarter).max(0.0), (end - half).max(0.0));
    let scale = now / end.max(1.0);
    // What a step adds, of which each is so many times the one before: 1 where that goes on, 2 where all that is new takes its bytes.
    let after = |times: f64| {
        let (mut sum, mut step, mut left) = (0.0, last, doublings);
        while left > 0.0 {
            step *= times;
            sum += step * left.min(1.0);
            left -= 1.0;
        }
        now + sum * scale
    };
    if last <= (NOISE.0 * end).max(NOISE.1) {
        let most = after(1.0).max(1.02 * now);
        return (Bytes { least: now, likely: now, most }, "it has stopped growing".to_owned());
    }
    let times = if before > 0.0 { (last / before).clamp(SLOWEST, fastest) } else { fastest };
    let why = match times {
        times if times > 1.8 => "it grows with the number of calls".to_owned(),
        times if times > 1.2 => format!("each step of twice the time adds {times:.1} times as much"),
        times if times > 0.8 => "each step of twice the time adds as much".to_owned(),
        _ => "each step of twice the time adds less".to_owned(),
    };
    // Short runs do not tell well between what slows down and what has not begun to repeat yet.
    let (lower, higher) =
        ((times - 0.4).max(SLOWEST), if times > 1.2 { fastest } else { (times + 0.2).min(fastest) });
    (Bytes { least: after(lower), likely: after(times), most: after(higher) }, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_goes_on_as_it_was_seen() {
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.01, "{a} {b}");
        // Eight times the time, of 1,000 bytes in a file of which some ranks' own traces take 500.
        let (then, why) = extrapolated(1_000.0, [500.0, 500.0, 500.0], 3.0, FASTEST);
        assert_eq!((then.least, then.likely, why.as_str()), (1_000.0, 1_000.0, "it has stopped growing"));
        let (then, why) = extrapolated(1_000.0, [300.0, 400.0, 500.0], 3.0, FASTEST);
        close(then.likely, 1_600.0);
        assert!(
            then.least < then.likely && then.likely < then.most && why.ends_with("as much"),
            "{then:?} {why}"
        );
        let (then, why) = extrapolated(40_000.0, [5_000.0, 10_000.0, 20_000.0], 3.0, FASTEST);
        close(then.likely, 320_000.0);
        assert_eq!((then.most, why.as_str()), (then.likely, "it grows with the number of calls"));
        // Half a step adds half of what it would.
        close(extrapolated(1_000.0, [300.0, 400.0, 500.0], 0.5, FASTEST).0.likely, 1_100.0);
    }
}
