//! Single calls, waits and messages in windows of time.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Result, bail};
use st_explain::{Analysis, Message, Thread};
use st_model::num::{Exact as _, saturate};

use super::data::{Lane, Spot, Window};
use super::room::Room;
use crate::levels::colour;
use crate::table::grouped;

/// Ranks whose single calls are shown side by side at most.
const LANES: usize = 512;
/// The same, around a finding.
const AROUND: usize = 32;
/// Parts of a run that a window around a finding has at first.
const PART: i64 = 50;

/// All windows of a run: itself, if there is room for all of its calls; else those that are asked for, and one around each spot.
///
/// # Errors
///
/// If there is no room for one that is asked for.
pub(super) fn windows(
    analysis: &Analysis,
    asked: &[(i64, i64)],
    spots: &[Spot],
    room: Room,
) -> Result<Vec<Window>> {
    let threads: Vec<Thread<'_>> = analysis.threads().collect();
    let run: i64 = saturate(analysis.run());
    let of = Cut { analysis, threads: &threads, begin: analysis.begin() };
    let ranks: Vec<u32> = analysis.ranks.iter().map(|r| r.rank).collect();
    if threads.len() <= LANES && of.fits((0, run), &ranks, room.calls).is_some() {
        return Ok(vec![Window { whole: true, ..of.window((0, run), &ranks, room) }]);
    }
    let (mut all, mut left) = (Vec::new(), room.calls);
    for &window in asked {
        let chosen = if ranks.len() <= LANES { ranks.clone() } else { of.busiest(window, &ranks) };
        let Some(calls) = of.fits(window, &chosen, left) else {
            bail!(
                "--window: there is room for {} more calls on the page, and these are more: choose less time",
                grouped(left.to_u64())
            );
        };
        left = left.saturating_sub(calls);
        all.push(of.window(window, &chosen, room));
    }
    let share = left / spots.len().max(1);
    for spot in spots {
        let chosen = around(&ranks, spot);
        let mut window = wide(spot, run);
        // Half of what is around the wait's end, until it fits.
        while of.fits(window, &chosen, share).is_none() && window.1 - window.0 > 1000 {
            let quarter = (window.1 - window.0) / 4;
            let middle = spot.to_ns.clamp(window.0 + quarter, window.1 - quarter);
            window = (middle - quarter, middle + quarter);
        }
        if of.fits(window, &chosen, share).is_some() {
            all.push(of.window(window, &chosen, room));
        }
    }
    Ok(all)
}

/// Twice as long as what is there, and not less than a part of the run.
fn wide(spot: &Spot, run: i64) -> (i64, i64) {
    let beside = (spot.to_ns.saturating_sub(spot.from_ns) / 2).max(run / PART / 2).max(1000);
    (spot.from_ns.saturating_sub(beside).max(0), spot.to_ns.saturating_add(beside).min(run))
}

/// Both ranks of a spot, and those with numbers next to theirs.
fn around(ranks: &[u32], spot: &Spot) -> Vec<u32> {
    let ends = [Some(spot.rank), spot.for_rank].map(|rank| position(ranks, rank?));
    let mut chosen: BTreeSet<usize> = ends.into_iter().flatten().collect();
    for far in 1..ranks.len() {
        for at in ends.into_iter().flatten() {
            let near = [at.checked_sub(far), Some(at + far).filter(|n| *n < ranks.len())];
            chosen.extend(near.into_iter().flatten());
        }
        if chosen.len() >= AROUND {
            break;
        }
    }
    chosen.into_iter().filter_map(|at| ranks.get(at).copied()).collect()
}

/// Number of a rank in a list that ascends.
fn position(ranks: &[u32], rank: u32) -> Option<usize> {
    // Most often all ranks are there.
    if ranks.get(rank.to_usize()) == Some(&rank) {
        Some(rank.to_usize())
    } else {
        ranks.binary_search(&rank).ok()
    }
}

struct Cut<'a, 'b> {
    analysis: &'a Analysis,
    threads: &'b [Thread<'a>],
    begin: i64,
}

impl Cut<'_, '_> {
    /// How many calls the ranks make in a window, if these are no more than there is room for. *Cost:* O(room + threads · log calls).
    fn fits(&self, (from, to): (i64, i64), ranks: &[u32], room: usize) -> Option<usize> {
        let (from, to) = (self.begin.saturating_add(from), self.begin.saturating_add(to));
        let mut calls = 0;
        for thread in self.threads.iter().filter(|t| ranks.binary_search(&t.rank()).is_ok()) {
            let inside = thread.calls_after(from).take_while(|call| call.enter <= to);
            calls += inside.take(room.saturating_sub(calls).saturating_add(1)).count();
            if calls > room {
                return None;
            }
        }
        Some(calls)
    }

