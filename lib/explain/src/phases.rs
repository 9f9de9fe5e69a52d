//! How time changes from iteration to iteration of a program's outermost loops, or from phase to phase.
//!
//! An iteration of a rank's first thread lasts from the end of the call before it to the end of its last call: the computation
//! before its first call is its own. Loops of ranks are the same that have as many iterations, the n-th such of each rank.

use std::collections::{BTreeMap, HashMap};

use st_model::calls::{Kind, names};
use st_model::event::{Arg, Event};
use st_model::num::{Exact as _, float, saturate};
use st_model::project::Error;
use st_model::section::Section;
use st_model::tree::Turn;

use crate::analysis::Waited;
use st_model::explanation::Place;

/// What a run is cut into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PhasesBy {
    /// Iterations of outermost loops.
    Loop,
    /// From each `MPI_Pcontrol` to the next, those with one level together.
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
    /// Time in MPI, of all ranks together, ns.
    pub mpi: u64,
    /// The part of that in wait states, ns.
    pub wait: u64,
}

impl Moment {
    /// Mean time of a rank, ns.
    #[must_use]
    pub fn mean(&self) -> u64 {
        self.time / self.ranks.max(1)
    }

    /// Adds what another one takes.
    pub fn add(&mut self, other: &Self) {
        self.begin = if self.ranks == 0 { other.begin } else { self.begin.min(other.begin) };
        self.end = if self.ranks == 0 { other.end } else { self.end.max(other.end) };
        self.longest = self.longest.max(other.longest);
        self.ranks += other.ranks;
        self.time = self.time.saturating_add(other.time);
        self.mpi = self.mpi.saturating_add(other.mpi);
        self.wait = self.wait.saturating_add(other.wait);
    }
}

/// A loop, or the phases of one level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loop {
    /// The first call of the rank that was looked at first.
    pub place: Place,
    /// The level of the phases.
    pub level: Option<i64>,
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

    /// How much longer the last iteration takes than the first by the trend, as a share of the median. The trend is the median of
    /// the slopes between any two of a hundred parts' medians: single iterations do not change it.
    #[must_use]
    pub fn trend(&self) -> Option<f64> {
        let parts = self.turns.len().min(PARTS);
        let all = self.turns.len();
        let of = |n: usize| {
            median(self.turns.get(n * all / parts..(n + 1) * all / parts)?.iter().map(Moment::mean))
        };
        let medians: Vec<f64> = (0..parts).filter_map(of).map(|n| float(n.into())).collect();
        let middle = float(median(self.turns.iter().map(Moment::mean))?.into());
        let mut slopes = Vec::new();
        for (i, a) in medians.iter().enumerate() {
            let after = medians.iter().enumerate().skip(i + 1);
            slopes.extend(after.map(|(j, b)| (b - a) / float((j - i).to_u64().into())));
        }
        slopes.sort_by(f64::total_cmp);
        let slope = slopes.get(slopes.len() / 2)?;
        (middle > 0.0).then(|| slope * float(parts.to_u64().saturating_sub(1).into()) / middle)
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

fn median(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut all: Vec<u64> = values.collect();
    let at = all.len().checked_sub(1)? / 2;
    Some(*all.select_nth_unstable(at).1)
}

/// Which loop of a rank: how many iterations, and the how-manieth such; or the level of phases.
type Key = (u64, i64);

/// Iterations of outermost loops or phases, those that take most first. `each` as [`crate::analyse_each`] has it. *Cost:* O(calls)
/// time, memory by iterations.
///
/// # Errors
///
/// If a rank cannot be read back.
pub fn phases(sections: &[Section], by: PhasesBy, each: &[Waited]) -> Result<Vec<Loop>, Error> {
    let mut waits: HashMap<u32, Vec<Waited>> = HashMap::new();
    each.iter().for_each(|w| waits.entry(w.rank).or_default().push(*w));
    let mut loops: BTreeMap<Key, (Place, BTreeMap<u64, Moment>)> = BTreeMap::new();
    for section in sections {
        for rank in section.ranks.iter() {
            let mut own = waits.remove(&rank).unwrap_or_default();
            own.sort_unstable();
            let mut cut =
                Cut { by, loops: &mut loops, now: None, met: HashMap::new(), numbers: HashMap::new() };
            cut.read(section, rank, own)?;
        }
    }
    let of = |((_, level), (place, turns)): (Key, (Place, BTreeMap<u64, Moment>))| Loop {
        place,
        level: (by == PhasesBy::Pcontrol).then_some(level),
        turns: turns.into_iter().map(|(number, turn)| Moment { number, ..turn }).collect(),
    };
    let mut all: Vec<Loop> = loops.into_iter().map(of).collect();
    all.sort_by_key(|l| u64::MAX - l.whole().time);
    Ok(all)
}

/// A rank that is being cut.
struct Cut<'l> {
    by: PhasesBy,
    loops: &'l mut BTreeMap<Key, (Place, BTreeMap<u64, Moment>)>,
    now: Option<(Key, u64, Moment)>,
    /// Loops of this rank by their nodes.
    met: HashMap<usize, Key>,
    /// How many loops have so many iterations, or phases this level.
    numbers: HashMap<i64, i64>,
}

