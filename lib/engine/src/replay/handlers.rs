//! From calls to the functions that make them again.

use std::collections::HashMap;

use crate::replay::state::Handler;
use crate::replay::{
    attributes, bookkeeping, collective, comm, completion, environment, files, group, info, neighbor, p2p,
    partitioned, persistent, probe, queries, rma, topology, types, window,
};

/// All functions that can be replayed, by MPI's names.
pub(crate) fn handlers() -> HashMap<&'static str, Handler> {
    let families: [&[(&'static str, Handler)]; 20] = [
        environment::CALLS,
        p2p::CALLS,
        persistent::CALLS,
        completion::CALLS,
        probe::CALLS,
        collective::CALLS,
        neighbor::CALLS,
        partitioned::CALLS,
        window::CALLS,
        rma::CALLS,
        files::CALLS,
        files::TRANSFERS,
        comm::CALLS,
        group::CALLS,
        topology::CALLS,
        types::CALLS,
        queries::CALLS,
        bookkeeping::CALLS,
        attributes::CALLS,
        info::CALLS,
    ];
    families.into_iter().flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_model::calls::CallTable;

    #[test]
    fn every_call_of_the_table_can_be_replayed_and_no_other() {
        let handlers = handlers();
        let rows = CallTable::builtin().rows();
        let missing: Vec<_> = rows
            .iter()
            .filter(|r| {
                let played = !r.properties.opaque && !r.properties.unplayed;
                played && r.name != "MPI_Abort" && !handlers.contains_key(r.base())
            })
            .map(|r| &r.name)
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
        let known = |n: &str| {
            let row = CallTable::builtin().by_name(n);
            row.is_some_and(|r| !r.properties.opaque && !r.properties.unplayed)
        };
        let unknown: Vec<_> = handlers.keys().filter(|n| !known(n)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
