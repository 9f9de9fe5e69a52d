//! What is kept while a graph is built in several processes.

use st_model::num::saturate;
use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use st_model::columns::Column;
use st_model::section::{Section, Thread};

/// What is kept while a graph is built in several processes.
#[derive(Debug)]
pub(super) struct Sharing {
    pub(super) me: u32,
    /// Process, first stream and number of threads of each rank.
    pub(super) ranks: HashMap<u32, (u32, u32, u32), FixedState>,
    pub(super) out: Vec<Outgoing>,
    /// Processes that have members of a communicator.
    pub(super) spread: HashMap<u32, Vec<u32>, FixedState>,
    /// Places of links to things matched here, and to things matched there.
    pub(super) here: Vec<Vec<u32>>,
    pub(super) there: Vec<Vec<u32>>,
    pub(super) owners: Vec<u32>,
}

/// What is to be sent to a process.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub(super) bytes: Vec<u8>,
    pub(super) named: HashSet<u32, FixedState>,
}

/// Number of points of a rank's thread that have times.
pub(super) fn points(thread: &Thread, rank: u32) -> u32 {
    let timed = thread.column(rank).map_or(0, Column::events).saturating_mul(2);
    saturate::<u32>(timed).min(u32::MAX - 1)
}

/// Host of a rank.
pub(super) fn host(section: &Section, rank: u32) -> &str {
    section.hosts.iter().find(|(_, r)| r.contains(rank)).map_or("", |(h, _)| h)
}
