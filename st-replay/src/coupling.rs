//! How far ranks that draw their times from one distribution were slow together: as far as what they waited for each other says.
//!
//! Between two collective operations that nobody leaves before all have come, each rank computes, and the slowest determines when
//! the operation ends. A merged trace does not hold who computed how long in which step, but how long all computed, and how long they
//! waited in the operation: the mean of what the slowest rank took is what ranks took and waited in the mean, less what the operation
//! takes by itself. Trying orders of draws shows what the slowest would take if ranks were slow independently, all together, or in
//! turns; the mixture of two of these that comes to what the trace says is taken. Where no such operation follows, or not all
//! ranks of it are in the section, ranks are independent.
//!
//! All ranks try the same calls and draws, those of the first, or they would come to couplings of their own.
//!
//! *Cost:* `STEPS` draws of the calls at the beginning; memory for the distributions.
//!
//! Source: our own.

use st_model::num::{Exact, narrow};
use std::collections::{BTreeMap, HashMap};

use st_model::event::Event;
use st_model::project::Error;
use st_model::section::{NO_SYM, Predecessors, Section, Sym, Thread};
use st_model::sketch::{Shape, Sketch};
use st_model::slow;

use crate::drawn::Drawn;
use crate::order::{Coupled, Order, WHOLE};

/// Draws that are tried at most, three times: to see what couplings do, with those that are near, and in other orders.
const STEPS: u64 = 1 << 18;

/// Orders by chance that are tried where none comes near to what is wanted, and how near is near enough: this part of it.
const SHUFFLES: u64 = 16;
const NEAR: u128 = 500;

/// How finely shares are tried around the one that is reckoned, and how far, in parts of [`WHOLE`].
const FINE: i64 = 64;
const AROUND: i64 = 8;

/// An event and its predecessor.
pub type PairOf = (Sym, Sym);

/// How ranks' draws before an operation are coupled.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Coupling {
    /// In how many of [`WHOLE`] steps: in turns, or, if negative, together.
    share: i64,
    /// Which of the orders by chance all ranks take.
    shuffled: u64,
}

impl Coupling {
    /// As often together, or, if negative, in turns, as merging has kept it ([`slow::How::Chance`]).
    #[must_use]
    pub fn kept(together: i8) -> Self {
        Self { share: -i64::from(together) * narrow::<i64>(WHOLE) / slow::WHOLE, shuffled: 0 }
    }
}

/// Couplings by operation.
pub type Couplings = BTreeMap<Sym, Coupling>;

/// What the slowest of all ranks takes to an operation, in all steps that were tried, ns: for each coupling that was tried.
#[derive(Clone, Debug, Default)]
struct Tried {
    slowest: Vec<u128>,
    /// What ranks take in the mean.
    mean: u128,
    steps: u64,
}

/// The gaps of a pair, and what each rank's are multiplied by.
#[derive(Debug)]
pub struct Gaps<'a> {
    /// In ascending order, as many as the rank has whose calls are tried.
    pub drawn: &'a Drawn,
    /// What tells them from those of other pairs.
    pub of: u64,
    /// Own total of each rank and what it is a part of, by the rank's place.
    pub scales: &'a [(u128, u128)],
}

/// A rank among those of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// World rank.
    pub rank: u32,
    /// Its place among them, from 0.
    pub place: u64,
    /// How many they are.
    pub ranks: u64,
}

/// The order of a rank, coupled to those of others.
#[must_use]
pub fn coupled(order: Order, coupling: Coupling, of: Member) -> Order {
    let how = if coupling.share > 0 { Coupled::InTurns(of.place, of.ranks) } else { Coupled::Together };
    order.shuffled(coupling.shuffled).coupled(how, coupling.share.unsigned_abs())
}

