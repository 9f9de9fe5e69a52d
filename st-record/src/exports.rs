//! The functions of MPI that a library exports, and those of them that a recorder does not have: their calls are missed. The recorder
//! compiles this file, too.

use crate::left_out::is_left_out;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol, ReadCache, SymbolKind};
use st_model::calls::CallTable;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

/// Names of the functions of MPI that a library exports to C, without their `PMPI` twins.
#[must_use]
pub fn functions(library: &Path) -> BTreeSet<String> {
    // Only the tables of symbols are read. What cannot be read exports nothing.
    let Ok(file) = File::open(library) else { return BTreeSet::new() };
    let cache = ReadCache::new(file);
    let Ok(elf) = ElfFile64::<Endianness, _>::parse(&cache) else { return BTreeSet::new() };
    let defined = elf.dynamic_symbols().filter(|s| s.is_definition() && s.kind() == SymbolKind::Text);
    defined.filter_map(|s| s.name().ok().filter(|name| is_function(name)).map(str::to_owned)).collect()
}

/// Whether a name is that of one of MPI's functions in C, whose first word is `Send`, not `SEND` or `send`.
fn is_function(name: &str) -> bool {
    let rest = name.strip_prefix("MPI_").or_else(|| name.strip_prefix("MPIX_"));
    let mut letters = rest.unwrap_or_default().chars();
    letters.next().is_some_and(char::is_uppercase) && letters.any(char::is_lowercase)
}

/// The functions of a library whose calls would be missed by a recorder with the second ones: first those that the call table
/// knows, which are the standard's, then others.
#[must_use]
pub fn missed(library: &BTreeSet<String>, recorder: &BTreeSet<String>) -> Vec<String> {
    // Open MPI's questions for what it is built with have no twins by `PMPI`, and cannot be stood in for; they are local.
    let asks = |name: &str| name.starts_with("MPIX_") && name.ends_with("_support");
    let missed = library.difference(recorder).filter(|name| !is_left_out(name) && !asks(name));
    let mut all: Vec<_> = missed.cloned().collect();
    let table = CallTable::builtin();
    all.sort_by_key(|name| (table.by_name(name).is_none(), name.starts_with("MPIX_")));
    all
}

/// `3 functions of this MPI are not recorded: MPI_A, MPI_B, MPI_C`; `None` if there are none.
#[must_use]
pub fn said(missed: &[String]) -> Option<String> {
    const NAMED: usize = 8;
    let functions = if missed.len() == 1 { "function of this MPI is" } else { "functions of this MPI are" };
    let more = match missed.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let named = missed.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    (!missed.is_empty()).then(|| format!("{} {functions} not recorded: {named}{more}", missed.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_in_c_are_told_from_fortran_and_the_standard_comes_first() {
        let is = ["MPI_Send", "MPIX_Query_cuda_support"].map(is_function);
        assert_eq!(is, [true; 2]);
        let other =
            ["MPI_SEND", "mpi_send_", "PMPI_Send", "MPIR_Err", "MPI_", "MPI_COMM_DUP_FN", "MPI_WTIME_F90"];
        assert_eq!(other.map(is_function), [false; 7]);
        let set = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>();
        let library = set(&[
            "MPIX_A",
            "MPIX_Query_cuda_support",
            "MPI_Made_up",
            "MPI_Send",
            "MPI_Recv",
            "MPI_Comm_c2f",
        ]);
        let found = missed(&library, &set(&["MPI_Recv"]));
        assert_eq!(found, ["MPI_Send", "MPI_Made_up", "MPIX_A"]);
        let text = "3 functions of this MPI are not recorded: MPI_Send, MPI_Made_up, MPIX_A";
        assert_eq!(said(&found).as_deref(), Some(text));
        assert_eq!(said(&found[..1]).as_deref(), Some("1 function of this MPI is not recorded: MPI_Send"));
        let many: Vec<_> = (0..9).map(|i| format!("MPI_F{i}")).collect();
        assert!(said(&many).is_some_and(|text| text.ends_with(", MPI_F7 and 1 more")));
        assert_eq!((said(&[]), functions(Path::new("/dev/null"))), (None, BTreeSet::new()));
    }
}
