//! Streams that follow from the life of requests, written as differences from what is expected
//! ([`st_model::requests`]): where a merged trace holds many values of such parameters, and so fewer.
//!
//! It is looked at last, on the merged trace: what is expected of a rank follows from its other parameters, whatever
//! form these have by then.

use st_model::num::{Exact, narrow};
use std::collections::HashMap;
use std::thread;

use st_model::calls::CallTable;
use st_model::ints::Ints;
use st_model::proof::by_slot;
use st_model::ranklist::RankList;
use st_model::requests::{Requests, is_predictable};
use st_model::section::{Elastic, Form, Partition, Section, Streams, Thread};
use st_model::steps::{Budget, Exceeded};
use st_model::unite::Classes;

use crate::merge::Tell;

/// Words of predictable streams from which on expectations are tried, so that regular programs' traces are read at full
/// speed.
const WORTH: usize = 256;
/// Calls that are read for that at most, or else so many for each of the words, as far as the budget goes.
const CALLS: (u64, u64) = (1 << 26, 2000);

/// A slot of a symbol.
type At = (usize, usize);

/// The values of the predicted streams of a thread as recorded, rank by rank. *Cost:* O(calls), if there are any.
pub(crate) fn values(
    section: &Section,
    index: usize,
    budget: &Budget,
) -> Result<HashMap<At, (Elastic, Vec<RankList>)>, Exceeded> {
    let of = &section.threads[index];
    let predicted = |e: &Elastic| e.form == Form::Predicted;
    let wanted: Vec<At> = slots(of).filter(|(_, e)| predicted(e)).map(|(at, _)| at).collect();
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    budget.spend(section, None, 1)?;
    let gathered = gather(section, index, &wanted, 1, |rank, each| {
        let Some(mut calls) = section.project(index, rank) else { return };
        let mut words = Vec::new();
        // A section that cannot be read back to its end cannot be checked either; what can be read is kept.
        while let Ok(Some(sym)) = calls.next_call(&mut words) {
            let slots = CallTable::builtin().slots(section.symbols[sym as usize].call);
            for (slot, words) in by_slot(slots, &words).enumerate() {
                words.iter().for_each(|w| each(sym as usize, slot, *w));
            }
        }
    });
    let plain = |classes: Classes| {
        let (streams, ranks) = classes.list().iter().cloned().unzip();
        (Elastic { form: Form::Absolute, partition: 0, streams }, ranks)
    };
    Ok(wanted.into_iter().zip(gathered.into_iter().map(plain)).collect())
}

/// Writes streams as differences from what is expected where that leaves less. Tells of each rank of each thread, also where these
/// need not be looked at.
pub(crate) fn predict(section: &mut Section, jobs: usize, budget: &Budget, tell: Tell<'_>) {
    let mut better = Vec::new();
    for index in 0..section.threads.len() {
        let read = Reading { jobs, left: budget.left(), tell };
        let found = differences(section, index, &read);
        better.extend(found.into_iter().map(|(at, classes)| (index, at, classes)));
    }
    if better.is_empty() {
        return;
    }
    for (index, (sym, slot), classes) in better {
        let mut list = classes.list().to_vec();
        list.sort_by_key(|(_, ranks)| ranks.lowest());
        let (streams, classes): (Streams, Vec<RankList>) = list.into_iter().unzip();
        // A single class reads as all ranks: who never executes it never asks.
        let single = streams.len() == 1;
        let partition = Partition { classes };
        let at = if single { Some(0) } else { section.partitions.iter().position(|p| *p == partition) };
        let at = at.unwrap_or_else(|| {
            section.partitions.push(partition);
            section.partitions.len() - 1
        });
        let partition = narrow(at);
        section.threads[index].params[sym][slot].values =
            Elastic { form: Form::Predicted, partition, streams };
    }
    drop_unused(section);
}

/// How ranks are read back.
struct Reading<'a> {
    jobs: usize,
    /// Steps that may be made.
    left: u64,
    tell: Tell<'a>,
}

/// The slots of a thread that are smaller as differences, and these.
fn differences(section: &Section, index: usize, how: &Reading<'_>) -> Vec<(At, Classes)> {
    let (of, Reading { jobs, left, tell }) = (&section.threads[index], how);
    let predictable = |(sym, slot): At, e: &Elastic| {
        let row = CallTable::builtin().get(section.symbols[sym].call);
        !matches!(e.form, Form::Histogram(_)) && row.is_some_and(|row| is_predictable(row, slot))
    };
    let (mut wanted, mut costs) = (Vec::new(), Vec::new());
    for (at, e) in slots(of).filter(|(at, e)| predictable(*at, e)) {
        wanted.push(at);
        costs.push(cost(e, &section.partitions));
    }
    let words: usize = costs.iter().sum();
    let most = CALLS.0.max(words.to_u64().saturating_mul(CALLS.1).min(*left));
    if words < WORTH || makes_more(section, of, most) {
        tell(of.ranks.len());
        return Vec::new();
    }
    let gathered = gather(section, index, &wanted, *jobs, |rank, each| {
        tell(1);
        let Some(mut calls) = section.project(index, rank) else { return };
        let (mut requests, mut words) = (Requests::new(section, rank), Vec::new());
        while let Ok(Some(sym)) = calls.next_call(&mut words) {
            requests.next_call(sym, &mut words, |slot, w, expected| {
                each(sym as usize, slot, w.wrapping_sub(expected));
            });
        }
    });
    let compared = wanted.into_iter().zip(gathered).zip(costs);
    let better = compared.filter(|((_, classes), before)| !classes.is_empty() && classes.cost() < *before);
    better.map(|(found, _)| found).collect()
}