    /// Those of many ranks that wait most in a window, and those that they wait for.
    fn busiest(&self, (from, to): (i64, i64), ranks: &[u32]) -> Vec<u32> {
        let (from, to) = (self.begin.saturating_add(from), self.begin.saturating_add(to));
        let mut waits: HashMap<u32, u64> = HashMap::new();
        for wait in &self.analysis.each {
            let until = wait.enter.saturating_add(saturate(wait.ns)).min(to);
            let inside: u64 = saturate(until.saturating_sub(wait.enter.max(from)));
            if inside > 0 {
                for rank in [wait.rank, wait.for_rank] {
                    *waits.entry(rank).or_default() += inside;
                }
            }
        }
        let mut order: Vec<u32> = ranks.to_vec();
        order.sort_by_key(|rank| std::cmp::Reverse(waits.get(rank).copied().unwrap_or(0)));
        order.truncate(AROUND);
        order.sort_unstable();
        order
    }

    fn window(&self, (from, to): (i64, i64), ranks: &[u32], room: Room) -> Window {
        let mut window = Window {
            from_ns: from,
            to_ns: to,
            whole: false,
            lanes: Vec::new(),
            from: Vec::new(),
            to: Vec::new(),
            sent: Vec::new(),
            took: Vec::new(),
            bytes: Vec::new(),
            more: 0,
        };
        // By rank and by number of the thread.
        let (mut first, mut lanes) = (HashMap::new(), HashMap::new());
        let mut thread_of = 0;
        let chosen = (0..).zip(self.threads).filter(|(_, t)| ranks.binary_search(&t.rank()).is_ok());
        for (number, thread) in chosen {
            let lane = *first.entry(thread.rank()).or_insert(window.lanes.len());
            thread_of = if lane == window.lanes.len() { 0 } else { thread_of + 1 };
            lanes.insert(number, window.lanes.len());
            window.lanes.push(self.lane(*thread, thread_of, (from, to)));
        }
        self.add_waits(&mut window, &lanes);
        self.add_messages(&mut window, &lanes, room.messages);
        window
    }

    fn lane(&self, thread: Thread<'_>, number: u32, (from, to): (i64, i64)) -> Lane {
        let start = self.begin.saturating_add(from);
        let mut calls = thread.calls_after(start).peekable();
        // Before the first call it computes, since its beginning or, for all that is seen here, that of the window.
        let first = calls.peek().map_or(start, |call| call.enter);
        let begin = thread.begin().max(start).min(first).saturating_sub(self.begin);
        let mut lane =
            Lane { rank: thread.rank(), thread: number, begin, calls: Vec::new(), waits: Vec::new() };
        let mut last = begin.saturating_add(self.begin);
        // The end of a run is the beginning of its last call.
        for call in calls.take_while(|call| call.enter <= self.begin.saturating_add(to)) {
            let both = [call.enter.saturating_sub(last), call.exit.saturating_sub(call.enter)];
            lane.calls.extend([call.place.into(), both[0], both[1]]);
            last = call.exit;
        }
        lane
    }

    fn add_waits(&self, window: &mut Window, lanes: &HashMap<u32, usize>) {
        let (from, to) = (self.begin.saturating_add(window.from_ns), self.begin.saturating_add(window.to_ns));
        let mut waits: Vec<_> = self.analysis.each.iter().collect();
        waits.retain(|w| w.enter < to && w.enter.saturating_add(saturate(w.ns)) > from);
        waits.sort_by_key(|w| w.enter);
        let mut last = vec![0; window.lanes.len()];
        for wait in waits {
            let Some(&lane) = lanes.get(&wait.thread) else { continue };
            let at = wait.enter.saturating_sub(self.begin);
            let kind = saturate(colour(wait.kind));
            if let Some(into) = window.lanes.get_mut(lane) {
                into.waits.extend([
                    at.saturating_sub(last[lane]),
                    saturate(wait.ns),
                    kind,
                    wait.for_rank.into(),
                ]);
                last[lane] = at;
            }
        }
    }

    fn add_messages(&self, window: &mut Window, lanes: &HashMap<u32, usize>, most: usize) {
        let (from, to) = (self.begin.saturating_add(window.from_ns), self.begin.saturating_add(window.to_ns));
        let ends = |m: &Message| Some((*lanes.get(&m.threads[0])?, *lanes.get(&m.threads[1])?));
        let inside = self.analysis.messages.iter().filter(|m| m.sent < to && m.received > from);
        let mut messages: Vec<_> = inside.filter_map(|m| Some((m, ends(m)?))).collect();
        messages.sort_by_key(|(m, _)| **m);
        messages.sort_by_key(|(m, _)| m.sent);
        window.more = messages.len().saturating_sub(most);
        let mut last = 0;
        for (message, (from, to)) in messages.into_iter().take(most) {
            let sent = message.sent.saturating_sub(self.begin);
            window.from.push(from);
            window.to.push(to);
            window.sent.push(sent.saturating_sub(last));
            window.took.push(message.received.saturating_sub(message.sent));
            window.bytes.push(message.bytes.map_or(-1, saturate));
            last = sent;
        }
    }
}

