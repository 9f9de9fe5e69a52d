//! Sums per group of ranks and column of time: what is shown where there is no room for single calls. They can be added up
//! to any coarser ones, so that a wait that is seen in total is seen at any zoom.

use anyhow::Result;
use serde::Serialize;
use st_explain::{Analysis, WaitKind, Waited};
use st_model::num::{Exact as _, narrow, saturate};
use st_model::rank_times::begin;
use st_model::section::Section;

use crate::args::RanksBy;
use crate::rank_groups::RankGroups;
use crate::table::grouped;

/// What stands for computation and MPI in text.
pub(crate) const COMPUTATION: char = '·';
pub(crate) const MPI: char = '-';

/// Kinds of waits that have a colour of their own.
pub(crate) const KINDS: usize = 4;

/// The colour of a kind: for a sender, for a receiver, in a collective operation, for access to a window.
pub(crate) fn colour(kind: WaitKind) -> usize {
    match kind {
        WaitKind::LateSender | WaitKind::WrongOrderSame | WaitKind::WrongOrderOther => 0,
        WaitKind::LateReceiver => 1,
        WaitKind::Barrier
        | WaitKind::AllToAll
        | WaitKind::LateBroadcast
        | WaitKind::EarlyReduce
        | WaitKind::LateContribution
        | WaitKind::EarlyScan => 2,
        WaitKind::LatePost | WaitKind::EarlyWait => 3,
    }
}

/// Sums per group of ranks and column of time, row by row.
#[derive(Serialize, Debug)]
pub(crate) struct Levels {
    /// Ranks of a row but the last.
    pub(crate) group: usize,
    /// How many ranks there are; and which, in their order, unless they are all from 0 on.
    pub(crate) count: usize,
    pub(crate) ranks: Vec<u32>,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) column_ns: i64,
    /// How long the time is: the last column may reach beyond its end.
    #[serde(skip)]
    pub(crate) span_ns: u64,
    /// Outside of MPI, and in it with all waits, of the thread that stands for each rank, ns.
    pub(crate) computation: Vec<u64>,
    pub(crate) mpi: Vec<u64>,
    /// By kind of wait, ns; empty if there is none of it.
    pub(crate) waits: Vec<Vec<u64>>,
    /// The most that one rank of the row waits in the column, ns; empty if rows are single ranks.
    pub(crate) most: Vec<u64>,
    /// The most that one rank of the row computes in the column, percent of it; empty if rows are single ranks.
    pub(crate) busiest: Vec<u8>,
}

impl Levels {
    /// First and last rank of a row.
    pub(crate) fn ends(&self, row: usize) -> (u32, u32) {
        let rank = |at: usize| self.ranks.get(at).copied().unwrap_or_else(|| narrow(at));
        (rank(row * self.group), rank(((row + 1) * self.group).min(self.count).saturating_sub(1)))
    }
}

/// How many rows and columns there are at most, and cells in all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) cells: usize,
    /// From when to when, ns from the beginning of the run, if not all of it.
    pub(crate) window: Option<(i64, i64)>,
}

/// Sums of ranks, nodes or clusters, with what each row is called.
pub(crate) struct Rows {
    pub(crate) levels: Levels,
    pub(crate) by: RanksBy,
    /// None of ranks, which are called by their numbers.
    names: Vec<String>,
}

impl Rows {
    /// Ranks as rows. *Cost:* O(calls + cells).
    pub(crate) fn ranks(analysis: &Analysis, most: Most) -> Self {
        Self { levels: of(analysis, most), by: RanksBy::Rank, names: Vec::new() }
    }

    /// Nodes or clusters as rows; of more than there are rows, neighbours share one. *Cost:* O(calls + cells).
    pub(crate) fn groups(analysis: &Analysis, by: RanksBy, groups: &RankGroups, most: Most) -> Self {
        let (names, mut row_of) = groups.clone().rows(analysis);
        let group = names.len().div_ceil(most.rows.max(1)).max(1);
        row_of.iter_mut().for_each(|row| *row /= group);
        let levels = self::by(analysis, names.len().div_ceil(group), &row_of, most);
        Self { levels: Levels { group, count: names.len(), ..levels }, by, names }
    }

