//! The names of the call table's functions, for the few who must name one: what a function does is in its row.
#![expect(non_upper_case_globals, reason = "functions are called what MPI calls them")]

/// What begins the names of the tools' interface, whose functions have no rows: they do nothing with others, and may be called where no
/// other function of MPI may be.
pub const TOOLS: &str = "MPI_T_";

include!(concat!(env!("OUT_DIR"), "/names.rs"));