#[cfg(test)]
mod tests {
    use st_explain::{Matter, analyse_all};
    use st_kernels::{Kernel, Options, Slow, Unfit, paper};
    use st_model::section::Section;

    use super::super::spots;
    use super::*;
    use crate::levels;

    fn analysis() -> Option<Analysis> {
        let options = Options { steps: Some(20), ..Options::default() };
        let (kernel, slow, mut sections) = (Kernel::Stencil2d, Slow { rank: 3, factor: 2.0 }, Vec::new());
        let plan = paper::Plan::new(&[slow], kernel, &options, 16, 1).ok()?;
        let keep = |section: Result<Section, Unfit>| -> Result<(), Unfit> {
            sections.push(section?);
            Ok(())
        };
        let what = paper::Planned { kernel, options: &options, plan: &plan, ranks: 16 };
        paper::each("exact".parse().ok()?, what, 1, |section| section, keep).ok()?;
        analyse_all(&sections, &|_| ()).ok()
    }

    fn calls(window: &Window) -> usize {
        window.lanes.iter().map(|lane| lane.calls.len() / 3).sum()
    }

    #[test]
    fn where_there_is_no_room_for_all_calls_there_are_windows_around_findings() {
        let Some(analysis) = analysis() else { unreachable!("the kernel runs") };
        let findings = analysis.findings();
        let waits: Vec<_> = findings.into_iter().filter(|f| matches!(f.matter, Matter::Wait(_))).collect();
        let spots = spots::of(&analysis, &waits);
        assert!(!spots.is_empty());
        let room = Room { calls: 300, ..Room::default() };
        let run: i64 = saturate(analysis.run());
        let all = windows(&analysis, &[(run / 2, run / 2 + run / 100)], &spots, room).unwrap_or_default();
        assert!(all.len() == 1 + spots.len() && all.iter().all(|w| !w.whole));
        assert!(all.iter().map(calls).sum::<usize>() <= room.calls);
        for (window, spot) in all[1..].iter().zip(&spots) {
            // The end of the wait is in its window, and both ranks are.
            assert!(window.from_ns <= spot.to_ns && spot.to_ns <= window.to_ns, "{spot:?}");
            let has = |rank| window.lanes.iter().any(|lane| lane.rank == rank);
            assert!(has(spot.rank) && spot.for_rank.is_some_and(has), "{spot:?}");
        }
        assert!(windows(&analysis, &[(0, run)], &spots, room).is_err(), "there is no room for all of it");
    }

    #[test]
    fn groups_of_ranks_have_the_sums_of_their_ranks() {
        let Some(analysis) = analysis() else { unreachable!("the kernel runs") };
        let of = |rows| {
            levels::of(&analysis, levels::Most { rows, columns: 128, cells: usize::MAX, window: None })
        };
        let (single, grouped) = (of(16), of(4));
        assert_eq!((single.rows, single.group, grouped.rows, grouped.group), (16, 1, 4, 4));
        assert_eq!((single.columns, grouped.columns), (128, 128));
        let together = |cells: &[u64]| -> Vec<u64> {
            let rows: Vec<&[u64]> = cells.chunks(128).collect();
            let sum = |four: &[&[u64]], i: usize| four.iter().map(|row| row[i]).sum();
            rows.chunks(4).flat_map(|four| (0..128).map(move |i| sum(four, i))).collect()
        };
        assert_eq!(grouped.computation, together(&single.computation));
        assert_eq!(grouped.mpi, together(&single.mpi));
        for (kind, alone) in grouped.waits.iter().zip(&single.waits) {
            assert_eq!(*kind, together(alone));
        }
        // One that computes in all of a column is seen, also where the others wait for it.
        let percent = |ns: &u64| u8::try_from(ns * 100 / single.column_ns.unsigned_abs()).unwrap_or(0);
        for (row, four) in single.computation.chunks(4 * 128).enumerate() {
            for i in 0..128 {
                let most = four.iter().skip(i).step_by(128).map(percent).max();
                assert_eq!(Some(grouped.busiest[row * 128 + i]), most);
            }
        }
        assert!(grouped.busiest.contains(&100) && single.busiest.is_empty());
        // The rank that waits most in a column has at least a fourth of what four wait there.
        for (i, most) in grouped.most.iter().enumerate() {
            let all: u64 = grouped.waits.iter().filter_map(|kind| kind.get(i)).sum();
            assert!(*most <= all && all <= 4 * most);
        }
    }
}
