//! Who the ranks are in the calls of one symbol, and how often each makes them: what turning values into codes needs.

use std::collections::HashMap;

use st_trace::form::Own;

/// The ranks that execute a symbol. Ranks whose own rank is their rank in the world take no space.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    world: i64,
    others: HashMap<u32, Own>,
    /// Some rank calls on communicators in which its own rank differs.
    unknown: bool,
}

impl Callers {
    /// Notes who a rank is; `None` if that differs from call to call.
    pub(crate) fn add(&mut self, rank: u32, own: Option<Own>) {
        match own {
            None => self.unknown = true,
            Some(own) if own.me == i64::from(rank) && (self.world == 0 || own.size == self.world) => {
                self.world = own.size;
            }
            Some(own) => {
                self.others.insert(rank, own);
            }
        }
    }
    /// Whether every rank is somebody.
    pub(crate) fn known(&self) -> bool {
        !self.unknown
    }
    pub(crate) fn of(&self, rank: u32) -> Own {
        let world = Own { me: rank.into(), size: self.world };
        self.others.get(&rank).copied().unwrap_or(world)
    }
}

/// Number of values that each rank reads of a stream; most ranks read equally many.
#[derive(Debug, Default)]
pub(crate) struct Lengths {
    first: Option<u64>,
    others: HashMap<u32, u64>,
}

impl Lengths {
    pub(crate) fn add(&mut self, rank: u32, len: u64) {
        if *self.first.get_or_insert(len) != len {
            self.others.insert(rank, len);
        }
    }
    pub(crate) fn of(&self, rank: u32) -> u64 {
        self.others.get(&rank).copied().or(self.first).unwrap_or(0)
    }
}