impl Cut<'_> {
    fn read(&mut self, section: &Section, rank: u32, waits: Vec<Waited>) -> Result<(), Error> {
        let Some(events) = section.events(0, rank) else { return Ok(()) };
        let (mut events, mut waits) = (events.timed(), waits.into_iter().peekable());
        let (mut last, mut phase) = (None, None);
        while let Some(event) = events.next_event()? {
            let Some((enter, exit)) = event.times else { break };
            let place =
                Place { call: event.symbol.call, site: section.sites.get(event.symbol.site).map(|s| s.id) };
            if self.by == PhasesBy::Pcontrol {
                phase = self.level(&event).or(phase).filter(|_| !ends(&event));
            }
            let key = match self.by {
                PhasesBy::Loop => event.turn.map(|turn| (self.key(turn), turn.turn)),
                PhasesBy::Pcontrol => phase,
            };
            self.go_to(key, last.unwrap_or(enter), rank, place);
            let mut wait = 0;
            while let Some(w) = waits.next_if(|w| w.enter <= enter) {
                wait += if w.enter == enter { w.ns } else { 0 };
            }
            if let Some((_, _, moment)) = &mut self.now {
                moment.mpi += saturate::<u64>(exit.saturating_sub(enter));
                moment.wait += wait;
                moment.time = saturate(exit.saturating_sub(moment.begin));
            }
            last = Some(exit);
        }
        self.enter(rank);
        Ok(())
    }

    /// The loop that an iteration is of.
    fn key(&mut self, turn: Turn) -> Key {
        let numbers = &mut self.numbers;
        *self.met.entry(turn.node).or_insert_with(|| {
            let n = numbers.entry(saturate(turn.turns)).or_default();
            *n += 1;
            (turn.turns, *n - 1)
        })
    }

    /// The phase that a call begins.
    fn level(&mut self, event: &Event<'_>) -> Option<(Key, u64)> {
        if event.name() != Some(names::MPI_Pcontrol) {
            return None;
        }
        let Some(Arg::One(level)) = event.arg("level") else { return None };
        let n = self.numbers.entry(level).or_default();
        *n += 1;
        Some(((0, level), saturate(*n - 1)))
    }

    /// The next call is of an iteration, of another than the one before, or of none.
    fn go_to(&mut self, next: Option<(Key, u64)>, begin: i64, rank: u32, place: Place) {
        if self.now.as_ref().map(|(key, turn, _)| (*key, *turn)) == next {
            return;
        }
        self.enter(rank);
        self.now = next.map(|(key, turn)| (key, turn, Moment { begin, ranks: 1, ..Moment::default() }));
        if let Some((key, _)) = next {
            self.loops.entry(key).or_insert_with(|| (place, BTreeMap::new()));
        }
    }

    /// Adds the iteration in hand.
    fn enter(&mut self, rank: u32) {
        let Some((key, turn, mut moment)) = self.now.take() else { return };
        moment.longest = (moment.time, rank);
        moment.end = moment.begin.saturating_add(saturate(moment.time));
        let Some((_, turns)) = self.loops.get_mut(&key) else { return };
        turns.entry(turn).or_default().add(&moment);
    }
}

fn ends(event: &Event<'_>) -> bool {
    event.row.is_some_and(|row| row.kind == Kind::Finalize)
}
