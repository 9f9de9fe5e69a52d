//! The table of wait states.

use anyhow::Result;
use st_explain::{Place, Waited};
use st_model::num::{Exact as _, narrow};

use super::schema::WAITS;
use super::sink::{Cell, Sink, count, maybe};
use crate::trace::Trace;
use crate::waits::{name, of_calls};
use crate::walk::Tell;

/// Wait states of the calls that are written, a row each. Costs what [`of_calls`] does.
///
/// # Errors
///
/// If a rank cannot be read back, or the sink fails.
pub(super) fn waits<S: Sink>(trace: &Trace, sink: &mut S, tell: Tell<'_>) -> Result<()> {
    let found = of_calls(trace, tell)?;
    let zero = trace.zero.unwrap_or(0);
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
        let (place, called) = places.get(wait.place.to_usize()).unwrap_or(&none);
        let (by, late) = places.get(wait.for_place.to_usize()).unwrap_or(&none);
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
                Cell::Int(wait.enter.saturating_sub(zero)),
                count(ns),
                Cell::Int(wait.for_rank.into()),
                Cell::Text(late),
                site(*by),
            ],
        )?;
    }
    Ok(())
}
