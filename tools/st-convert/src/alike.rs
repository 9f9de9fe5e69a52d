//! Sums of traces without exact times: by what is stored, not call by call.

use anyhow::Result;
use st_match::volume::{Alike, Moved};
use st_model::num::{Exact as _, saturate};
use st_model::section::Section;
use st_model::steps::{Budget, Exceeded};

use crate::format::{AlikeCalls, Format, FormatKind};
use crate::level::Level;
use crate::trace::Trace;
use crate::walk::Tell;

/// Whether a format may be handed sums in the place of calls: what it writes of calls without times is no more.
pub(crate) fn suffices(kind: &FormatKind, level: Level) -> bool {
    level == Level::Summary && !kind.needs_times
}

/// The calls of a section, if sums of them are known without going through them.
pub(crate) fn moved(section: &Section) -> Option<Moved<'_>> {
    if section.has_times() { None } else { Moved::of(section) }
}

/// Counts what [`sums`] takes for each rank of a section.
///
/// # Errors
///
/// If that, with what has been counted before, is more than is allowed.
pub(crate) fn count(budget: &Budget, section: &Section) -> Result<(), Exceeded> {
    budget.spend_ranks(section)
}

/// Hands sums of all calls that are chosen to a format; `false` if those of some section are not known so.
///
/// *Cost:* by what the trace stores of each rank.
///
/// # Errors
///
/// If a rank cannot be read back, if that takes more than the budget allows, or if the format cannot be written.
pub(crate) fn sums(trace: &Trace, budget: &Budget, tell: Tell<'_>, format: &mut dyn Format) -> Result<bool> {
    let sections: Option<Vec<Moved<'_>>> = trace.sections.iter().map(moved).collect();
    let Some(sections) = sections.filter(|_| trace.window.is_all() && trace.chosen.is_of_any_time()) else {
        return Ok(false);
    };
    for lanes in trace.lanes.chunk_by(|a, b| (a.rank, a.section) == (b.rank, b.section)) {
        let Some(first) = lanes.first() else { continue };
        let (section, chosen) = (trace.section(first), trace.chosen.symbols(first.section));
        let (mut all, mut done) = (Vec::new(), 0u64);
        let add = |alike: Alike<'_>| {
            done = done.saturating_add(alike.times);
            let (sym, thread) = (alike.sym.to_usize(), alike.thread.to_u64());
            let lane = lanes.iter().find(|lane| u64::from(lane.thread) == thread);
            let is_chosen = chosen.is_none_or(|chosen| chosen.get(sym).is_some_and(|wanted| *wanted));
            let (Some(lane), Some(symbol)) = (lane.filter(|_| is_chosen), section.symbols.get(sym)) else {
                return;
            };
            let numbers = trace.numbers.get(first.section);
            let site = numbers.and_then(|numbers| numbers.get(symbol.site.to_usize()));
            let [sent, received] =
                [alike.volume.sent, alike.volume.received].map(|side| side.in_all(alike.times).bytes);
            all.push(AlikeCalls {
                lane: *lane,
                site: site.copied().unwrap_or(u32::MAX),
                function: symbol.call,
                calls: alike.calls,
                sent: saturate(sent),
                received: saturate(received),
            });
        };
        if let Some(moved) = sections.get(first.section) {
            moved.each(first.rank, budget, add)?;
        }
        all.iter().try_for_each(|calls| format.alike(calls))?;
        tell(done)?;
    }
    Ok(true)
}
