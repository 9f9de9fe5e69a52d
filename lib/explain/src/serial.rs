//! Ranks that run one after another, though all compute alike: each waits for a message of the one before it, which waits itself.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use foldhash::fast::FixedState;
use st_model::num::{Exact as _, float, narrow, saturate};

use crate::analysis::Analysis;
use crate::chain::Chain;
use crate::findings::Finding;
use crate::matter::Matter;
use crate::timeline::{Near, Timeline};
use crate::waits::{At, WaitKind};

/// The least load balance of ranks that compute alike, and the most serialisation of a run that is looked at.
const ALIKE: f64 = 0.8;
const SERIAL: f64 = 0.8;

/// One part in so many of all waits, at least, are for messages.
const MESSAGES: u64 = 4;

/// The least part of all waits in which the one that is waited for waits, too, and the least part that are in one direction, of a chain.
/// Delays that come by chance go from rank to rank as well, but now this way, now that way.
const CHAINED: f64 = 0.4;
const DIRECTED: f64 = 0.9;

/// Of so many other ranks one at most does not wait while one does not, in the mean, where ranks run one after another whatever else.
const OTHERS: f64 = 8.0;

/// Waits of all ranks, by where they lie.
#[derive(Debug)]
struct Shape {
    /// How many ranks do not wait while one does not, in the mean.
    busy: f64,
    /// The part of all waits where of two ranks always the same waits for the other at a place.
    directed: f64,
    /// The part of all waits in which the one that is waited for waits, too, and has its turn after that.
    chained: f64,
}

fn long(from: i64, to: i64) -> u64 {
    saturate(to.saturating_sub(from))
}

impl Analysis {
    /// That ranks run one after another: what messages are waited for, until the waits that are due to it are put together.
    pub(crate) fn serialised(&self) -> Option<Finding> {
        let e = self.efficiency();
        let (balance, serial) = (e.load_balance()?, e.serialisation()?);
        if self.ranks.len() < 2 || self.timelines.is_empty() || balance < ALIKE || serial > SERIAL {
            return None;
        }
        // Clocks that disagree order messages as they like.
        let waits = self.waits.total();
        if self.waits.violations * 100 > waits.count {
            return None;
        }
        let by_messages =
            |kind| matches!(kind, WaitKind::LateSender | WaitKind::LateReceiver | WaitKind::EarlyScan);
        let messages = self.waits.victims.iter().filter(|((kind, _), _)| by_messages(*kind));
        let cost: u64 = messages.map(|(_, sum)| sum.ns).fold(0, u64::saturating_add);
        if cost == 0 || cost < waits.ns / MESSAGES {
            return None;
        }
        let Shape { busy, directed, chained } = self.shape();
        let others = self.ranks.len().to_u64() - 1;
        if busy > 1.0 + float(others.into()) / OTHERS && (directed < DIRECTED || chained < CHAINED) {
            return None;
        }
        let all = self.ranks.iter().map(|r| (At { rank: r.rank, place: u32::MAX }, cost));
        Some(Finding { cost, culprits: all.collect(), ..Finding::of(Matter::Serialised) })
    }

    /// *Cost:* O(waits · log waits).
    fn shape(&self) -> Shape {
        // Other threads of a rank wait while it computes.
        let lines: Vec<&Timeline> =
            self.timelines.chunk_by(|a, b| a.rank == b.rank).filter_map(|of_rank| of_rank.first()).collect();
        let mut pairs: HashMap<(u32, u32, u32), [u64; 2], FixedState> = HashMap::default();
        let (mut chained, mut all) = (0, 0_u64);
        let chains: Vec<Chain<'_>> = self.timelines.iter().map(|line| Chain::of(&line.waits)).collect();
        for line in &lines {
            let mut near = Near::default();
            for wait in &line.waits {
                let by = &self.timelines[wait.by.to_usize()];
                let place = line.place_at(wait.enter, &mut near).unwrap_or(u32::MAX);
                let ns = long(wait.enter, wait.until);
                let pair = (place, line.rank.min(by.rank), line.rank.max(by.rank));
                pairs.entry(pair).or_default()[usize::from(line.rank < by.rank)] += ns;
                chained += chains[wait.by.to_usize()].within(wait.enter, wait.until);
                all += ns;
            }
        }
        let directed = pairs.values().map(|[a, b]| a.abs_diff(*b)).sum();
        let part = |ns: u64| float(ns.into()) / float(all.max(1).into());
        Shape { busy: busy(&lines), directed: part(directed), chained: part(chained) }
    }
}

/// How many ranks do not wait while one does not, in the mean. *Cost:* O(waits · log ranks).
fn busy(lines: &[&Timeline]) -> f64 {
    let begin = |(i, line): (usize, &&Timeline)| Reverse((line.begin(), true, narrow::<u32>(i), 0));
    let mut changes: BinaryHeap<Reverse<(i64, bool, u32, usize)>> =
        lines.iter().enumerate().map(begin).collect();
    let (mut last, mut busy) = (i64::MIN, 0_u64);
    let (mut once, mut twice) = (0_u128, 0_u128);
    while let Some(Reverse((at, begins, i, next))) = changes.pop() {
        let ns = u128::from(if busy > 0 { long(last, at) } else { 0 });
        once += ns * u128::from(busy);
        twice += ns * u128::from(busy * busy);
        last = at;
        let line = lines[i.to_usize()];
        let wait = line.waits.get(next);
        if begins {
            busy += 1;
            changes.push(Reverse((wait.map_or(line.end(), |w| w.enter), false, i, next)));
        } else {
            busy -= 1;
            changes.extend(wait.map(|w| Reverse((w.until, true, i, next + 1))));
        }
    }
    float(twice) / float(once.max(1))
}
