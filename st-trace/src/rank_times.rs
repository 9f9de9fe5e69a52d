//! How long ranks took, and how much of that they spent in MPI.
//!
//! A rank's time is that of its first thread, the one that makes both calls, from the end of `MPI_Init` to the start of
//! `MPI_Finalize`.

use crate::calls::{CallTable, Kind};
use crate::columns::Column;
use crate::ints::Sealed;
use crate::section::{PathSketch, RankSums, Section, Sym, Thread};
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

/// The totals of a thread's events on each of its ranks: of a single rank exact. Nothing where sketches are not kept.
#[must_use]
pub fn totals(thread: &Thread) -> Vec<Totals> {
    if thread.ranks.len() == 1 {
        let of_path =
            |s: &PathSketch| Totals { sym: s.sym, compute: vec![s.compute.sum], comm: vec![s.comm.sum] };
        return thread.sketches.iter().map(of_path).collect();
    }
    let ranks = usize::try_from(thread.ranks.len()).unwrap_or(0);
    let of_event = |s: &RankSums| {
        let each = |stream: &Sealed| -> Vec<u128> {
            let mut cursor = stream.cursor();
            let ns = |bucket: i64| u16::try_from(bucket).map_or(0, representative);
            (0..ranks).map(|_| ns(cursor.next()).into()).collect()
        };
        Totals { sym: s.sym, compute: each(&s.compute), comm: each(&s.comm) }
    };
    thread.sums.iter().map(of_event).collect()
}

/// The time of each rank of a section that has times. Without sketches the time in MPI is not known: it is 0.
#[must_use]
pub fn rank_times(section: &Section) -> Vec<RankTime> {
    let Some(thread) = section.threads.first() else { return Vec::new() };
    let totals = totals(thread);
    if totals.is_empty() {
        let of = |(rank, column): &(u32, Column)| RankTime { rank: *rank, whole: exact(column), mpi: 0 };
        return thread.columns.iter().map(of).collect();
    }
    let mut all: Vec<RankTime> =
        thread.ranks.iter().map(|rank| RankTime { rank, whole: 0, mpi: 0 }).collect();
    for t in totals {
        let row = section.symbols.get(t.sym as usize).and_then(|s| CallTable::builtin().get(s.call));
        // Whether the times before and in the event are part of it.
        let (before, within) = match row.map(|row| row.kind) {
            Some(Kind::Init) => (0, 0),
            Some(Kind::Finalize) => (1, 0),
            _ => (1, 1),
        };
        for (rank, (compute, comm)) in all.iter_mut().zip(t.compute.into_iter().zip(t.comm)) {
            rank.whole += before * compute + within * comm;
            rank.mpi += within * comm;
        }
    }
    all
}

/// From the end of the first event to the start of the last.
fn exact(column: &Column) -> u128 {
    let mut times = column.times();
    let first = times.next().map_or(0, |t| t.1);
    let last = times.last().map_or(first, |t| t.0);
    last.saturating_sub(first).try_into().unwrap_or(0)
}
