//! How time changes from iteration to iteration of a program's outermost loops, or from phase to phase.
//!
//! An iteration of the thread that stands for a rank ([`st_model::lead`]), mostly its first, lasts from the end of the call before it to the end of its last call: the computation
//! before its first call is its own. Loops of ranks are the same that have as many iterations, the n-th such of each rank. A phase lasts
//! from when an `MPI_Pcontrol` is entered to when the next one is, or `MPI_Finalize`: what is computed before these is of the phase that they end.

use std::collections::{BTreeMap, HashMap};

use clap::ValueEnum;
use st_model::calls::Kind;
use st_model::event::Event;
use st_model::lead::lead_thread;
use st_model::num::{Exact as _, float, saturate};
use st_model::project::Error;
use st_model::section::Section;
use st_model::steps::Looks;
use st_model::tree::{Item, Turn};

use crate::analysis::Waited;
use st_model::explanation::Place;

/// What a run is cut into.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub enum PhasesBy {
    /// Iterations of the outermost loops
    #[default]
    Loop,
    /// From each MPI_Pcontrol to the next, those of one level together
    Pcontrol,
}

/// An iteration, or a phase, of all ranks that make it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Moment {
    /// Which, from 0.
    pub number: u64,
    /// When the first rank begins it, ns.
    pub begin: i64,
    /// When the last rank ends it, ns.
    pub end: i64,
    /// Ranks that make it.
    pub ranks: u64,
    /// How long all ranks take together, ns.
    pub time: u64,
    /// How long the slowest takes, and which that is.
    pub longest: (u64, u32),
    /// How long the one that computes longest does, outside of MPI, and which that is: others may take as long waiting for it.
    pub busiest: (u64, u32),
    /// Time in MPI, of all ranks together, ns.
    pub mpi: u64,
    /// The part of that in wait states, ns.
    pub wait: u64,
    /// Time for which recording was paused, of all ranks together, ns.
    pub paused: u64,
}

impl Moment {
    /// Mean time of a rank, ns.
    #[must_use]
    pub fn mean(&self) -> u64 {
        self.time / self.ranks.max(1)
    }

    /// How long all ranks compute, outside of MPI, ns.
    #[must_use]
    pub fn computation(&self) -> u64 {
        self.time.saturating_sub(self.mpi).saturating_sub(self.paused)
    }

    /// Who computes longest: of one rank that rank.
    fn busiest(&self) -> (u64, u32) {
        if self.ranks == 1 { (self.computation(), self.longest.1) } else { self.busiest }
    }

    /// Lasts until then, on a rank alone.
    fn until(&mut self, end: i64, rank: u32) {
        self.time = saturate(end.saturating_sub(self.begin));
        self.longest = (self.time, rank);
        self.end = self.begin.saturating_add(saturate(self.time));
    }

    /// Adds what another one takes.
    pub fn add(&mut self, other: &Self) {
        self.begin = if self.ranks == 0 { other.begin } else { self.begin.min(other.begin) };
        self.end = if self.ranks == 0 { other.end } else { self.end.max(other.end) };
        self.longest = self.longest.max(other.longest);
        self.busiest = self.busiest.max(other.busiest());
        self.ranks += other.ranks;
        self.time = self.time.saturating_add(other.time);
        self.mpi = self.mpi.saturating_add(other.mpi);
        self.wait = self.wait.saturating_add(other.wait);
        self.paused = self.paused.saturating_add(other.paused);
    }
}

/// A loop, or the phases of one level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loop {
    /// The first call of the rank that was looked at first.
    pub place: Place,
    /// The level of the phases.
    pub level: Option<i64>,
    /// The ranks that make it, in no order.
    pub ranks: Vec<u32>,
    /// Iterations in order.
    pub turns: Vec<Moment>,
}

impl Loop {
    /// What all iterations take.
    #[must_use]
    pub fn whole(&self) -> Moment {
        sum(&self.turns)
    }

    /// What the first, the middle and the last tenth take, each of one iteration at least.
    #[must_use]
    pub fn tenths(&self) -> [Moment; 3] {
        let (all, n) = (self.turns.len(), self.turns.len().div_ceil(10));
        [0, (all - n) / 2, all - n].map(|from| sum(self.turns.get(from..from + n).unwrap_or(&[])))
    }

