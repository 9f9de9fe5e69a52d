//! Lines that say where threads stopped, written.

use serde_json::{Map, Value};

use st_model::calls::CallTable;
use st_model::num::Exact as _;
use st_model::section::{Ended, Section};

/// Where a thread stopped that did not come to its end, as an object: `ended` (the rank), `thread` and, if it was in a call, `inside` (the
/// function), `site` (its number as printed) and `entered`, ns by a clock that shows 0 at `zero`. `sites` has the printed number
/// of each of the section's sites.
#[must_use]
pub fn ended(ended: &Ended, section: &Section, sites: &[u32], zero: i64) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("ended".into(), ended.rank.into());
    out.insert("thread".into(), ended.thread.into());
    let Some(symbol) = section.symbols.get(ended.inside.to_usize()) else { return out };
    let listed = CallTable::builtin().get(symbol.call).map(|row| row.name.clone());
    let name = listed.or_else(|| section.tables.names.get(&symbol.call).cloned());
    out.insert("inside".into(), name.unwrap_or_else(|| symbol.call.to_string()).into());
    out.extend(sites.get(symbol.site.to_usize()).map(|site| ("site".to_owned(), (*site).into())));
    out.insert("entered".into(), ended.entered.saturating_sub(zero).into());
    out
}
