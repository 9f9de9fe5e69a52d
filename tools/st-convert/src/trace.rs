//! The trace that is converted, and its threads.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use st_cli::{Whole, counted};
use st_explain::PhasesBy;
use st_match::volume::Graphs;
use st_model::calls::{CallTable, Meaning};
use st_model::columns::Column;
use st_model::lead::lead_thread;
use st_model::num::{Exact as _, float, narrow};
use st_model::ranklist::RankList;
use st_model::section::{PathSketch, Section, Symbol};
use st_model::sites::CallSites;

use crate::choice::Chosen;
use crate::level::Level;
use crate::numbering::Numbering;
use crate::window::Window;

/// One thread of one rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    /// World rank.
    pub(crate) rank: u32,
    /// Index of the thread in its section.
    pub(crate) thread: u32,
    /// It stands for its rank.
    pub(crate) leads: bool,
    /// Index of its node in [`Trace::hosts`].
    pub(crate) host: u32,
    /// Index of its section.
    pub(crate) section: usize,
    /// Calls, a series of polls being one.
    pub(crate) calls: u64,
    /// Calls of which the exact times are known.
    pub(crate) timed: u64,
}

/// A trace with its call sites named, and what is asked for of it. Cloning shares what was read.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) whole: Arc<Whole>,
    pub(crate) sections: Arc<[Section]>,
    pub(crate) sites: Arc<CallSites>,
    /// Of each section: the number of each of its sites.
    pub(crate) numbers: Arc<[Vec<u32>]>,
    pub(crate) hosts: Arc<[String]>,
    /// By rank and thread.
    pub(crate) lanes: Vec<Lane>,
    /// When the first rank entered `MPI_Init`, by the trace's clock.
    pub(crate) zero: Option<i64>,
    pub(crate) graphs: Arc<Graphs>,
    /// Numbers of communicators, windows and files.
    pub(crate) numbering: Arc<Numbering>,
    /// When calls are that are written.
    pub(crate) window: Window,
    /// Which these are, if not all.
    pub(crate) chosen: Chosen,
    /// Wait states are looked for, where a format has them only if they are asked for.
    pub(crate) waits: bool,
    /// How much of these is written.
    pub(crate) level: Level,
    /// What phases are.
    pub(crate) by: PhasesBy,
    /// Calls of these threads, a series of polls being one.
    pub(crate) events: u64,
    /// Calls of these threads, of a series of polls each; `None` if they are some ranks of sections whose threads know the sum of all.
    pub(crate) made: Option<u64>,
}