/// Finds the couplings of a section's thread, by the calls of a rank.
///
/// # Errors
///
/// If the section is malformed.
pub fn find(
    section: &Section,
    thread: usize,
    rank: u32,
    gaps: &HashMap<PairOf, Gaps<'_>>,
) -> Result<Couplings, Error> {
    let Some(t) = section.threads.get(thread).filter(|t| t.ranks.len() > 1) else {
        return Ok(Couplings::new());
    };
    let whole = narrow::<i64>(WHOLE);
    let of = Trial { section, thread, rank, t, gaps };
    let ends = [-whole, 0, whole].map(|share| Coupling { share, shuffled: 0 });
    let before = operations_after(section, thread, rank)?;
    let tried = of.run(|_| &ends)?;
    let around = |(sym, tried): (&Sym, &Tried)| {
        let about = tried.reckoned(waited(t, *sym)?)?;
        let share = |k: i64| (about + k * whole / FINE).clamp(-whole, whole);
        Some((*sym, (-AROUND..=AROUND).map(|k| Coupling { share: share(k), shuffled: 0 }).collect()))
    };
    let mut windows: BTreeMap<Sym, Vec<Coupling>> = tried.iter().filter_map(around).collect();
    let mut found: BTreeMap<Sym, (u128, Coupling)> = BTreeMap::new();
    let mut draws = 0_u64;
    for shuffled in 0..SHUFFLES {
        windows.values_mut().flatten().for_each(|coupling| coupling.shuffled = shuffled);
        let tried =
            of.run(|pair| before.get(&pair).and_then(|sym| windows.get(sym)).map_or(&[], Vec::as_slice))?;
        for (sym, tried) in &tried {
            let (Some(window), Some(waited)) = (windows.get(sym), waited(t, *sym)) else { continue };
            let wanted = tried.wanted(waited);
            for (coupling, slowest) in window.iter().zip(&tried.slowest) {
                let (off, best) = (slowest.abs_diff(wanted), found.entry(*sym));
                let best = best.or_insert((u128::MAX, *coupling));
                *best = if off < best.0 { (off, *coupling) } else { *best };
            }
            if found.get(sym).is_some_and(|(off, _)| *off <= wanted / NEAR) {
                windows.remove(sym);
            }
        }
        // Where there are many steps, all orders come to the same.
        draws += tried.values().map(|of| of.steps * of.slowest.len().to_u64() * t.ranks.len()).sum::<u64>();
        if windows.is_empty() || draws >= STEPS {
            break;
        }
    }
    Ok(found.into_iter().map(|(sym, (_, coupling))| (sym, coupling)).collect())
}

/// The operation in which all ranks wait for all that first follows each of a rank's pairs.
///
/// # Errors
///
/// If the section is malformed.
pub fn operations_after(section: &Section, thread: usize, rank: u32) -> Result<HashMap<PairOf, Sym>, Error> {
    let mut found = HashMap::new();
    let (Some(t), Some(mut events)) = (section.threads.get(thread), section.events(thread, rank)) else {
        return Ok(found);
    };
    let mut joins = Joins { ranks: t.ranks.len(), whole: HashMap::new() };
    let paths = Predecessors::of(&t.sketches);
    let (mut pred, mut open) = (NO_SYM, Vec::new());
    for _ in 0..STEPS {
        let Some(event) = events.next_event()? else { break };
        let pair = (event.sym, std::mem::replace(&mut pred, paths.pred(event.sym)));
        if !found.contains_key(&pair) {
            open.push(pair);
        }
        if joins.join(&event) {
            for pair in open.drain(..) {
                found.entry(pair).or_insert(event.sym);
            }
        }
    }
    Ok(found)
}

/// What is tried.
struct Trial<'a> {
    section: &'a Section,
    thread: usize,
    rank: u32,
    t: &'a Thread,
    gaps: &'a HashMap<PairOf, Gaps<'a>>,
}

impl Trial<'_> {
    /// Goes through the calls with the couplings that are to be tried for each pair: what was found for each operation.
    fn run<'c>(&self, couplings: impl Fn(PairOf) -> &'c [Coupling]) -> Result<BTreeMap<Sym, Tried>, Error> {
        let mut tried = BTreeMap::<Sym, Tried>::new();
        let Some(mut events) = self.section.events(self.thread, self.rank) else { return Ok(tried) };
        let mut joins = Joins { ranks: self.t.ranks.len(), whole: HashMap::new() };
        let paths = Predecessors::of(&self.t.sketches);
        let (mut pred, mut left) = (NO_SYM, STEPS);
        let mut counted = HashMap::<PairOf, u64>::new();
        let mut taken: Vec<Vec<u128>> = self.t.ranks.iter().map(|_| Vec::new()).collect();
        while let Some(event) = events.next_event()? {
            let sym = event.sym;
            let pair = (sym, std::mem::replace(&mut pred, paths.pred(sym)));
            if let Some(gaps) = self.gaps.get(&pair).filter(|_| pair.1 != NO_SYM) {
                let couplings = couplings(pair);
                let j = counted.entry(pair).or_default();
                let ranks = self.t.ranks.len();
                for (place, (rank, taken)) in (0..).zip(self.t.ranks.iter().zip(&mut taken)) {
                    gaps.add(*j, Member { rank, place, ranks }, couplings, taken);
                }
                *j += 1;
                let draws = couplings.len().to_u64();
                left = left.saturating_sub(ranks.saturating_mul(draws.max(1)));
            }
            if joins.join(&event) {
                tried.entry(sym).or_default().step(&mut taken);
                if left == 0 {
                    break;
                }
            }
        }
        Ok(tried)
    }
}

