//! Windows and files in use: from handles to indices in the trace's tables.

use crate::maker::Maker;
use foldhash::fast::FixedState;
use st_model::objects::{Registry, SharedObject};
use std::collections::HashMap;
use std::ffi::c_int;

/// Windows or files in use.
#[derive(Debug)]
pub(crate) struct SharedObjects {
    null: u64,
    by_handle: HashMap<u64, i64, FixedState>,
    /// The one of most calls.
    last: (u64, i64),
    /// Per dynamic window the first displacement that the caller used, by target. Displacements are addresses there, and
    /// differ from run to run; the distances between them do not.
    bases: HashMap<i64, HashMap<c_int, i64, FixedState>, FixedState>,
}

impl SharedObjects {
    /// None yet; `null` is the null handle.
    pub(crate) fn new(null: u64) -> Self {
        Self { null, by_handle: HashMap::default(), last: (null, -1), bases: HashMap::default() }
    }

    /// Index of one that is known.
    pub(crate) fn find(&mut self, handle: u64) -> Option<i64> {
        if self.last.0 != handle {
            self.last = (handle, *self.by_handle.get(&handle)?);
        }
        Some(self.last.1)
    }

    /// Registers a new one.
    pub(crate) fn create(
        &mut self,
        handle: u64,
        maker: Maker<'_>,
        content: SharedObject,
        registry: &mut Registry<SharedObject>,
    ) -> i64 {
        let index = registry.create(maker.call, maker.site, content);
        self.by_handle.insert(handle, index);
        self.last = (handle, index);
        index
    }

    /// Forgets one.
    pub(crate) fn free(&mut self, handle: u64, registry: &mut Registry<SharedObject>) {
        if let Some(index) = self.by_handle.remove(&handle) {
            registry.free(index);
            self.bases.remove(&index);
        }
        self.last = (self.null, -1);
    }

    /// Displacements in a window are addresses.
    pub(crate) fn has_addresses(&mut self, index: i64) {
        self.bases.insert(index, HashMap::default());
    }

    /// A displacement in a target's window: where it is an address, relative to the first that the caller used there.
    pub(crate) fn displacement(&mut self, index: i64, target: c_int, disp: i64) -> i64 {
        match self.bases.get_mut(&index) {
            Some(bases) => disp.wrapping_sub(*bases.entry(target).or_insert(disp)),
            None => disp,
        }
    }
}
