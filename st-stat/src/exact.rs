//! Distributions by exact times, where merging has kept only part of what was recorded of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use st_model::num::saturate;
use st_model::project::Error;
use st_model::section::{NO_SYM, PathSketch, Predecessors, Section, Sym, Thread};
use st_model::sketch::{LiveSketch, Shape, Sketch};

/// Whether some distributions are durations at fixed ranks, or less: their extremes are right to 1 %, if they are known.
fn is_reduced(thread: &Thread) -> bool {
    thread.sketches.iter().flat_map(|s| [&s.compute, &s.comm]).any(|s| s.shape() == Shape::Quantiles)
}

/// Whether every event that distributions are of has an exact time, which is not rounded.
pub(crate) fn is_exact(thread: &Thread) -> bool {
    let columns = || thread.columns.iter().map(|(_, c)| c);
    let timed = columns().map(|c| c.events()).fold(0, u64::saturating_add);
    let events = thread.sketches.iter().map(|s| s.comm.count).fold(0, u64::saturating_add);
    timed > 0 && timed == events && columns().all(|c| c.unit() == 1)
}

/// Whether a thread's distributions are told by its exact times.
pub(crate) fn tells(thread: &Thread) -> bool {
    is_reduced(thread) && is_exact(thread)
}

/// Whether a thread has exact times that tell what each of its ranks takes in all, which is kept to 1 % of several.
pub(crate) fn tells_ranks(thread: &Thread) -> bool {
    thread.ranks.len() > 1 && is_exact(thread)
}

/// What each rank takes before an event and in it, in all, ns.
pub(crate) type OfRanks = Vec<(Sym, u32, [u128; 2])>;

/// The distributions of a thread: as they are kept, or in buckets and with their extremes, by its exact times, where less is kept.
/// *Cost:* none, or O(events) where that is so.
///
/// # Errors
///
/// If a rank cannot be read back.
pub(crate) fn sketches(section: &Section, thread: usize) -> Result<Cow<'_, [PathSketch]>, Error> {
    let Some(t) = section.threads.get(thread) else { return Ok(Cow::default()) };
    if !tells(t) {
        return Ok(Cow::Borrowed(&t.sketches));
    }
    Ok(by_times(section, thread, t)?.0)
}

/// The same, and what each rank takes in all, if exact times tell it ([`tells_ranks`]). *Cost:* O(events) then, too.
///
/// # Errors
///
/// The same.
pub(crate) fn of_ranks(
    section: &Section,
    thread: usize,
) -> Result<(Cow<'_, [PathSketch]>, Option<OfRanks>), Error> {
    match section.threads.get(thread).filter(|t| tells_ranks(t)) {
        Some(t) => by_times(section, thread, t).map(|(sketches, ranks)| (sketches, Some(ranks))),
        None => Ok((sketches(section, thread)?, None)),
    }
}

/// By exact times: distributions where less is kept of them, and what each rank takes.
fn by_times<'a>(
    section: &Section,
    thread: usize,
    t: &'a Thread,
) -> Result<(Cow<'a, [PathSketch]>, OfRanks), Error> {
    let kept = Predecessors::of(&t.sketches);
    let mut all: HashMap<(Sym, Sym), [Sketch; 2]> = HashMap::new();
    let mut ranks: BTreeMap<(Sym, u32), [u128; 2]> = BTreeMap::new();
    for (rank, column) in &t.columns {
        let mut own: HashMap<(Sym, Sym), [LiveSketch; 2]> = HashMap::new();
        let Some(mut walk) = section.symbols_of(thread, *rank) else { continue };
        let (mut last, mut before) = (column.chunks.first().map_or(0, |c| c.base), NO_SYM);
        for (enter, exit) in column.times() {
            let Some(sym) = walk.next_symbol().map_err(|source| Error::Tree { rank: *rank, source })? else {
                break;
            };
            let into = own
                .entry((sym, kept.pred(before)))
                .or_insert_with(|| [(); 2].map(|()| LiveSketch::new(Shape::Buckets)));
            // Clocks may be corrected: what ends before it begins takes no time.
            into[0].add(saturate(enter.saturating_sub(last)));
            into[1].add(saturate(exit.saturating_sub(enter)));
            (last, before) = (exit, sym);
        }
        for (path, phases) in own {
            let phases = phases.map(|phase| phase.finish(*rank));
            let sums = ranks.entry((path.0, *rank)).or_default();
            sums.iter_mut().zip(&phases).for_each(|(sum, phase)| *sum = sum.saturating_add(phase.sum));
            let into = all.entry(path).or_default();
            into.iter_mut().zip(&phases).for_each(|(into, phase)| into.merge(phase));
        }
    }
    let ranks = ranks.into_iter().map(|((sym, rank), sums)| (sym, rank, sums)).collect();
    if !is_reduced(t) {
        return Ok((Cow::Borrowed(&t.sketches), ranks));
    }
    let told = t.sketches.iter().map(|s| match all.remove(&(s.sym, s.pred)) {
        Some([compute, comm]) => PathSketch { sym: s.sym, pred: s.pred, compute, comm },
        None => s.clone(),
    });
    Ok((Cow::Owned(told.collect()), ranks))
}

/// By what distributions of these sections are told, where it is not by all that was recorded of them.
pub(crate) fn source<'a>(sections: impl IntoIterator<Item = &'a Section>) -> Option<&'static str> {
    let mut reduced = sections.into_iter().flat_map(|s| &s.threads).filter(|t| is_reduced(t)).peekable();
    reduced.peek()?;
    Some(if reduced.all(is_exact) {
        "distributions are told by exact times: extremes are exact, quantiles right to 1 %"
    } else {
        "durations at fixed ranks are kept of distributions: extremes and quantiles are right to 1 %, and what takes little has none \
         (st-merge --keep-columns keeps exact times, --sketch-buckets distributions)"
    })
}
