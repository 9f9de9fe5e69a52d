//! One rank's replay: its live objects.

use std::ffi::c_int;

use anyhow::Result;
use mpi::ffi;
use st_match::lookahead::{LookAhead, Received};
use st_match::wildcards::is_open;
use st_replay::words::Words;

use crate::replay::buffers::{Memory, Span};
use crate::replay::constants::Constants;
use crate::replay::handles::Handles;
use crate::replay::objects::{Files, Infos, Own, Windows};
use crate::replay::pause::{MadeAt, Pause};
use crate::replay::requests::{Kept, Requests};

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
    /// Position of the call being made.
    pub(crate) index: u64,
    pub(crate) ahead: LookAhead<'a>,
    /// Statuses of the call being made.
    pub(crate) statuses: Vec<ffi::MPI_Status>,
    /// Handles of the call being made, and the variables in which they were made.
    pub(crate) array: Vec<ffi::MPI_Request>,
    pub(crate) places: Vec<*const ffi::MPI_Request>,
    /// What `MPI_Buffer_attach` was given.
    pub(crate) attached: Vec<u128>,
    pub(crate) own: Own,
    pub(crate) infos: Infos,
    pub(crate) windows: Windows,
    pub(crate) files: Files,
}

impl Replay<'_> {
    /// The source and tag to name in a receive that does not wait: where they are wildcards, what it got.
    pub(crate) fn named(&mut self, source: i64, tag: i64) -> Result<(c_int, c_int)> {
        let (mut source, mut tag) = (source, tag);
        if is_open(source, tag)
            && let Received::Message { source: from, tag: of } = self.ahead.outcome(self.index)?
        {
            (source, tag) = (from, of);
        }
        Ok((self.k.rank(source), self.k.tag(tag)))
    }

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

/// Does something that the program did not do.
pub(crate) fn hidden<T>(r: &mut Replay<'_>, act: impl FnOnce(&mut Replay<'_>) -> Result<T>) -> Result<T> {
    let _hidden = r.pause.hide();
    act(r)
}

/// Starts an operation, whose request is the next word.
pub(crate) fn started(
    r: &mut Replay<'_>,
    w: &mut Words<'_>,
    kept: Kept,
    start: impl FnOnce(*mut ffi::MPI_Request) -> Result<()>,
) -> Result<()> {
    let slot = w.word()?;
    start(r.requests.place(slot, &r.k)?)?;
    r.requests.start(slot, false, kept);
    Ok(())
}
