//! Wait states of the calls that are written.

use std::collections::HashSet;

use anyhow::{Context as _, Result};
use foldhash::fast::FixedState;
use st_explain::{Analysis, Place, Waited, analyse_each};
use st_model::calls::{CallId, CallTable};
use st_model::num::Exact as _;

use crate::trace::Trace;
use crate::walk::Tell;

/// Wait states of the calls that are written, as st-stat waits has them, by rank and in the order in which they begin.
///
/// *Cost:* a pass over all ranks, for anybody may be waited for; memory for each wait.
///
/// # Errors
///
/// If a rank cannot be read back, or no more is wanted.
pub(crate) fn of_calls(trace: &Trace, tell: Tell<'_>) -> Result<Analysis> {
    let stopped = std::cell::RefCell::new(None);
    let tell = |calls: u64| {
        if let Err(e) = tell(calls) {
            stopped.borrow_mut().get_or_insert(e);
        }
    };
    let mut found = analyse_each(&trace.sections, &tell).context("looking for waits")?;
    if let Some(e) = stopped.into_inner() {
        return Err(e);
    }
    let wanted = wanted(trace);
    let Analysis { each, places, lanes, .. } = &mut found;
    each.retain(|wait| {
        let is_wanted =
            |all: &HashSet<_, _>| places.get(wait.place).is_some_and(|place| all.contains(&place));
        trace.has(wait.rank) && wanted.as_ref().is_none_or(is_wanted)
    });
    each.sort_unstable_by_key(|wait| {
        (wait.rank, usize::try_from(wait.thread).ok().and_then(|at| lanes.get(at)), wait.call, *wait)
    });
    if !(trace.window.is_all() && trace.chosen.is_of_any_time()) {
        *each = each
            .chunk_by(|a, b| a.thread == b.thread)
            .flat_map(|waits| timely(trace, waits, lanes))
            .collect();
    }
    Ok(found)
}

/// Waits of a thread, in their order, whose calls are written by their times.
fn timely(trace: &Trace, waits: &[Waited], lanes: &[(u32, u32)]) -> Vec<Waited> {
    let Some(first) = waits.first() else { return Vec::new() };
    let lane = lanes
        .get(first.thread.to_usize())
        .and_then(|(rank, thread)| trace.lanes_of(*rank).iter().find(|lane| lane.thread == *thread));
    let Some(column) = lane.and_then(|lane| trace.column(lane)) else { return Vec::new() };
    let since = |time: i64| time.saturating_sub(trace.zero.unwrap_or(0));
    let mut calls = (first.call..).zip(column.times_from(first.call)).peekable();
    let is_timely = |wait: &&Waited| {
        while calls.next_if(|(call, _)| *call < wait.call).is_some() {}
        calls.peek().is_some_and(|(_, (enter, exit))| {
            let times = (since(*enter), since(*exit));
            trace.window.has(times) && trace.chosen.is_in_phase(wait.rank, Some(times))
        })
    };
    waits.iter().filter(is_timely).copied().collect()
}

/// Name of a function; of one that nobody knows, its number.
pub(crate) fn name(trace: &Trace, call: CallId) -> String {
    let listed = CallTable::builtin().get(call).map(|row| row.name.clone());
    let named = || trace.sections.iter().find_map(|section| section.tables.names.get(&call).cloned());
    listed.or_else(named).unwrap_or_else(|| call.to_string())
}

/// Whether a function has nothing to do with other ranks.
pub(crate) fn is_local(call: CallId) -> bool {
    CallTable::builtin().get(call).is_some_and(|row| row.properties.local)
}

/// The places of calls that are written, if these are not all.
fn wanted(trace: &Trace) -> Option<HashSet<Place, FixedState>> {
    let of = |number: usize| {
        let section = trace.sections.get(number)?;
        let symbols = section.symbols.iter().zip(trace.chosen.symbols(number)?);
        let place = move |symbol: &st_model::section::Symbol| Place {
            call: symbol.call,
            site: section.sites.get(symbol.site).map(|site| site.id),
        };
        Some(symbols.filter(|(_, wanted)| **wanted).map(move |(symbol, _)| place(symbol)))
    };
    trace.chosen.symbols(0)?;
    Some((0..trace.sections.len()).filter_map(of).flatten().collect())
}