/// Whether a thread's ranks together make more calls than that: by its tree, for its lanes may say anything.
fn makes_more(section: &Section, of: &Thread, most: u64) -> bool {
    let calls = |rank| section.calls_of(of, rank).into_iter().fold(0, u64::saturating_add);
    let mut left = Some(most);
    of.ranks.iter().any(|rank| {
        left = left.and_then(|left| left.checked_sub(calls(rank)));
        left.is_none()
    })
}

/// Streams of slots, by content, of values that `read` hands over for each rank: symbol, slot, value. Ranks are shared out
/// among so many threads; the result is the same with any number.
fn gather(
    section: &Section,
    index: usize,
    wanted: &[At],
    jobs: usize,
    read: impl Fn(u32, &mut dyn FnMut(usize, usize, i64)) + Sync,
) -> Vec<Classes> {
    let slots = |s: usize| section.threads[index].params.get(s).map_or(0, Vec::len);
    let mut places: Vec<Vec<usize>> =
        (0..section.symbols.len()).map(|s| vec![usize::MAX; slots(s)]).collect();
    for (i, (sym, slot)) in wanted.iter().enumerate() {
        places[*sym][*slot] = i;
    }
    let streams_of = |rank: u32| {
        let mut streams = vec![Ints::new(); wanted.len()];
        read(rank, &mut |sym, slot, value| {
            let place = places.get(sym).and_then(|p| p.get(slot));
            if let Some(into) = place.and_then(|place| streams.get_mut(*place)) {
                into.push(value);
            }
        });
        streams
    };
    let share = |ranks: &[u32]| {
        let mut out = vec![Classes::default(); wanted.len()];
        for rank in ranks {
            for (into, stream) in out.iter_mut().zip(streams_of(*rank)).filter(|(_, s)| !s.is_empty()) {
                into.add(stream.seal(), *rank);
            }
        }
        out
    };
    let ranks: Vec<u32> = section.threads[index].ranks.iter().collect();
    if jobs < 2 {
        return share(&ranks);
    }
    let shares: Vec<Vec<Classes>> = thread::scope(|scope| {
        let chunks = ranks.chunks(ranks.len().div_ceil(jobs.max(1)).max(1));
        let running: Vec<_> = chunks.map(|ranks| scope.spawn(|| share(ranks))).collect();
        running.into_iter().map(|r| r.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    });
    let mut out = vec![Classes::default(); wanted.len()];
    for share in shares {
        for (into, part) in out.iter_mut().zip(share) {
            part.list().iter().for_each(|(stream, ranks)| into.add_all(stream.clone(), ranks));
        }
    }
    out
}

/// Words that streams take, as [`Classes::cost`] has them.
fn cost(e: &Elastic, partitions: &[Partition]) -> usize {
    let classes = partitions.get(e.partition as usize).map_or(&[][..], |p| &p.classes);
    e.streams.iter().zip(classes).map(|(s, r)| s.heap_words() + 1 + r.runs().len()).sum()
}

/// All slots of a thread's symbols with their values.
fn slots(thread: &Thread) -> impl Iterator<Item = (At, &Elastic)> {
    let slots = thread.params.iter().enumerate();
    slots.flat_map(|(sym, p)| p.iter().enumerate().map(move |(slot, s)| ((sym, slot), &s.values)))
}

/// Drops partitions that no stream refers to any more; all ranks stay the first.
fn drop_unused(section: &mut Section) {
    let mut used = vec![false; section.partitions.len()];
    let mut all = |f: &mut dyn FnMut(&mut u32)| {
        for t in &mut section.threads {
            let params = t.params.iter_mut().flatten().flat_map(|s| s.lens.iter_mut().chain([&mut s.values]));
            t.counts.iter_mut().chain(params).for_each(|e| f(&mut e.partition));
        }
    };
    all(&mut |p| used[*p as usize] = true);
    used[0] = true;
    let mut next = 0;
    let number = |used: &bool| {
        next += u32::from(*used);
        next.wrapping_sub(1)
    };
    let numbers: Vec<u32> = used.iter().map(number).collect();
    all(&mut |p| *p = numbers[*p as usize]);
    let mut keep = used.iter();
    section.partitions.retain(|_| keep.next().is_some_and(|used| *used));
}