    /// How much longer the last iteration takes than the first by the trend, as a share of the first. The trend is the straight line or
    /// the exponential curve, whichever is nearer, through a hundred parts' medians, by the median of the slopes between any two of them:
    /// single iterations do not change it, and it begins and ends where parts have been.
    #[must_use]
    pub fn trend(&self) -> Option<f64> {
        let parts = self.turns.len().min(PARTS);
        let all = self.turns.len();
        let of = |n: usize| {
            median(self.turns.get(n * all / parts..(n + 1) * all / parts)?.iter().map(Moment::mean))
        };
        let medians: Vec<f64> = (0..parts).filter_map(of).map(|n| float(n.max(1).into())).collect();
        let line = Line::through(&medians)?;
        let curve = Line::through(&medians.iter().map(|n| n.ln()).collect::<Vec<_>>())?;
        let far = |at: &dyn Fn(f64) -> f64| {
            middle(positions().zip(&medians).map(|(i, n)| (n - at(i)).abs()).collect())
                .unwrap_or(f64::INFINITY)
        };
        let last = float(parts.to_u64().saturating_sub(1).into());
        // Also a line that falls below nothing is none.
        let falls = line.at(0.0) <= 0.0 || line.at(last) <= 0.0;
        let straight = !falls && far(&|i| line.at(i)) <= far(&|i| curve.at(i).exp());
        // Where all has changed at the end it would begin below all that was, and end above it.
        let [least, most] = [f64::min, f64::max].map(|of| medians.iter().copied().reduce(of).unwrap_or(1.0));
        let at = |i| if straight { line.at(i) } else { curve.at(i).exp() }.clamp(least, most);
        Some(at(last) / at(0.0) - 1.0)
    }

    /// Iterations in so many groups of neighbours at most, with the number of the first in each.
    #[must_use]
    pub fn groups(&self, most: usize) -> Vec<Moment> {
        let each = self.turns.len().div_ceil(most.max(1)).max(1);
        let of = |turns: &[Moment]| Moment { number: turns.first().map_or(0, |t| t.number), ..sum(turns) };
        self.turns.chunks(each).map(of).collect()
    }

    /// Iterations that take longer than the median by more than half of that and eight times what half of all differ from it at
    /// most; the longest first.
    #[must_use]
    pub fn outliers(&self) -> Vec<usize> {
        let Some(middle) = median(self.turns.iter().map(Moment::mean)) else { return Vec::new() };
        let usual = median(self.turns.iter().map(|t| t.mean().abs_diff(middle))).unwrap_or(0);
        let most = middle.saturating_add((middle / 2).max(8 * usual));
        let mut far: Vec<usize> = (0..self.turns.len()).filter(|i| self.turns[*i].mean() > most).collect();
        far.sort_by_key(|i| (u64::MAX - self.turns[*i].mean(), *i));
        far
    }
}

/// What iterations take together.
#[must_use]
pub fn sum(turns: &[Moment]) -> Moment {
    let mut sum = Moment::default();
    turns.iter().for_each(|turn| sum.add(turn));
    sum
}

/// Parts whose medians a trend goes through.
const PARTS: usize = 100;

/// A straight line that few values far from it do not move.
struct Line {
    slope: f64,
    start: f64,
}

impl Line {
    /// By the median of the slopes between any two values (Theil 1950, Sen 1968).
    fn through(values: &[f64]) -> Option<Self> {
        let mut slopes = Vec::new();
        for (i, a) in values.iter().enumerate() {
            slopes
                .extend(values.iter().skip(i + 1).zip(positions().skip(1)).map(|(b, apart)| (b - a) / apart));
        }
        let slope = middle(slopes)?;
        let start = middle(values.iter().zip(positions()).map(|(value, i)| value - slope * i).collect())?;
        Some(Self { slope, start })
    }

    fn at(&self, position: f64) -> f64 {
        self.start + self.slope * position
    }
}

/// 0, 1, 2, …
fn positions() -> impl Iterator<Item = f64> {
    (0..).map(float)
}

fn middle(mut all: Vec<f64>) -> Option<f64> {
    let at = all.len().checked_sub(1)? / 2;
    Some(*all.select_nth_unstable_by(at, f64::total_cmp).1)
}

fn median(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut all: Vec<u64> = values.collect();
    let at = all.len().checked_sub(1)? / 2;
    Some(*all.select_nth_unstable(at).1)
}

