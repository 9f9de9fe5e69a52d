//! Which calls are replayed, and what they are called.

use std::collections::HashSet;

use st_model::calls::names::TOOLS;
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

/// Whether a symbol's calls are of the tools' interface: a replay does without them, and no other call is missed for that.
#[must_use]
pub fn is_of_tools(symbol: &Symbol, tables: &Tables) -> bool {
    tables.names.get(&symbol.call).is_some_and(|name| name.starts_with(TOOLS))
}

/// Whether calls of this symbol are replayed only where there is room for files.
#[must_use]
pub fn needs_files(symbol: &Symbol) -> bool {
    symbol.error == 0 && CallTable::builtin().get(symbol.call).is_some_and(|row| row.properties.files)
}

/// Where a trace is to be replayed, which decides what of it cannot be: with `--skip-unsupported` these calls are left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Where {
    /// There is a place for files.
    pub files: bool,
    /// Functions that the MPI does not have.
    pub lacking: HashSet<String>,
}

/// Why a call cannot be replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// What it is: its function cannot be, or not here, or what it asks for.
    Itself,
    /// It has a number that does not fit a C int.
    Wide,
}

impl Where {
    /// Whether no call of this symbol can be replayed.
    #[must_use]
    pub fn refuses(&self, symbol: &Symbol) -> bool {
        let lacks = |row: &Row| self.lacking.contains(row.base());
        let row = || CallTable::builtin().get(symbol.call).filter(|_| symbol.error == 0);
        !is_supported(symbol) || !self.files && needs_files(symbol) || row().is_some_and(lacks)
    }
}

/// Whether it depends on its words whether a call of this symbol can be replayed; `scaled`: numbers in them were changed.
#[must_use]
pub fn is_suspect(symbol: &Symbol, scaled: bool) -> bool {
    let may_be_wide = |row: &Row| scaled || row.like.is_some();
    symbol.error == 0 && CallTable::builtin().get(symbol.call).is_some_and(may_be_wide)
        || asks_for_parent(symbol)
}

/// Why a call whose symbol can be replayed cannot be with these words. A replay is no spawned job: what a parent says to it cannot be.
#[must_use]
pub fn refusal(symbol: &Symbol, words: &[i64]) -> Option<Refused> {
    let row = CallTable::builtin().get(symbol.call).filter(|_| symbol.error == 0)?;
    if asks_for_parent(symbol) && words.first().is_some_and(|comm| *comm != NULL) {
        return Some(Refused::Itself);
    }
    is_wide(row, words).then_some(Refused::Wide)
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

fn asks_for_parent(symbol: &Symbol) -> bool {
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
        assert_eq!(refusal(&symbol(0), &[NULL]), None);
        assert_eq!(refusal(&symbol(0), &[2]), Some(Refused::Itself));
        assert_eq!(refusal(&symbol(5), &[2]), None);
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
