//! The trace that is converted, and its threads.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_cli::Whole;
use st_match::volume::Graphs;
use st_model::num::{Exact as _, narrow};
use st_model::ranklist::RankList;
use st_model::section::Section;
use st_model::sites::CallSites;

use crate::window::Window;

/// One thread of one rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    /// World rank.
    pub(crate) rank: u32,
    /// Index of the thread in its section.
    pub(crate) thread: u32,
    /// Index of its node in [`Trace::hosts`].
    pub(crate) host: u32,
    /// Index of its section.
    pub(crate) section: usize,
    /// Calls, a series of polls being one.
    pub(crate) calls: u64,
    /// Calls of which the exact times are known.
    pub(crate) timed: u64,
}

/// A trace with its call sites named, and the threads that are asked for.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) whole: Whole,
    pub(crate) sections: Vec<Section>,
    pub(crate) sites: CallSites,
    /// Of each section: the number of each of its sites.
    pub(crate) numbers: Vec<Vec<u32>>,
    pub(crate) hosts: Vec<String>,
    /// By rank and thread.
    pub(crate) lanes: Vec<Lane>,
    /// When the first rank entered `MPI_Init`, by the trace's clock.
    pub(crate) zero: Option<i64>,
    pub(crate) graphs: Graphs,
    /// What is written of it.
    pub(crate) window: Window,
    /// Calls of these threads.
    pub(crate) events: u64,
}

impl Trace {
    /// Finds the threads of all ranks, or of those that are asked for.
    pub(crate) fn find_lanes(&mut self, asked: Option<&RankList>) {
        let Self { sections, hosts, lanes, events, .. } = self;
        let mut known: HashMap<&str, u32, FixedState> = HashMap::default();
        for (number, section) in sections.iter().enumerate() {
            let mut host_of: HashMap<u32, u32, FixedState> = HashMap::default();
            for (host, ranks) in &section.hosts {
                let at = *known.entry(host).or_insert_with(|| {
                    hosts.push(host.clone());
                    narrow(hosts.len() - 1)
                });
                host_of.extend(ranks.iter().map(|rank| (rank, at)));
            }
            let unnamed = |hosts: &mut Vec<String>| {
                hosts.push(String::new());
                narrow(hosts.len() - 1)
            };
            for rank in section.ranks.iter().filter(|rank| asked.is_none_or(|asked| asked.contains(*rank))) {
                let host = match host_of.get(&rank) {
                    Some(host) => *host,
                    None => *known.entry("").or_insert_with(|| unnamed(hosts)),
                };
                let there = section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank));
                for (i, thread) in there {
                    let column = thread.columns.iter().find(|(of, _)| *of == rank);
                    let timed = column.map_or(0, |(_, column)| column.events());
                    let calls = section.calls_of(thread, rank).into_iter().fold(0, u64::saturating_add);
                    *events = events.saturating_add(calls);
                    lanes.push(Lane { rank, thread: narrow(i), host, section: number, calls, timed });
                }
            }
        }
        lanes.sort_by_key(|lane| (lane.rank, lane.thread));
    }

    /// Whether exact times of all of these threads are there; some may lack those of their last calls.
    pub(crate) fn is_timed(&self) -> bool {
        self.zero.is_some() && self.lanes.iter().all(|lane| lane.timed > 0 || lane.calls == 0)
    }

    pub(crate) fn section(&self, lane: &Lane) -> &Section {
        &self.sections[lane.section]
    }

    /// Name of a thread's node.
    pub(crate) fn host(&self, lane: &Lane) -> &str {
        self.hosts.get(lane.host.to_usize()).map_or("", String::as_str)
    }

    /// Whether calls of a rank are written.
    pub(crate) fn has(&self, rank: u32) -> bool {
        self.lanes.binary_search_by_key(&rank, |lane| lane.rank).is_ok()
    }

    /// When the first of these calls is entered, ns since the zero: before it, if at all.
    pub(crate) fn first(&self) -> i64 {
        let zero = self.zero.unwrap_or(0);
        let columns = self.lanes.iter().filter_map(|lane| {
            let thread = self.section(lane).threads.get(lane.thread.to_usize())?;
            let column = thread.columns.iter().find(|(rank, _)| *rank == lane.rank)?;
            column.1.times().next().map(|(enter, _)| enter.saturating_sub(zero))
        });
        columns.min().unwrap_or(0).min(0)
    }
}
