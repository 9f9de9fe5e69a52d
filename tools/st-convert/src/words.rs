//! What a call's words say, for formats that show them.

use serde_json::{Map, Value};
use st_model::sites::CallSites;
use st_stream::json;

use crate::format::Call;
use crate::phase::Phase;

/// The parameters of a call by their names, as `st-view --json` has them, and where it is called.
pub(crate) fn parameters(call: &Call<'_>, sites: &CallSites) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("call".into(), call.event.index.into());
    out.insert("site".into(), sites.describe(call.site).into());
    out.extend(own(json::call(call.event, call.site)));
    out
}

/// What a call's line has beside what all calls' have.
pub(crate) fn own(line: Map<String, Value>) -> impl Iterator<Item = (String, Value)> {
    // The first of a name is the call's own; parameters of such names have a 2.
    let said = ["rank", "thread", "i", "call", "site", "enter", "exit"];
    line.into_iter().filter(move |(key, _)| !said.contains(&key.as_str()))
}

/// A function's name; of one that nobody knows, its number.
pub(crate) fn function(call: &Call<'_>) -> String {
    call.event.name().map_or_else(|| call.event.symbol.call.to_string(), str::to_owned)
}

/// What a phase comes to, under the names that tables have for it.
pub(crate) fn of_phase(phase: &Phase<'_>, sites: &CallSites) -> Map<String, Value> {
    let numbers = [
        ("iteration", phase.iteration),
        ("calls", Some(phase.calls)),
        ("compute_ns", Some(phase.compute)),
        ("mpi_ns", Some(phase.mpi)),
        ("wait_ns", phase.wait),
    ];
    let mut out = Map::new();
    out.insert("function".into(), phase.function.into());
    out.extend(phase.site.map(|site| ("site".to_owned(), sites.describe(site).into())));
    out.extend(numbers.into_iter().filter_map(|(name, n)| Some((name.to_owned(), n?.into()))));
    out
}
