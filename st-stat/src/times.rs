//! How long ranks are at each call site, with what says how sure that is: what two runs are compared by.
//!
//! Two parts of the time are kept apart: the computation before a call, from the end of the event before it on its
//! thread, and the time in the call. Sums come from the sketches and per-rank sums that every trace with times has. Where
//! it also has exact times, the calls of a rank at a site are cut into sixteen runs of equal length, and the same run
//! of all ranks is a block: how blocks differ says how the time varies while the program runs.

use std::collections::BTreeMap;

use anyhow::Result;
use st_model::columns::Column;
use st_model::num::{Exact, saturate};
use st_model::project::Error;
use st_model::rank_times::{counted, rank_times, totals};
use st_model::ranklist::RankList;
use st_model::section::{Section, Thread};
use st_model::sketch::Sketch;
use st_model::steps::Budget;
use st_model::tree::WalkError;

use crate::calls::function;

/// Blocks that the calls of a site are cut into: enough to tell how means vary, few enough that neighbours hardly depend
/// on each other. Source: Schmeiser 1982 (10 to 30 batches).
const BLOCKS: usize = 16;

/// Groups of neighbouring ranks that sums are kept for at most: ranks of one node share its troubles.
const GROUPS: u64 = 64;

/// Steps of the budget that a place and a rank take, by their memory.
const STEPS_OF_A_PLACE: u64 = 256;
pub(crate) const STEPS_OF_A_RANK: u64 = 16;

/// Where time is spent: a function, its error class, and the identity of the site that it is called from.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TimedPlace {
    /// MPI's name.
    pub function: String,
    /// 0 is success.
    pub error: u32,
    /// See [`st_model::sites::Site`].
    pub site: Option<u128>,
}

/// A block's durations: their sum, ns, and number.
type Block = (u128, u64);

/// Durations of one phase at a place.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Events: a series of polls is one.
    pub events: u64,
    /// Sum over all ranks, ns.
    pub sum: u128,
    /// Sum of squares, ns².
    pub squares: u128,
    /// Sum of each group of ranks, ns.
    pub groups: Vec<u128>,
    /// The timed events by block; empty without exact times.
    pub blocks: Vec<Block>,
}

/// Computation before the calls of a place, and time in them.
pub type Phases = [Sample; 2];

/// The times of a trace.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Its ranks, ascending.
    pub ranks: Vec<u32>,
    /// Number of ranks in each group.
    pub groups: Vec<u64>,
    /// Mean and longest time of a rank, ns.
    pub run: (u128, u128),
    /// By place.
    pub places: BTreeMap<TimedPlace, Phases>,
}

/// The samples of a section's symbols, by symbol and phase; `None` where the time is not the program's.
struct Gathered<'a> {
    section: &'a Section,
    samples: Vec<[Option<Sample>; 2]>,
}

impl Times {
    /// Of a trace's sections; `None` if it holds no times. *Cost:* O(exact times + ranks · symbols).
    ///
    /// # Errors
    ///
    /// If it takes more than the budget has, or a section cannot be read back.
    pub fn of(sections: &[Section], budget: &Budget) -> Result<Option<Self>> {
        for section in sections {
            budget.take(section.ranks.len().saturating_mul(STEPS_OF_A_RANK))?;
        }
        let ranks: RankList = sections.iter().flat_map(|s| s.ranks.iter()).collect();
        let groups = ranks.len().min(GROUPS).to_usize();
        let mut times = Self { groups: vec![0; groups], ranks: ranks.iter().collect(), ..Self::default() };
        for at in 0..times.ranks.len() {
            let group = times.group_at(at);
            times.groups[group] += 1;
        }
        let mut sum = 0u128;
        for section in sections {
            for rank in rank_times(section) {
                sum = sum.saturating_add(rank.whole);
                times.run.1 = times.run.1.max(rank.whole);
            }
            times.add(section, budget)?;
        }
        times.run.0 = sum / u128::from(ranks.len().max(1));
        let timed = times.places.values().flatten().any(|s| s.sum > 0);
        Ok(timed.then_some(times))
    }

    /// Group of the rank at a position.
    fn group_at(&self, position: usize) -> usize {
        position * self.groups.len() / self.ranks.len().max(1)
    }

    fn add(&mut self, section: &Section, budget: &Budget) -> Result<()> {
        budget.take(section.symbols.len().to_u64().saturating_mul(STEPS_OF_A_PLACE))?;
        let counted = section.symbols.iter().map(|s| counted(s.call).map(|c| c.then(Sample::default)));
        let mut gathered = Gathered { section, samples: counted.collect() };
        for (t, thread) in section.threads.iter().enumerate() {
            budget.take_short(thread.ranks.len().saturating_mul(thread.sums.len().to_u64()))?;
            gathered.add_sketches(thread);
            let group = |rank| self.ranks.binary_search(&rank).ok().map(|at| self.group_at(at));
            let groups: Vec<_> = thread.ranks.iter().map(group).collect();
            gathered.add_ranks(thread, &groups, self.groups.len());
            for (rank, column) in &thread.columns {
                budget.take(column.events().saturating_mul(2))?;
                budget.take(section.symbols.len().to_u64())?;
                gathered.add_blocks(t, *rank, column)?;
            }
        }
        for (symbol, samples) in section.symbols.iter().zip(gathered.samples) {
            if samples.iter().flatten().all(|s| s.events == 0) {
                continue;
            }
            let site = section.sites.get(symbol.site).map(|s| s.id);
            let place =
                TimedPlace { function: function(symbol.call, &section.tables), error: symbol.error, site };
            for (into, sample) in self.places.entry(place).or_default().iter_mut().zip(samples) {
                into.add(&sample.unwrap_or_default());
            }
        }
        Ok(())
    }
}

