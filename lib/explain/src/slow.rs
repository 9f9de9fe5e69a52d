//! Ranks that are slow wherever they compute.

use std::collections::BTreeMap;

use st_model::num::Exact as _;

use crate::analysis::Analysis;
use crate::findings::{Before, Finding};
use crate::matter::Matter;
use crate::waits::At;

/// A place that takes more than one part in so many of all ranks' time is looked at by itself, others together, as many as take that
/// much: at each of hundreds of places with few calls ranks differ by chance.
const ALONE: u64 = 100;

/// Less than one part in so many says nothing.
const NOTHING: u64 = 1000;

/// A rank that is slow is so at this many places at least, those that are nothing by themselves counted as one.
const LEAST: u64 = 3;

/// More than so many parts in four of what it computes longer at one place alone are that place's, which those who wait tell: elsewhere
/// ranks differ by chance, in one run and not in the next.
const AT_ONE: u64 = 3;

/// Places that are looked at together.
#[derive(Default)]
struct Group {
    /// How long all ranks compute there, ns.
    sum: u64,
    /// How many they are, and how many of these say something by themselves.
    places: u64,
    telling: u64,
    /// How long each rank does, and those of the others that do so in the mean, ns.
    ranks: BTreeMap<u32, [u64; 2]>,
}

/// What is known of a rank when all places have been looked at.
#[derive(Clone, Copy, Default)]
struct Pace {
    /// How long it computes where others do, too, ns.
    computed: u64,
    /// The part of it that is where it takes a tenth longer than they do, and how much longer.
    slow: u64,
    more: u64,
    /// How many places these are, and how many of these say something, at least one in a group.
    places: u64,
    telling: u64,
    /// How much longer it computes at the place where that is most, and that place.
    most: (u64, u32),
}

impl Group {
    fn add(&mut self, ranks: &[(u32, u64)], sum: u64, tells: bool) {
        self.sum += sum;
        self.places += 1;
        self.telling += u64::from(tells);
        for (rank, own) in ranks {
            let [of_rank, of_others] = self.ranks.entry(*rank).or_default();
            *of_rank += own;
            *of_others += (sum - own) / (ranks.len().to_u64() - 1).max(1);
        }
    }

    /// Adds it to what is known of ranks, and begins anew.
    fn end(&mut self, all: &mut BTreeMap<u32, Pace>) {
        for (rank, [own, others]) in std::mem::take(&mut self.ranks) {
            let pace = all.entry(rank).or_default();
            pace.computed += own;
            if own > others + others / 10 {
                pace.slow += own;
                pace.more += own - others;
                pace.places += self.places;
                pace.telling += self.telling.max(1);
            }
        }
        *self = Self::default();
    }
}

/// How ranks compute before places that several of them have; `time`: all ranks' together, ns.
fn paces(before: &Before<'_>, time: u64) -> BTreeMap<u32, Pace> {
    let (mut all, mut little) = (BTreeMap::<u32, Pace>::new(), Group::default());
    for (place, ranks) in before.iter().filter(|(_, ranks)| ranks.len() > 1) {
        let ranks: Vec<(u32, u64)> = ranks.iter().map(|(rank, t)| (*rank, t.before)).collect();
        let sum: u64 = ranks.iter().map(|(_, ns)| ns).sum();
        for (rank, own) in &ranks {
            let more = own.saturating_sub((sum - own) / (ranks.len().to_u64() - 1).max(1));
            let pace = all.entry(*rank).or_default();
            pace.most = pace.most.max((more, *place));
        }
        let mut alone = Group::default();
        let group = if sum > time / ALONE { &mut alone } else { &mut little };
        group.add(&ranks, sum, sum > time / NOTHING);
        if group.sum > time / ALONE {
            group.end(&mut all);
        }
    }
    if little.sum > time / NOTHING {
        little.end(&mut all);
    }
    all
}

impl Analysis {
    /// Ranks that compute a tenth longer than the others, and so at three places or more, where they do nine tenths of it.
    pub(crate) fn slow_ranks(&self, before: &Before<'_>) -> Vec<Finding> {
        let computed = self.computed();
        let of = |(rank, pace): (u32, Pace)| {
            // Others may do the same work before other calls.
            let [own, others] = self.computation(rank, computed);
            let cost = pace.more.min(own.saturating_sub(others));
            let everywhere = pace.telling >= LEAST && pace.slow / 9 >= pace.computed / 10;
            let (at_one, place) = pace.most;
            let everywhere = everywhere && at_one.saturating_mul(4) <= pace.more.saturating_mul(AT_ONE);
            (everywhere && cost > others / 10).then(|| Finding {
                cost,
                count: pace.places,
                place,
                culprits: vec![(At { rank, place }, cost)],
                ..Finding::of(Matter::SlowRank)
            })
        };
        paces(before, self.time()).into_iter().filter_map(of).collect()
    }
}