    /// What the first and the last of a row are called.
    pub(crate) fn ends(&self, row: usize) -> [String; 2] {
        let (first, last) = self.levels.ends(row);
        [first, last].map(|n| match self.names.get(n.to_usize()) {
            Some(name) => name.clone(),
            None => grouped(n.into()),
        })
    }

    /// What a row is: a rank, or several of them.
    pub(crate) fn each(&self) -> String {
        let (one, group) = (self.by.one(), self.levels.group);
        if group == 1 { format!("a {one}") } else { format!("{} {one}s", grouped(group.to_u64())) }
    }
}

/// When the times of a run that people are shown begin: as the first rank enters `MPI_Init`.
///
/// # Errors
///
/// If a rank cannot be read back.
pub(crate) fn zero(analysis: &Analysis, sections: &[Section]) -> Result<i64> {
    sections.iter().try_fold(analysis.begin(), |zero, s| Ok(zero.min(begin(s)?.unwrap_or(i64::MAX))))
}

/// When a run begins by these times, ns.
///
/// # Errors
///
/// If a rank cannot be read back.
pub(crate) fn origin(analysis: &Analysis, sections: &[Section]) -> Result<i64> {
    Ok(analysis.begin().saturating_sub(zero(analysis, sections)?))
}

/// Columns of time, all as wide.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    /// Of the first column.
    pub(crate) begin: i64,
    pub(crate) columns: usize,
    /// How wide each is, at least 1.
    pub(crate) ns: i64,
}

impl Grid {
    /// Adds what lies between two times to the columns that it lies in. *Cost:* O(columns that it lies in).
    pub(crate) fn add(&self, to: &mut [u64], from: i64, until: i64) {
        let end = self.ns.saturating_mul(narrow(self.columns));
        let (mut from, until) =
            (from.saturating_sub(self.begin).max(0), until.saturating_sub(self.begin).min(end));
        while from < until {
            let column = from / self.ns;
            let next = until.min((column + 1).saturating_mul(self.ns));
            if let Some(sum) = usize::try_from(column).ok().and_then(|column| to.get_mut(column)) {
                *sum = sum.saturating_add(saturate(next - from));
            }
            from = next;
        }
    }
}

/// Adds the columns of a rank to a row.
fn add(row: usize, to: &mut [u64], of: &mut [u64]) {
    let to = to.iter_mut().skip(row * of.len());
    for (sum, ns) in to.zip(of) {
        *sum = sum.saturating_add(std::mem::take(ns));
    }
}

/// The sums of a run. *Cost:* O(calls + cells).
pub(crate) fn of(analysis: &Analysis, most_of: Most) -> Levels {
    let ranks: Vec<u32> = analysis.ranks.iter().map(|r| r.rank).collect();
    let group = ranks.len().div_ceil(most_of.rows.max(1)).max(1);
    let mut all = sums(analysis, ranks.len().div_ceil(group), &|rank| Some(rank / group), most_of);
    if group == 1 {
        all.most.clear();
        all.busiest.clear();
    }
    Levels { group, count: ranks.len(), ranks: listed(ranks), ..all }
}

/// The same with rows of any ranks: `row_of` has the row of each rank of the analysis, in its order. *Cost:* O(calls + cells).
pub(crate) fn by(analysis: &Analysis, rows: usize, row_of: &[usize], most_of: Most) -> Levels {
    sums(analysis, rows, &|rank| Some(row_of.get(rank).copied().unwrap_or_default()), most_of)
}

/// The same with a row for each of some ranks, by their numbers in the analysis, ascending. *Cost:* O(calls of these + cells).
pub(crate) fn some(analysis: &Analysis, chosen: &[usize], most_of: Most) -> Levels {
    sums(analysis, chosen.len(), &|rank| chosen.binary_search(&rank).ok(), most_of)
}

