//! What a trace's calls add up to, per symbol and per rank.

use std::collections::BTreeSet;

use anyhow::Result;
use st_match::volume::{Alike, Graphs, Moved, Places, Side, Volumes};
use st_model::calls::CallTable;
use st_model::frequencies::Frequencies;
use st_model::lead::lead_thread;
use st_model::paused::{self, Pauses};
use st_model::project::Error;
use st_model::rank_times::{RankTime, TimeSum};
use st_model::section::{Form, NO_SYM, PathSketch, Section, SlotStreams, Thread};
use st_model::steps::{Budget, Exceeded};

use crate::exact;

/// Totals of one symbol over all ranks and threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymTotals {
    /// Calls, poll series expanded.
    pub calls: u64,
    /// Bytes that the calls sent and received ([`st_match::volume`]).
    pub bytes: [u128; 2],
    /// Total time in the call, ns.
    pub time: u128,
    /// Total time between the call before it on the same thread and this one, ns: what the program computes.
    pub before: u128,
    /// Longest single event in ns, with its rank; `None` if that is not known.
    pub max: Option<(u64, u32)>,
    /// Number of timed events; 0 if the trace holds no times.
    pub timed: u64,
}

impl SymTotals {
    /// Adds another symbol's totals.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        for (mine, theirs) in self.bytes.iter_mut().zip(other.bytes) {
            *mine = mine.saturating_add(theirs);
        }
        self.time += other.time;
        self.before += other.before;
        self.lengthen(other.max);
        self.timed += other.timed;
    }

    /// An event may be the longest: of equal ones the first counts.
    fn lengthen(&mut self, event: Option<(u64, u32)>) {
        if event.is_some_and(|(ns, _)| self.max.is_none_or(|(most, _)| ns > most)) {
            self.max = event;
        }
    }
}

/// Totals of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankTotals {
    /// World rank.
    pub rank: u32,
    /// Calls.
    pub calls: u64,
    /// World ranks that it sends to point to point, or whose windows it reaches.
    pub neighbours: BTreeSet<u32>,
    /// Bytes sent and received.
    pub bytes: [u128; 2],
    /// Its time, if what is kept of that is not exact and exact times tell it.
    pub time: Option<RankTime>,
}

/// The profile of a section.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// By symbol.
    pub symbols: Vec<SymTotals>,
    /// By rank, ascending. Where counts or peers are histograms, ranks have what they draw.
    pub ranks: Vec<RankTotals>,
}

/// What the calls of a symbol and thread added up to as they were read: drawn, where parameters are histograms. Sent and
/// received.
type Drawn = [Side; 2];

impl Profile {
    /// Takes what going through the calls of a section takes, where [`Profile::of_all`] does that.
    ///
    /// # Errors
    ///
    /// If that is more than is left.
    pub fn pay(section: &Section, budget: &Budget) -> Result<(), Exceeded> {
        if folded(section).is_some() { budget.check() } else { budget.spend_reading(section) }
    }

    /// Those of all sections of a trace, which have been paid for. *Cost:* by what they store, or O(calls) where the order of calls
    /// tells more: of ranks whose exact times say more than is kept of these, and where bytes depend on it ([`Moved`]). Times
    /// come from the sketches, or from exact times where merging has kept less than these.
    ///
    /// # Errors
    ///
    /// If a rank cannot be read back, or what is stored repeats too late for the budget.
    pub fn of_all(sections: &[Section], budget: &Budget) -> Result<Vec<Self>> {
        let graphs = Graphs::of(sections.iter().filter(|section| folded(section).is_none()))?;
        let all = sections.iter().map(|section| section.ranks.len()).fold(0, u64::saturating_add);
        let mut done = 0;
        let of = |section: &Section| {
            let mut p =
                Self { symbols: vec![SymTotals::default(); section.symbols.len()], ranks: Vec::new() };
            let mut drawn = vec![vec![Drawn::default(); section.symbols.len()]; section.threads.len()];
            let (moved, timed) = (folded(section), times_tell(section));
            for rank in section.ranks.iter() {
                done += 1;
                let mut totals = RankTotals { rank, ..RankTotals::default() };
                if let Some(moved) = &moved {
                    let add = |alike: Alike<'_>| p.add(&mut totals, &mut drawn, alike);
                    moved.each(rank, budget, add).map_err(|why| why.of_part(done, all))?;
                    p.ranks.push(totals);
                    continue;
                }
                let mut volumes = Volumes::new(section, rank, &graphs);
                let lead = lead_thread(section, rank);
                for thread in 0..section.threads.len() {
                    let time = (timed && thread == lead).then(TimeSum::default);
                    p.read(section, thread, time, &mut volumes, &mut totals, &mut drawn)?;
                }
                p.ranks.push(totals);
            }
            for (thread, drawn) in section.threads.iter().zip(&drawn) {
                p.total(section, thread, drawn);
            }
            for (thread, of) in section.threads.iter().enumerate() {
                let pauses = Pauses::of(section, of);
                exact::sketches(section, thread)?.iter().for_each(|sketch| p.time(sketch, &pauses));
            }
            Ok(p)
        };
        sections.iter().map(of).collect()
    }

