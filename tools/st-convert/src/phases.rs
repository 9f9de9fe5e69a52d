//! What each rank does in each iteration of the outermost loops or each phase, and between them.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use foldhash::fast::FixedState;
use st_cli::counted;
use st_cli::options::Steps;
use st_explain::{LoopId, PhasesBy, Place, Stretch, Waited, stretches, waits_of_leads};
use st_model::calls::CallId;
use st_model::num::{Exact as _, narrow};
use st_model::section::Section;
use st_model::steps::{Budget, Looks};

use crate::choice::Chosen;
use crate::format::Format;
use crate::losses::Losses;
use crate::phase::{Loop, Phase};
use crate::trace::{Lane, Trace};
use crate::waits::{name, of_calls};
use crate::walk::Tell;
use crate::window::Window;

/// What has been handed to a format.
#[derive(Debug)]
pub(crate) struct Handed {
    /// Iterations or phases of all ranks, and what lies between them.
    pub(crate) phases: u64,
    /// What lies between them.
    pub(crate) between: u64,
    /// Loops, or levels of phases.
    pub(crate) loops: usize,
    /// What they leave out.
    pub(crate) losses: Losses,
}

/// Hands the phases of a trace's ranks to a format: those that overlap the window, as a whole.
///
/// *Cost:* O(calls); with waits what [`of_calls`] does.
///
/// # Errors
///
/// If a rank cannot be read back, if no more is wanted, or if the format cannot be written.
pub(crate) fn phases(
    trace: &Trace,
    steps: &Steps,
    tell: Tell<'_>,
    format: &mut dyn Format,
) -> Result<Handed> {
    let (mut waits, budget) = (waits(trace)?, steps.budget());
    let (mut loops, mut losses) = (Loops::new(trace, &budget)?, Losses::default());
    let mut others = others(trace).into_iter().peekable();
    for (lane, at) in trace.lanes.iter().zip(0u32..) {
        // Numbers of levels are the same whichever ranks are written.
        while let Some((rank, section)) = others.next_if(|(rank, _)| *rank < lane.rank) {
            budget.spend(section, Some(&[rank].into_iter().collect()), 1)?;
            stretches(section, rank, trace.by, Vec::new(), &mut |stretch| {
                if let Some((id, _)) = stretch.of {
                    number(&mut loops.met, id);
                }
                tell(0)
            })?;
        }
        if !lane.leads {
            losses.add("calls of threads that are not the first of their rank", lane.calls);
            continue;
        }
        losses.add("calls whose times are not known", lane.calls.saturating_sub(lane.timed));
        let own = waits.remove(&lane.rank).unwrap_or_default();
        loops.of_rank.clear();
        stretches(trace.section(lane), lane.rank, trace.by, own, &mut |stretch| {
            tell(stretch.events)?;
            loops.hand(trace, at, lane, stretch, format)
        })?;
    }
    Ok(Handed { phases: loops.phases, between: loops.between, loops: loops.handed.len(), losses })
}

/// Ranks that are not written, in their order, if phases are those of MPI_Pcontrol, whose levels only calls tell.
fn others(trace: &Trace) -> Vec<(u32, &Section)> {
    let of_levels = trace.by == PhasesBy::Pcontrol;
    let mut others = if of_levels { ranks(trace).collect() } else { Vec::new() };
    others.retain(|(rank, _)| !trace.has(*rank));
    others.sort_unstable_by_key(|(rank, _)| *rank);
    others
}

/// All ranks of the trace, whichever are written.
fn ranks(trace: &Trace) -> impl Iterator<Item = (u32, &Section)> {
    trace.sections.iter().flat_map(|section| section.ranks.iter().map(move |rank| (rank, section)))
}

/// The waits of each rank, if they are asked for: also those outside of the window, for phases are written as a whole.
fn waits(trace: &Trace) -> Result<HashMap<u32, Vec<Waited>>> {
    if !trace.waits {
        return Ok(HashMap::new());
    }
    let whole = Trace { window: Window::ALL, chosen: Chosen::default(), ..trace.clone() };
    let found = of_calls(&whole, &|_| Ok(()))?;
    Ok(waits_of_leads(&found.each, &found.lanes))
}

