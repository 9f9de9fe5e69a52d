//! What a trace knows by a number only: attribute keys, error handlers, sessions.

use crate::constants as k;
use foldhash::fast::FixedState;
use st_model::lowest::Lowest;
use st_model::num::narrow;
use st_model::values::{ERRHANDLERS, FIRST_NAMED, NULL};
use std::collections::HashMap;

/// Objects of one kind in use. A number is the lowest that is free in the process when the object is made, and free
/// again when the last reference to it is given up.
#[derive(Debug, Default)]
pub(crate) struct Numbered {
    by_handle: HashMap<u64, (u32, u32), FixedState>,
    numbers: Lowest,
}

impl Numbered {
    /// Number of an object; one that some unknown function made gets a number now.
    pub(crate) fn number(&mut self, handle: u64) -> i64 {
        i64::from(self.by_handle.entry(handle).or_insert_with(|| (self.numbers.take(), 1)).0)
    }

    /// Number of an object that the call has made, or made one more reference to.
    pub(crate) fn refer(&mut self, handle: u64) -> i64 {
        let of = self.by_handle.entry(handle).or_insert_with(|| (self.numbers.take(), 0));
        of.1 += 1;
        i64::from(of.0)
    }

    /// Whether none is in use.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_handle.is_empty()
    }

    /// Gives up a reference.
    pub(crate) fn free(&mut self, handle: u64) {
        let Some(of) = self.by_handle.get_mut(&handle) else { return };
        of.1 -= 1;
        if of.1 == 0 {
            self.numbers.give(of.0);
            self.by_handle.remove(&handle);
        }
    }
}

/// The three kinds.
#[derive(Debug, Default)]
pub(crate) struct Minor {
    pub(crate) keyvals: Numbered,
    pub(crate) errhandlers: Numbered,
    pub(crate) sessions: Numbered,
    /// Words of the predefined error handlers.
    pub(crate) predefined: HashMap<u64, i64, FixedState>,
}

/// Word of the `i`-th predefined object.
pub(crate) fn named(i: usize) -> i64 {
    FIRST_NAMED - narrow::<i64>(i)
}

impl Minor {
    /// Learns the predefined error handlers.
    pub(crate) fn start() -> Self {
        let names = k::predefined("error handlers", k::MPI_ERRHANDLER_NULL());
        let word = |name: &str| ERRHANDLERS.iter().position(|n| *n == name).map_or(NULL, named);
        let mut predefined: HashMap<_, _, _> = names.into_iter().map(|(h, name)| (h, word(name))).collect();
        predefined.insert(k::MPI_ERRHANDLER_NULL(), NULL);
        Self { predefined, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_lasts_as_long_as_its_references() {
        let mut n = Numbered::default();
        assert_eq!((n.refer(7), n.refer(9), n.refer(7)), (0, 1, 0));
        n.free(7);
        assert_eq!(n.number(7), 0);
        n.free(7);
        assert_eq!((n.refer(8), n.number(9)), (0, 1));
        n.free(5);
        assert_eq!(n.number(5), 2);
        [5, 8, 9].into_iter().for_each(|handle| n.free(handle));
        assert!(n.is_empty());
    }
}