    /// Adds what some calls move.
    fn add(&mut self, totals: &mut RankTotals, drawn: &mut [Vec<Drawn>], alike: Alike<'_>) {
        let Alike { thread, sym, volume, times, calls } = alike;
        let of = &mut self.symbols[sym as usize].calls;
        *of = of.saturating_add(calls);
        totals.calls = totals.calls.saturating_add(calls);
        for (i, side) in [volume.sent, volume.received].into_iter().enumerate() {
            let all = side.in_all(times);
            drawn[thread][sym as usize][i] += all;
            totals.bytes[i] = totals.bytes[i].saturating_add(all.bytes);
        }
        totals.neighbours.extend(volume.partners.iter().map(|(rank, _)| *rank));
    }

    fn read(
        &mut self,
        section: &Section,
        thread: usize,
        mut time: Option<TimeSum>,
        volumes: &mut Volumes<'_>,
        totals: &mut RankTotals,
        drawn: &mut [Vec<Drawn>],
    ) -> Result<(), Error> {
        let Some(mut events) = section.events(thread, totals.rank) else { return Ok(()) };
        if time.is_some() {
            events = events.timed();
        }
        while let Some(event) = events.next_event()? {
            if let Some(time) = &mut time {
                time.add(&event, event.times);
            }
            let (sym, calls) = (event.sym, event.calls());
            let alike = Alike { thread, sym, volume: volumes.next_event(&event), times: 1, calls };
            self.add(totals, drawn, alike);
        }
        totals.time = totals.time.or_else(|| time?.of(section, totals.rank));
        Ok(())
    }

    /// Adds up the bytes of a thread: exactly, also where what they are reckoned from is a histogram.
    fn total(&mut self, section: &Section, thread: &Thread, drawn: &[Drawn]) {
        for (sym, (symbol, drawn)) in section.symbols.iter().zip(drawn).enumerate() {
            let places = CallTable::builtin().get(symbol.call).and_then(Places::of);
            let params = thread.params.get(sym).map_or(&[][..], |p| p);
            for (i, side) in drawn.iter().enumerate() {
                let slot = places.as_ref().map(|p| usize::from(p.measured()[i]));
                let sum = slot.and_then(|slot| summed(params.get(slot)?));
                let bytes = match sum {
                    Some(sum) if side.values > 0 => side.bytes.saturating_mul(sum) / side.values,
                    _ => side.bytes,
                };
                let into = &mut self.symbols[sym].bytes[i];
                *into = into.saturating_add(bytes);
            }
        }
    }

    fn time(&mut self, s: &PathSketch, pauses: &Pauses) {
        let Some(into) = self.symbols.get_mut(s.sym as usize) else { return };
        into.time += s.comm.sum;
        // A thread's first call follows none, and what is done while recording is paused is not known.
        let unknown = s.pred == NO_SYM || pauses.follow(s.pred);
        into.before += if unknown { 0 } else { s.compute.sum };
        into.timed += s.comm.count;
        into.lengthen(Some(s.comm.max).filter(|_| s.comm.count > 0 && !s.comm.is_mean()));
    }

    /// Calls of all symbols.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.symbols.iter().map(|s| s.calls).sum()
    }
}

/// The calls of a section, if what they come to is known without going through them.
fn folded(section: &Section) -> Option<Moved<'_>> {
    if times_tell(section) { None } else { Moved::of(section) }
}

/// Whether exact times of calls say what is kept less well of each rank.
fn times_tell(section: &Section) -> bool {
    let pauses = section.symbols.iter().any(|symbol| paused::may_pause(symbol.call));
    let told = |t: &Thread| exact::tells_ranks(t) || (pauses && exact::is_exact(t));
    section.threads.first().is_some_and(told)
}

/// What the histogram of a slot adds up to, if it is one.
fn summed(slot: &SlotStreams) -> Option<u128> {
    let streams = matches!(slot.values.form, Form::Histogram(_)).then_some(&slot.values.streams)?;
    let sums = streams.iter().filter_map(Frequencies::from_stream).map(|f| f.sum());
    Some(sums.fold(0, u128::saturating_add))
}