impl Trace {
    /// Finds the threads of all ranks, or of those that are asked for.
    pub(crate) fn find_lanes(&mut self, asked: Option<&RankList>) {
        let all =
            |section: &Section| asked.is_none_or(|asked| section.ranks.iter().all(|r| asked.contains(r)));
        let none =
            |section: &Section| asked.is_some_and(|asked| !section.ranks.iter().any(|r| asked.contains(r)));
        let made = |section: &Section| match (all(section), none(section)) {
            (true, _) => Some(section.threads.iter().fold(0u64, |sum, t| sum.saturating_add(t.lanes.calls))),
            (false, true) => Some(0),
            (false, false) => None,
        };
        self.made = self.sections.iter().map(made).try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)));
        let Self { sections, lanes, events, .. } = self;
        let mut hosts: Vec<String> = Vec::new();
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
                    None => *known.entry("").or_insert_with(|| unnamed(&mut hosts)),
                };
                let lead = lead_thread(section, rank);
                let there = section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank));
                for (i, thread) in there {
                    let timed = thread.column(rank).map_or(0, Column::events);
                    let calls = section.calls_of(thread, rank).into_iter().fold(0, u64::saturating_add);
                    *events = events.saturating_add(calls);
                    lanes.push(Lane {
                        rank,
                        thread: narrow(i),
                        leads: i == lead,
                        host,
                        section: number,
                        calls,
                        timed,
                    });
                }
            }
        }
        lanes.sort_by_key(|lane| (lane.rank, lane.thread));
        self.hosts = hosts.into();
    }

    /// The same, of some of these threads.
    pub(crate) fn of_lanes(&self, lanes: Vec<Lane>) -> Self {
        let events = lanes.iter().map(|lane| lane.calls).fold(0, u64::saturating_add);
        Self { lanes, events, made: None, ..self.clone() }
    }

    /// Whether exact times of all of these threads are there; some may lack those of their last calls.
    pub(crate) fn is_timed(&self) -> bool {
        self.zero.is_some() && self.lanes.iter().all(|lane| lane.timed > 0 || lane.calls == 0)
    }

    pub(crate) fn section(&self, lane: &Lane) -> &Section {
        &self.sections[lane.section]
    }

    /// Whether all calls of these threads are written.
    pub(crate) fn is_whole(&self) -> bool {
        self.window.is_all() && self.chosen.is_all()
    }

    /// What a thread's sketches hold, where that is of its rank alone and of all of its calls: their sums are exact then.
    pub(crate) fn sketches(&self, lane: &Lane) -> Option<&[PathSketch]> {
        let of = self.section(lane).threads.get(lane.thread.to_usize())?;
        let whole = self.window.is_all() && self.chosen.is_of_any_time() && of.ranks.len() == 1;
        Some(&of.sketches[..]).filter(|sketches| whole && !sketches.is_empty())
    }

    /// The threads of a rank.
    pub(crate) fn lanes_of(&self, rank: u32) -> &[Lane] {
        let at = |rank: u32| self.lanes.partition_point(|lane| lane.rank < rank);
        self.lanes.get(at(rank)..).map_or(&[], |from| &from[..from.partition_point(|lane| lane.rank == rank)])
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
            self.column(lane)?.times().next().map(|(enter, _)| enter.saturating_sub(zero))
        });
        columns.min().unwrap_or(0).min(0)
    }

    /// Seconds from the zero to the last time.
    pub(crate) fn run_time(&self) -> Option<f64> {
        let zero = self.zero?;
        let columns = self.sections.iter().flat_map(|s| &s.threads).flat_map(|t| &t.columns);
        let ends = columns.filter_map(|(_, column)| {
            let last = column.events().checked_sub(1)?;
            column.times_from(last).next().map(|(_, exit)| exit)
        });
        let ns = u64::try_from(ends.max()?.saturating_sub(zero)).ok()?;
        Some(float(ns.into()) / 1e9)
    }

    /// How many calls are written, in words: each that the program has made, where that is known, else with what counts as one.
    pub(crate) fn counted(&self) -> String {
        let written = self.written();
        match self.made.filter(|_| self.window.is_all()) {
            Some(made) => counted(made, "call"),
            None if self.polls() => format!("{} (a series of polls is one)", counted(written, "call")),
            None => counted(written, "call"),
        }
    }

    /// Whether there may be series of polls.
    fn polls(&self) -> bool {
        let slots = |symbol: &Symbol| CallTable::builtin().slots(symbol.call);
        let is_series =
            |symbol: &Symbol| slots(symbol).last().is_some_and(|slot| slot.meaning == Meaning::Times);
        self.sections.iter().flat_map(|section| &section.symbols).any(is_series)
    }

    /// About how many calls are written, a series of polls being one: those of these threads in the window.
    pub(crate) fn written(&self) -> u64 {
        if self.window.is_all() {
            return self.events;
        }
        let count =
            |lane: &Lane| self.column(lane).map_or(0, |c| self.window.count(c, self.zero.unwrap_or(0)));
        self.lanes.iter().map(count).fold(0, u64::saturating_add)
    }

    pub(crate) fn column(&self, lane: &Lane) -> Option<&Column> {
        let thread = self.section(lane).threads.get(lane.thread.to_usize())?;
        thread.column(lane.rank)
    }
}
