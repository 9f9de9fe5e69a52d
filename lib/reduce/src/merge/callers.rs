//! Who the ranks are in the calls of one symbol, and how often each makes them: what turning values into codes needs.

use std::collections::HashMap;

use st_model::form::Own;
use st_model::ranklist::RankList;

/// The ranks that execute a symbol. Ranks whose own rank is their rank in the world take no space.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callers {
    world: i64,
    others: HashMap<u32, Own>,
    /// Some rank calls on communicators in which its own rank differs.
    unknown: bool,
}

impl Callers {
    /// Notes who a rank is; `None` if that differs from call to call. Whether that takes space.
    pub(crate) fn add(&mut self, rank: u32, own: Option<Own>) -> bool {
        match own {
            None => self.unknown = true,
            Some(own) if own.me == i64::from(rank) && (self.world == 0 || own.size == self.world) => {
                self.world = own.size;
            }
            Some(own) => {
                self.others.insert(rank, own);
                return true;
            }
        }
        false
    }
    /// Whether every rank is somebody.
    pub(crate) fn known(&self) -> bool {
        !self.unknown
    }
    pub(crate) fn of(&self, rank: u32) -> Own {
        let world = Own { me: rank.into(), size: self.world };
        self.others.get(&rank).copied().unwrap_or(world)
    }
}

/// Lengths that have sets of ranks, and runs of ranks that such a set has at most: what is looked through for a rank.
const SETS: (usize, usize) = (8, 8);

/// Number of values that each rank reads of a stream; most ranks read equally many, and of the others many in sets that are
/// regular.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lengths {
    first: Option<u64>,
    sets: Vec<(u64, RankList)>,
    others: HashMap<u32, u64>,
}

impl Lengths {
    pub(crate) fn add(&mut self, rank: u32, len: u64) {
        if *self.first.get_or_insert(len) == len {
            return;
        }
        let (sets, runs) = SETS;
        let at = self.sets.iter().position(|(of, _)| *of == len);
        let at = at.or_else(|| {
            let room = self.sets.len() < sets;
            room.then(|| self.sets.push((len, RankList::default()))).map(|()| self.sets.len() - 1)
        });
        // Behind its highest rank a set takes another at once; elsewhere it would be made anew.
        let takes = |set: &&mut RankList| {
            set.runs().len() <= runs && set.highest().is_none_or(|highest| highest < rank)
        };
        match at.map(|at| &mut self.sets[at].1).filter(takes) {
            Some(set) => set.insert(rank),
            None => drop(self.others.insert(rank, len)),
        }
    }
    pub(crate) fn of(&self, rank: u32) -> u64 {
        let set = self.sets.iter().find(|(_, set)| set.contains(rank)).map(|(len, _)| *len);
        set.or_else(|| self.others.get(&rank).copied()).or(self.first).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_in_and_without_order_are_kept() {
        let irregular = |rank: u32| u64::from(rank.wrapping_mul(2_654_435_761) >> 28);
        let regular = |rank: u32| u64::from(rank % 3);
        for of in [&irregular as &dyn Fn(u32) -> u64, &regular] {
            let mut lengths = Lengths::default();
            (0..2000).for_each(|rank| lengths.add(rank, of(rank)));
            (0..2000).for_each(|rank| assert_eq!(lengths.of(rank), of(rank), "{rank}"));
        }
        let mut lengths = Lengths::default();
        (0..1 << 16).for_each(|rank| lengths.add(rank, regular(rank)));
        assert!(lengths.others.is_empty() && lengths.sets.len() == 2);
        // The ends before what is between them.
        let mut lengths = Lengths::default();
        let ends = [(0, 5), (1, 7), (1999, 7)];
        ends.into_iter()
            .chain((2..1999).map(|rank| (rank, 7)))
            .for_each(|(rank, len)| lengths.add(rank, len));
        assert!(lengths.sets[0].1.len() == 2 && (1..2000).all(|rank| lengths.of(rank) == 7));
    }
}
