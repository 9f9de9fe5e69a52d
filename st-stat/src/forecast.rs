//! How large the trace of a longer run of the same program will be.
//!
//! What a trace consists of grows in different ways, and each part has one that does not grow. So some ranks are recorded again from
//! the trace, as far as an eighth of the run, a quarter, a half and nearly all of it ([`again`]), and written as the trace is, merged if it
//! is; how each kind of frame has grown says how it goes on ([`growth`]). Where the trace does not tell that, what is usual for the kind does.

mod again;
mod growth;

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Result, bail};
use st_cli::options::Waits;
use st_cli::{Output, Screen, Status, UsageError, wrapped};
use st_model::num::{Exact, float, rounded};
use st_model::rank_times::rank_times;
use st_model::steps::Budget;
use st_stream::WriteOptions;

use crate::args::ForecastArgs;
use crate::input::Lacking;
use crate::sizes::Sizes;
use crate::table::{Cell, Column, Format, Table, bytes, duration};

use again::{Grown, PARTS, TIMES, again};
use growth::{Bytes, Longer};

/// Exact times of a level that has two ways to store them change from one to the other after so many bytes.
const FIRST: f64 = 1_048_576.0;
/// That level.
const LEVEL: u8 = WriteOptions::FILE.level;

/// A part of the trace.
#[derive(Clone, Debug)]
struct StreamPart {
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

fn sum(parts: &[StreamPart]) -> Bytes {
    let all = |of: fn(&Bytes) -> f64| parts.iter().map(|p| of(&p.then)).sum();
    Bytes { least: all(|b| b.least), likely: all(|b| b.likely), most: all(|b| b.most) }
}

fn table(parts: &[StreamPart]) -> Table {
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

/// Bytes by kind of frame: as stored, and before compression.
struct Kinds<'a>(BTreeMap<&'a str, (u64, u64)>);

impl<'a> Kinds<'a> {
    fn of(sizes: &'a Sizes) -> Self {
        let mut kinds: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for f in &sizes.frames {
            let of = kinds.entry(&f.kind).or_default();
            *of = (of.0 + f.stored, of.1 + f.expanded);
        }
        Self(kinds)
    }

    fn get(&self, name: &str) -> (u64, u64) {
        self.0.get(name).copied().unwrap_or_default()
    }

    fn stored(&self, names: &[&str]) -> u64 {
        names.iter().map(|n| self.get(n).0).sum()
    }