/// Nodes of a tree that are looked at in a step.
const NODES: u64 = 16;

/// Loops and functions that have been met.
#[derive(Default)]
struct Loops {
    phases: u64,
    between: u64,
    met: Met,
    handed: HashSet<LoopId, FixedState>,
    /// As they are called on the rank that is cut, where another call may begin them than elsewhere.
    of_rank: HashMap<LoopId, Loop, FixedState>,
    functions: HashMap<CallId, String, FixedState>,
}

/// Numbers of loops.
type Met = HashMap<LoopId, u32, FixedState>;

/// That of a loop, the next one if it is new.
fn number(met: &mut Met, id: LoopId) -> u32 {
    let next = narrow(met.len());
    *met.entry(id).or_insert(next)
}

impl Loops {
    /// None has been handed on. Those that calls are not asked for have their numbers, which are the same whichever ranks are written.
    fn new(trace: &Trace, budget: &Budget) -> Result<Self> {
        let mut loops = Self::default();
        if trace.by != PhasesBy::Loop {
            return Ok(loops);
        }
        let mut all: Vec<_> = Vec::new();
        for (rank, section) in ranks(trace) {
            let nodes: usize = section.threads.iter().map(|thread| thread.tree.items().len()).sum();
            budget.take(1 + nodes.to_u64() / NODES)?;
            all.push((rank, section));
        }
        all.sort_unstable_by_key(|(rank, _)| *rank);
        let mut looks = Looks::default();
        for id in all.into_iter().flat_map(|(rank, section)| st_explain::loops(section, rank, &mut looks)) {
            number(&mut loops.met, id);
        }
        Ok(loops)
    }

    fn hand(
        &mut self,
        trace: &Trace,
        at: u32,
        lane: &Lane,
        stretch: &Stretch,
        format: &mut dyn Format,
    ) -> Result<()> {
        let Stretch { of, place, enter, calls, moment, .. } = stretch;
        let since = |time: i64| time.saturating_sub(trace.zero.unwrap_or(0));
        let times = (since(moment.begin), since(moment.end));
        let first = (since(*enter), times.1);
        let Place { call, site } = *place;
        let site = site.and_then(|id| trace.sites.number(id));
        let function = self.functions.entry(call).or_insert_with(|| name(trace, call));
        let of = of.map(|(id, turn)| {
            let number = number(&mut self.met, id);
            let place = site.map_or("", |site| trace.sites.place(site));
            let make = || Loop::new(id, number, function, place);
            (&*self.of_rank.entry(id).or_insert_with(make), turn)
        });
        // Numbers of loops are the same whatever part of the run's time is written.
        if !trace.window.has(times) || !trace.chosen.is_in_phase(lane.rank, Some(first)) {
            return Ok(());
        }
        *(if of.is_some() { &mut self.phases } else { &mut self.between }) += 1;
        self.handed.extend(stretch.of.map(|(id, _)| id));
        format.phase(&Phase {
            at,
            lane: *lane,
            of: of.map(|(of, _)| of),
            iteration: of.map(|(_, turn)| turn),
            function,
            site,
            times,
            calls: *calls,
            compute: moment.time.saturating_sub(moment.mpi).saturating_sub(moment.paused),
            mpi: moment.mpi,
            // Nobody knows who waits for a rank that is not there.
            wait: Some(moment.wait).filter(|ns| trace.waits && (*ns > 0 || trace.whole.missing().is_empty())),
        })
    }
}

impl Loop {
    /// That of an id, which begins with a call of a function at a place, if that is known.
    fn new(id: LoopId, number: u32, function: &str, place: &str) -> Self {
        if id.turns == 0 {
            return Self { number, level: Some(id.which), name: format!("phase {}", id.which) };
        }
        let from = if place.is_empty() { function.to_owned() } else { format!("{function}, {place}") };
        Self { number, level: None, name: format!("loop of {} from {from}", counted(id.turns, "iteration")) }
    }
}
