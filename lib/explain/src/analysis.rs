//! What is found in a trace.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::num::{Exact as _, saturate};

use crate::efficiency::Efficiency;
use crate::places::Places;
use crate::timeline::Timeline;
use crate::waits::{At, Sum, WaitKind, Waits};

/// What the thread that stands for a rank ([`st_model::lead`]) did between the end of `MPI_Init` and the start of `MPI_Finalize`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RankTotals {
    /// World rank.
    pub rank: u32,
    /// From the end of `MPI_Init`, or of the trace's beginning, ns.
    pub begin: i64,
    /// To the start of `MPI_Finalize`, or the last call's end, ns.
    pub end: i64,
    /// Time in MPI, ns.
    pub mpi: u64,
    /// The part of it that is wait states, ns.
    pub wait: Sum,
    /// Time for which the program had paused recording, ns.
    pub paused: u64,
}

impl RankTotals {
    /// The whole time, ns.
    #[must_use]
    pub fn whole(&self) -> u64 {
        saturate(self.end.saturating_sub(self.begin))
    }

    /// Time outside of MPI, as far as that was recorded, ns.
    #[must_use]
    pub fn computation(&self) -> u64 {
        self.whole().saturating_sub(self.mpi).saturating_sub(self.paused)
    }
}

/// What a rank did at a place.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PlaceTotals {
    /// Calls, polls counted one by one.
    pub calls: u64,
    /// Time in them, ns.
    pub time: u64,
    /// Time outside of MPI right before them, ns.
    pub before: u64,
    /// Tests among them that completed nothing.
    pub failed_tests: u64,
    /// Time in these and between them, ns.
    pub polling: u64,
    /// Bytes sent and received, of messages where they complete.
    pub bytes: u64,
    /// Requests made here that nothing has completed when the rank ended.
    pub leaked: u64,
    /// Communicators, datatypes and other objects made here that nothing has freed when the rank ended.
    pub unfreed: u64,
}

/// What could not be matched; no wait is known of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Unmatched {
    /// Sends without receive.
    pub sends: u64,
    /// Receives without send.
    pub receives: u64,
    /// Messages whose order is not known: several threads of a rank use their channel.
    pub ambiguous: u64,
    /// Collective operations that lack a member, or that members disagree on.
    pub operations: u64,
    /// Threads whose exact times end before they do.
    pub untimed_threads: u64,
}

/// What is found in a trace.
#[derive(Clone, Default, Debug)]
pub struct Analysis {
    /// Call sites.
    pub places: Places,
    /// Wait states.
    pub waits: Waits,
    /// Ranks, ascending.
    pub ranks: Vec<RankTotals>,
    /// What each rank did at each place.
    pub totals: HashMap<At, PlaceTotals, FixedState>,
    /// Time on an ideal network, ns.
    pub ideal: u64,
    /// What is left out.
    pub unmatched: Unmatched,
    /// Calls that waited to hear of their other ends at a time, at most, but for those that do nothing else than send or receive a
    /// message.
    pub window: usize,
    /// What each thread does when, in the order of ranks, if causes are looked for.
    pub(crate) timelines: Vec<Timeline>,
    /// Numbers of the nodes of ranks, of which these are known.
    pub(crate) nodes: HashMap<u32, u32, FixedState>,
    /// Threads that have times: their ranks, and their indices in the sections. Of a rank's threads the one that stands for it comes first.
    pub lanes: Vec<(u32, u32)>,
    /// Each wait of [`crate::analyse_each`] and [`crate::analyse_all`], in no particular order.
    pub each: Vec<Waited>,
    /// Each message of [`crate::analyse_all`] that has been received, in no particular order.
    pub messages: Vec<Message>,
}

/// A wait by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Waited {
    /// World rank.
    pub rank: u32,
    /// When it begins: when its call is entered, or within that.
    pub enter: i64,
    /// How long it is, ns.
    pub ns: u64,
    /// Its thread, by its number in [`Analysis::lanes`] and [`Analysis::threads`].
    pub thread: u32,
    /// World rank that is waited for.
    pub for_rank: u32,
    /// Which.
    pub kind: WaitKind,
    /// Position of the call on its thread.
    pub call: u64,
    /// Number of the call's place ([`Analysis::places`]).
    pub place: u32,
    /// Number of the place of the call that comes too late.
    pub for_place: u32,
}

