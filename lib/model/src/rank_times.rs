//! How long ranks took, and how much of that they spent in MPI.
//!
//! A rank's time goes from the end of `MPI_Init` to the start of `MPI_Finalize`; computation and time in MPI are those of the thread that
//! stands for it ([`crate::lead`]): the first one, which makes both calls.

use crate::num::saturate;
use std::collections::BTreeMap;

use crate::calls::Kind;
use crate::columns::{Column, duration};
use crate::event::{Event, Events};
use crate::ints::Sealed;
pub use crate::lead::counted;
use crate::lead::{lead, lead_thread};
use crate::paused::{self, Pauses};
use crate::project::Error;
use crate::ranklist::RankList;
use crate::section::{RankSums, Section, Sym, Thread};
use crate::sketch::representative;

/// Time of a rank, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankTime {
    /// World rank.
    pub rank: u32,
    /// From the end of `MPI_Init` to the start of `MPI_Finalize`.
    pub whole: u128,
    /// The part of it in MPI.
    pub mpi: u128,
    /// The part of it for which the program had paused recording ([`crate::paused`]).
    pub paused: u128,
}

impl RankTime {
    /// The part of it outside of MPI, as far as that was recorded.
    #[must_use]
    pub fn computation(&self) -> u128 {
        self.whole.saturating_sub(self.mpi).saturating_sub(self.paused)
    }
}

/// Total times before and in an event on each rank of a thread, in their order, ns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Totals {
    /// The event.
    pub sym: Sym,
    /// From the ends of the events before it to its starts.
    pub compute: Vec<u128>,
    /// From its starts to its ends.
    pub comm: Vec<u128>,
}

/// The totals of a thread's events on each of its ranks: of a single rank exact. Of several ranks they are kept to 1 %, and
/// scaled so that they sum up to what all ranks took, which is exact. Nothing where sketches are not kept. Of many ranks only one
/// event's are held at a time.
pub fn totals(thread: &Thread) -> Box<dyn Iterator<Item = Totals> + '_> {
    let mut exact: BTreeMap<Sym, (u128, u128)> = BTreeMap::new();
    for s in &thread.sketches {
        let into = exact.entry(s.sym).or_default();
        *into = (into.0 + s.compute.sum, into.1 + s.comm.sum);
    }
    if thread.ranks.len() == 1 {
        let of_event = |(sym, (a, b))| Totals { sym, compute: vec![a], comm: vec![b] };
        return Box::new(exact.into_iter().map(of_event));
    }
    let of_event = move |s: &RankSums| {
        let (compute, comm) = exact.get(&s.sym).copied().unwrap_or_default();
        Totals {
            sym: s.sym,
            compute: scaled(&s.compute, &thread.ranks, compute),
            comm: scaled(&s.comm, &thread.ranks, comm),
        }
    };
    Box::new(thread.sums.iter().map(of_event))
}

/// What each rank has of a total, by the buckets of their parts; what rounding takes from one is given to the next.
fn scaled(buckets: &Sealed, ranks: &RankList, total: u128) -> Vec<u128> {
    let mut cursor = buckets.cursor();
    let parts: Vec<u64> = ranks.iter().map(|_| representative(saturate(cursor.next()))).collect();
    let whole: u128 = parts.iter().copied().map(u128::from).sum();
    let mut rest = 0;
    let share = |part: u64| {
        let wide = u128::from(part).saturating_mul(total).saturating_add(rest);
        rest = wide % whole.max(1);
        wide / whole.max(1)
    };
    parts.into_iter().map(share).collect()
}

/// Calls of a rank before `MPI_Init` that are looked at: of a program that has more its first call counts.
const BEFORE: usize = 1024;

/// When the first rank of a section entered `MPI_Init`, by the trace's clock; its first call, if it never did. `None` without
/// exact times. The zero of the times that are printed is that of all sections.
///
/// # Errors
///
/// If a rank cannot be read back.
pub fn begin(section: &Section) -> Result<Option<i64>, Error> {
    let mut first = None;
    for (i, thread) in section.threads.iter().enumerate() {
        for (rank, column) in &thread.columns {
            let mut begins = column.times().next();
            let Some(mut events) = section.events(i, *rank).map(Events::timed) else { continue };
            for _ in 0..BEFORE {
                let Some(event) = events.next_event()? else { break };
                if event.row.is_some_and(|row| row.kind == Kind::Init) {
                    begins = event.times.or(begins);
                    break;
                }
            }
            first = first.into_iter().chain(begins.map(|(enter, _)| enter)).min();
        }
    }
    Ok(first)
}

/// The time of each rank of a section that has times. Without sketches the time in MPI is not known: it is 0.
#[must_use]
pub fn rank_times(section: &Section) -> Vec<RankTime> {
    let mut all = thread_times(section, 0);
    let mut others = BTreeMap::new();
    for time in &mut all {
        let Some(lead) = lead(section, time.rank) else { continue };
        if lead.thread > 0 {
            let of = others.entry(lead.thread).or_insert_with(|| by_rank(section, lead.thread));
            *time = of.get(&time.rank).copied().unwrap_or(*time);
        }
        time.whole = lead.span.map_or(time.whole, |(begin, end)| duration(begin, end).into());
    }
    all
}

