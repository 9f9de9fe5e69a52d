//! Which calls are replayed, and what they are called.

use st_model::calls::{CallTable, Kind};
use st_model::section::{Symbol, Tables};
use st_model::values::NULL;

/// Whether calls of this symbol are replayed. Failed calls are: by doing nothing.
#[must_use]
pub fn is_supported(symbol: &Symbol) -> bool {
    let row = CallTable::builtin().get(symbol.call);
    symbol.error != 0 || row.is_some_and(|row| !row.properties.opaque && !row.properties.unplayed)
}

/// Whether calls of this symbol are replayed only where there is room for files.
#[must_use]
pub fn needs_files(symbol: &Symbol) -> bool {
    symbol.error == 0 && CallTable::builtin().get(symbol.call).is_some_and(|row| row.properties.files)
}

/// Whether this call is replayed. A replay is no spawned job: what a parent says to it cannot be.
#[must_use]
pub fn is_replayed(symbol: &Symbol, words: &[i64]) -> bool {
    is_supported(symbol) && !(asks_for_parent(symbol) && words.first().is_some_and(|comm| *comm != NULL))
}

pub(crate) fn asks_for_parent(symbol: &Symbol) -> bool {
    let row = CallTable::builtin().get(symbol.call);
    symbol.error == 0 && row.is_some_and(|row| row.kind == Kind::Parent)
}

/// Name of a symbol's function.
#[must_use]
pub fn name_of(symbol: &Symbol, tables: &Tables) -> String {
    tables.names.get(&symbol.call).cloned().unwrap_or_else(|| symbol.call.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_parent_that_is_there_cannot_be_replayed() {
        let row = CallTable::builtin().by_name("MPI_Comm_get_parent").unwrap();
        let symbol = |error| Symbol { call: row.id, site: 0, error };
        assert!(is_replayed(&symbol(0), &[NULL]));
        assert!(!is_replayed(&symbol(0), &[2]));
        assert!(is_replayed(&symbol(5), &[2]));
    }
}
