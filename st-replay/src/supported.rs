//! Which calls are replayed, and what they are called.

use st_model::calls::words::each;
use st_model::calls::{CallTable, Kind, Row, Slot};
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

/// Whether calls of this symbol may have numbers that a replay, which makes them with C ints, has no room for.
pub(crate) fn may_be_wide(symbol: &Symbol) -> bool {
    symbol.error == 0 && CallTable::builtin().get(symbol.call).is_some_and(|row| row.like.is_some())
}

/// Whether a call has a number that a replay has no room for.
#[must_use]
pub fn is_wide(row: &Row, words: &[i64]) -> bool {
    let int = |slot: &Slot| row.params.iter().any(|p| p.name == slot.name && INTS.contains(&&*p.role));
    each(&row.slots, words).any(|(slot, own)| own.iter().any(|w| i32::try_from(*w).is_err()) && int(slot))
}

/// Roles of what a replay hands to MPI as C ints.
const INTS: [&str; 9] =
    ["count", "counts", "rootcount", "rootcounts", "origincount", "displs", "rootdispls", "int", "ints"];

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

    #[test]
    fn numbers_that_are_given_must_fit_a_c_int() {
        let row = |name| CallTable::builtin().by_name(name).unwrap();
        let large = 2_200_000_000;
        // count type dest tag comm; count type source tag comm rsource rtag bytes
        assert!(is_wide(row("MPI_Send_c"), &[large, 0, 1, 0, 0]));
        assert!(!is_wide(row("MPI_Send_c"), &[5, 0, 1, 0, 0]));
        assert!(!is_wide(row("MPI_Recv_c"), &[5, 0, 1, 0, 0, -9, -9, large]));
        assert!(is_wide(row("MPI_Type_contiguous_c"), &[1 << 33, 0, 5]));
        // count blocklength stride type newtype
        assert!(!is_wide(row("MPI_Type_create_hvector_c"), &[5, 1, large, 0, 5]));
    }
}
