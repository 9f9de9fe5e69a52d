//! Finding a place in a walk without walking there.

use std::ops::Range;

use super::{FlatTree, Item, LoopPosition, Walk, WalkError};
use crate::ints::{Cursor, Together};
use crate::num::{Exact as _, saturate};

/// Nested loops that are passed over by their sums; what lies deeper is gone through.
const DEEPEST: usize = 64;

/// A place that was looked for.
#[derive(Debug)]
pub struct Found<'a> {
    /// A walk that has still to come to the symbol.
    pub walk: Walk<'a>,
    /// What all symbols before it weigh.
    pub before: u128,
    /// Its position.
    pub index: u64,
}

/// How long a place is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Turns of loops that may be looked at. Where more would have to be, all symbols are gone through.
    pub looks: u64,
    /// Runs of symbols that may be gone through then.
    pub runs: u64,
}

/// What symbols weigh, and how many there are.
#[derive(Clone, Copy, Default)]
struct Sum {
    weight: u128,
    symbols: u64,
}

impl Sum {
    fn add(&mut self, other: Self, times: u64) {
        self.weight = self.weight.saturating_add(other.weight.saturating_mul(times.into()));
        self.symbols = self.symbols.saturating_add(other.symbols.saturating_mul(times));
    }
}

/// What is looked for.
struct Search<'t, 'w> {
    tree: &'t FlatTree,
    weights: &'w [u64],
    /// Turns of loops that may still be looked at.
    looks: u64,
}

/// More would be looked at than is allowed.
struct Irregular;

impl Search<'_, '_> {
    fn weight(&self, sym: u32) -> u64 {
        self.weights.get(sym.to_usize()).copied().unwrap_or(0)
    }