/// At most so many columns for a time, ns, and how wide each is: no more than reach to its end, since none is narrower than 1 ns.
fn columns(span: u64, most: usize) -> (usize, i64) {
    let ns = span.div_ceil(most.max(1).to_u64()).max(1);
    (saturate(span.div_ceil(ns).max(1)), saturate(ns))
}

/// Sums of rows, by the number of a rank's row, if it has one.
fn sums(analysis: &Analysis, rows: usize, row_of: &dyn Fn(usize) -> Option<usize>, most_of: Most) -> Levels {
    let (from, until) = most_of.window.unwrap_or_else(|| (0, saturate(analysis.run())));
    let most_columns = (most_of.cells / rows.max(1)).clamp(1, most_of.columns.max(1));
    let span_ns = saturate(until.saturating_sub(from));
    let (columns, ns) = columns(span_ns, most_columns);
    let grid = Grid { begin: analysis.begin().saturating_add(from), columns, ns };
    let cells = || vec![0u64; rows * columns];
    let (mut computation, mut mpi, mut most) = (cells(), cells(), cells());
    let mut busiest = vec![0; rows * columns];
    let mut waits = vec![cells(); KINDS];
    let mut each: Vec<&Waited> = analysis.each.iter().collect();
    each.sort_by_key(|w| (w.rank, w.enter));
    let mut each = each.into_iter().peekable();
    let mut threads = analysis.threads().peekable();
    let mut one = vec![0; columns];
    for (i, of) in analysis.ranks.iter().enumerate() {
        let Some(row) = row_of(i) else { continue };
        while threads.next_if(|t| t.rank() < of.rank).is_some() {}
        if let Some(thread) = threads.next_if(|t| t.rank() == of.rank) {
            let mut last = of.begin;
            for call in thread.calls() {
                grid.add(&mut one, last, call.enter.min(of.end));
                last = call.exit;
            }
            grid.add(&mut one, last, of.end);
            for (most, computed) in busiest.iter_mut().skip(row * columns).zip(&one) {
                let part = computed.saturating_mul(100) / saturate::<u64>(ns).max(1);
                *most = saturate::<u8>(part).max(*most);
            }
            add(row, &mut computation, &mut one);
            thread.calls().for_each(|call| grid.add(&mut one, call.enter, call.exit.min(of.end)));
            add(row, &mut mpi, &mut one);
        }
        let mut all = vec![0; columns];
        let mut kinds = vec![vec![0; columns]; KINDS];
        while each.next_if(|w| w.rank < of.rank).is_some() {}
        while let Some(wait) = each.next_if(|w| w.rank == of.rank) {
            let until = wait.enter.saturating_add(saturate(wait.ns));
            grid.add(&mut all, wait.enter, until);
            grid.add(&mut kinds[colour(wait.kind)], wait.enter, until);
        }
        for (sum, ns) in most.iter_mut().skip(row * columns).zip(&all) {
            *sum = (*sum).max(*ns);
        }
        waits.iter_mut().zip(&mut kinds).for_each(|(sums, kind)| add(row, sums, kind));
    }
    let none = |sums: &mut Vec<u64>| {
        if sums.iter().all(|ns| *ns == 0) {
            sums.clear();
        }
    };
    waits.iter_mut().for_each(none);
    let (group, ranks) = (1, Vec::new());
    let column_ns = ns;
    Levels {
        group,
        count: rows,
        ranks,
        rows,
        columns,
        column_ns,
        span_ns,
        computation,
        mpi,
        waits,
        most,
        busiest,
    }
}

/// Numbers of ranks; none, if these are those from 0 on, all of them.
fn listed(ranks: Vec<u32>) -> Vec<u32> {
    let all = ranks.iter().enumerate().all(|(i, rank)| i == rank.to_usize());
    if all { Vec::new() } else { ranks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_end_where_the_time_does() {
        assert_eq!(columns(1_000_000, 240), (240, 4_167));
        assert_eq!(columns(100, 240), (100, 1));
        assert_eq!(columns(100, 75), (50, 2));
        assert_eq!(columns(0, 75), (1, 1));
        assert_eq!(columns(u64::MAX, 1), (1, i64::MAX));
    }
}
