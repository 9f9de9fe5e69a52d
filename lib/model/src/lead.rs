//! Which thread of a rank stands for it.
//!
//! That is the first one. Where another thread makes `MPI_Finalize`, it is that one if the first has no part in most of the run: a program may
//! start MPI in a thread that ends.

use crate::calls::{CallId, CallTable, Kind};
use crate::section::{Section, Sym, Thread};
use crate::tree::Item;

/// What is known of a rank whose first thread does not make `MPI_Finalize`, but another one does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lead {
    /// The thread that stands for it.
    pub thread: usize,
    /// From the end of `MPI_Init` to the start of `MPI_Finalize`, whichever threads make these; `None` if there are no exact times of both.
    pub span: Option<(i64, i64)>,
    /// The event that is `MPI_Finalize`.
    pub finalize: Sym,
}

/// Which that is for one rank; `None` if nothing is to be said of it: its first thread stands for it, and has its time. *Cost:* O(nodes) where
/// no other thread makes `MPI_Finalize`, else O(calls).
#[must_use]
pub fn lead(section: &Section, rank: u32) -> Option<Lead> {
    let (last, finalize) = finalizer(section, rank)?;
    let span = span(section, rank, last);
    let by_end = || {
        let (begin, end) = span?;
        let first = section.threads.first()?.column(rank)?.times().last()?.1;
        Some(end.saturating_sub(first) > first.saturating_sub(begin))
    };
    let by_sums = || sum(section, last) > sum(section, 0);
    let leads = makes(section, last, rank, Kind::Init).is_some() || by_end().unwrap_or_else(by_sums);
    Some(Lead { thread: if leads { last } else { 0 }, span, finalize })
}

/// The thread that stands for a rank.
#[must_use]
pub fn lead_thread(section: &Section, rank: u32) -> usize {
    lead(section, rank).map_or(0, |lead| lead.thread)
}

/// Whether the times before and in a function's calls are part of a rank's time.
#[must_use]
pub fn counted(call: CallId) -> [bool; 2] {
    match CallTable::builtin().get(call).map(|row| row.kind) {
        Some(Kind::Init) => [false, false],
        Some(Kind::Finalize) => [true, false],
        _ => [true, true],
    }
}

/// The thread that makes `MPI_Finalize`, if it is not the first.
fn finalizer(section: &Section, rank: u32) -> Option<(usize, Sym)> {
    (1..section.threads.len()).find_map(|i| Some((i, makes(section, i, rank, Kind::Finalize)?)))
}

/// The event by which a rank's thread makes a call of a kind.
fn makes(section: &Section, thread: usize, rank: u32, kind: Kind) -> Option<Sym> {
    let of = section.threads.get(thread).filter(|of| of.ranks.contains(rank))?;
    let is_meant = |sym: Sym| {
        let symbol = section.symbols.get(sym as usize);
        symbol.and_then(|s| CallTable::builtin().get(s.call)).is_some_and(|row| row.kind == kind)
    };
    let leaf = |item: &Item| match item {
        Item::Leaf { sym } => Some(*sym),
        Item::Body { .. } => None,
    };
    let leaves = of.tree.items().iter().filter_map(leaf);
    let mut syms = leaves.filter(|sym| is_meant(*sym)).peekable();
    syms.peek()?;
    let calls = section.calls_of(of, rank);
    syms.find(|sym| calls.get(*sym as usize).is_some_and(|n| *n > 0))
}

/// From the end of `MPI_Init` on whichever thread to the start of `MPI_Finalize` on one.
fn span(section: &Section, rank: u32, last: usize) -> Option<(i64, i64)> {
    let first = (0..section.threads.len()).find(|i| makes(section, *i, rank, Kind::Init).is_some())?;
    Some((times(section, rank, first, Kind::Init)?.1, times(section, rank, last, Kind::Finalize)?.0))
}

/// When a rank's thread makes its first call of a kind.
fn times(section: &Section, rank: u32, thread: usize, kind: Kind) -> Option<(i64, i64)> {
    let mut events = section.events(thread, rank)?.timed();
    while let Some(event) = events.next_event().ok()? {
        if event.row.is_some_and(|row| row.kind == kind) {
            return event.times;
        }
    }
    None
}

/// What a thread takes by its sketches, on all its ranks.
fn sum(section: &Section, thread: usize) -> u128 {
    let sketches = section.threads.get(thread).map_or(&[][..], |of: &Thread| &of.sketches);
    let part =
        |sym: Sym| section.symbols.get(sym as usize).map_or([true; 2], |s| counted(s.call)).map(u128::from);
    sketches
        .iter()
        .map(|s| {
            let [before, within] = part(s.sym);
            before * s.compute.sum + within * s.comm.sum
        })
        .fold(0, u128::saturating_add)
}
