//! The table of wait states.

use std::collections::HashSet;

use anyhow::{Context as _, Result};
use foldhash::fast::FixedState;
use st_explain::{Place, Waited, analyse_each};
use st_model::calls::{CallId, CallTable};
use st_model::num::{Exact as _, narrow, saturate};

use super::schema::WAITS;
use super::sink::{Cell, Sink, count, maybe};
use crate::trace::Trace;
use crate::walk::Tell;

/// Wait states of the calls that are written, by rank and in the order in which they begin, as st-stat waits has them.
///
/// *Cost:* a pass over all ranks, for anybody may be waited for; memory for each wait.
///
/// # Errors
///
/// If a rank cannot be read back, or the sink fails.
pub(super) fn waits<S: Sink>(trace: &Trace, sink: &mut S, tell: Tell<'_>) -> Result<()> {
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
    found
        .each
        .sort_unstable_by_key(|wait| (wait.rank, found.lanes.get(wait.thread.to_usize()), wait.call, *wait));
    let (zero, wanted) = (trace.zero.unwrap_or(0), wanted(trace));
    let function = |place: Option<Place>| place.map_or_else(String::new, |place| name(trace, place.call));
    let site = |place: Option<Place>| maybe(place.and_then(|place| trace.sites.number(place.site?)));
    // Names of functions are made once per place.
    let places: Vec<(Option<Place>, String)> = (0..found.places.len())
        .map(|number| found.places.get(narrow(number)))
        .map(|place| (place, function(place)))
        .collect();
    let none = (None, String::new());
    for wait in &found.each {
        let Waited { rank, ns, .. } = *wait;
        let begin = wait.enter.saturating_sub(zero);
        let until = begin.saturating_add(saturate(ns));
        let (place, called) = places.get(wait.place.to_usize()).unwrap_or(&none);
        let (by, late) = places.get(wait.for_place.to_usize()).unwrap_or(&none);
        let chosen = trace.has(rank)
            && trace.window.has((begin, until))
            && trace.chosen.is_in_phase(rank, Some((begin, until)))
            && wanted.as_ref().is_none_or(|all| place.is_some_and(|place| all.contains(&place)));
        if !chosen {
            continue;
        }
        let thread = found.lanes.get(wait.thread.to_usize()).map_or(0, |(_, thread)| *thread);
        sink.row(
            WAITS,
            &[
                Cell::Int(rank.into()),
                Cell::Int(thread.into()),
                count(wait.call),
                Cell::Text(wait.kind.name()),
                Cell::Text(called),
                site(*place),
                Cell::Int(begin),
                count(ns),
                Cell::Int(wait.for_rank.into()),
                Cell::Text(late),
                site(*by),
            ],
        )?;
    }
    Ok(())
}

/// Name of a function; of one that nobody knows, its number.
fn name(trace: &Trace, call: CallId) -> String {
    let listed = CallTable::builtin().get(call).map(|row| row.name.clone());
    let named = || trace.sections.iter().find_map(|section| section.tables.names.get(&call).cloned());
    listed.or_else(named).unwrap_or_else(|| call.to_string())
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
