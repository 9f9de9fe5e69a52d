//! How large the trace of a longer run of the same program will be.
//!
//! What a trace consists of grows in different ways, and each part has one that does not grow. So some ranks are recorded again from
//! the trace, as far as an eighth of the run, a quarter, a half and nearly all of it (`again`), and written as the trace is, merged if it
//! is; how each kind of frame has grown says how it goes on (`growth`). Where the trace does not tell that, what is usual for the kind does.

mod again;
mod growth;

use st_model::num::{Exact, float, rounded};
use st_model::rank_times::rank_times;
use st_model::section::{Section, Thread};
use st_model::steps::Budget;
use st_stream::{FrameKind, FrameSize, WriteOptions, most_calls};

pub use again::{Error, Told};
use again::{Grown, PARTS, TIMES, again, sum_of};
pub use growth::Bytes;
use growth::Longer;

/// Exact times of a level that has two ways to store them change from one to the other after so many bytes.
const FIRST: f64 = 1_048_576.0;
/// That level.
const LEVEL: u8 = WriteOptions::FILE.level;

/// The trace of a run.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// Bytes of the whole file.
    pub file: u64,
    /// Its frames.
    pub frames: &'a [FrameSize],
    /// What it holds.
    pub sections: &'a [Section],
    /// The level of compression.
    pub level: u8,
    /// Bytes of exact times that were allowed each rank, before compression.
    pub budget: Option<u64>,
    /// Calls that a trace may have at most, if what is told of waits is to be kept where times are folded.
    pub waits: u64,
}

impl Recorded<'_> {
    /// How long the run took, ns; 0 where the trace holds no times.
    #[must_use]
    pub fn whole(&self) -> u128 {
        self.sections.iter().flat_map(rank_times).map(|t| t.whole).max().unwrap_or(0)
    }
}

/// A part of the trace: its bytes now, and then.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it is called.
    pub name: &'static str,
    /// Its bytes in the trace that there is.
    pub now: u64,
    /// Its bytes in that of the longer run.
    pub then: Bytes,
    /// Why, in a few words.
    pub why: String,
}

fn real(n: u64) -> f64 {
    float(n.into())
}

/// What all parts take together.
#[must_use]
pub fn sum(parts: &[Part]) -> Bytes {
    let all = |of: fn(&Bytes) -> f64| parts.iter().map(|p| of(&p.then)).sum();
    Bytes { least: all(|b| b.least), likely: all(|b| b.likely), most: all(|b| b.most) }
}

/// Bytes by kind of frame: as stored, and before compression.
struct Kinds<'a>(&'a [FrameSize]);

impl Kinds<'_> {
    fn stored(&self, kinds: &[FrameKind]) -> u64 {
        sum_of(self.0, kinds, |f| f.stored)
    }

    fn raw(&self, kinds: &[FrameKind]) -> u64 {
        sum_of(self.0, kinds, |f| f.expanded)
    }
}

/// The parts of the trace of a run so many times as long; tells how far it is.
///
/// # Errors
///
/// If it is damaged, or too much work.
pub fn parts(
    trace: &Recorded<'_>,
    times: f64,
    budget: &Budget,
    tell: &dyn Fn(Told),
) -> Result<Vec<Part>, Error> {
    let kinds = Kinds(trace.frames);
    let grown = again(trace.sections, kinds.raw(&TIMES), trace.level, budget, tell)?;
    let structure = kinds.stored(&[FrameKind::Struct]);
    // Ranks that are like those that were looked at add as much each; what merged ranks have in common is there once.
    let merged = trace.sections.iter().any(|s| s.ranks.len() > 1);
    let scale = if merged && grown.part < 1.0 {
        real(structure) / grown.structure[PARTS - 1].max(1.0)
    } else {
        grown.part.recip()
    };
    // What a run does once, to begin and to end, a longer one does once.
    let to = Longer { times: 1.0 + (times - 1.0) * grown.repeats, scale };
    let (then, why) = growth::structure(real(structure), grown.structure, to);
    let mut parts =
        vec![Part { name: "structure and parameters", now: structure, then, why: why.to_owned() }];
    parts.extend(distributions(trace, &kinds, &grown, to));
    parts.push(sums(trace, &kinds, to));
    let mut heads = [0.0; 2];
    if kinds.stored(&TIMES) > 0 {
        let exact = exact(trace, &kinds, &grown, to);
        let more = |then: f64| (then - real(exact.now)).max(0.0);
        heads = [HEADS[0] * more(exact.then.likely), HEADS[1] * more(exact.then.most)];
        parts.push(exact);
    }
    let others = trace.file - parts.iter().map(|p| p.now).sum::<u64>();
    let (now, doublings) = (real(others), to.doublings());
    let then = Bytes {
        least: (0.94 * now - 6.0).max(0.0),
        likely: now + 2.0 * doublings + heads[0],
        most: now + 8.0 * (1.0 + doublings) + heads[1],
    };
    let why = "the program's, and heads that come with exact times".to_owned();
    parts.push(Part { name: "call sites, objects, heads", now: others, then, why });
    Ok(parts)
}

/// What heads of frames take for a byte of exact times: as expected, and at most.
const HEADS: [f64; 2] = [0.001, 0.008];

