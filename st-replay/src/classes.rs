//! Draws of calls of which a merged trace tells whether the rank was slow before them ([`st_model::slow`]).
//!
//! A class of durations is a range of positions in a distribution: a draw takes one in the range of its class, in an order by chance.

use std::collections::HashMap;

use st_model::section::{Sym, Thread};
use st_model::slow::{How, Steps};

use crate::drawn::Drawn;
use crate::order::Order;

/// The classes of a rank's calls, in their order.
#[derive(Clone, Debug, Default)]
pub struct Classes(HashMap<Sym, (Vec<u8>, usize)>);

impl Classes {
    /// Those of a rank that a thread tells of.
    #[must_use]
    pub fn new(t: &Thread, rank: u32) -> Self {
        let Some(place) = t.ranks.position(rank) else { return Self::default() };
        let of = |slow: &st_model::slow::Slow| match &slow.how {
            How::Steps(steps) => Some((slow.sym, (steps.of_rank(place, t.ranks.len())?, 0))),
            How::Chance(_) => None,
        };
        Self(t.slow.iter().filter_map(of).collect())
    }

    /// The class of the next call of an event, if it is told.
    pub fn next(&mut self, sym: Sym) -> Option<u8> {
        let (classes, at) = self.0.get_mut(&sym)?;
        let class = classes.get(*at).copied();
        *at = (*at + 1) % classes.len().max(1);
        class
    }
}

/// The draws of an event after a predecessor, by class.
#[derive(Clone, Debug)]
pub struct ByClass(Vec<Range>);

/// Positions from which a number of draws are taken.
#[derive(Clone, Copy, Debug)]
struct Range {
    from: u64,
    to: u64,
    draws: u64,
    next: u64,
}

impl ByClass {
    /// Of so many draws in each class.
    #[must_use]
    pub fn new(steps: &Steps, counts: &[u64], gaps: &Drawn) -> Self {
        let at = |limit: Option<&u64>, none: u64| limit.map_or(none, |limit| gaps.below(*limit));
        let of = |class: usize| {
            let from = at(class.checked_sub(1).and_then(|before| steps.limits.get(before)), 0);
            // What the distribution does not have of a class is nearest to it.
            let from = from.min(gaps.len().saturating_sub(1));
            let to = at(steps.limits.get(class), gaps.len()).max(from + 1);
            Range { from, to, draws: counts.get(class).copied().unwrap_or(0), next: 0 }
        };
        Self((0..=steps.limits.len()).map(of).collect())
    }

    /// The position of the next draw of a class.
    pub fn position(&mut self, class: u8, order: &Order) -> u64 {
        let Some(range) = self.0.get_mut(usize::from(class)) else { return 0 };
        let at = order.position(range.next, range.draws);
        range.next += 1;
        range.at(at)
    }

    /// The positions of all draws, in any order.
    pub fn positions(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(|range| (0..range.draws).map(|draw| range.at(draw)))
    }
}

impl Range {
    /// The position of one of the draws, which are evenly spread.
    fn at(&self, draw: u64) -> u64 {
        let wide = (2 * u128::from(draw) + 1) * u128::from(self.to - self.from);
        self.from + st_model::num::narrow::<u64>(wide / (2 * u128::from(self.draws.max(1))))
    }
}