impl Gathered<'_> {
    fn of(&mut self, sym: usize, phase: usize) -> Option<&mut Sample> {
        self.samples.get_mut(sym)?.get_mut(phase)?.as_mut()
    }

    fn add_sketches(&mut self, thread: &Thread) {
        for s in &thread.sketches {
            for (phase, sketch) in [&s.compute, &s.comm].into_iter().enumerate() {
                if let Some(into) = self.of(s.sym as usize, phase) {
                    into.add_sketch(sketch);
                }
            }
        }
    }

    /// Adds what ranks took in all, each to its group of `n`.
    fn add_ranks(&mut self, thread: &Thread, groups: &[Option<usize>], n: usize) {
        for t in totals(thread) {
            for (phase, sums) in [&t.compute, &t.comm].into_iter().enumerate() {
                let Some(sample) = self.of(t.sym as usize, phase) else { continue };
                sample.groups.resize(n, 0);
                for (group, sum) in groups.iter().zip(sums) {
                    if let Some(into) = group.and_then(|g| sample.groups.get_mut(g)) {
                        *into = into.saturating_add(*sum);
                    }
                }
            }
        }
    }

    /// Adds the exact times of a rank.
    fn add_blocks(&mut self, thread: usize, rank: u32, column: &Column) -> Result<(), Error> {
        let failed = |source: WalkError| Error::Tree { rank, source };
        let calls = self.calls(thread, rank, column.events()).map_err(failed)?;
        let mut seen = vec![0u64; calls.len()];
        let Some(mut walk) = self.section.symbols_of(thread, rank) else { return Ok(()) };
        let mut last = column.chunks.first().map_or(0, |c| c.base);
        for (enter, exit) in column.times() {
            let Some(sym) = walk.next_symbol().map_err(failed)? else { break };
            let (sym, durations) = (sym as usize, [(last, enter), (enter, exit)]);
            last = exit;
            let Some((seen, n)) = seen.get_mut(sym).zip(calls.get(sym)) else { continue };
            let block = block(*seen, *n);
            *seen += 1;
            for (phase, (from, to)) in durations.into_iter().enumerate() {
                if let Some(sample) = self.of(sym, phase) {
                    sample.blocks.resize(BLOCKS, (0, 0));
                    // Clocks may be corrected: what ends before it begins takes no time.
                    let ns = u128::from(saturate::<u64>(to.saturating_sub(from)));
                    let into = &mut sample.blocks[block];
                    *into = (into.0.saturating_add(ns), into.1 + 1);
                }
            }
        }
        Ok(())
    }

    /// How many of a rank's first events are of each symbol.
    fn calls(&self, thread: usize, rank: u32, mut events: u64) -> Result<Vec<u64>, WalkError> {
        let mut calls = vec![0; self.section.symbols.len()];
        let Some(mut walk) = self.section.symbols_of(thread, rank) else { return Ok(calls) };
        while events > 0
            && let Some((sym, n)) = walk.next_run()?
        {
            let n = saturate::<u64>(n).min(events);
            events -= n;
            if let Some(calls) = calls.get_mut(sym as usize) {
                *calls += n;
            }
        }
        Ok(calls)
    }
}

/// Block of the call at a position among so many.
fn block(position: u64, of: u64) -> usize {
    let block = u128::from(position) * u128::from(BLOCKS.to_u64()) / u128::from(of.max(1));
    saturate::<usize>(block).min(BLOCKS - 1)
}

impl Sample {
    fn add_sketch(&mut self, sketch: &Sketch) {
        self.events = self.events.saturating_add(sketch.count);
        self.sum = self.sum.saturating_add(sketch.sum);
        self.squares = self.squares.saturating_add(sketch.squares);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.events = self.events.saturating_add(other.events);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        self.groups.resize(self.groups.len().max(other.groups.len()), 0);
        for (into, sum) in self.groups.iter_mut().zip(&other.groups) {
            *into = into.saturating_add(*sum);
        }
        self.blocks.resize(self.blocks.len().max(other.blocks.len()), (0, 0));
        for (into, (sum, n)) in self.blocks.iter_mut().zip(&other.blocks) {
            *into = (into.0.saturating_add(*sum), into.1.saturating_add(*n));
        }
    }
}