/// Which loop of a rank, or which phases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LoopId {
    /// Iterations; 0 of phases.
    pub turns: u64,
    /// The how-manieth loop of so many iterations, from 0; the level of phases.
    pub which: i64,
}

/// What one rank does from a time on: an iteration, a phase, or what lies between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// The loop, and the number of the iteration, from 0; `None` of what lies between.
    pub of: Option<(LoopId, u64)>,
    /// Its first call.
    pub place: Place,
    /// When that is entered, ns.
    pub enter: i64,
    /// Its calls.
    pub calls: u64,
    /// Its events: a series of polls is one.
    pub events: u64,
    /// Its times, and waits if there are any; of this rank alone.
    pub moment: Moment,
}

/// Waits of the thread that stands for each rank. `each` and `lanes` are those of an analysis.
#[must_use]
pub fn waits_of_leads(each: &[Waited], lanes: &[(u32, u32)]) -> HashMap<u32, Vec<Waited>> {
    let mut all: HashMap<u32, Vec<Waited>> = HashMap::new();
    let rank_of = |n: usize| lanes.get(n).map(|(rank, _)| rank);
    let leads = |w: &&Waited| w.thread.checked_sub(1).is_none_or(|n| rank_of(n.to_usize()) != Some(&w.rank));
    each.iter().filter(leads).for_each(|w| all.entry(w.rank).or_default().push(*w));
    all
}

/// Iterations of outermost loops or phases, those that take most first. `each` and `lanes` as [`crate::analyse_each`] has them. *Cost:* O(calls)
/// time, memory by iterations.
///
/// # Errors
///
/// If a rank cannot be read back.
pub fn phases(
    sections: &[Section],
    by: PhasesBy,
    each: &[Waited],
    lanes: &[(u32, u32)],
) -> Result<Vec<Loop>, Error> {
    let mut waits = waits_of_leads(each, lanes);
    let mut loops: BTreeMap<LoopId, (Loop, BTreeMap<u64, Moment>)> = BTreeMap::new();
    let level = |id: LoopId| (by == PhasesBy::Pcontrol).then_some(id.which);
    for section in sections {
        for rank in section.ranks.iter() {
            stretches(section, rank, by, waits.remove(&rank).unwrap_or_default(), &mut |stretch| {
                let Some((of, turn)) = stretch.of else { return Ok(()) };
                let new =
                    || Loop { place: stretch.place, level: level(of), ranks: Vec::new(), turns: Vec::new() };
                let (of, turns) = loops.entry(of).or_insert_with(|| (new(), BTreeMap::new()));
                if of.ranks.last() != Some(&rank) {
                    of.ranks.push(rank);
                }
                turns.entry(turn).or_default().add(&stretch.moment);
                Ok::<(), Error>(())
            })?;
        }
    }
    let of = |(of, turns): (Loop, BTreeMap<u64, Moment>)| Loop {
        turns: turns.into_iter().map(|(number, turn)| Moment { number, ..turn }).collect(),
        ..of
    };
    let mut all: Vec<Loop> = loops.into_values().map(of).collect();
    all.sort_by_key(|l| u64::MAX - l.whole().time);
    Ok(all)
}