/// Distributions of times, in either form. Durations at fixed ranks are as many however long the run is, unless it meets calls that it
/// has not met; what is kept in buckets grows as it has, or as it usually does.
fn distributions(trace: &Recorded<'_>, kinds: &Kinds<'_>, grown: &Grown, to: Longer) -> Vec<Part> {
    let (buckets, quantiles) =
        (kinds.stored(&[FrameKind::Sketch]), kinds.stored(&[FrameKind::Quantiles, FrameKind::Durations]));
    let (now, name) = (real(buckets), "distributions of times");
    let mut parts = Vec::new();
    let derived = kinds.stored(&[FrameKind::Derived]);
    if derived > 0 {
        let (then, why) = follow(trace.sections, real(derived), grown, to);
        parts.push(Part { name, now: derived, then, why: why.to_owned() });
    }
    if buckets > 0 {
        let usual = [0.98, 1.0 + 0.03 * to.doublings(), 1.0 + 0.12 * to.doublings()];
        let unknown =
            (Bytes::by(now, usual), "new durations become rare; the trace does not tell how they have");
        let (then, why) = grown.sketches.map_or(unknown, |points| growth::sketches(now, points, to));
        parts.push(Part { name, now: buckets, then, why: why.to_owned() });
    }
    if quantiles > 0 {
        let usual = [0.95, 1.0 + 0.015 * to.doublings(), 1.1 + 0.05 * to.doublings()];
        let why = "durations at fixed ranks".to_owned();
        parts.push(Part { name, now: quantiles, then: Bytes::by(real(quantiles), usual), why });
    }
    parts
}

/// Distributions that follow from exact times take nothing, until there are so many calls that they are stored.
fn follow(sections: &[Section], now: f64, grown: &Grown, to: Longer) -> (Bytes, &'static str) {
    let follows = |t: &&Thread| match &t.columns[..] {
        [(_, column)] => column.events() <= most_calls(t.sketches.len().to_u64()),
        _ => false,
    };
    // What is stored of a run so many times as long as that.
    let stored = |more: f64| {
        let [mut all, mut some] = [0.0; 2];
        for t in sections.iter().flat_map(|s| &s.threads) {
            all += real(t.sketches.len().to_u64());
        }
        for t in sections.iter().flat_map(|s| &s.threads).filter(follows) {
            let (calls, sketches) = (real(t.columns[0].1.events()), t.sketches.len().to_u64());
            let beyond = calls * to.times * more > real(most_calls(sketches));
            some += if beyond { real(sketches) } else { 0.0 };
        }
        if all > 0.0 { some / all } else { 0.0 }
    };
    let points = grown.sketches.unwrap_or_default();
    let (then, why) = growth::sketches(points[PARTS - 1] * to.scale, points, to);
    let bytes = Bytes {
        least: now + then.least * stored(0.8),
        likely: now + then.likely * stored(1.0),
        most: now + then.most * stored(1.25),
    };
    let follow = "they follow from exact times";
    (bytes, if stored(1.0) > 0.0 { why } else { follow })
}

/// Sums, and what is kept of waits where times are folded, unless there become too many calls.
fn sums(trace: &Recorded<'_>, kinds: &Kinds<'_>, to: Longer) -> Part {
    let (sums, waits) = (kinds.stored(&[FrameKind::Sums]), kinds.stored(&[FrameKind::Waits]));
    let calls: u64 = trace.sections.iter().flat_map(|s| &s.threads).map(|t| t.lanes.calls).sum();
    let most = real(trace.waits);
    let dropped = waits > 0 && real(calls) <= most && real(calls) * to.times > most;
    let usual =
        |n: u64| Bytes::by(real(n), [0.9, 1.0 + 0.015 * to.doublings(), 1.12 + 0.04 * to.doublings()]);
    let (mut then, with) = (usual(sums), usual(waits));
    then.most += with.most;
    if !dropped {
        (then.least, then.likely) = (then.least + with.least, then.likely + with.likely);
    }
    let why = if dropped { "sums; of so many calls --waits auto keeps no waits" } else { "sums" };
    Part { name: "times per rank, wait states", now: sums + waits, then, why: why.to_owned() }
}

/// Exact times: as they have grown, up to what is kept of them.
fn exact(trace: &Recorded<'_>, kinds: &Kinds<'_>, grown: &Grown, to: Longer) -> Part {
    let now = real(kinds.stored(&TIMES));
    let there = real(kinds.raw(&TIMES));
    let columns = || trace.sections.iter().flat_map(|s| &s.threads).flat_map(|t| &t.columns);
    let ranks = columns().map(|(rank, _)| *rank).collect::<std::collections::BTreeSet<_>>().len().to_u64();
    let most = trace.budget.map_or(f64::INFINITY, |each| real(each) * real(ranks) * BUDGET);
    let raw = (there * to.times).min(most);
    let name = "exact times";
    // What is there stays, and is all where the budget is spent already.
    if raw < there {
        let why = "--time-budget is spent".to_owned();
        return Part { name, now: rounded(now), then: Bytes::of(now), why };
    }
    // What lies beyond the first MiB is stored in another way.
    let first = if trace.level == LEVEL { raw.min(FIRST.max(there)) } else { raw };
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
        let joined = [FrameKind::Series, FrameKind::Times, FrameKind::Spans];
        let (series, series_raw) = (kinds.stored(&joined), kinds.raw(&joined));
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
    if grown.repeats <= 0.0 {
        why = "no call is made twice";
    }
    Part { name, now: rounded(now), then, why: why.to_owned() }
}

/// Bytes before compression for one that counts as written while a program runs, where little time is taken for it.
const BUDGET: f64 = 1.25;
