//! What a trace took after parts of its run: some of its ranks are recorded again from it, as far as that, and written as it is.

use std::collections::BTreeMap;

use st_capture::record::{Options, RankRecorder};
use st_model::columns::{Chunk, Column as Times, Comparison};
use st_model::header::Header;
use st_model::num::{Exact, float};
use st_model::project;
use st_model::ranklist::RankList;
use st_model::section::{Section, Thread};
use st_model::steps::{Budget, Exceeded};
use st_reduce::merge::{self, merge};
use st_stream::{FrameKind, FrameSize, ReadOptions, WriteOptions, Writer, frame_sizes, times_size};

/// Why there is no forecast.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The trace is too much work.
    #[error(transparent)]
    Steps(#[from] Exceeded),
    /// It is damaged.
    #[error(transparent)]
    Calls(#[from] project::Error),
    /// Its ranks cannot be merged.
    #[error(transparent)]
    Merge(#[from] merge::Error),
    /// What was recorded again cannot be written.
    #[error(transparent)]
    Write(#[from] std::io::Error),
    /// Nor read.
    #[error(transparent)]
    Frames(#[from] st_stream::Error),
}

/// How far a forecast is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// So many more calls are to be recorded again.
    Expected(u64),
    /// So many more have been.
    Done(u64),
}

/// Frames of exact times.
pub(super) const TIMES: [FrameKind; 4] =
    [FrameKind::Column, FrameKind::Series, FrameKind::Times, FrameKind::Spans];

/// Parts of what is seen of the run: an eighth of its calls, a quarter, a half, and all.
pub(super) const PARTS: usize = 4;

/// How much of the run is seen: how it ends is not how it goes on.
pub(super) const SEEN: f64 = 0.9;
const LEFT: u64 = 10;

/// Ranks that are recorded again, or all if there are no more: so many where they make few calls, and else so many.
const MOST: usize = 16;
const SAMPLE: usize = 4;
const FEW: u64 = 200_000;

/// Exact times that are written again, bytes before compression: the coder of the first MiB takes its time.
const WRITTEN: u64 = 1 << 18;

/// Bytes of something after parts of the run.
pub(super) type Points = [f64; PARTS];

/// What some ranks take after parts of the run, in a file of the same kind.
#[derive(Debug)]
pub(super) struct Grown {
    pub(super) structure: Points,
    /// Those that follow from exact times as if they were stored. None if the trace does not tell when each call was.
    pub(super) sketches: Option<Points>,
    /// Exact times. None if there are none, or so many that what they take only once does not matter.
    pub(super) times: Option<Points>,
    /// The same before compression.
    pub(super) raw: Points,
    /// What exact times beyond the first MiB take for a byte before compression.
    pub(super) rest: Option<f64>,
    /// Part of all ranks that these are.
    pub(super) part: f64,
    /// Part of their calls that they make several times at a place: however long a run is, it begins and ends once.
    pub(super) repeats: f64,
}

/// Records some ranks again, of whose calls it tells. `raw`: bytes of all exact times before compression; `level` of compression.
pub(super) fn again(
    sections: &[Section],
    raw: u64,
    level: u8,
    budget: &Budget,
    tell: &dyn Fn(Told),
) -> Result<Grown, Error> {
    let all: Vec<(usize, u32)> =
        (0..).zip(sections).flat_map(|(i, s)| s.ranks.iter().map(move |r| (i, r))).collect();
    let ranks = sample(sections, &all);
    let timed = !ranks.is_empty() && ranks.iter().all(|(s, r)| has_times(&sections[*s], *r));
    let (some, of) = (ranks.len().to_u64(), all.len().to_u64().max(1));
    let columns = timed && raw > 0 && raw / of * some <= WRITTEN;
    for (section, rank) in &ranks {
        tell(Told::Expected(calls_of(&sections[*section], *rank).map(|seen| seen.iter().sum::<u64>()).sum()));
    }
    // Ranks of one section are merged.
    let mut parts: [BTreeMap<usize, Vec<Section>>; PARTS] = Default::default();
    for (section, rank) in &ranks {
        let cuts = after_parts(&sections[*section], *rank, (timed, columns), budget, tell)?;
        for (part, cut) in parts.iter_mut().zip(cuts) {
            part.entry(*section).or_default().push(cut);
        }
    }
    let mut grown = Grown {
        structure: [0.0; PARTS],
        sketches: timed.then_some([0.0; PARTS]),
        times: columns.then_some([0.0; PARTS]),
        raw: [0.0; PARTS],
        rest: rest(sections, &parts),
        part: float(some.into()) / float(of.into()),
        repeats: repeats(sections, &ranks),
    };
    for (i, groups) in parts.into_iter().enumerate() {
        let sections =
            groups.into_values().map(|ranks| joined(ranks, columns)).collect::<Result<Vec<_>, _>>()?;
        let (frames, spared) = stored(sections, level)?;
        let sum = |kinds: &[FrameKind], of: fn(&FrameSize) -> u64| float(sum_of(&frames, kinds, of).into());
        grown.structure[i] = sum(&[FrameKind::Struct], |f| f.stored);
        let sketches = sum(&[FrameKind::Sketch], |f| f.stored) + float(spared.into());
        grown.sketches.iter_mut().for_each(|p| p[i] = sketches);
        grown.times.iter_mut().for_each(|p| p[i] = sum(&TIMES, |f| f.stored));
        grown.raw[i] = sum(&TIMES, |f| f.expanded);
    }
    Ok(grown)
}

/// Bytes of all frames of these kinds.
pub(super) fn sum_of(frames: &[FrameSize], kinds: &[FrameKind], of: fn(&FrameSize) -> u64) -> u64 {
    let is_one = |f: &&FrameSize| kinds.iter().any(|kind| kind.to_string() == f.kind);
    frames.iter().filter(is_one).map(of).sum()
}

/// Some of the ranks, evenly spread.
fn sample(sections: &[Section], all: &[(usize, u32)]) -> Vec<(usize, u32)> {
    let of = |most: usize| {
        let step = all.len().div_ceil(most).max(1);
        all.iter().step_by(step).copied().collect::<Vec<_>>()
    };
    let many = of(MOST);
    let steps = many.iter().map(|(s, r)| sections[*s].steps(Some(&RankList::single(*r))));
    if steps.fold(0, u64::saturating_add) <= FEW { many } else { of(SAMPLE) }
}

/// Part of some ranks' calls that they make several times at a place.
fn repeats(sections: &[Section], ranks: &[(usize, u32)]) -> f64 {
    let [mut all, mut several] = [0u64; 2];
    for (section, rank) in ranks.iter().map(|(section, rank)| (&sections[*section], *rank)) {
        for thread in section.threads.iter().filter(|t| t.ranks.contains(rank)) {
            for calls in section.calls_of(thread, rank) {
                all = all.saturating_add(calls);
                several = several.saturating_add(if calls > 1 { calls } else { 0 });
            }
        }
    }
    float(several.into()) / float(all.max(1).into())
}

/// Calls of a rank's thread.
fn calls(section: &Section, thread: &Thread, rank: u32) -> u64 {
    section.calls_of(thread, rank).iter().fold(0, |sum, n| sum.saturating_add(*n))
}

/// Calls of each thread of a rank, in each part of what is seen of them.
fn calls_of(section: &Section, rank: u32) -> impl Iterator<Item = [u64; PARTS]> {
    let held = section.threads.iter().filter(move |t| t.ranks.contains(rank));
    held.map(move |thread| seen(calls(section, thread, rank)))
}

/// So many of all calls are in each part.
fn seen(total: u64) -> [u64; PARTS] {
    let seen = total - total / LEFT;
    std::array::from_fn(|part| seen.div_ceil(1 << (PARTS - 1 - part)))
}

/// The times of a rank's thread, if each of its calls has some.
fn times_of<'a>(section: &Section, thread: &'a Thread, rank: u32) -> Option<&'a Times> {
    let column = thread.column(rank)?;
    (column.events() == calls(section, thread, rank)).then_some(column)
}

fn has_times(section: &Section, rank: u32) -> bool {
    let mut held = section.threads.iter().filter(|t| t.ranks.contains(rank));
    held.all(|t| times_of(section, t, rank).is_some())
}

/// What exact times take beyond the first MiB: in the longest column, or what it takes more than its first half.
fn rest(sections: &[Section], parts: &[BTreeMap<usize, Vec<Section>>; PARTS]) -> Option<f64> {
    let longest = |sections: &mut dyn Iterator<Item = &Section>| {
        let columns = sections.flat_map(|s| &s.threads).flat_map(|t| &t.columns);
        let longest = columns.map(|(_, c)| c).max_by_key(|c| c.events())?;
        let (stored, raw) = times_size(longest)?;
        Some((float(stored.into()), float(raw.into())))
    };
    let [half, end] = [&parts[PARTS - 2], &parts[PARTS - 1]].map(|p| longest(&mut p.values().flatten()));
    let (stored, raw) = match half.zip(end) {
        Some(((stored, raw), (all, all_raw))) if all_raw > raw => (all - stored, all_raw - raw),
        _ => longest(&mut sections.iter())?,
    };
    (stored > 0.0).then(|| stored / raw)
}

/// A rank as it was after parts of its calls, with exact times if `columns`.
fn after_parts(
    section: &Section,
    rank: u32,
    (timed, columns): (bool, bool),
    budget: &Budget,
    tell: &dyn Fn(Told),
) -> Result<[Section; PARTS], Error> {
    let options = Options { columns, ..Options::default() };
    let mut recorders = [(); PARTS].map(|()| RankRecorder::new(rank, options));
    let mut chunks: [Vec<Vec<Chunk>>; PARTS] = Default::default();
    let held = (0..).zip(&section.threads).filter(|(_, t)| t.ranks.contains(rank));
    for (thread, t) in held {
        let total = calls(section, t, rank);
        budget.take(total.saturating_mul(2))?;
        let column = times_of(section, t, rank).filter(|_| timed);
        let base = column.and_then(|c| c.chunks.first()).map_or(0, |c| c.base);
        let seen = seen(total);
        for ((recorder, chunks), seen) in recorders.iter_mut().zip(&mut chunks).zip(seen) {
            let to = recorder.open_thread(base);
            chunks.push(Vec::new());
            let Some(mut calls) = section.project(thread, rank) else { continue };
            let mut times = column.into_iter().flat_map(Times::times);
            let mut words = Vec::new();
            for _ in 0..seen {
                let Some(sym) = calls.next_call(&mut words)? else { break };
                let symbol = section.symbols[sym as usize];
                let sym = recorder.symbol(symbol.call, symbol.site, symbol.error);
                let (enter, exit) = times.next().unwrap_or_default();
                let full = recorder.record(to, sym, &words, enter, exit);
                chunks[to].extend(full.map(|c| *c));
            }
            tell(Told::Done(seen));
        }
    }
    let mut chunks = chunks.into_iter();
    Ok(recorders.map(|recorder| cut(section, rank, recorder, chunks.next().unwrap_or_default())))
}

/// What a recorder has of a rank, with exact times by thread that it has given away.
fn cut(section: &Section, rank: u32, mut recorder: RankRecorder, mut chunks: Vec<Vec<Chunk>>) -> Section {
    for (thread, chunk) in recorder.flush_columns() {
        chunks.get_mut(thread.to_usize()).into_iter().for_each(|to| to.push(chunk.clone()));
    }
    let columns = section.threads.iter().flat_map(|t| &t.columns).filter(|(of, _)| *of == rank);
    let unit = columns.map(|(_, c)| c.unit()).max().unwrap_or(1);
    let mut cut = recorder.finish("");
    (cut.sites, cut.tables) = (section.sites.clone(), section.tables.clone());
    for (thread, chunks) in cut.threads.iter_mut().zip(chunks) {
        let clock = Comparison::default();
        thread.columns.extend((!chunks.is_empty()).then(|| (rank, Times { chunks, clock }.rounded(unit))));
    }
    cut
}

/// Ranks of one section, merged if they are several.
fn joined(mut ranks: Vec<Section>, columns: bool) -> Result<Section, Error> {
    if ranks.len() == 1 {
        return Ok(ranks.swap_remove(0));
    }
    Ok(merge(ranks, columns)?)
}

/// The frames of a file of these sections, and the bytes of sketches that are not among them because they follow from exact times.
fn stored(sections: Vec<Section>, level: u8) -> Result<(Vec<FrameSize>, u64), Error> {
    let mut writer = Writer::new(Vec::new(), &Header::default(), WriteOptions { level })?;
    sections.iter().try_for_each(|section| writer.section(section))?;
    let spared = writer.time_bytes()?.spared;
    Ok((frame_sizes(&writer.finish()?[..], ReadOptions::default())?, spared))
}
