//! The table of sums: of each call site and function on each rank.

use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use foldhash::fast::FixedState;
use st_model::calls::CallId;
use st_model::num::{Exact as _, saturate};
use st_model::section::NO_SYM;

use super::schema::TOTALS;
use super::sink::{Cell, Sink, count, maybe};
use crate::format::{AlikeCalls, Call};
use crate::trace::Trace;
use crate::waits::{is_local, name, of_calls};

/// A call site, by number, and a function.
type At = (Option<u32>, CallId);

fn at(calls: &AlikeCalls) -> At {
    ((calls.site != u32::MAX).then_some(calls.site), calls.function)
}

/// Sums of calls.
#[derive(Clone, Copy, Default, Debug)]
struct Sums {
    calls: u64,
    /// In calls whose times are known, ns.
    ns: Option<u64>,
    /// Times of some are not: then sums of the others would pass for those of all, and what sketches hold is taken.
    untimed: bool,
    /// Between them and the calls before, ns.
    before: Option<u64>,
    sent: u64,
    received: u64,
}

/// Sums of the rank whose calls are read. *Cost:* O(1) per call; memory for the call sites of a rank and, with waits, for each wait.
#[derive(Debug, Default)]
pub(super) struct Totals {
    rank: Option<u32>,
    sums: BTreeMap<At, Sums>,
    /// When each of its threads' last call ended.
    last: HashMap<u32, i64, FixedState>,
    functions: HashMap<CallId, String, FixedState>,
    /// By rank, once they are looked for.
    waits: Option<HashMap<(u32, At), u64, FixedState>>,
}

impl Totals {
    /// Adds a call; those of a rank follow each other.
    pub(super) fn add<S: Sink>(&mut self, trace: &Trace, call: &Call<'_>, sink: &mut S) -> Result<()> {
        let alike = AlikeCalls {
            lane: call.lane,
            site: call.site,
            function: call.event.symbol.call,
            calls: call.event.calls(),
            sent: call.sent,
            received: call.received,
        };
        let sums = self.counted(trace, &alike, sink)?;
        let add = |sum: &mut Option<u64>, from: i64, to: i64| {
            *sum = Some(sum.unwrap_or(0).saturating_add(saturate(to.saturating_sub(from))));
        };
        let Some((enter, exit)) = call.times else {
            sums.untimed = true;
            return Ok(());
        };
        add(&mut sums.ns, enter, exit);
        let before = self.last.insert(call.at, exit);
        if let (Some(last), Some(sums)) = (before, self.sums.get_mut(&at(&alike))) {
            add(&mut sums.before, last, enter);
        }
        Ok(())
    }

    /// Adds calls without times; those of a rank follow each other.
    pub(super) fn add_alike<S: Sink>(
        &mut self,
        trace: &Trace,
        calls: &AlikeCalls,
        sink: &mut S,
    ) -> Result<()> {
        self.counted(trace, calls, sink)?.untimed = true;
        Ok(())
    }

    /// The sums of a call site and function, with what calls move added.
    fn counted<S: Sink>(&mut self, trace: &Trace, calls: &AlikeCalls, sink: &mut S) -> Result<&mut Sums> {
        if self.rank != Some(calls.lane.rank) {
            self.write(trace, sink)?;
            self.rank = Some(calls.lane.rank);
        }
        let sums = self.sums.entry(at(calls)).or_default();
        sums.calls = sums.calls.saturating_add(calls.calls);
        sums.sent = sums.sent.saturating_add(calls.sent);
        sums.received = sums.received.saturating_add(calls.received);
        Ok(sums)
    }

    /// Writes the last rank.
    pub(super) fn finish<S: Sink>(&mut self, trace: &Trace, sink: &mut S) -> Result<()> {
        self.write(trace, sink)
    }

    fn write<S: Sink>(&mut self, trace: &Trace, sink: &mut S) -> Result<()> {
        self.last.clear();
        let Some(rank) = self.rank.take() else { return Ok(()) };
        let waits = match &self.waits {
            Some(known) => known,
            None => self.waits.insert(waits(trace)?),
        };
        let all = std::mem::take(&mut self.sums);
        let kept = if all.values().any(|sums| sums.untimed) { kept(trace, rank) } else { None };
        for ((site, call), sums) in all {
            let function = self.functions.entry(call).or_insert_with(|| name(trace, call));
            let kept = kept.as_ref().and_then(|kept| kept.get(&(site, call)));
            let ns = if sums.untimed { kept.map(|kept| kept.ns) } else { sums.ns };
            let before = if sums.untimed { kept.and_then(|kept| kept.before) } else { sums.before };
            // Between calls that are chosen others may lie.
            let before = before.filter(|_| trace.chosen.is_all());
            let known = |ns: Option<u64>| ns.map_or(Cell::None, count);
            // Nobody knows who waits for a rank that is not there.
            let none = trace.whole.missing().is_empty() || is_local(call);
            let wait = || waits.get(&(rank, (site, call))).copied().or(none.then_some(0));
            sink.row(
                TOTALS,
                &[
                    Cell::Int(rank.into()),
                    Cell::Text(function),
                    maybe(site),
                    count(sums.calls),
                    known(ns),
                    known(before),
                    count(sums.sent),
                    count(sums.received),
                    known(if trace.waits { wait() } else { None }),
                ],
            )?;
        }
        Ok(())
    }
}

/// Sums of times that sketches hold.
#[derive(Clone, Copy, Default, Debug)]
struct Kept {
    /// In calls, and between them and the calls before, ns.
    ns: u64,
    before: Option<u64>,
}

/// Sums of a rank's calls by its sketches, if all of its threads have some that are its own.
fn kept(trace: &Trace, rank: u32) -> Option<HashMap<At, Kept, FixedState>> {
    let mut all: HashMap<At, Kept, FixedState> = HashMap::default();
    for lane in trace.lanes_of(rank) {
        let (section, numbers) = (trace.section(lane), trace.numbers.get(lane.section)?);
        for sketch in trace.sketches(lane)? {
            let symbol = section.symbols.get(sketch.sym.to_usize())?;
            let site = numbers.get(symbol.site.to_usize()).copied().filter(|site| *site != u32::MAX);
            let of = all.entry((site, symbol.call)).or_default();
            of.ns = of.ns.saturating_add(saturate(sketch.comm.sum));
            if sketch.pred != NO_SYM {
                of.before = Some(of.before.unwrap_or(0).saturating_add(saturate(sketch.compute.sum)));
            }
        }
    }
    Some(all)
}

/// The waits of each call site, if they are asked for.
fn waits(trace: &Trace) -> Result<HashMap<(u32, At), u64, FixedState>> {
    let mut all = HashMap::default();
    if !trace.waits {
        return Ok(all);
    }
    let found = of_calls(trace, &|_| Ok(()))?;
    for wait in &found.each {
        let Some(place) = found.places.get(wait.place) else { continue };
        let site = place.site.and_then(|id| trace.sites.number(id));
        let sum: &mut u64 = all.entry((wait.rank, (site, place.call))).or_default();
        *sum = sum.saturating_add(wait.ns);
    }
    Ok(all)
}