    fn raw(&self, names: &[&str]) -> u64 {
        names.iter().map(|n| self.get(n).1).sum()
    }
}

/// The parts of the trace of a run so many times as long.
fn parts(sizes: &Sizes, times: f64, budget: &Budget) -> Result<Vec<StreamPart>> {
    let kinds = Kinds::of(sizes);
    let grown = again(&sizes.sections, kinds.raw(&TIMES), sizes.level, budget)?;
    let structure = kinds.stored(&["STRUCT"]);
    // Ranks that are like those that were looked at add as much each; what merged ranks have in common is there once.
    let merged = sizes.sections.iter().any(|s| s.ranks.len() > 1);
    let scale = if merged && grown.part < 1.0 {
        real(structure) / grown.structure[PARTS - 1].max(1.0)
    } else {
        grown.part.recip()
    };
    let to = Longer { times, scale };
    let (then, why) = growth::structure(real(structure), grown.structure, to);
    let mut parts =
        vec![StreamPart { name: "structure and parameters", now: structure, then, why: why.to_owned() }];
    parts.extend(distributions(&kinds, &grown, to));
    parts.push(sums(sizes, &kinds, to));
    let mut heads = [0.0; 2];
    if kinds.stored(&TIMES) > 0 {
        let exact = exact(sizes, &kinds, &grown, to);
        let more = |then: f64| (then - real(exact.now)).max(0.0);
        heads = [HEADS[0] * more(exact.then.likely), HEADS[1] * more(exact.then.most)];
        parts.push(exact);
    }
    let others = sizes.file - parts.iter().map(|p| p.now).sum::<u64>();
    let (now, doublings) = (real(others), to.doublings());
    let then = Bytes {
        least: (0.94 * now - 6.0).max(0.0),
        likely: now + 2.0 * doublings + heads[0],
        most: now + 8.0 * (1.0 + doublings) + heads[1],
    };
    let why = "the program's, and heads that come with exact times".to_owned();
    parts.push(StreamPart { name: "call sites, objects, heads", now: others, then, why });
    Ok(parts)
}

/// What heads of frames take for a byte of exact times: as expected, and at most.
const HEADS: [f64; 2] = [0.001, 0.008];

/// Distributions of times, in either form. Durations at fixed ranks are as many however long the run is, unless it meets calls that it
/// has not met; what is kept in buckets grows as it has, or as it usually does.
fn distributions(kinds: &Kinds<'_>, grown: &Grown, to: Longer) -> Vec<StreamPart> {
    let (buckets, quantiles) = (kinds.stored(&["SKETCH"]), kinds.stored(&["QUANTILES"]));
    let (now, name) = (real(buckets), "distributions of times");
    let mut parts = Vec::new();
    if buckets > 0 {
        let usual = [0.98, 1.0 + 0.03 * to.doublings(), 1.0 + 0.12 * to.doublings()];
        let unknown =
            (Bytes::by(now, usual), "new durations become rare; the trace does not tell how they have");
        let (then, why) = grown.sketches.map_or(unknown, |points| growth::sketches(now, points, to));
        parts.push(StreamPart { name, now: buckets, then, why: why.to_owned() });
    }
    if quantiles > 0 {
        let usual = [0.95, 1.0 + 0.015 * to.doublings(), 1.1 + 0.05 * to.doublings()];
        let why = "durations at fixed ranks".to_owned();
        parts.push(StreamPart { name, now: quantiles, then: Bytes::by(real(quantiles), usual), why });
    }
    parts
}

/// Sums, and what is kept of waits where times are folded, unless there become too many calls.
fn sums(sizes: &Sizes, kinds: &Kinds<'_>, to: Longer) -> StreamPart {
    let (sums, waits) = (kinds.stored(&["SUMS"]), kinds.stored(&["WAITS"]));
    let calls: u64 = sizes.sections.iter().flat_map(|s| &s.threads).map(|t| t.lanes.calls).sum();
    let most = real(Waits::Auto.most());
    let dropped = waits > 0 && real(calls) <= most && real(calls) * to.times > most;
    let usual =
        |n: u64| Bytes::by(real(n), [0.9, 1.0 + 0.015 * to.doublings(), 1.12 + 0.04 * to.doublings()]);
    let (mut then, with) = (usual(sums), usual(waits));
    then.most += with.most;
    if !dropped {
        (then.least, then.likely) = (then.least + with.least, then.likely + with.likely);
    }
    let why = if dropped { "sums; of so many calls --waits auto keeps no waits" } else { "sums" };
    StreamPart { name: "times per rank, wait states", now: sums + waits, then, why: why.to_owned() }
}

/// Exact times: as they have grown, up to what is kept of them.
fn exact(sizes: &Sizes, kinds: &Kinds<'_>, grown: &Grown, to: Longer) -> StreamPart {
    let now = real(kinds.stored(&TIMES));
    let there = real(kinds.raw(&TIMES));
    let columns = || sizes.sections.iter().flat_map(|s| &s.threads).flat_map(|t| &t.columns);
    let ranks = columns().map(|(rank, _)| *rank).collect::<std::collections::BTreeSet<_>>().len().to_u64();
    let most = sizes.budget.map_or(f64::INFINITY, |each| real(each) * real(ranks) * BUDGET);
    let raw = (there * to.times).min(most);
    let name = "exact times";
    // What is there stays, and is all where the budget is spent already.
    if raw < there {
        let why = "--time-budget is spent".to_owned();
        return StreamPart { name, now: rounded(now), then: Bytes::of(now), why };
    }
    // What lies beyond the first MiB is stored in another way.
    let first = if sizes.level == LEVEL { raw.min(FIRST.max(there)) } else { raw };
    let upto = first / there;
    let (mut then, mut why) = match grown.times {
        Some(points) => {
            let scale = there / grown.raw[PARTS - 1].max(1.0) * again::SEEN;
            growth::times(now, points, real(columns().count().to_u64()), Longer { times: upto, scale })
        }
        None => (
            Bytes::by(now, [(0.88 * upto).max(1.0), (0.98 * upto).max(1.0), (1.07 * upto).max(1.0)]),
            "each call takes its bytes",
        ),
    };
    let rest = raw - first;
    if rest > 0.0 {
        let (series, series_raw) = kinds.get("SERIES");
        let measured =
            if real(series_raw) > FIRST { Some(real(series) / real(series_raw)) } else { grown.rest };
        let each = measured.unwrap_or(now / there) * rest;
        let more = Bytes::by(each, [0.85, 0.98, 1.15]);
        then = Bytes {
            least: then.least + more.least,
            likely: then.likely + more.likely,
            most: then.most + more.most,
        };
    }
    if raw < there * to.times {
        why = "each call, until --time-budget is spent";
    }
    StreamPart { name, now: rounded(now), then, why: why.to_owned() }
}

/// Bytes before compression for one that counts as written while a program runs, where little time is taken for it.
const BUDGET: f64 = 1.25;