/// A message between two ranks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Message {
    /// World rank that sends.
    pub from: u32,
    /// World rank that receives.
    pub to: u32,
    /// Their threads, by their numbers among [`Analysis::threads`]: the one that sends, and the one that posts the receive.
    pub threads: [u32; 2],
    /// When the call that sends it was entered.
    pub sent: i64,
    /// When the call that completes its receive was left.
    pub received: i64,
    /// How much it carries; `None` where the size of its datatype is not known.
    pub bytes: Option<u64>,
}

/// A call of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Called {
    /// Number of its place ([`Analysis::places`]).
    pub place: u32,
    /// When it is entered, ns.
    pub enter: i64,
    /// When it is left, ns.
    pub exit: i64,
}

/// What a thread does between the end of `MPI_Init` and the start of `MPI_Finalize`.
#[derive(Clone, Copy, Debug)]
pub struct Thread<'a>(&'a Timeline);

impl<'a> Thread<'a> {
    /// World rank.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// When it begins, ns.
    #[must_use]
    pub fn begin(&self) -> i64 {
        self.0.begin()
    }

    /// Its calls in the order of time, none before the one before it ends: times that go back are taken to stand still.
    pub fn calls(&self) -> impl Iterator<Item = Called> + use<'a> {
        self.0.calls().iter().map(|c| Called { place: c.place, enter: c.enter, exit: c.exit })
    }

    /// The same from the first call on that ends after a time. *Cost:* O(log calls) to find it.
    pub fn calls_after(&self, time: i64) -> impl Iterator<Item = Called> + use<'a> {
        let calls = self.0.calls().from(self.0.call_at(time, 0));
        calls.map(|c| Called { place: c.place, enter: c.enter, exit: c.exit })
    }
}

impl Analysis {
    /// From the first rank's beginning to the last rank's end, ns.
    #[must_use]
    pub fn run(&self) -> u64 {
        let last = self.ranks.iter().map(|r| r.end).max().unwrap_or(0);
        saturate(last.saturating_sub(self.begin()))
    }

    /// The first rank's beginning, ns.
    #[must_use]
    pub fn begin(&self) -> i64 {
        self.ranks.iter().map(|r| r.begin).min().unwrap_or(0)
    }

    /// What threads do when, in the order of ranks, of [`crate::analyse_causes`] and [`crate::analyse_all`].
    pub fn threads(&self) -> impl Iterator<Item = Thread<'_>> {
        self.timelines.iter().map(Thread)
    }

    /// Time of all ranks outside of MPI, ns.
    pub(crate) fn computed(&self) -> u64 {
        self.ranks.iter().map(RankTotals::computation).fold(0, u64::saturating_add)
    }

    /// What the run time is made of.
    #[must_use]
    pub fn efficiency(&self) -> Efficiency {
        let ranks = self.ranks.len().to_u64().max(1);
        let mean = self.computed() / ranks;
        let paused = self.ranks.iter().map(|r| r.paused).min().unwrap_or(0);
        let longest = self.ranks.iter().map(RankTotals::computation).max().unwrap_or(0);
        Efficiency { run: self.run(), ideal: self.ideal, mean, longest, paused }
    }
}

impl PlaceTotals {
    /// Adds those of another thread.
    pub fn add(&mut self, other: &Self) {
        let Self { calls, time, before, failed_tests, polling, bytes, leaked, unfreed } = *other;
        let sums = [
            (&mut self.calls, calls),
            (&mut self.time, time),
            (&mut self.before, before),
            (&mut self.failed_tests, failed_tests),
            (&mut self.polling, polling),
            (&mut self.bytes, bytes),
            (&mut self.leaked, leaked),
            (&mut self.unfreed, unfreed),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
    }
}
