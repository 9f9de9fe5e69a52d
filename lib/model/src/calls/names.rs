//! The names of the call table's functions, for the few who must name one: what a function does is in its row.
#![expect(non_upper_case_globals, reason = "functions are called what MPI calls them")]

include!(concat!(env!("OUT_DIR"), "/names.rs"));