impl Gaps<'_> {
    /// Adds a rank's j-th gap, for each coupling.
    fn add(&self, j: u64, to: Member, couplings: &[Coupling], taken: &mut Vec<u128>) {
        let order = Order::new(self.of, to.rank);
        let scale = usize::try_from(to.place).ok().and_then(|place| self.scales.get(place));
        let (own, of) = scale.copied().unwrap_or((1, 1));
        if taken.len() < couplings.len() {
            taken.resize(couplings.len(), 0);
        }
        for (taken, coupling) in taken.iter_mut().zip(couplings) {
            let position = coupled(order, *coupling, to).position(j, self.drawn.len());
            *taken += u128::from(self.drawn.at(position, to.rank)).saturating_mul(own) / of.max(1);
        }
    }
}

impl Tried {
    /// All ranks have come to the operation.
    fn step(&mut self, taken: &mut [Vec<u128>]) {
        let couplings = taken.iter().map(Vec::len).max().unwrap_or(0);
        if self.slowest.len() < couplings {
            self.slowest.resize(couplings, 0);
        }
        for (i, slowest) in self.slowest.iter_mut().enumerate() {
            *slowest += taken.iter().filter_map(|t| t.get(i)).max().copied().unwrap_or(0);
        }
        // Whatever the coupling, ranks draw the same in all: any of them will do for the mean.
        let ranks = u128::from(taken.len().to_u64().max(1));
        self.mean += taken.iter().filter_map(|t| t.get(t.len() / 2)).sum::<u128>() / ranks;
        self.steps += 1;
        taken.iter_mut().for_each(|t| t.fill(0));
    }

    /// What the slowest take if ranks wait so long for others in the mean.
    fn wanted(&self, waited: u64) -> u128 {
        self.mean + u128::from(waited) * u128::from(self.steps)
    }

    /// About which coupling makes ranks wait so long, from what the ends and none at all make them.
    fn reckoned(&self, waited: u64) -> Option<i64> {
        let [together, alone, in_turns] = *self.slowest.first_chunk::<3>()?;
        let wanted = self.wanted(waited);
        let end = if wanted > alone { in_turns } else { together };
        // What makes no difference need not be chosen.
        let range = end.abs_diff(alone);
        if range == 0 || (end > alone) != (wanted > alone) {
            return None;
        }
        let share = wanted.abs_diff(alone).saturating_mul(WHOLE.into()) / range;
        let share = i64::try_from(share.min(WHOLE.into())).ok()?;
        Some(if wanted > alone { share } else { -share })
    }
}

/// How long ranks waited in an operation for others, in the mean, ns: what it took, less what it takes by itself, which is what it took
/// for the last to come: one of all ranks each time.
fn waited(t: &Thread, sym: Sym) -> Option<u64> {
    let mut all = Sketch::default();
    for sketch in t.sketches.iter().filter(|s| s.sym == sym) {
        all.merge(&sketch.comm);
    }
    let of_last = 500 / t.ranks.len().max(1);
    // Other shapes do not know it so exactly.
    let known = matches!(all.shape(), Shape::Buckets | Shape::Quantiles);
    let own = if known { all.quantile(of_last) } else { all.min.0 };
    (all.count > 0).then(|| all.mean().saturating_sub(own))
}

/// Which calls nobody leaves before all ranks of the section have come.
struct Joins {
    /// Number of the section's ranks.
    ranks: u64,
    /// Whether a communicator has all of them.
    whole: HashMap<i64, bool>,
}

impl Joins {
    fn join(&mut self, event: &Event<'_>) -> bool {
        let Some(comm) = event.comm().filter(|_| event.action().joins()) else { return false };
        *self.whole.entry(comm).or_insert_with(|| {
            let members = event.communicator().map(|c| &c.content);
            members.is_some_and(|c| c.remote.is_empty() && c.members.len() == self.ranks)
        })
    }
}
