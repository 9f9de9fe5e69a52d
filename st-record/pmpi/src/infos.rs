//! Info objects in use.

use crate::constants as k;
use foldhash::fast::FixedState;
use st_model::lowest::Lowest;
use st_model::values::{INFO_ENV, NULL};
use std::collections::HashMap;

/// Info objects in use.
#[derive(Debug, Default)]
pub(crate) struct Infos {
    by_handle: HashMap<u64, u32, FixedState>,
    numbers: Lowest,
}

impl Infos {
    /// Number of an info object; one that some unknown function made gets a number now.
    pub(crate) fn number(&mut self, handle: u64) -> i64 {
        match handle {
            h if h == k::MPI_INFO_NULL() => NULL,
            h if h == k::MPI_INFO_ENV() => INFO_ENV,
            _ => i64::from(*self.by_handle.entry(handle).or_insert_with(|| self.numbers.take())),
        }
    }

    /// Forgets an info object.
    pub(crate) fn free(&mut self, handle: u64) {
        if let Some(number) = self.by_handle.remove(&handle) {
            self.numbers.give(number);
        }
    }
}