    /// What some nodes come to if they are gone through so many times; reads their counts, of which the list holds those from the
    /// first of these nodes on.
    fn sum(&mut self, nodes: &Range<usize>, counts: &mut [Cursor<'_>], turns: u64) -> Result<Sum, Irregular> {
        let mut together = Together::new(counts.to_vec(), turns);
        let mut all = Sum::default();
        while let Some(times) = together.next_turn() {
            self.looks = self.looks.checked_sub(1).ok_or(Irregular)?;
            all.add(self.body(nodes, together.cursors())?, times);
        }
        counts.clone_from_slice(together.cursors());
        Ok(all)
    }

    fn body(&mut self, nodes: &Range<usize>, counts: &mut [Cursor<'_>]) -> Result<Sum, Irregular> {
        let &Range { start: first, end } = nodes;
        let (mut all, mut at) = (Sum::default(), first);
        while at < end {
            let n = saturate(counts.get_mut(at - first).map_or(0, Cursor::next));
            let after = self.tree.end_of(at).min(end);
            match self.tree.items.get(at) {
                Some(Item::Leaf { sym }) => {
                    all.add(Sum { weight: self.weight(*sym).into(), symbols: 1 }, n);
                }
                _ if n > 0 => {
                    let below = counts.get_mut(at + 1 - first..after - first).unwrap_or(&mut []);
                    all.add(self.sum(&(at + 1..after), below, n)?, 1);
                }
                _ => {}
            }
            at = after;
        }
        Ok(all)
    }

    /// How many of so many turns weigh no more than `most`.
    fn turns(
        &mut self,
        nodes: &Range<usize>,
        counts: &[Cursor<'_>],
        turns: u64,
        most: u128,
    ) -> Result<u64, Irregular> {
        let (mut fit, mut too_many) = (0, turns);
        while too_many - fit > 1 {
            let middle = fit + (too_many - fit) / 2;
            let weight = self.sum(nodes, &mut counts.to_vec(), middle)?.weight;
            *(if weight <= most { &mut fit } else { &mut too_many }) = middle;
        }
        Ok(fit)
    }
}

impl<'a> Walk<'a> {
    /// The symbol at whose end the weights of all symbols up to it exceed `target`: with weight 1 for each that at position
    /// `target`. `None` if all weigh no more. `weights` are by symbol.
    ///
    /// *Cost:* by what the counts store, and the logarithm of the iterations of each loop around the place: of loops whose
    /// counts repeat no matter how long they are. Where [`Limits::looks`] do not suffice, by the symbols.
    ///
    /// # Errors
    ///
    /// As [`Walk::next_symbol`], and if it takes more than is allowed.
    pub fn seek(
        tree: &'a FlatTree,
        counts: Vec<Cursor<'a>>,
        weights: &[u64],
        target: u128,
        limits: Limits,
    ) -> Result<Option<Found<'a>>, WalkError> {
        let mut search = Search { tree, weights, looks: limits.looks };
        // A damaged tree may have fewer counts than nodes.
        let plain = counts.len() == tree.items.len() && tree.depth() <= DEEPEST;
        let quick = if plain { search.find(counts.clone(), target) } else { Err(Irregular) };
        match quick {
            Ok(found) => Ok(found),
            Err(Irregular) => search.go_through(Self::new(tree, counts), target, limits.runs),
        }
    }

    /// Where the walk is in each loop around the last symbol, outermost first: iteration, from 0, and how many there are.
    pub fn turns(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let count = |n: i64| n.unsigned_abs();
        let own = (self.run > 1).then(|| (count(self.run - 1 - self.repeats), count(self.run)));
        let around = self.frames.iter().filter(|frame| frame.turns > 1);
        around.map(move |f| (count(f.turns - 1 - f.left), count(f.turns))).chain(own)
    }
}

impl<'t> Search<'t, '_> {
    fn find<'a>(&mut self, mut counts: Vec<Cursor<'a>>, target: u128) -> Result<Option<Found<'a>>, Irregular>
    where
        't: 'a,
    {
        let tree: &'a FlatTree = self.tree;
        let (mut done, mut frames, mut at, mut end) = (Sum::default(), Vec::new(), 0, tree.items.len());
        while at < end {
            let n = counts.get_mut(at).map_or(0, Cursor::next);
            let times = saturate::<u64>(n);
            let (after, left) = (tree.end_of(at).min(end), target - done.weight);
            let Some(Item::Body { .. }) = tree.items.get(at) else {
                let Some(Item::Leaf { sym }) = tree.items.get(at) else { break };
                let one = Sum { weight: self.weight(*sym).into(), symbols: 1 };
                let fit = left.checked_div(one.weight).map_or(times, saturate).min(times);
                done.add(one, fit);
                at += 1;
                if fit < times {
                    let (sym, repeats) = (*sym, saturate(times - fit));
                    let walk = Walk { tree, counts, frames, at, end, sym, run: n, repeats, failed: None };
                    return Ok(Some(Found { walk, before: done.weight, index: done.symbols }));
                }
                continue;
            };
            let nodes = at + 1..after;
            let below = counts.get(at + 1..after).unwrap_or(&[]).to_vec();
            let mut whole = below.clone();
            let sum = if times > 0 { self.sum(&nodes, &mut whole, times)? } else { Sum::default() };
            let turns = if sum.weight <= left { times } else { self.turns(&nodes, &below, times, left)? };
            let (mut passed, mut state) = (sum, whole);
            if turns < times {
                state = below;
                passed = self.sum(&nodes, &mut state, turns)?;
            }
            done.add(passed, 1);
            counts.splice(at + 1..after, state);
            if turns < times {
                let still = saturate::<i64>(times - turns) - 1;
                frames.push(LoopPosition { first: at + 1, end, turns: n, left: still });
                (at, end) = (at + 1, after);
            } else {
                at = after;
            }
        }
        Ok(None)
    }

    /// The same by going through all symbols.
    fn go_through<'a>(
        &self,
        mut walk: Walk<'a>,
        target: u128,
        most: u64,
    ) -> Result<Option<Found<'a>>, WalkError> {
        let (mut done, mut left) = (Sum::default(), most);
        while let Some((sym, n)) = walk.next_run()? {
            left = left.checked_sub(1).ok_or(WalkError::Long { most })?;
            let one = Sum { weight: self.weight(sym).into(), symbols: 1 };
            let times = saturate::<u64>(n);
            let fit = (target - done.weight).checked_div(one.weight).map_or(times, saturate).min(times);
            done.add(one, fit);
            if fit < times {
                (walk.sym, walk.run, walk.repeats) = (sym, n, saturate(times - fit));
                return Ok(Some(Found { walk, before: done.weight, index: done.symbols }));
            }
        }
        Ok(None)
    }
}
