//! A rank's live objects, as far as they are not communicators, groups, datatypes and operations.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};

use anyhow::{Context, Result, bail};
use mpi::ffi;
use st_replay::dynamic::Used;

use crate::replay::buffers::{Block, Span};
use crate::replay::call::integer;

/// Objects that stand for the program's, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Own {
    /// Error handlers and attribute keys, by their words.
    pub(crate) handlers: HashMap<i64, ffi::MPI_Errhandler>,
    pub(crate) keyvals: HashMap<i64, c_int>,
}

/// Info objects by their numbers, and memory that is not freed yet, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Infos {
    pub(crate) live: HashMap<i64, ffi::MPI_Info>,
    pub(crate) memory: Vec<*mut c_void>,
}

/// A live window.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) handle: ffi::MPI_Win,
    /// Memory that is exposed, as far as it is not MPI's own.
    pub(crate) memory: Vec<Block>,
    /// Memory that the program attached, by address, the newest last.
    pub(crate) attached: Vec<(*mut c_void, Block)>,
    /// Of a dynamic window: address and length of each rank's region.
    pub(crate) regions: Option<Vec<[i64; 2]>>,
}

/// The live windows of a rank.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    pub(crate) live: HashMap<i64, Window>,
    pub(crate) used: HashMap<i64, Used>,
}

impl Windows {
    /// No windows yet; what dynamic ones are going to be used for is known.
    pub(crate) fn new(used: HashMap<i64, Used>) -> Self {
        Self { live: HashMap::new(), used }
    }

    pub(crate) fn window(&mut self, index: i64) -> Result<&mut Window> {
        let window = self.live.get_mut(&index);
        window.with_context(|| format!("window {index} is used but was not made by a replayed call"))
    }

    /// The window at an index.
    pub(crate) fn handle(&mut self, index: i64) -> Result<ffi::MPI_Win> {
        Ok(self.window(index)?.handle)
    }

    /// The displacement to name for a recorded one, for an access of `span` bytes from there.
    pub(crate) fn displacement(
        &mut self,
        index: i64,
        target: i64,
        recorded: i64,
        span: Span,
    ) -> Result<ffi::MPI_Aint> {
        let lowest = self.used.get(&index).and_then(|u| u.lowest.get(&target)).copied().unwrap_or(0);
        let place = usize::try_from(target).ok();
        let region = place.and_then(|t| self.live.get(&index)?.regions.as_ref()?.get(t));
        let Some(&[address, bytes]) = region else { return integer(recorded) };
        let last = bytes - span.high;
        if last + span.low < 0 {
            bail!("an access to {} bytes of a dynamic window with {bytes}", span.high - span.low);
        }
        let at = recorded.saturating_sub(lowest).min(last).max(-span.low);
        integer(address + at)
    }
}

/// The open files of a rank.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) live: HashMap<i64, ffi::MPI_File>,
    /// Where the first half of a parted operation reads into or writes from.
    pub(crate) parted: HashMap<i64, *mut c_void>,
}
