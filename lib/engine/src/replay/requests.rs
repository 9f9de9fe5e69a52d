//! Started operations by request slot, with everything that must live until they complete.

use std::collections::HashMap;

use anyhow::{Context, Result};
use mpi::ffi;
use st_model::values::NULL;

use crate::replay::arguments::Arguments;
use crate::replay::buffers::Block;
use crate::replay::constants::Constants;

/// What an operation needs until it completes.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Memory that it receives into.
    pub(crate) blocks: Vec<Block>,
    /// Lists that it reads.
    pub(crate) arguments: Option<Box<Arguments>>,
    /// Where it puts a communicator, and the index that the communicator gets.
    pub(crate) newcomm: Option<(i64, Box<ffi::MPI_Comm>)>,
    /// Asking does not bring it on.
    pub(crate) silent: bool,
}

/// What a non-blocking call keeps until it is complete.
pub(crate) type Later<'k> = Option<&'k mut Kept>;

#[derive(Debug)]
struct Request {
    persistent: bool,
    /// Whether its operation may be going on.
    active: bool,
    kept: Kept,
}

/// The live requests of a rank.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    slots: HashMap<i64, Request>,
    /// The variable that holds the handle, by slot. It never moves: a recorder tells requests that share a handle apart
    /// by the place where the program keeps them.
    #[expect(clippy::vec_box, reason = "the addresses must outlive a growing vector")]
    places: Vec<Box<ffi::MPI_Request>>,
    messages: HashMap<i64, ffi::MPI_Message>,
    /// What operations need whose request was freed before they completed: kept for good.
    abandoned: Vec<Kept>,
}

impl Requests {
    /// The variable for a new request in a slot.
    pub(crate) fn place(&mut self, slot: i64, k: &Constants) -> Result<*mut ffi::MPI_Request> {
        let i = usize::try_from(slot).context("a started operation without a request")?;
        while self.places.len() <= i {
            self.places.push(Box::new(k.request_null));
        }
        Ok(&raw mut *self.places[i])
    }

    /// An operation has been started, or a persistent one made; its handle is in the slot's place.
    pub(crate) fn start(&mut self, slot: i64, persistent: bool, kept: Kept) {
        if let Some(old) = self.slots.insert(slot, Request { persistent, active: !persistent, kept }) {
            self.abandoned.push(old.kept);
        }
    }

    /// The variable of a live request.
    pub(crate) fn live(&mut self, slot: i64) -> Result<*mut ffi::MPI_Request> {
        let place = usize::try_from(slot).ok().filter(|_| self.slots.contains_key(&slot));
        let place = place.and_then(|i| self.places.get_mut(i));
        let place = place
            .with_context(|| format!("request {slot} is used but was not started by a replayed call"))?;
        Ok(&raw mut **place)
    }

    /// The handle in a slot; null for the null slot.
    pub(crate) fn handle(&self, slot: i64, k: &Constants) -> Result<ffi::MPI_Request> {
        if slot == NULL {
            return Ok(k.request_null);
        }
        let place = usize::try_from(slot).ok().filter(|_| self.slots.contains_key(&slot));
        let place = place.and_then(|i| self.places.get(i));
        Ok(**place
            .with_context(|| format!("request {slot} is used but was not started by a replayed call"))?)
    }

    /// The handles of all live requests.
    pub(crate) fn all(&self) -> Vec<ffi::MPI_Request> {
        let place = |slot: &i64| usize::try_from(*slot).ok().and_then(|i| self.places.get(i));
        self.slots.keys().filter_map(place).map(|p| **p).collect()
    }

    /// The persistent operation in a slot has been started.
    pub(crate) fn restart(&mut self, slot: i64) {
        if let Some(request) = self.slots.get_mut(&slot) {
            request.active = true;
        }
    }

    /// The operation in a slot has completed; what it kept is given back, unless it is persistent.
    pub(crate) fn complete(&mut self, slot: i64) -> Option<Kept> {
        let request = self.slots.get_mut(&slot)?;
        request.active = false;
        if request.persistent {
            return None;
        }
        self.slots.remove(&slot).map(|r| r.kept)
    }

    /// The request in a slot has been freed; what it kept is given back, unless its operation may go on.
    pub(crate) fn abandon(&mut self, slot: i64) -> Option<Kept> {
        let request = self.slots.remove(&slot)?;
        if request.active {
            self.abandoned.push(request.kept);
            return None;
        }
        Some(request.kept)
    }

    /// Whether asking about the request in a slot may never say that it is complete.
    pub(crate) fn is_silent(&self, slot: i64) -> bool {
        self.slots.get(&slot).is_some_and(|r| r.kept.silent)
    }

    /// A matched probe has found a message.
    pub(crate) fn found(&mut self, slot: i64, message: ffi::MPI_Message) {
        if slot != NULL {
            self.messages.insert(slot, message);
        }
    }

    /// Takes the message in a slot to receive it; without one, what a probe of `MPI_PROC_NULL` finds.
    pub(crate) fn take_message(&mut self, slot: i64, k: &Constants) -> ffi::MPI_Message {
        self.messages.remove(&slot).unwrap_or(k.message_no_proc)
    }
}