/// Cuts what the thread that stands for a rank does into iterations or phases, and what lies between them, in order. `waits` are those of that thread,
/// if they are to be added up. *Cost:* O(calls) time.
///
/// # Errors
///
/// If the rank cannot be read back, or `each` fails.
pub fn stretches<E: From<Error>>(
    section: &Section,
    rank: u32,
    by: PhasesBy,
    mut waits: Vec<Waited>,
    each: &mut dyn FnMut(&Stretch) -> Result<(), E>,
) -> Result<(), E> {
    let Some(events) = section.events(lead_thread(section, rank), rank) else { return Ok(()) };
    waits.sort_unstable();
    let (mut events, mut waits) = (events.timed(), waits.into_iter().peekable());
    let mut cut = Cut { by, met: HashMap::new(), numbers: HashMap::new(), phase: None };
    let (mut now, mut last, mut is_paused) = (None::<Stretch>, None, false);
    while let Some(event) = events.next_event()? {
        let Some((enter, exit)) = event.times else { break };
        let of = cut.of(&event);
        let mut paused: u64 =
            last.filter(|_| is_paused).map_or(0, |last: i64| saturate(enter.saturating_sub(last)));
        is_paused = st_model::paused::after(&event, is_paused);
        if let Some(mut done) = now.take_if(|now| now.of != of) {
            if by == PhasesBy::Pcontrol {
                done.moment.until(enter, rank);
                done.moment.paused = done.moment.paused.saturating_add(std::mem::take(&mut paused));
                last = Some(enter);
            }
            each(&done)?;
        }
        let begin = last.unwrap_or(enter);
        let stretch = now.get_or_insert_with(|| {
            let place = Place::of(section, &event.symbol);
            Stretch {
                of,
                place,
                enter,
                calls: 0,
                events: 0,
                moment: Moment { begin, ranks: 1, ..Moment::default() },
            }
        });
        stretch.calls = stretch.calls.saturating_add(event.calls());
        stretch.events += 1;
        let moment = &mut stretch.moment;
        // A wait may begin within its call.
        while let Some(wait) = waits.next_if(|wait| wait.enter < exit) {
            let is_of = wait.call == event.index;
            moment.wait = moment.wait.saturating_add(if is_of { wait.ns } else { 0 });
        }
        moment.paused = moment.paused.saturating_add(paused);
        moment.mpi = moment.mpi.saturating_add(saturate(exit.saturating_sub(enter)));
        moment.until(exit, rank);
        last = Some(exit);
    }
    now.map_or(Ok(()), |done| each(&done))
}

/// The outermost loops around calls of the thread that stands for a rank, in the order in which it comes to them, as [`stretches`] has them.
/// *Cost:* O(nodes) where counts are constant, else by what they store; not by calls.
#[must_use]
pub fn loops(section: &Section, rank: u32, looks: &mut Looks) -> Vec<LoopId> {
    let lead = section.threads.get(lead_thread(section, rank));
    let Some(thread) = lead.filter(|t| t.ranks.contains(rank)) else { return Vec::new() };
    let (runs, items) = (section.runs_of(thread, rank, looks), thread.tree.items());
    let is_called = |node: usize| runs[node] > 0 && matches!(items[node], Item::Leaf { .. });
    let (mut all, mut numbers, mut node) = (Vec::new(), HashMap::new(), 0);
    while node < items.len() {
        let end = thread.tree.end_of(node);
        if runs[node] > 1 && (node..end).any(is_called) {
            all.push(numbered(&mut numbers, runs[node]));
        }
        node = if runs[node] == 1 { node + 1 } else { end };
    }
    all
}

/// The next loop of a rank that has so many iterations. `numbers` says how many it has met, by iterations.
fn numbered(numbers: &mut HashMap<i64, i64>, turns: u64) -> LoopId {
    let n = numbers.entry(saturate(turns)).or_default();
    *n += 1;
    LoopId { turns, which: *n - 1 }
}

/// A rank that is being cut.
struct Cut {
    by: PhasesBy,
    /// Loops of this rank by their nodes.
    met: HashMap<usize, LoopId>,
    /// How many loops have so many iterations, or phases this level.
    numbers: HashMap<i64, i64>,
    /// The phase that has begun.
    phase: Option<(LoopId, u64)>,
}

impl Cut {
    /// What a call is in.
    fn of(&mut self, event: &Event<'_>) -> Option<(LoopId, u64)> {
        match self.by {
            PhasesBy::Loop => event.turn.map(|turn| (self.key(turn), turn.turn)),
            PhasesBy::Pcontrol => {
                self.phase = self.level(event).or(self.phase).filter(|_| !ends(event));
                self.phase
            }
        }
    }

    /// The loop that an iteration is of.
    fn key(&mut self, turn: Turn) -> LoopId {
        let numbers = &mut self.numbers;
        *self.met.entry(turn.node).or_insert_with(|| numbered(numbers, turn.turns))
    }

    /// The phase that a call begins.
    fn level(&mut self, event: &Event<'_>) -> Option<(LoopId, u64)> {
        let level = event.pcontrol()?;
        let n = self.numbers.entry(level).or_default();
        *n += 1;
        Some((LoopId { turns: 0, which: level }, saturate(*n - 1)))
    }
}

fn ends(event: &Event<'_>) -> bool {
    event.row.is_some_and(|row| row.kind == Kind::Finalize)
}
