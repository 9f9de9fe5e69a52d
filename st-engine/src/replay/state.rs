//! One rank's replay: its live objects, and the table from calls to the functions that make them again.

use std::collections::HashMap;

use anyhow::Result;
use mpi::ffi;
use st_replay::lookahead::LookAhead;
use st_replay::words::Words;

use crate::replay::buffers::{Memory, Span};
use crate::replay::constants::Constants;
use crate::replay::handles::Handles;
use crate::replay::pause::{MadeAt, Pause};
use crate::replay::requests::{Kept, Requests};
use crate::replay::{
    attributes, bookkeeping, collective, comm, completion, environment, files, group, info, neighbor, p2p,
    partitioned, persistent, probe, queries, rma, topology, types, window,
};

/// Makes one recorded call again from its words.
pub(crate) type Handler = fn(&mut Replay<'_>, &mut Words<'_>) -> Result<()>;

/// What the calls made so far have left behind.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    pub(crate) k: Constants,
    pub(crate) pause: Pause,
    pub(crate) made_at: MadeAt,
    /// Whether the rank has several threads.
    pub(crate) threaded: bool,
    pub(crate) handles: Handles<'a>,
    pub(crate) requests: Requests,
    pub(crate) memory: Memory,
    pub(crate) ahead: LookAhead<'a>,
    /// Statuses of the call being made.
    pub(crate) statuses: Vec<ffi::MPI_Status>,
    /// Handles of the call being made, and the variables in which they were made.
    pub(crate) array: Vec<ffi::MPI_Request>,
    pub(crate) places: Vec<*const ffi::MPI_Request>,
    /// What `MPI_Buffer_attach` was given.
    pub(crate) attached: Vec<u128>,
    pub(crate) own: bookkeeping::Own,
    pub(crate) infos: info::Infos,
    pub(crate) windows: window::Windows,
    pub(crate) files: files::Files,
}

impl Replay<'_> {
    /// Memory to receive into: shared for a blocking call, kept in `kept` for one that goes on.
    pub(crate) fn sink(&mut self, span: Span, kept: Option<&mut Kept>) -> Result<*mut std::ffi::c_void> {
        match kept {
            None => self.memory.sink(span),
            Some(kept) => {
                let (block, address) = self.memory.lease(span)?;
                kept.blocks.push(block);
                Ok(address)
            }
        }
    }

    /// The operation in a slot has completed: gives its memory back and its communicator an index.
    pub(crate) fn complete(&mut self, slot: i64) -> Result<()> {
        if let Some(kept) = self.requests.complete(slot) {
            kept.blocks.into_iter().for_each(|b| self.memory.release(b));
            if let Some((index, handle)) = kept.newcomm {
                self.handles.bind_comm(index, *handle)?;
            }
        }
        Ok(())
    }
}

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
    use st_trace::calls::CallTable;

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