/// The time of each rank's thread that has times.
fn thread_times(section: &Section, thread: usize) -> Vec<RankTime> {
    let Some(thread) = section.threads.get(thread) else { return Vec::new() };
    let mut totals = totals(thread).peekable();
    if totals.peek().is_none() {
        let of = |(rank, column): &(u32, Column)| RankTime {
            rank: *rank,
            whole: exact(column),
            mpi: 0,
            paused: 0,
        };
        return thread.columns.iter().map(of).collect();
    }
    let pauses = Pauses::of(section, thread);
    let none = |rank| RankTime { rank, whole: 0, mpi: 0, paused: 0 };
    let mut all: Vec<RankTime> = thread.ranks.iter().map(none).collect();
    for t in totals {
        let call = section.symbols.get(t.sym as usize).map(|s| s.call);
        let [before, within] = call.map_or([true; 2], counted).map(u128::from);
        for (rank, (compute, comm)) in all.iter_mut().zip(t.compute.into_iter().zip(t.comm)) {
            rank.whole += before * compute + within * comm;
            rank.mpi += within * comm;
            rank.paused += before * pauses.part_before(t.sym, compute);
        }
    }
    all
}

/// The same by rank.
fn by_rank(section: &Section, thread: usize) -> BTreeMap<u32, RankTime> {
    thread_times(section, thread).into_iter().map(|time| (time.rank, time)).collect()
}

/// Threads of ranks beside those that stand for them: a rank's time is not theirs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct OtherThreads {
    /// How many there are on all ranks together.
    pub threads: u64,
    /// Their time in MPI, ns.
    pub mpi: u128,
}

/// The threads of sections' ranks beside those that stand for them.
pub fn other_threads<'a>(sections: impl IntoIterator<Item = &'a Section>) -> OtherThreads {
    let mut all = OtherThreads::default();
    for section in sections {
        for thread in section.threads.iter().skip(1) {
            all.threads = all.threads.saturating_add(thread.ranks.len());
            for s in &thread.sketches {
                let call = section.symbols.get(s.sym as usize).map(|s| s.call);
                if call.is_none_or(|call| counted(call)[1]) {
                    all.mpi = all.mpi.saturating_add(s.comm.sum);
                }
            }
        }
        // Where another one stands for a rank, the first is one of the others.
        let leads = section.ranks.iter().map(|rank| (rank, lead_thread(section, rank)));
        let mut times = BTreeMap::new();
        let mut mpi = |thread, rank| {
            let of: &mut BTreeMap<_, _> = times.entry(thread).or_insert_with(|| by_rank(section, thread));
            of.get(&rank).map_or(0, |time: &RankTime| time.mpi)
        };
        for (rank, thread) in leads.filter(|(_, thread)| *thread > 0) {
            all.mpi = all.mpi.saturating_add(mpi(0, rank)).saturating_sub(mpi(thread, rank));
        }
    }
    all
}

/// The time of a rank whose sketches are also of others, by its exact times; `None` if there are not those of all calls. *Cost:* O(calls).
///
/// # Errors
///
/// If the rank cannot be read back.
pub fn exact_time(section: &Section, rank: u32) -> Result<Option<RankTime>, Error> {
    let shared = section.threads.first().is_some_and(|thread| thread.ranks.len() > 1);
    let thread = lead_thread(section, rank);
    let Some(mut events) = section.events(thread, rank).filter(|_| shared).map(Events::timed) else {
        return Ok(None);
    };
    let mut time = TimeSum::default();
    while let Some(event) = events.next_event()? {
        time.add(&event, event.times);
        if time.unknown {
            break;
        }
    }
    Ok(time.of(section, rank))
}

/// The time of a rank, added up by the exact times of the calls of the thread that stands for it.
#[derive(Clone, Copy, Default, Debug)]
pub struct TimeSum {
    whole: u128,
    mpi: u128,
    paused: u128,
    is_paused: bool,
    last: Option<i64>,
    /// When the first call began, if the time before it counts.
    first: Option<i64>,
    /// Those of some calls are not there.
    unknown: bool,
}

impl TimeSum {
    /// Adds the next call.
    pub fn add(&mut self, event: &Event<'_>, times: Option<(i64, i64)>) {
        let Some((enter, exit)) = times else {
            self.unknown = true;
            return;
        };
        let since = |from, to| u128::from(duration(from, to));
        let [before, within] = counted(event.symbol.call).map(u128::from);
        let own = within * since(enter, exit);
        if self.last.is_none() && before > 0 {
            self.first = Some(enter);
        }
        let gap = before * since(self.last.unwrap_or(enter), enter);
        self.whole += gap + own;
        self.paused += if self.is_paused { gap } else { 0 };
        self.is_paused = paused::after(event, self.is_paused);
        self.mpi += own;
        self.last = Some(exit);
    }

    /// The sum for a rank of a section, if the times of all calls are there.
    #[must_use]
    pub fn of(&self, section: &Section, rank: u32) -> Option<RankTime> {
        let lead = lead(section, rank);
        let thread = section.threads.get(lead.map_or(0, |lead| lead.thread));
        let began = thread.and_then(|thread| thread.column(rank)?.start());
        let before = began.zip(self.first).map_or(0, |(began, first)| u128::from(duration(began, first)));
        let span = lead.and_then(|lead| lead.span).map(|(begin, end)| duration(begin, end).into());
        (!self.unknown).then_some(RankTime {
            rank,
            whole: span.unwrap_or(before + self.whole),
            mpi: self.mpi,
            paused: self.paused,
        })
    }
}

/// From the end of the first event to the start of the last.
fn exact(column: &Column) -> u128 {
    let mut times = column.times();
    let first = times.next().map_or(0, |t| t.1);
    let last = times.last().map_or(first, |t| t.0);
    saturate::<u64>(last.saturating_sub(first)).into()
}
